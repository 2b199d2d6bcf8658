"""Math-Verify in processes of its own, which are killed when they take too long."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ....core.errors import UsageError

_SCRIPT = Path(__file__).with_name("worker.py")
_START_SECONDS = 120.0
_QUESTIONS_EACH = 2_000  # of one process, whose caches grow
_LONGEST_REPLY = 1 << 20

Way = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What Math-Verify said.

    Attributes:
        state: whether it finds both equal, or the process timed out, ran out of memory, died or
            could not be started, after one more attempt in a fresh one.
        errors: what went wrong inside, by name, where something did.
    """

    state: Literal["equal", "different", "timeout", "memory", "died", "not started"]
    errors: tuple[str, ...] = ()


class MathVerify:
    """Asks Math-Verify, from any thread.

    Args:
        workers: processes at once; each is started when it is needed, and used again.
        timeout_seconds: of wall clock, for one question.
        megabytes: of memory, for one process; 0 is no limit.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        timeout_seconds: float = 10.0,
        megabytes: int = 2048,
    ) -> None:
        if workers is not None and workers < 1:
            raise UsageError(f"workers must be at least 1, not {workers}")
        if timeout_seconds <= 0:
            raise UsageError(f"timeout_seconds must be positive, not {timeout_seconds}")
        self._timeout = timeout_seconds
        self._megabytes = megabytes
        self._workers = workers or min(4, os.cpu_count() or 1)
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._free = threading.BoundedSemaphore(self._workers)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []

    @staticmethod
    def require() -> None:
        """Raise `UsageError` where Math-Verify is not installed."""
        if importlib.util.find_spec("math_verify") is None:
            raise UsageError("checks of kind 'math' need Math-Verify: pip install 'grv[math]'")

    def equal(self, ways: Sequence[Way]) -> Reply:
        """Whether in one of the ways all pairs of reference and candidate are equal.

        A process that dies or takes too long is killed, and a fresh one asked once more.
        """
        if self._owner != os.getpid():  # forked: processes and locks are the parent's
            self._begin()
        with self._free:
            reply = self._ask(ways)
            if reply.state not in {"equal", "different"}:
                reply = self._ask(ways)
            return reply

    def close(self) -> None:
        """End the processes. The next question starts new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()

    def _ask(self, ways: Sequence[Way]) -> Reply:
        try:
            worker = self._worker()
        except (OSError, _Silent):
            return Reply("not started")
        try:
            answer = worker.ask({"ways": ways, "seconds": self._timeout}, self._timeout)
        except _Silent as exc:
            worker.kill()
            return Reply("timeout" if exc.late else "died")
        except BaseException:
            worker.kill()
            raise
        errors = tuple(map(str, answer["errors"]))
        if "memory" in errors or worker.asked >= _QUESTIONS_EACH:
            worker.kill()
        else:
            with self._lock:
                self._idle.append(worker)
        if answer["equal"]:
            return Reply("equal", errors)
        if errors and set(errors) <= {"memory", "timeout"}:
            return Reply("timeout" if "timeout" in errors else "memory", errors)
        return Reply("different", errors)

    def _worker(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.kill()
        return _Worker(self._megabytes)


class _Silent(Exception):
    """No answer came: too late, or the process is dead."""

    def __init__(self, *, late: bool) -> None:
        super().__init__("late" if late else "dead")
        self.late = late


class _Worker:
    """One process."""

    def __init__(self, megabytes: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_SCRIPT), str(megabytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        self.asked = 0
        self.kill = weakref.finalize(self, _kill, self._process, os.getpid())
        try:
            if self._line(_START_SECONDS) != b"ready":
                raise _Silent(late=False)
        except BaseException:
            self.kill()
            raise

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.asked += 1
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as exc:
            raise _Silent(late=False) from exc
        answer: dict[str, Any] = json.loads(self._line(seconds))
        return answer

    def _line(self, seconds: float) -> bytes:
        """The next line, without its end."""
        assert self._process.stdout is not None
        descriptor, line = self._process.stdout.fileno(), b""
        deadline = time.monotonic() + seconds
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not _readable(descriptor, left):
                raise _Silent(late=True)
            part = os.read(descriptor, 1 << 16)
            if not part or len(line) > _LONGEST_REPLY:
                raise _Silent(late=False)
            line += part
        return line.rstrip(b"\n")


def _readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(seconds * 1000))


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process and close its pipes; in a fork of its owner, only let go of it."""
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
    else:
        process.returncode = 0  # not ours to wait for
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
