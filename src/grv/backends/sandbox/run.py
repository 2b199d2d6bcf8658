"""One run, from the judge's side: messages to the child, its answers and output, and its end."""

from __future__ import annotations

import enum
import fcntl
import json
import os
import select
import signal
import tempfile
import time
from typing import Any

from ...core.errors import VerifierError
from . import wire
from .limits import Ended, Limits
from .link import Link

READY_SECONDS = 60.0
_END_SECONDS = 60.0


class End(enum.Enum):
    """Why no message came."""

    TIMEOUT = "timeout"
    CLOSED = "closed"  # the other side hung up
    MALFORMED = "malformed"
    TOO_LARGE = "too large"


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
        # It lies in the pipe until the child, ready, reads it.
        self._unsent = memoryview(b"" if first is None else wire.frame(first))
        self._ended: Ended | None = None
        self.output = bytearray()
        self.started = time.monotonic()
        cpu = limits.cpu_allowance(tests)
        allowed = {
            "cpu": cpu,
            "memory_mb": int(limits.memory_mb),
            "files_mb": int(limits.files_mb),
            "threads": int(limits.threads),
            # Only for a judge that is stuck: it keeps the time itself, test by test.
            "overdue": 2 * limits.seconds * max(1, tests) + 600,
        }
        self._cpu = cpu
        incoming, self._incoming = os.pipe()
        self._outgoing, outgoing = os.pipe()
        os.set_blocking(self._incoming, False)
        os.set_blocking(self._outgoing, False)
        self._stdout = -1
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
        """Return once the jail is on; clocks start here."""
        match self.receive(READY_SECONDS):
            case {"ready": True}:
                self.started = time.monotonic()
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

    def send(self, message: Any) -> None:
        """Have a message sent while the next one is waited for."""
        self._unsent = memoryview(bytes(self._unsent) + wire.frame(message))

    def receive(self, seconds: float) -> dict[str, Any] | End:
        """The next message, or why there is none."""
        deadline = time.monotonic() + seconds
        largest = 2 * self._limits.output_bytes + (1 << 16)
        while True:
            if len(self._answers) >= wire.HEADER:
                length = int.from_bytes(self._answers[: wire.HEADER], "big")
                if length > largest:
                    return End.TOO_LARGE
                if len(self._answers) >= wire.HEADER + length:
                    body = bytes(self._answers[wire.HEADER : wire.HEADER + length])
                    del self._answers[: wire.HEADER + length]
                    return _message(body)
            match self._pump(deadline):
                case End() as end:
                    return end

    def drain(self, seconds: float) -> End:
        """Take in output until the other side hangs up."""
        deadline = time.monotonic() + seconds
        while True:
            if max(len(self.output), len(self._answers)) > self._limits.output_bytes:
                return End.TOO_LARGE
            match self._pump(deadline):
                case End() as end:
                    return end

    def _pump(self, deadline: float) -> End | None:
        """Move some bytes; an `End` when there are none to come."""
        poll = select.poll()
        if self._outgoing >= 0:
            poll.register(self._outgoing, select.POLLIN)
        if self._stdout >= 0:
            poll.register(self._stdout, select.POLLIN)
        if self._unsent and self._incoming >= 0:
            poll.register(self._incoming, select.POLLOUT)
        if self._outgoing < 0 and self._stdout < 0:
            return End.CLOSED
        wait = deadline - time.monotonic()
        ready = poll.poll(max(0.0, wait) * 1000)
        if not ready:
            return End.TIMEOUT
        for descriptor, _ in ready:
            if descriptor == self._incoming:
                self._write_some()
            elif descriptor == self._outgoing:
                data = os.read(self._outgoing, 1 << 20)
                self._answers += data
                if not data:
                    os.close(self._outgoing)
                    self._outgoing = -1
                    if self._stdout < 0:
                        return End.CLOSED
            else:
                data = os.read(self._stdout, 1 << 20)
                self.output += data
                if not data:
                    os.close(self._stdout)
                    self._stdout = -1
        return None

    def _write_some(self) -> None:
        try:
            sent = os.write(self._incoming, self._unsent[: 1 << 20])
            self._unsent = self._unsent[sent:]
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
        message = self._link.hear(deadline)
        if message is None:
            if time.monotonic() >= deadline:
                return None
            raise WorkerDied("the worker died", backend="sandbox")
        if message.pop("ended") != self._number or message["cause"].startswith("scratch"):
            raise WorkerDied(f"the worker is confused: {message}", backend="sandbox")
        self._ended = ended = Ended(**message)
        unexplained = ended.signal == signal.SIGKILL and not ended.cause
        if unexplained and self._confined and not self.out_of_cpu:
            # The filter keeps candidates from killing themselves so: it came from outside.
            raise WorkerDied("the child was killed from outside", backend="sandbox")
        return ended

    @property
    def out_of_cpu(self) -> bool:
        """Whether it ended for having used its processor time."""
        ended = self._ended
        return ended is not None and ended.signal != 0 and ended.cpu_seconds >= self._cpu

    def abandon(self) -> None:
        """Close the pipes."""
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


def _message(body: bytes) -> dict[str, Any] | End:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return End.MALFORMED
    return message if isinstance(message, dict) else End.MALFORMED
