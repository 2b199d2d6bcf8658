"""The connection to Ray: to the cluster at RAY_ADDRESS, or to one of our own on this machine.

Our own cluster listens on loopback only, wants a token that only its processes know, and ends with
the connection. Ray's messages do not reach the terminal.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from ...core.errors import UsageError, installing
from ...files import error_line
from ..callables import processors

_CONNECT_SECONDS = 5.0
_OBJECT_STORE = 100 << 20  # bytes; requests and findings are small, and few are in flight
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SETTINGS = 4  # the first frame of every HTTP/2 server, and so of Ray's
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_SCHEDULER_EVENTS": "0",  # no messages of the autoscaler
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # no warning about graphics cards
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    # Ray ends this process, without a word, when the head is lost for that long. See nodes.py.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "1000000",
}
_START_NODE = "start one with ray start --head, or unset RAY_ADDRESS for a cluster on this machine"


@contextlib.contextmanager
def connected() -> Iterator[Any]:
    """The module `ray`, connected. A connection that the caller has made before is used and kept.

    Raises:
        UsageError: there is no Ray here, or none at RAY_ADDRESS.
    """
    address = os.environ.get("RAY_ADDRESS", "").strip()
    own = address in ("", "local")
    if not own:
        _check_address(address)
    with _environment({**_QUIET, **(_private() if own else {})}):
        ray = _imported()
        if ray.is_initialized():
            yield ray
        elif own:
            with _own_cluster(ray):
                yield ray
        else:
            with _initialized(ray, f"RAY_ADDRESS {address}", address=address):
                yield ray


@functools.cache
def _private() -> Mapping[str, str]:
    """Settings of our own cluster, the same for the life of this process: Ray keeps them.

    Ray reads them when it is imported. If the caller has imported it, Ray's defaults hold.
    """
    if "ray" in sys.modules:
        return {}
    return {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # off: its address is that of loopback
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }


def _imported() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise UsageError(f"--engine ray needs Ray: {installing('ray')}") from None


@contextlib.contextmanager
def _own_cluster(ray: Any) -> Iterator[None]:
    """A cluster of one node on this machine, until the end of the block."""
    folder = tempfile.mkdtemp(prefix="grv-ray-")
    options: dict[str, Any] = {
        "num_cpus": processors(),
        "num_gpus": 0,
        "include_dashboard": False,
        "object_store_memory": _OBJECT_STORE,
        "_temp_dir": folder,
    }
    try:
        with _initialized(ray, "Ray could not start", address="local", **options):
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _initialized(ray: Any, what: str, **options: Any) -> Iterator[None]:
    """Ray connected with these options; every failure is one line that begins with `what`."""
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        with _same_signals(), _silent():
            ray.init(**options, **quiet, logging_level=logging.CRITICAL)
        _mute()
    except (Exception, SystemExit) as exc:  # Ray raises whatever its parts raise
        with _same_signals(), _silent():
            ray.shutdown()
        raise UsageError(f"{what}: {_said(exc)}") from exc
    try:
        yield
    finally:
        with _same_signals(), _silent():
            ray.shutdown()


def _said(exc: BaseException) -> str:
    """What Ray says, in a line; with what to do, if we know."""
    line = error_line(exc) if isinstance(exc, Exception) else f"it ended with {exc}"
    if isinstance(exc, ConnectionError):
        return f"no Ray is there; {_START_NODE}"
    if "raylet" in line or "node_ip_address" in line:
        return (
            "this machine is no node of the cluster; make it one with ray start --address=ADDRESS"
            f" (--num-cpus=0 if it should not verify) ({line[:200]})"
        )
    return f"{line.partition('. ')[0][:300]}; --engine local verifies without it"


def _mute() -> None:
    """Ray prints the deaths of workers and nodes to standard output; grv says what matters."""
    worker = importlib.import_module("ray._private.worker")
    if hasattr(worker, "_worker_logs_enabled"):
        setattr(worker, "_worker_logs_enabled", False)  # noqa: B010 (Ray has no public switch)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Discard what Ray's C++ parts write to standard error while they start and end."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def _same_signals() -> Iterator[None]:
    """Undo what Ray changes about SIGTERM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Environment variables that are set unless the user has set them; restored afterwards."""
    new = {name: value for name, value in changes.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def is_reachable(address: str) -> bool:
    """Whether something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


def _check_address(address: str) -> None:
    """Refuse an address where no Ray answers. Ray itself would try for minutes."""
    if address == "auto":
        return
    if "://" in address:
        raise UsageError(
            f"RAY_ADDRESS {address}: give HOST:PORT, and run grv on a node of the cluster"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"RAY_ADDRESS {address}: give HOST:PORT, as ray start prints it")
    place = host.strip("[]")
    try:
        with socket.create_connection((place, int(port)), timeout=_CONNECT_SECONDS) as channel:
            channel.sendall(_PREFACE)
            answer = channel.recv(9, socket.MSG_WAITALL)
    except OSError as exc:
        reason = exc.strerror or str(exc) or "no answer"
        raise UsageError(f"RAY_ADDRESS {address}: {reason}; {_START_NODE}") from None
    if len(answer) < 9 or answer[3] != _SETTINGS:
        raise UsageError(f"RAY_ADDRESS {address}: what answers there is not Ray; {_START_NODE}")
