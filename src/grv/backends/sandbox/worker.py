"""The judge's side of the sandbox: one zygote, and its runs one after the other.

One thread at a time uses a worker. Only `interrupt` may be called from another thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from . import scratch
from .clock import Stopwatch
from .limits import NEEDED, InForce, Isolation, RunLimits
from .link import Link
from .run import READY_SECONDS, Run, SandboxDied
from .start import LOCALE, UMASK, notice_children

_CLOSE_SECONDS = 20.0
_STALE_SECONDS = 60.0
PREFIX = "grv-box-"  # of the folders that `sweep` removes
# Makes a package of this folder only: the zygote needs nothing else of grv. Two modules have hooks
# that would run in each child: to reset the locks of other threads, of which the zygote has none,
# and to make random numbers differ, which a run then seeds. They are a twentieth of a run's cost.
# `main` returns in each child, whose program then runs here, on top of one frame only.
_BOOT = """
import os, sys
folder, control, judge, level, scratch, kind = sys.argv[1:7]
sys.modules["grv_sandbox"] = type(sys)("grv_sandbox")
sys.modules["grv_sandbox"].__path__ = [folder]
from grv_sandbox import interpreter
interpreter.record_imports()
register, os.register_at_fork = os.register_at_fork, lambda **hooks: None
import random, threading
os.register_at_fork = register
from grv_sandbox.zygote import main
task = main(int(control), int(judge), level, scratch, kind)
if task is not None:
    error = None
    try:
        exec(task.program, task.namespace)
    except BaseException as exc:
        error = exc
    interpreter.leave(task, error)
"""
# The hash seed is fixed so that a program gives the same output each time. With this environment,
# the options -s and -P isolate as well as -I does, which would ignore the seed.
_ENVIRONMENT = {
    **{"PATH": "/usr/bin:/bin", "LANG": LOCALE, "TZ": "UTC", "PYTHONHASHSEED": "0"},
    **{f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")},
    "MALLOC_ARENA_MAX": "2",  # an arena takes 64 MiB of address space
    "LD_BIND_NOW": "1",  # or each child would look up the same symbols again
}


def sweep() -> None:
    """Remove the directories of workers and processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            state = folder.lstat()
            if state.st_uid != os.getuid() or time.time() - state.st_mtime < _STALE_SECONDS:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its owner lives
                scratch.empty(str(folder))
                folder.rmdir()
            finally:
                os.close(descriptor)


def _above_standard_streams(channel: socket.socket) -> socket.socket:
    """The same socket with a number above 2, which closed standard streams leave free."""
    if channel.fileno() > 2:
        return channel
    with channel:
        return socket.socket(fileno=fcntl.fcntl(channel.fileno(), fcntl.F_DUPFD_CLOEXEC, 3))


