"""One run, from the judge's side: messages to the child, its answers and output, and its end."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import tempfile
import time
from typing import Any

from ...core.errors import VerifierError
from . import message, wire
from .clock import STARVED, Clock, Stopwatch
from .limits import End, Ended, Limits
from .link import Link

READY_SECONDS = 60.0
_END_SECONDS = 60.0
_READY = Limits(READY_SECONDS)
_FULL = 1 << 16  # bytes in a pipe that takes no more


class WorkerDied(VerifierError):
    """The worker failed, in a way that says nothing about the candidate."""


class Run:
    """One child: messages to it, messages and output from it, and how it ended."""

    def __init__(
        self,
        link: Link,
        number: int,
        mode: str,
        limits: Limits,
        *,
        tests: int = 1,
        stdin: bytes | None = None,
        capture: bool = False,
        confined: bool = True,
        first: Any = None,
    ) -> None:
        self._link = link
        self._number = number
        self._confined = confined
        self._limits = limits
        self._answers = bytearray()
        self._watch = Stopwatch(0)
        self.clock = Clock(_READY)
        self._unsent = memoryview(b"" if first is None else wire.frame(first))
        self._ended: Ended | None = None
        self.output = bytearray()
        cpu = limits.cpu_allowance(tests)
        allowed = {
            "cpu": cpu,
            "memory_mb": int(limits.memory_mb),
            "files_mb": int(limits.files_mb),
            "threads": int(limits.threads),
            # Only for a judge that is stuck: it keeps the time itself, test by test.
            "overdue": 2 * STARVED * limits.seconds * max(1, tests) + 600,
        }
        self._cpu = cpu
        incoming, self._incoming = os.pipe()
        self._outgoing, outgoing = os.pipe()
        os.set_blocking(self._incoming, False)
        os.set_blocking(self._outgoing, False)
        self._stdout = -1
        self._write_some()  # it lies in the pipe until the child, ready, reads it
        theirs = [incoming, outgoing, _source(stdin)]
        if capture:
            self._stdout, stdout = os.pipe()
            os.set_blocking(self._stdout, False)
        else:
            stdout = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        theirs.append(stdout)
        try:
            order = {"run": number, "mode": mode, "limits": allowed}
            link.send(order, tuple(theirs))
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def wait_until_ready(self) -> None:
        """Return once the jail is on; the clock starts when the child says so."""
        match self.receive():
            case {"ready": {"pid": pid, "cpu": cpu, "waited": waited, "at": at}}:
                self._watch = Stopwatch(int(pid))
                self.clock = Clock(self._limits, self._watch)
                self.clock.begin_from(cpu, waited, at)
            case {"setup": str(problem)}:
                raise WorkerDied(f"the jail could not be put on: {problem}", backend="sandbox")
            case _:
                raise WorkerDied("the child died before it started", backend="sandbox")

    def is_waiting(self) -> bool:
        """Whether the child lives and has said nothing that was not taken in."""
        poll = select.poll()
        if self._outgoing < 0 or self._answers or self._unsent:
            return False
        poll.register(self._outgoing, select.POLLIN)
        return not poll.poll(0)

    def send(self, content: Any) -> None:
        """Have a message sent while the next one is waited for."""
        self._unsent = memoryview(bytes(self._unsent) + wire.frame(content))

    def receive(self) -> dict[str, Any] | End:
        """The next message, or why there is none in the time of the test."""
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
        """Take in output until the other side hangs up; for so long, or for the test's time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            if max(len(self.output), len(self._answers)) > self._limits.output_bytes:
                return End.TOO_LARGE
            match self._move(deadline):
                case End() as end:
                    return end

    def left_over(self) -> dict[str, Any] | End:
        """What it said before it ended."""
        self.clock = Clock(_READY)
        return self.receive()

    def _move(self, deadline: float | None = None) -> End | None:
        """Move some bytes; an `End` when none will come, or the time is over."""
        if deadline is not None:
            return self._pump(deadline)
        end = self._pump(self.clock.due)
        if end is not End.TIMEOUT:
            return end
        sight = self.clock.look()
        return None if self._is_our_turn() else self.clock.judge(sight)

    def _poll(self) -> select.poll:
        poll = select.poll()
        for descriptor in (self._outgoing, self._stdout):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        if self._unsent and self._incoming >= 0:
            poll.register(self._incoming, select.POLLOUT)
        return poll

    def _is_our_turn(self) -> bool:
        """Whether something can be read, or the rest of a message written."""
        return bool(self._poll().poll(0))

    def _pump(self, deadline: float) -> End | None:
        """Move some bytes; an `End` when there are none to come."""
        if self._outgoing < 0 and self._stdout < 0:
            return End.CLOSED
        ready = self._poll().poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            return End.TIMEOUT
        for descriptor, _ in ready:
            if descriptor == self._incoming:
                self._write_some()
            elif descriptor == self._outgoing:
                data = self._read(self._outgoing)
                self._answers += data
                if not data:
                    os.close(self._outgoing)
                    self._outgoing = -1
                    if self._stdout < 0:
                        return End.CLOSED
            else:
                data = self._read(self._stdout)
                self.output += data
                if not data:
                    os.close(self._stdout)
                    self._stdout = -1
        return None

    def _read(self, descriptor: int) -> bytes:
        data = os.read(descriptor, 1 << 20)
        if len(data) >= _FULL:  # perhaps it has waited for us
            self.clock.turn()
        return data

    def _write_some(self) -> None:
        if not self._unsent:
            return
        try:
            sent = os.write(self._incoming, self._unsent[: 1 << 20])
            self._unsent = self._unsent[sent:]
            self.clock.given()
        except BrokenPipeError:
            self._unsent = memoryview(b"")

    def end(self) -> Ended:
        """Stop it where it still runs, and say how it ended; a WorkerDied where nobody knows."""
        if self._ended is None:
            self._link.send({"stop": self._number})
        ended = self.wait(_END_SECONDS)
        if ended is None:
            raise WorkerDied("the worker does not answer", backend="sandbox")
        return ended

    def wait(self, seconds: float) -> Ended | None:
        """How it ended by itself; None where it did not, in that time."""
        if self._ended is not None:
            return self._ended
        deadline = time.monotonic() + seconds
        told = self._link.hear(deadline)
        if told is None:
            if time.monotonic() >= deadline:
                return None
            raise WorkerDied("the worker died", backend="sandbox")
        if told.pop("ended") != self._number or told["cause"].startswith("scratch"):
            raise WorkerDied(f"the worker is confused: {told}", backend="sandbox")
        self._ended = ended = Ended(**told)
        if ended.cause == "overdue":  # nobody asked for its answer in all that time
            raise WorkerDied("the judge was too slow", backend="sandbox")
        unexplained = ended.signal == signal.SIGKILL and not ended.cause
        if unexplained and self._confined and not self.out_of_cpu:
            # The filter keeps candidates from killing themselves so: it came from outside.
            raise WorkerDied("the child was killed from outside", backend="sandbox")
        return ended

    def wait_for_end(self) -> Ended | End:
        """How it ended by itself; or that it did not, in the time of the test."""
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
        """Whether it ended for having used its processor time."""
        ended = self._ended
        return ended is not None and ended.signal != 0 and ended.cpu_seconds >= self._cpu

    def abandon(self) -> None:
        """Close the pipes."""
        self._watch.close()
        for name in ("_incoming", "_outgoing", "_stdout"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)


def _source(stdin: bytes | None) -> int:
    """A descriptor to read `stdin` from: a file, so that nobody need feed it, and seekable."""
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
