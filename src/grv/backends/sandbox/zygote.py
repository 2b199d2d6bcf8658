"""The zygote, a warm parent: forks a jailed child per run, watches it, and reports how it ended.

worker.py starts it as a program of its own. It exchanges lines of JSON with the judge on a socket:

    {"run": 7, "mode": "candidate", "limits": {...}}   from the judge, with 4 descriptors: start
    {"stop": 7}                                        from the judge: kill the child
    {"ended": 7, ...}                                  to the judge: exactly once per run

It has only one thread: a child gets its parent-death signal when the thread that forked it ends.
The kernel cannot limit a child's threads or the total size of its files, so the zygote checks both
every 10 ms, and every 50 ms after the first second.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from . import runner, scratch, tester, wire
from .isolation import kernel, namespaces
from .isolation.jail import Jail, widen_stack

_WARM = (
    *("bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator"),
    *("random", "re", "string", "threading", "time", "typing"),
)
_TICK = 0.01  # seconds between checks of a child's threads and files
_SETUP_FAILED = 120  # exit code of a child whose jail could not be applied
_THREAD_STACK = 8 << 20
_REHEARSALS = 40


class _Hangup(Exception):
    """The judge is gone."""


class Zygote:
    """Serves one judge on one socket."""

    def __init__(self, control: socket.socket, judge: int | None, box: str, jail: Jail) -> None:
        self._control = control
        self._judge = judge  # a pidfd
        self._box = box
        self._is_mount = os.path.ismount(box)
        self._jail = jail
        self._buffer = b""
        self._descriptors: list[int] = []
        self._null = os.open("/dev/null", os.O_RDWR)
        self._close_others = kernel.closing_from(1 + max(runner.INCOMING, runner.OUTGOING))

    def serve(self, hello: dict[str, Any]) -> None:
        """Send the first message, then start runs until the judge closes the socket."""
        self._send(hello)
        while True:
            message = self._next()
            if "run" in message:
                self._send({"ended": message["run"]} | self._run(message))

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._control.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            raise _Hangup from None

    def _next(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self._wait(None, None)
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _wait(self, child: int | None, seconds: float | None) -> bool:
        """Wait for a message or for the end of the judge or the child; whether the child ended."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._judge, child):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        ready = {item for item, _ in poll.poll(None if seconds is None else seconds * 1000)}
        if self._judge in ready:
            raise _Hangup
        if self._control.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 8)
            self._descriptors += descriptors
            if not data:
                raise _Hangup
            self._buffer += data
        return child in ready

    def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        passed, self._descriptors = self._descriptors[:4], self._descriptors[4:]
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._child(parent, order, passed)
        try:
            for descriptor in passed:
                os.close(descriptor)
            cause = self._watch(pid, order)
        except BaseException:
            _kill(pid)
            os.waitpid(pid, 0)
            raise
        _kill(pid)  # its process group; without a jail it may have started others
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        try:
            scratch.empty(self._box)
        except OSError as exc:
            cause = f"scratch not emptied: {exc}"
        return {
            "exit_code": code if code >= 0 else None,
            "signal": max(0, -code),
            "cause": cause,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_mb": usage.ru_maxrss / 1024,
        }

    def _child(self, parent: int, order: dict[str, Any], passed: list[int]) -> None:
        """Run in the forked child. Never returns."""
        code = _SETUP_FAILED
        try:
            os.setsid()
            if kernel.is_linux:
                kernel.die_with_parent(parent)
            incoming, outgoing, stdin, stdout = passed
            # The sources are above 9 (`_fill_low_descriptors`), so no copy overwrites one.
            for source, target in (
                *((stdin, 0), (stdout, 1), (self._null, 2)),
                *((incoming, runner.INCOMING), (outgoing, runner.OUTGOING)),
            ):
                os.dup2(source, target)
            os.chdir(self._box)
            number, counts = _own_counts()
            try:
                self._jail.apply(order["limits"])
            except (OSError, ValueError) as exc:
                wire.write(runner.OUTGOING, {"setup": str(exc)})
                os._exit(_SETUP_FAILED)
            # The judge's clock for this process starts from these values (clock.py).
            used = {"pid": number, "waited": _waited(counts)}
            self._close_others()
            used |= {"cpu": time.process_time(), "at": time.monotonic()}
            wire.write(runner.OUTGOING, {"ready": used})
            code = runner.serve() if order["mode"] == "candidate" else tester.serve()
        except BaseException:
            code = 1
        finally:
            os._exit(code)

    def _watch(self, pid: int, order: dict[str, Any]) -> str:
        """Wait until the child ends, or kill it; why it was killed, "" if it was not."""
        limits = order["limits"]
        overdue = time.monotonic() + limits["overdue"]
        try:
            handle = os.pidfd_open(pid)
        except (AttributeError, OSError):
            handle = None
        number, cause = 0, ""
        try:
            while not self._wait(handle, self._tick(overdue - limits["overdue"], handle)):
                if handle is None and os.waitid(
                    os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
                ):
                    break
                # Most children end before they are checked, and never need this number.
                number = number or (pid if handle is None else _outer_number(handle, pid))
                cause = cause or self._objection(order, number, overdue)
                if cause:
                    _kill(pid)
        finally:
            if handle is not None:
                os.close(handle)
        return cause

    def _tick(self, started: float, handle: int | None) -> float:
        """Seconds until the next check, which without a handle also looks for the child's end."""
        if handle is None:
            return _TICK / 5
        return _TICK if time.monotonic() - started < 1 else 5 * _TICK

    def _objection(self, order: dict[str, Any], number: int, overdue: float) -> str:
        """Why the child must be killed now; "" if it may go on."""
        while b"\n" in self._buffer:
            if self._next() == {"stop": order["run"]}:
                return "stopped"
        limits = order["limits"]
        if time.monotonic() > overdue:
            return "overdue"
        if _threads(number) > limits["threads"]:
            return "threads"
        most = limits["files_mb"] << 20
        if scratch.overfull(self._box, most, is_mount=self._is_mount, process=number):
            return "files"
        return ""


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _outer_number(handle: int, pid: int) -> int:
    """The child's number in the namespace that /proc shows, which may be another one."""
    try:
        with open(f"/proc/self/fdinfo/{handle}") as file:
            for line in file:
                if line.startswith("Pid:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return pid


def _own_counts() -> tuple[int, int]:
    """This process's number in /proc, or 0; a descriptor of its `schedstat`, or -1."""
    number, counts = 0, -1
    with contextlib.suppress(OSError, ValueError):
        number = int(os.readlink("/proc/self"))
        counts = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    return number, counts


def _waited(counts: int) -> float:
    """Seconds that this thread has waited for a processor."""
    return int(os.pread(counts, 100, 0).split()[1]) / 1e9 if counts >= 0 else 0.0


def _threads(number: int) -> int:
    try:
        with open(f"/proc/{number}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[17])
    except (OSError, IndexError, ValueError):  # the process is gone, or this is not Linux
        return 0


def _fill_low_descriptors() -> None:
    while (descriptor := os.open("/dev/null", os.O_RDWR)) < 10:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def main(control: int, judge: int, level: str, folder: str) -> None:
    """Serve on an open socket; `judge` is the process number of the judge."""
    if "rewarmed" not in sys.argv and widen_stack():
        os.set_inheritable(control, True)
        os.execv(sys.executable, [*sys.orig_argv, "rewarmed"])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the judge closes the socket when it is done
    channel = socket.socket(fileno=control)
    channel.set_inheritable(False)
    _fill_low_descriptors()
    watched = None
    if kernel.is_linux:
        with contextlib.suppress(OSError):
            watched = os.pidfd_open(judge)
    if os.getppid() != judge:
        return
    box = os.path.join(folder, "box")
    os.mkdir(box, 0o700)
    try:
        _prepare_and_serve(channel, watched, level, folder, box)
    except _Hangup:
        pass
    except OSError as exc:  # sent here, because the folder with the error file is removed
        with contextlib.suppress(OSError):
            channel.sendall(json.dumps({"failed": str(exc)}).encode() + b"\n")
    finally:
        _tidy(folder, box)


def _prepare_and_serve(
    channel: socket.socket, watched: int | None, level: str, folder: str, box: str
) -> None:
    hello: dict[str, Any] = {"namespaces": [], "capabilities": True, "missing": {}}
    confined = level != "unsafe"
    if confined and kernel.is_linux:
        names, problem = namespaces.available(box)
        if problem:
            hello["missing"]["namespaces"] = problem
        if names:
            namespaces.enter(names, box)
            namespaces.become_first(lambda: _tidy(folder, box))
        hello["namespaces"] = names
    if kernel.is_linux:
        kernel.no_new_privileges()
        kernel.default_thread_stack(_THREAD_STACK)
        if confined:
            try:
                kernel.drop_capabilities()
                hello["capabilities"] = False
            except (KeyError, OSError) as exc:
                hello["missing"]["capabilities dropped"] = str(exc)
    os.environ["HOME"] = os.environ["TMPDIR"] = box
    os.environ.pop("LD_BIND_NOW", None)  # it has done its work (worker.py)
    jail = Jail(box, confined=confined)
    hello["landlock"], hello["seccomp"] = jail.landlock, jail.seccomp
    hello["missing"] |= jail.missing
    for name in _WARM:
        importlib.import_module(name)
    _rehearse()
    gc.collect()
    gc.freeze()
    Zygote(channel, watched, box, jail).serve(hello)


def _rehearse() -> None:
    """Do what every child will do, until the interpreter has adapted its code to it.

    Otherwise each child would adapt its copy, and pay for the pages that this changes.
    """
    reading, writing = os.pipe()
    for _ in range(_REHEARSALS):
        number, counts = _own_counts()
        used = {"pid": number, "waited": _waited(counts)}
        if counts >= 0:
            os.close(counts)
        used |= {"cpu": time.process_time(), "at": time.monotonic()}
        wire.write(writing, {"ready": used})
        wire.read(reading)
        runner.compiled("print(7)")
    os.close(reading)
    os.close(writing)


def _tidy(folder: str, box: str) -> None:
    """Remove the worker's directory, if this process has the rights to."""
    if kernel.is_linux:
        with contextlib.suppress(OSError):
            kernel.unmount(box)
    with contextlib.suppress(OSError):
        scratch.empty(folder)
        os.rmdir(folder)
