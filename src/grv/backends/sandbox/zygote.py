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
import functools
import gc
import importlib
import json
import math
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from . import interpreter, runner, scratch, start, tester, wire
from .interpreter import Task, hide_modules, program_file, rehearse_finding
from .isolation import kernel, namespaces
from .isolation.jail import Jail, Step, widen_stack

_WARM = (
    "bisect",
    "collections",
    "copy",
    "functools",
    "heapq",
    "itertools",
    "math",
    "operator",
    "random",
    "re",
    "string",
    "threading",
    "time",
    "typing",
)
TICK = 0.01  # seconds between checks of a child's threads and files
_PROCESS_CLOCK = 2  # in the number of a clock of another process
_SETUP_FAILED = 120  # exit code of a child whose jail could not be applied
_THREAD_STACK = 8 << 20
_ROOM_FOR_DESCRIPTORS = socket.CMSG_SPACE(8 * 4)
_WORK_BYTES = 1 << 16  # more than an empty directory takes on any file system
_REHEARSALS = 40


_kept: list[object] = []  # what a child need not take the time to free


class _Hangup(Exception):
    """The judge is gone."""


class Zygote:
    """Serves one judge on one socket."""

    def __init__(self, control: socket.socket, judge: int | None, box: str, jail: Jail) -> None:
        self._control = control
        self._judge = judge  # a pidfd
        self._box = box
        self._is_mount = os.path.ismount(box)
        self._work = _work(box)
        self._jail = jail
        self._number = control.fileno()
        self._poll = select.poll()  # for a message, or the end of the judge or a child
        for descriptor in (self._number, judge):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)
        self._buffer = b""
        self._descriptors: list[int] = []
        self._null = os.open("/dev/null", os.O_RDWR)
        self._program = new_program_file(box)
        self._close_others = kernel.closing_from(1 + interpreter.PROGRAM)
        self._start = self._starting()
        self._passed: list[int] = []
        self._steps: list[Step] = []

    def _starting(self) -> list[Step]:
        """What a child does first."""
        steps: list[Step] = [os.setsid, *start.heeding_requests_to_end()]
        if kernel.is_linux:
            steps.append(functools.partial(kernel.die_with_parent, os.getpid()))
        return [*steps, functools.partial(os.chdir, self._work)]

    def serve(self, hello: dict[str, Any]) -> Task:
        """Send the first message, then start runs until the judge closes the socket.

        Returns in each child, with what it does; in the zygote it only ends by an exception.
        """
        self._send(hello)
        while True:
            message = self._next()
            if "run" not in message:
                continue
            passed = self._descriptors[:4]
            self._descriptors = self._descriptors[4:]
            self._before(message)
            entering = self._entering(passed)
            confining = self._jail.steps(message["limits"])
            child = os.fork()
            if child == 0:
                return self._child(entering, confining, message["mode"])
            for descriptor in passed:
                os.close(descriptor)
            self._send({"ended": message["run"]} | self._end_of(child, message))

    def _before(self, message: dict[str, Any]) -> None:
        """Prepare a run."""
        if message.get("reads_cgroup"):
            message["limits"]["reads_cgroup"] = True

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._control.sendall(wire.text(message) + b"\n")
        except OSError:
            raise _Hangup from None

    def _next(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self._wait(None, None)
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = wire.parsed(line)
        return message

    def _wait(self, child: int | None, seconds: float | None) -> bool:
        """Wait for a message or for the end of the judge or the child; whether the child ended."""
        ready = [item for item, _ in self._poll.poll(None if seconds is None else seconds * 1000)]
        if self._judge in ready:
            raise _Hangup
        if self._number in ready:
            data, passed, _, _ = self._control.recvmsg(1 << 16, _ROOM_FOR_DESCRIPTORS)
            for _, _, numbers in passed:
                self._descriptors += memoryview(numbers).cast("i")
            if not data:
                raise _Hangup
            self._buffer += data
        return child in ready

    def _end_of(self, pid: int, order: dict[str, Any]) -> dict[str, Any]:
        """Watch a child until it ends; how it ended."""
        try:
            cause = self._watch(pid, order)
        except BaseException:
            kill(pid)
            os.waitpid(pid, 0)
            raise
        self._after(pid)
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        try:
            self._empty()
        except OSError as exc:
            cause = f"scratch not emptied: {exc}"
        return {
            "exit_code": code if code >= 0 else None,
            "signal": max(0, -code),
            "cause": cause,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_mb": usage.ru_maxrss / 1024,
        }

    def _after(self, pid: int) -> None:
        """End what a child has left running; only one without a jail can."""
        if not self._jail.seccomp:
            kill(pid)  # its process group

    def _empty(self) -> None:
        """Remove what a run has left: outside its directory, only one without a jail can."""
        scratch.empty(self._work)
        if not self._jail.landlock:
            scratch.empty(self._box)
            os.mkdir(self._work, 0o700)
            os.close(self._program)
            self._program = new_program_file(self._box)
            self._passed = []

    def _entering(self, passed: list[int]) -> list[Step]:
        """What a child does before it is confined."""
        if passed == self._passed:  # the kernel gives the same numbers again
            return self._steps
        incoming, outgoing, stdin, stdout = passed
        # The sources are above 9 (`_fill_low_descriptors`), so no copy overwrites one.
        copies = [
            (stdin, 0),
            (stdout, 1),
            (self._null, 2),
            (incoming, runner.INCOMING),
            (outgoing, runner.OUTGOING),
            (self._program, interpreter.PROGRAM),
        ]
        self._passed = passed
        self._steps = self._start + [functools.partial(os.dup2, *copy) for copy in copies]
        return self._steps

    def _child(self, entering: list[Step], confining: list[Step], mode: str) -> Task:
        """Confine the forked child; what it does. Never returns if that fails."""
        try:
            _take(entering)
            number, counts = _own_counts()
            try:
                _take(confining)
            except (OSError, ValueError) as exc:
                wire.write(runner.OUTGOING, {"setup": str(exc)})
                os._exit(_SETUP_FAILED)
            # The judge's clock for this process starts from these values (clock.py).
            used = {"pid": number, "waited": _waited(counts)}
            self._close_others()
            used |= {"cpu": time.process_time(), "at": time.monotonic()}
            wire.write(runner.OUTGOING, {"ready": used})
            task = self._task(mode)
            if task is not None:
                return task
        except BaseException:
            pass
        os._exit(1)

    def _task(self, mode: str) -> Task | None:
        """What a confined child does, as the judge tells it; None for nothing."""
        return runner.task() if mode == "candidate" else tester.task()

    def _watch(self, pid: int, order: dict[str, Any]) -> str:
        """Wait until the child ends, or kill it; why it was killed, "" if it was not."""
        limits = order["limits"]
        overdue = time.monotonic() + limits["overdue"]
        try:
            handle = os.pidfd_open(pid)
            self._poll.register(handle, select.POLLIN)
        except (AttributeError, OSError):
            handle = None
        number = 0
        cause = ""
        used = self._activity(pid)
        try:
            while not self._wait(handle, self._tick(overdue - limits["overdue"], handle)):
                if handle is None and os.waitid(
                    os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
                ):
                    break
                before = used
                used = self._activity(pid)
                if used == before and not self._buffer and time.monotonic() < overdue:
                    continue  # it has not run, so it has started no thread and written nothing
                # Most children end before they are checked, and never need this number.
                number = number or (pid if handle is None else _outer_number(handle, pid))
                cause = cause or self._objection(order, number, overdue)
                if cause:
                    kill(pid)
        finally:
            if handle is not None:
                self._poll.unregister(handle)
                os.close(handle)
        return cause

    def _activity(self, pid: int) -> float:
        """A number that is the same as before if the child has not run since."""
        return _processor_time(pid)

    def _tick(self, started: float, handle: int | None) -> float:
        """Seconds until the next check, which without a handle also looks for the child's end."""
        if handle is None:
            return TICK / 5
        return TICK if time.monotonic() - started < 1 else 5 * TICK

    def _objection(self, order: dict[str, Any], number: int, overdue: float) -> str:
        """Why the child must be killed now; "" if it may go on."""
        while b"\n" in self._buffer:
            if self._next() == {"stop": order["run"]}:
                return "stopped"
        limits = order["limits"]
        if time.monotonic() > overdue:
            return "overdue"
        return self._excess(limits, number)

    def _excess(self, limits: dict[str, Any], number: int) -> str:
        """What the child uses too much of; "" if nothing."""
        if _threads(number) > limits["threads"]:
            return "threads"
        most = (limits["files_mb"] << 20) + _WORK_BYTES
        if scratch.overfull(self._box, most, is_mount=self._is_mount, processes=[number]):
            return "files"
        return ""


def new_program_file(box: str) -> int:
    """A descriptor of the file that each child writes its program to."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(program_file(box), flags, 0o644)


def _work(box: str) -> str:
    """The current directory of a child, and all that it can write to."""
    return os.path.join(box, "work")


def kill(pid: int) -> None:
    """Kill a child and its process group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _outer_number(handle: int, pid: int) -> int:
    """The child's number in the namespace that /proc shows, which may be another one."""
    try:
        for line in _content(f"/proc/self/fdinfo/{handle}").split(b"\n"):
            if line.startswith(b"Pid:"):
                return int(line.split()[1])
    except OSError:
        pass
    return pid


def _content(path: str) -> bytes:
    """The beginning of a file of the kernel's. A file object would touch more memory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _take(steps: list[Step]) -> None:
    for step in steps:
        step()


def _own_counts() -> tuple[int, int]:
    """This process's number in /proc, or 0; a descriptor of its `schedstat`, or -1."""
    number = 0
    counts = -1
    try:
        number = int(os.readlink("/proc/self"))
        counts = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except (OSError, ValueError):
        pass
    return number, counts


def _waited(counts: int) -> float:
    """Seconds that this thread has waited for a processor."""
    return int(os.pread(counts, 100, 0).split()[1]) / 1e9 if counts >= 0 else 0.0


def _processor_time(pid: int) -> float:
    """Processor time of a process; not equal to anything if the kernel does not say."""
    try:
        return time.clock_gettime((~pid << 3) | _PROCESS_CLOCK)
    except OSError:
        return math.nan


def _threads(number: int) -> int:
    try:
        return int(_content(f"/proc/{number}/stat").rpartition(b")")[2].split()[17])
    except (OSError, IndexError, ValueError):  # the process is gone, or this is not Linux
        return 0


def _fill_low_descriptors() -> None:
    while (descriptor := os.open("/dev/null", os.O_RDWR)) < 10:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def main(control: int, judge: int, level: str, folder: str, kind: str) -> Task | None:
    """Serve on an open socket; `judge` is the process number of the judge.

    `kind` is "python", or "tools" for programs in any language.

    Returns what to do in each child, and None in the zygote when the judge is gone.
    """
    start.default_signals()
    if "rewarmed" not in sys.argv and widen_stack():
        os.set_inheritable(control, True)
        os.execv(sys.executable, [*sys.orig_argv, "rewarmed"])
    start.ignore_requests_to_end()
    channel = socket.socket(fileno=control)
    channel.set_inheritable(False)
    _fill_low_descriptors()
    watched = None
    if kernel.is_linux:
        with contextlib.suppress(OSError):
            watched = os.pidfd_open(judge)
    if os.getppid() != judge:
        return None
    box = os.path.join(folder, "box")
    os.mkdir(box, 0o700)
    try:
        return _prepare_and_serve(channel, watched, level, folder, box, kind == "tools")
    except _Hangup:
        _tidy(folder, box)
    except OSError as exc:  # sent here, because the folder with the error file is removed
        with contextlib.suppress(OSError):
            channel.sendall(json.dumps({"failed": str(exc)}).encode() + b"\n")
        _tidy(folder, box)
    except BaseException:
        _tidy(folder, box)
        raise
    return None


def _prepare_and_serve(
    channel: socket.socket,
    watched: int | None,
    level: str,
    folder: str,
    box: str,
    has_tools: bool,
) -> Task:
    hello: dict[str, Any] = {"namespaces": [], "capabilities": True, "missing": {}}
    confined = level != "unsafe"
    if confined and kernel.is_linux:
        names, problem = namespaces.available(box, runs_files=has_tools)
        if problem:
            hello["missing"]["namespaces"] = problem
        if names:
            namespaces.enter(names, box, runs_files=has_tools)
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
    os.environ["HOME"] = os.environ["TMPDIR"] = _work(box)
    os.environ.pop("LD_BIND_NOW", None)  # it has done its work (worker.py)
    os.mkdir(_work(box), 0o700)
    if has_tools:
        return _serve_tools(channel, watched, box, hello, confined=confined)
    jail = Jail(_work(box), readable=box, confined=confined)
    _describe(jail, hello)
    for name in _WARM:
        importlib.import_module(name)
    _rehearse(jail)
    zygote = Zygote(channel, watched, box, jail)
    _kept.append(zygote)
    hide_modules()
    for _ in range(_REHEARSALS):
        rehearse_finding()
    gc.collect()
    gc.freeze()
    return zygote.serve(hello)


def _describe(jail: Jail, hello: dict[str, Any]) -> None:
    hello["landlock"] = jail.landlock
    hello["seccomp"] = jail.seccomp
    hello["missing"] |= jail.missing


def _serve_tools(
    channel: socket.socket,
    watched: int | None,
    box: str,
    hello: dict[str, Any],
    *,
    confined: bool,
) -> Task:
    from . import tools

    own_numbers = "pid" in hello["namespaces"]
    jail = tools.prepare(box, confined=confined, has_own_numbers=own_numbers)
    _describe(jail, hello)
    gc.collect()
    gc.freeze()
    return tools.ToolZygote(channel, watched, box, jail).serve(hello)


def _rehearse(jail: Jail) -> None:
    """Do what every child will do, until the interpreter has adapted its code to it.

    Otherwise each child would adapt its copy, and pay for the pages that this changes.
    """
    kept = sys.argv, sys.orig_argv, [*sys.path], sys.modules["__main__"]
    for _ in range(_REHEARSALS):
        _take([kernel.no_new_privileges if kernel.is_linux else os.getpid])
        jail.rehearse()
        number, counts = _own_counts()
        used = {"pid": number, "waited": _waited(counts)}
        if counts >= 0:
            os.close(counts)
        used |= {"cpu": time.process_time(), "at": time.monotonic()}
        for order, answers in (_CALLING, _TESTING):
            _rehearse_task(order, answers, used)
    sys.argv, sys.orig_argv, sys.path[:], sys.modules["__main__"] = kept
    sys.modules.pop("candidate", None)


_ARGUMENTS = ["l", 1, ["f", (0.5).hex()], "x", ["l", ["t", 1]]]
_CALL = {"args": _ARGUMENTS, "kwargs": ["d"], "in_place": False, "rich": True, "id": 1}
# `typing` keeps what it has made of a parameter, so the common ones are made here.
_TYPES = "List[int], List[float], List[str], List[List[int]], Optional[int], Dict[str, int]"
_SOURCE = f"""from typing import Any, Dict, List, Optional, Tuple
def f(*x: Tuple[{_TYPES}, Tuple[int, int], Any]) -> int:
    return 7
"""
_CALLING = (
    {"mode": "functions", "source": _SOURCE, "entry_point": "f", "room": 1 << 20, "seed": 0},
    [_CALL, _CALL | {"rich": False}],
)
_TESTING = (
    {
        **{"entry_point": "f", "prompt": _SOURCE, "in_place": False, "seed": 0},
        "objects": False,
        "guarded": False,
        "test": "def check(c):\n    assert c(1, 0.5, 'x', [(1,)]) == 7\n    assert c(1) == 7\n",
    },
    [{"value": 7}, {"value": 7}],
)


def _rehearse_task(order: dict[str, Any], answers: list[Any], used: dict[str, Any]) -> None:
    """Run a task in this process, with pipes that already contain all that it reads."""
    incoming, given = os.pipe()
    taken, outgoing = os.pipe()
    for message in (order, *answers):
        wire.write(given, message)
    os.close(given)
    wire.write(outgoing, {"ready": used})
    module: Any = tester if "test" in order else runner
    descriptors = module.INCOMING, module.OUTGOING, interpreter.PROGRAM
    module.INCOMING = incoming
    module.OUTGOING = outgoing
    interpreter.PROGRAM = os.open("/dev/null", os.O_WRONLY)
    try:
        task = module.task()
        if task is not None:
            exec(task.program, task.namespace)
            task.finish(None)
    finally:
        module.INCOMING, module.OUTGOING, interpreter.PROGRAM = descriptors
        for descriptor in (incoming, taken, outgoing):
            os.close(descriptor)


def _tidy(folder: str, box: str) -> None:
    """Remove the worker's directory, if this process has the rights to."""
    if kernel.is_linux:
        with contextlib.suppress(OSError):
            kernel.unmount(box)
    with contextlib.suppress(OSError):
        scratch.empty(folder)
        os.rmdir(folder)
