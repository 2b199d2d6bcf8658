"""The zygote of programs in any language: builds them, runs them, and ends all that they start.

Its box has two directories. `built` has what a build made, and only a build writes there. `work` is
the scratch directory, empty at the start of each run. There are three kinds of runs:

    build    in `built`; the tools that it was granted may start processes
    program  in `work`; one process with threads, which was granted what is in `built`
    command  in `work`; as a program, but it may start processes

The child writes the files that the judge sends, then replaces itself by the program. So the zygote
sees neither a program nor an input. Every process of a run is in one process group, which none of
them can leave (seccomp.py): one signal ends all of them. Every 10 ms the zygote watches how many
they are, their resident memory and their files.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import stat
from typing import Any

from . import interpreter, runner, scratch, tree, wire
from .interpreter import Task
from .isolation import kernel
from .isolation.jail import Step
from .isolation.tool_jail import BUILT, GRANTED, WORK, ToolJail
from .zygote import TICK, Zygote, kill, new_program_file

# Of all processes together. What is written to a pipe or a socket and not read stays in the kernel,
# up to 200 kB each, and is in no process's memory.
_MOST_DESCRIPTORS = 2048
_FEW = 2  # processes, which cannot have more: a limit of the kernel holds for each (tool_jail.py)
_LOOKS = 50  # ticks between two looks at folders outside the box
_MOST_ENTRIES = 1 << 20  # in such folders
NOT_STARTED = 127  # the exit code of a child whose program could not be started


class ToolZygote(Zygote):
    """Serves one judge, which builds and runs programs."""

    _mode = ""  # of the run in work
    _full = 0  # bytes in the box when the run began
    _full_outside = 0  # bytes in folders outside the box that the run may write to
    _ticks = 0

    def _before(self, message: dict[str, Any]) -> None:
        """Prepare the box for a run."""
        limits = message["limits"]
        limits["mode"] = self._mode = message["mode"]
        limits |= {name: message[name] for name in GRANTED}
        built = os.path.join(self._box, BUILT)
        if message.get("clears"):
            scratch.empty(built)
        for name in message.get("starts", ()):
            _make_executable(os.path.join(built, name))
        self._full = scratch.used_bytes(self._box, is_mount=self._is_mount)
        self._full_outside = self._used_outside(limits)
        self._ticks = 0

    def _used_outside(self, limits: dict[str, Any]) -> int:
        return sum(scratch.used_bytes(path, is_mount=False) for path in limits["writable"])

    def _starting(self) -> list[Step]:
        return [*super()._starting(), _default_signals, _be_killed_first]

    def _task(self, mode: str) -> Task | None:
        """Write the files of the order, then become its program. Returns None: there is none."""
        order = wire.read(runner.INCOMING)
        if order is None:
            return None
        os.close(interpreter.PROGRAM)
        if mode == "build":
            os.chdir(os.path.join(self._box, BUILT))
        for name, text in order["files"].items():
            with open(name, "wb") as file:
                file.write(text.encode("utf-8", "surrogateescape"))
        if not order["argv"]:
            os._exit(0)
        if order["folder"]:
            os.chdir(order["folder"])
        os.set_inheritable(runner.INCOMING, False)
        os.dup2(1 if order["joins"] else runner.OUTGOING, 2)
        os.set_inheritable(runner.OUTGOING, False)
        argv = [os.fsencode(part) for part in order["argv"]]
        places = {name: self._work for name in ("HOME", "TMPDIR")}
        try:
            os.execve(argv[0], argv, places | order["environment"])
        except OSError as exc:
            os.write(2, f"{order['argv'][0]}: {exc.strerror}\n".encode(errors="replace"))
            os._exit(NOT_STARTED)

    def _activity(self, pid: int) -> float:
        return math.nan  # the child may only wait for what it has started

    def _tick(self, started: float, handle: int | None) -> float:
        return TICK if handle is not None else TICK / 5

    def _excess(self, limits: dict[str, Any], number: int) -> str:
        """What the processes of a run use too much of; "" if nothing."""
        processes = tree.descendants("self")
        if sum(map(tree.threads, processes)) > limits["threads"]:
            return "threads"
        if sum(map(tree.resident_bytes, processes)) > limits["memory_mb"] << 20:
            return "memory"
        if len(processes) > _FEW and sum(map(tree.descriptors, processes)) > _MOST_DESCRIPTORS:
            return "files"
        most = self._full + (limits["files_mb"] << 20) + (1 << 16)
        if scratch.overfull(
            self._box, most, is_mount=self._is_mount, processes=processes, most_entries=8000
        ):
            return "files"
        self._ticks += 1
        return "" if self._ticks % _LOOKS else self._excess_outside(limits)

    def _excess_outside(self, limits: dict[str, Any]) -> str:
        room = self._full_outside + (limits["files_mb"] << 20)
        for path in limits["writable"]:
            if scratch.overfull(path, room, most_entries=_MOST_ENTRIES):
                return "files"
            room -= scratch.used_bytes(path, is_mount=False)
        return ""

    def _after(self, pid: int) -> None:
        """End the processes that the child has started. It has ended, and was not waited for."""
        kill(pid)

    def _empty(self) -> None:
        """Bury what was killed, and empty the scratch directory."""
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        scratch.empty(os.path.join(self._box, WORK))
        if not self._jail.landlock:  # it may have written anywhere
            for name in os.listdir(self._box):
                if name not in (BUILT, WORK):
                    _remove(os.path.join(self._box, name))
            os.close(self._program)
            self._program = new_program_file(self._box)
            self._passed = []


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        scratch.empty(path)
        os.rmdir(path)
    else:
        os.unlink(path)


def _default_signals() -> None:
    """Programs start with the signals that Python ignores."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _be_killed_first() -> None:
    """If the machine has no memory left, the kernel ends this process rather than the judge."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _make_executable(path: str) -> None:
    """Let a file that was built be started. The jail lets no tool change permissions."""
    with contextlib.suppress(OSError):  # there is none: starting it says so
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.fchmod(descriptor, 0o755)
        finally:
            os.close(descriptor)


def prepare(box: str, *, confined: bool, has_own_numbers: bool) -> ToolJail:
    """Make the directories of a box; the jail of its runs."""
    for name in (BUILT, WORK):
        if not os.path.isdir(os.path.join(box, name)):
            os.mkdir(os.path.join(box, name), 0o700)
    if kernel.is_linux and not has_own_numbers:
        kernel.adopt_orphans()
    return ToolJail(box, confined=confined, has_own_numbers=has_own_numbers)