class Worker:
    """One zygote. It is started when first needed, and again if it died."""

    _kind = "python"  # what the zygote runs
    _needed: tuple[str, ...] = NEEDED  # the pieces without which there is no jail

    def __init__(self, isolation: Isolation = Isolation.JAIL) -> None:
        self.isolation = isolation
        self._zygote: subprocess.Popen[bytes] | None = None
        self._link: Link | None = None
        self.folder: Path | None = None  # contains the scratch directory
        self._lock_descriptor = -1
        self._in_force: InForce | None = None
        self._runs = 0
        self.current: int | None = None  # the number of the current run
        self.interrupted = False  # whether to end the next run as well

    @property
    def in_force(self) -> InForce:
        """The isolation of its candidates. Starts the zygote if necessary."""
        if self._in_force is None or self._zygote is None:
            self._start()
        assert self._in_force is not None
        return self._in_force

    @property
    def pid(self) -> int | None:
        """The zygote's process number; None if no zygote runs."""
        return None if self._zygote is None else self._zygote.pid

    def _start(self) -> None:
        self.close()
        try:
            hello = self._launch()
        except OSError as exc:
            self.close()
            raise SandboxDied(f"the sandbox could not start: {exc}") from exc
        watch = Stopwatch(self.pid or 0)
        if not watch.works:
            hello["missing"]["schedstat"] = "a program's time includes waiting for a processor"
        watch.close()
        hello["namespaces"] = tuple(hello["namespaces"])
        self._in_force = InForce(self.isolation, **hello)
        self._refuse_less()

    def _launch(self) -> dict[str, Any]:
        """Start the zygote; its first message, which describes its isolation."""
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock_descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX)
        notice_children()
        ours, theirs = map(_above_standard_streams, socket.socketpair())
        self._link = Link(ours)
        here = str(Path(__file__).parent)
        environment = dict(_ENVIRONMENT)
        if "LD_LIBRARY_PATH" in os.environ:  # some interpreters need it to start at all
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        arguments = [here, str(theirs.fileno()), str(os.getpid()), self.isolation.value]
        with theirs, open(self.folder / "errors", "wb") as errors:
            self._zygote = subprocess.Popen(
                [
                    sys.executable,
                    "-s",
                    "-P",
                    "-B",
                    "-c",
                    _BOOT,
                    *arguments,
                    str(self.folder),
                    self._kind,
                ],
                pass_fds=[theirs.fileno()],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                umask=UMASK,
            )
        hello = self._link.hear(time.monotonic() + READY_SECONDS)
        if hello is None or "failed" in hello:
            text = "" if hello is None else str(hello["failed"])
            with contextlib.suppress(OSError):  # it removes its folder when it ends
                text = text or (self.folder / "errors").read_text(errors="replace").strip()
            self.close()
            last = text.splitlines()[-1] if text else "it sent no message"
            raise SandboxDied(f"the sandbox could not start: {last}")
        return hello

    def _refuse_less(self) -> None:
        """Raise UsageError if this machine cannot give the requested level."""
        force = self._in_force
        assert force is not None
        if self.isolation is Isolation.UNSAFE:
            return
        lacking = [name for name in self._needed if name in force.missing]
        less = Isolation.UNSAFE
        if not lacking and self.isolation is Isolation.STRICT:
            less = Isolation.JAIL
            lacking = [name for name in ("namespaces",) if name in force.missing]
        if lacking:
            why = "; ".join(f"{name} ({force.missing[name]})" for name in lacking)
            self.close()
            raise UsageError(
                f"isolation {self.isolation.value!r} does not work on this machine: no {why}; "
                f"--isolation {less.value} accepts less"
            )

    @contextlib.contextmanager
    def run(
        self,
        mode: str,
        limits: RunLimits,
        *,
        tests: int = 1,
        stdin: bytes | None = None,
        capture: bool = False,
        first: Any = None,
        wait: bool = True,
        more: Mapping[str, Any] | None = None,
    ) -> Iterator[Run]:
        """A context manager that gives a run, and ends it on exit.

        Args:
            mode: "candidate" or "test"; or one of tools.py.
            limits: what the child may use.
            tests: how many tests it will get.
            stdin: the content of its standard input.
            capture: whether to read its standard output.
            first: a message to send as soon as it is ready.
            wait: whether to wait until it is ready; otherwise the caller does.
            more: further parts of the message to the zygote.
        """
        confined = self.isolation is not Isolation.UNSAFE
        options: dict[str, Any] = {"tests": tests, "stdin": stdin, "capture": capture}
        options |= {"first": first, "more": more}
        run = self._begin(
            functools.partial(Run, mode=mode, limits=limits, confined=confined, **options),
            wait=wait,
        )
        try:
            try:
                yield run
            finally:
                run.end()
        except SandboxDied:
            self.close()
            raise
        finally:
            self.current = None
            run.abandon()

    def _begin(self, start: Callable[[Link, int], Run], *, wait: bool) -> Run:
        """A run whose jail is in place. Starts a new zygote if the old one has died."""
        for attempt in (1, 2):
            _ = self.in_force
            assert self._link is not None
            self._runs += 1
            try:
                run = start(self._link, self._runs)
            except OSError as exc:  # for example, no file descriptors are left
                raise SandboxDied(f"no run could be started: {exc}") from exc
            self.current = self._runs
            try:
                if wait:
                    run.wait_until_ready()
                if self.interrupted:
                    self.interrupt()
                break
            except BaseException as exc:
                self.current = None
                run.abandon()
                self.close()
                if attempt == 2 or not isinstance(exc, SandboxDied):
                    raise
        return run

    def interrupt(self) -> None:
        """End the current run and each later one, until `interrupted` is False again."""
        self.interrupted = True
        link = self._link
        current = self.current
        if link is not None and current is not None:
            link.send({"stop": current})

    def close(self) -> None:
        """End the zygote, and its run if there is one."""
        if self._link is not None:
            self._link.close()
        if self._zygote is not None:
            try:
                self._zygote.wait(_CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                self._zygote.send_signal(signal.SIGKILL)
                self._zygote.wait()
        if self.folder is not None:
            with contextlib.suppress(OSError):
                scratch.empty(str(self.folder))
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock_descriptor)
        self._zygote = self.folder = self._in_force = self._link = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
