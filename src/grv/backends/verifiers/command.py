"""Verify by a command of the user's own: checks of kind "command".

`{"kind": "command", "argv": ["./check.sh", "--answer", "{}"]}`. The command is not confined: it
runs with the user's rights, in the current directory, without a shell. A file of problems may come
from anywhere, so its commands run only if the user allows it, and never under strict isolation; see
`check_allowed`. The candidate's text is its
standard input, and stands in a file whose path replaces `{}` in its arguments. Exit status 0 is
passed, 1 is failed; anything else is broken, and so is a command that takes too long: it could not
tell.

When the command ends or is stopped, what is left of its process group ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import shown
from ..protocols import Draft, Finding, Problem, Usage
from ..sandbox.limits import Isolation

_FIELDS = ("kind", "argv", "limits", "repeat")
_KEPT = 4_000  # bytes at the end of an output, for evidence
_TICK_SECONDS = 0.05  # between two looks at what no descriptor tells
_NAMED = 3  # commands in a summary
_LAST_READS = 4  # of what is left in the pipes when the command has ended


def is_command(problem: Problem) -> bool:
    """Whether the problem's check runs a command."""
    return problem.check.get("kind") == "command"


def check_allowed(problem: Problem, *, allowed: bool, isolation: Isolation) -> None:
    """Refuse a check that runs a command, unless the user allows commands."""
    if not is_command(problem):
        return
    argv = problem.check.get("argv")
    what = f"problem {problem.id}: its check runs the command {shown(argv)} with your rights"
    if isolation is Isolation.STRICT:
        raise UsageError(f"{what}, which strict isolation forbids")
    if not allowed:
        raise UsageError(f"{what}; if you trust it, give --allow-commands (see grv verify --help)")


def unprotected(problems: Iterable[Problem]) -> str:
    """The programs that checks of these problems run with the user's rights; none is ""."""
    named = {str(problem.check["argv"][0]): None for problem in problems if is_command(problem)}
    names = ", ".join([*named][:_NAMED])
    return names if len(named) <= _NAMED else f"{names} and {len(named) - _NAMED} more"


class CommandCheck:
    """Asks a command about a candidate's text.

    Args:
        argv: the program and its arguments; `{}` in them is the path of the candidate's file.
        timeout_seconds: of wall clock, for one candidate.

    Raises:
        UsageError: there is no program, or an argument is not a string.
    """

    def __init__(self, argv: Sequence[str], *, timeout_seconds: float = 60.0) -> None:
        if isinstance(argv, str) or not argv or not all(isinstance(part, str) for part in argv):
            raise UsageError(f"argv must be a list of strings, not {shown(argv)}")
        if not argv[0] or any("\0" in part for part in argv):
            raise UsageError(f"argv names no program, or has a null character: {shown(argv)}")
        if not timeout_seconds > 0:
            raise UsageError(f"timeout_seconds must be positive, not {timeout_seconds}")
        self.argv = tuple(argv)
        self._timeout = timeout_seconds

    @classmethod
    def of(cls, check: Mapping[str, Any], *, timeout_seconds: float = 60.0) -> CommandCheck:
        """The check that a record describes; its `limits.seconds` go before `timeout_seconds`."""
        for name in check:
            if name not in _FIELDS:
                raise UsageError(f"{name}: no such field; there are {', '.join(_FIELDS)}")
        argv = check.get("argv")
        if not isinstance(argv, list):
            raise UsageError(f"argv must be a list of strings, not {shown(argv)}")
        seconds = check.get("limits", {}).get("seconds", timeout_seconds)
        return cls(argv, timeout_seconds=seconds)

    def key(self, text: str) -> str | None:
        """A checksum of the text: nothing is known about what the command does not look at."""
        return "text:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text. May be called from any thread."""
        return self._find(text, threading.Event())

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding on a draft, by a command that is stopped if the caller is cancelled."""
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._find, draft.text, stop)
        finally:
            stop.set()

    def _find(self, text: str, stop: threading.Event) -> Finding:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="grv-", ignore_cleanup_errors=True) as folder:
            path = Path(folder) / "candidate.txt"
            path.write_bytes(text.encode("utf-8", "replace"))
            argv = [part.replace("{}", str(path)) for part in self.argv]
            try:
                with path.open("rb") as stdin, _running(argv, stdin) as process:
                    ended = _watch(process, started + self._timeout, stop)
            except OSError as exc:
                return Finding(Verdict.BROKEN, "checker could not start", {"detail": str(exc)})
        usage = Usage(seconds=time.monotonic() - started)
        evidence = {"exit": ended.status, "stdout": ended.stdout, "stderr": ended.stderr}
        return Finding(*_verdict(ended.status), evidence, usage)


def _verdict(status: int | None) -> tuple[Verdict, str]:
    match status:
        case None:
            return Verdict.BROKEN, "timeout"
        case 0:
            return Verdict.PASSED, "checker passed it"
        case 1:
            return Verdict.FAILED, "checker failed it"
        case _ if status < 0:
            return Verdict.BROKEN, f"checker was killed by signal {-status}"
        case _:
            return Verdict.BROKEN, f"checker exited with status {status}"


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a command ended: its status, None if it was stopped, and the ends of its outputs."""

    status: int | None
    stdout: str
    stderr: str


@contextlib.contextmanager
def _running(argv: list[str], stdin: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a session of its own, with whose end all of its group is ended."""
    with subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            # Not waited for yet, it keeps its number, which no other group can have.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _watch(process: subprocess.Popen[bytes], deadline: float, stop: threading.Event) -> _Ended:
    """Read the outputs until the command ends, whoever else still holds them."""
    assert process.stdout is not None
    assert process.stderr is not None
    kept = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    with contextlib.ExitStack() as closing:
        waiting = closing.enter_context(selectors.DefaultSelector())
        for pipe in kept:
            os.set_blocking(pipe, False)
            waiting.register(pipe, selectors.EVENT_READ)
        if hasattr(os, "pidfd_open"):  # ready when the process ends: saves waiting for the tick
            ending = os.pidfd_open(process.pid)
            closing.callback(os.close, ending)
            waiting.register(ending, selectors.EVENT_READ)
        while (status := _status(process)) is None:
            if stop.is_set() or time.monotonic() >= deadline:
                break
            _read(waiting, kept, _TICK_SECONDS)
        for _ in range(_LAST_READS):
            _read(waiting, kept, 0)
    stdout, stderr = (end.decode("utf-8", "replace") for end in kept.values())
    return _Ended(status, stdout, stderr)


def _read(waiting: selectors.BaseSelector, kept: dict[int, bytes], seconds: float) -> None:
    """Take in what the outputs hold, and keep its end."""
    for key, _ in waiting.select(seconds):
        if key.fd not in kept:
            continue
        part = os.read(key.fd, 1 << 16)
        kept[key.fd] = (kept[key.fd] + part)[-_KEPT:]
        if not part:
            waiting.unregister(key.fd)


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """The status of a process, negative for a signal; None while it runs.

    Where the system can, it is left to be waited for.
    """
    if not hasattr(os, "waitid"):
        return process.poll()
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
