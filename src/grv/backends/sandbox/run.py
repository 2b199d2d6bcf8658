"""The judge's side of one run: messages to the child, its answers and output, and its end."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from ...core.errors import VerifierError
from . import message, wire
from .clock import STARVED, RunClock, Stopwatch, TreeStopwatch
from .limits import End, ExitStatus, RunLimits
from .link import Link

READY_SECONDS = 60.0
_END_SECONDS = 60.0
_READY = RunLimits(READY_SECONDS)
MODES_WITH_PROCESSES = ("build", "command")  # of tools.py
_FULL = 1 << 16  # bytes in a full pipe


class SandboxDied(VerifierError):
    """The worker failed. This says nothing about the candidate."""

    def __init__(self, problem: str, *, backend: str = "sandbox") -> None:
        super().__init__(problem, backend=backend)


class Run:
    """One child process, as the judge sees it. `Worker.run` explains the arguments."""

    def __init__(
        self,
        link: Link,
        number: int,
        mode: str,
        limits: RunLimits,
        *,
        tests: int = 1,
        stdin: bytes | None = None,
        capture: bool = False,
        confined: bool = True,
        first: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self._link = link
        self._number = number
        self._confined = confined
        self._limits = limits
        self._answers = bytearray()
        self._watch = Stopwatch(0)
        self._starts_processes = mode in MODES_WITH_PROCESSES
        self.clock = RunClock(_READY)
        self._unsent = memoryview(b"" if first is None else wire.frame(first))
        self._ended: ExitStatus | None = None
        self._is_over = False  # whether the time was over when much was sent
        self.output = bytearray()
        self._cpu = limits.cpu_allowance(tests)
        names = ("memory_mb", "files_mb", "threads")
        allowed: dict[str, Any] = {name: int(getattr(limits, name)) for name in names}
        # "overdue" ends a run only if the judge is stuck; the judge itself measures each test.
        overdue = 2 * STARVED * limits.seconds * max(1, tests) + 600
        allowed |= {"cpu": self._cpu, "overdue": overdue}
        incoming, self._incoming = os.pipe()
        self._outgoing, outgoing = os.pipe()
        self._stdout, stdout = os.pipe() if capture else (-1, os.open("/dev/null", os.O_WRONLY))
        for descriptor in (self._incoming, self._outgoing, self._stdout):
            if descriptor >= 0:
                os.set_blocking(descriptor, False)
        self._write_some()  # it stays in the pipe until the child is ready and reads it
        theirs = (incoming, outgoing, _source(stdin), stdout)
        try:
            order = {"run": number, "mode": mode, "limits": allowed, **(more or {})}
            link.send(order, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def wait_until_ready(self) -> None:
        """Return when the child's jail is in place. The clock starts at the time it reports."""
        match self.receive():
            case {"ready": {"pid": pid, "cpu": cpu, "waited": waited, "at": at}}:
                watch = TreeStopwatch if self._starts_processes else Stopwatch
                self._watch = watch(int(pid))
                self.clock = RunClock(self._limits, self._watch)
                self.clock.begin_from(cpu, waited, at)
            case {"setup": str(problem)}:
                raise SandboxDied(f"the jail could not be applied: {problem}")
            case _:
                raise SandboxDied("the child died before it started")

    def is_waiting(self) -> bool:
        """Whether the child lives and waits for a message."""
        is_silent = not self._answers and not self._unsent
        return self._outgoing >= 0 and is_silent and not self._can_move()

    def send(self, content: Any) -> None:
        """Send a message, as far as the pipe has room for it; `receive` sends the rest."""
        self._unsent = memoryview(bytes(self._unsent) + wire.frame(content))
        self._write_some()
        self.clock.given()

    def receive(self) -> dict[str, Any] | End:
        """The next message, or why none came within the test's time."""
        largest = 2 * self._limits.output_bytes + (1 << 16)
        while True:
            if len(self._answers) >= wire.HEADER:
                length = int.from_bytes(self._answers[: wire.HEADER], "big")
                if length > largest:
                    return End.TOO_LARGE
                if len(self._answers) >= wire.HEADER + length:
                    body = bytes(memoryview(self._answers)[wire.HEADER : wire.HEADER + length])
                    del self._answers[: wire.HEADER + length]
                    found = message.parse(body, self._limits.output_bytes)
                    at = found.get("at") if isinstance(found, dict) else None
                    return End.TIMEOUT if self.clock.answered(at) else found
            match self._move():
                case End() as end:
                    return end

    def drain(self, seconds: float | None = None) -> End:
        """Read output until the child closes its pipes, or `seconds` or the test's time pass."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            if max(len(self.output), len(self._answers)) > self._limits.output_bytes:
                return End.TOO_LARGE
            match self._move(deadline):
                case End() as end:
                    return end

    @property
    def errors(self) -> bytes:
        """What a program of tools.py has printed on standard error."""
        return bytes(self._answers)

    def left_over(self) -> dict[str, Any] | End:
        """A message that the child sent before it ended."""
        self.clock = RunClock(_READY)
        return self.receive()

    def _move(self, deadline: float | None = None) -> End | None:
        """Read and write some bytes; an `End` if no more will come or the time is over."""
        if deadline is not None:
            return self._pump(deadline)
        end = self._pump(self.clock.due)
        if end not in (None, End.TIMEOUT) or self._is_over:
            return End.TIMEOUT if self._is_over else end
        if time.monotonic() < self.clock.due:
            return None
        sight = self.clock.look()
        is_moving = end is None or self._can_move()
        return self.clock.look_again(sight) if is_moving else self.clock.judge(sight)

    def _poll(self) -> select.poll:
        poll = select.poll()
        for descriptor in (self._outgoing, self._stdout):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        if self._unsent and self._incoming >= 0:
            poll.register(self._incoming, select.POLLOUT)
        return poll

    def _can_move(self) -> bool:
        """Whether there is something to read, or room for the rest of a message."""
        return bool(self._poll().poll(0))

    def _pump(self, deadline: float) -> End | None:
        """Read and write some bytes; an `End` if no more will come or the deadline passes."""
        if self._outgoing < 0 and self._stdout < 0:
            return End.CLOSED
        started = time.monotonic()
        ready = self._poll().poll(max(0.0, deadline - started) * 1000)
        self.clock.polled(time.monotonic() - started)
        if not ready:
            return End.TIMEOUT
        for descriptor, _ in ready:
            if descriptor == self._incoming:
                self._write_some()
                self._is_over = self.clock.moved() or self._is_over
            elif descriptor == self._outgoing:
                self._read_some("_outgoing", self._answers)
                if self._outgoing < 0 and self._stdout < 0:
                    return End.CLOSED
            else:
                self._read_some("_stdout", self.output)
        return None

    def _read_some(self, pipe: str, into: bytearray) -> None:
        data = os.read(getattr(self, pipe), _FULL)
        into += data
        if len(data) >= _FULL:  # the child may have waited for the judge to read
            self._is_over = self.clock.moved() or self._is_over
        if not data:
            self._close(pipe)

    def _write_some(self) -> None:
        if not self._unsent:
            return
        try:
            sent = os.write(self._incoming, self._unsent[: 1 << 20])
            self._unsent = self._unsent[sent:]
        except BlockingIOError:
            pass  # the pipe is full
        except BrokenPipeError:
            self._unsent = memoryview(b"")

    def end(self) -> ExitStatus:
        """Stop the child if it still runs; how it ended. Raises SandboxDied if that is unknown."""
        if self._ended is None:
            self._link.send({"stop": self._number})
        ended = self.wait(_END_SECONDS)
        if ended is None:
            raise SandboxDied("the worker does not answer")
        return ended

    def wait(self, seconds: float) -> ExitStatus | None:
        """How the child ended; None if it still runs after `seconds`."""
        if self._ended is not None:
            return self._ended
        deadline = time.monotonic() + seconds
        told = self._link.hear(deadline)
        if told is None:
            if time.monotonic() >= deadline:
                return None
            raise SandboxDied("the worker died")
        if told.pop("ended") != self._number or told["cause"].startswith("scratch"):
            raise SandboxDied(f"the worker sent an unexpected message: {told}")
        self._ended = ended = ExitStatus(**told)
        if ended.cause == "overdue":  # the judge did not read the answer in all that time
            raise SandboxDied("the judge was too slow")
        unexplained = ended.signal == signal.SIGKILL and not ended.cause
        if unexplained and self._confined and not self.out_of_cpu:
            # Candidates cannot send themselves SIGKILL (seccomp.py).
            raise SandboxDied("the child was killed from outside")
        return ended

    def wait_for_end(self) -> ExitStatus | End:
        """How the child ended, or why it did not end within the test's time."""
        while (ended := self.wait(max(0.0, self.clock.due - time.monotonic()))) is None:
            sight = self.clock.look()
            ended = self.wait(0)
            if ended is not None:
                break
            match self.clock.judge(sight):
                case End() as end:
                    return end
        return End.TIMEOUT if self.clock.is_over_at(ended.cpu_seconds) else ended

    @property
    def out_of_cpu(self) -> bool:
        """Whether the kernel ended the child because its processor time was used up."""
        ended = self._ended
        return ended is not None and ended.signal != 0 and ended.cpu_seconds >= self._cpu

    def abandon(self) -> None:
        """Close the pipes."""
        self._watch.close()
        for pipe in ("_incoming", "_outgoing", "_stdout"):
            self._close(pipe)

    def _close(self, pipe: str) -> None:
        if getattr(self, pipe) >= 0:
            os.close(getattr(self, pipe))
            setattr(self, pipe, -1)


def _source(stdin: bytes | None) -> int:
    """A descriptor to read `stdin` from: a seekable file in memory that nothing can change."""
    if stdin is None:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    data = memoryview(stdin)
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    if hasattr(fcntl, "F_ADD_SEALS"):
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor
