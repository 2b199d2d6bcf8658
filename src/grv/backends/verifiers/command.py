"""Verify with the user's own command: checks of kind "command".

`{"kind": "command", "argv": ["./check.sh", "--answer", "{}"]}`. The command reads the candidate's
text from standard input, or from the file whose path replaces `{}`. Exit status 0 is passed, 1 is
failed, anything else and a timeout are broken.

The command is not confined: it runs with the user's permissions, in the current directory, without
a shell. It has the user's environment with a fixed locale, and default signals (sandbox/start.py).
A file of problems may come from anywhere, so `check_allowed` refuses its commands unless the user
allows them. When the command ends or times out, the rest of its process group is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import shown
from ...own_code import digest_of_files
from ...plugins import is_allowed_check
from ..protocols import Finding, Problem, Usage
from ..sandbox import start
from ..sandbox.limits import Isolation
from ..sandbox.start import UMASK, in_fixed_locale, notice_children, with_default_signals
from ..sandbox.worker import PREFIX
from .checks import KINDS, TextCheck, WholeTextCheck, records_in

_KEPT = 4_000  # bytes at the end of an output, for evidence
_TICK_SECONDS = 0.05  # between two checks of the deadline
_NAMED = 3  # commands in a summary
_making = threading.Lock()
_LAST_READS = 4  # of the pipes, after the command has ended


def is_command(problem: Problem) -> bool:
    """Whether the problem's check runs a command with the user's rights, and nothing else."""
    return problem.check.get("kind") == "command" and problem.check.get("jail") is not True


def check_allowed(problem: Problem, *, allowed: bool, isolation: Isolation) -> None:
    """Refuse a check that runs a command or sends candidates away, unless the user allows it."""
    check: object = problem.check
    if not isinstance(check, Mapping):
        return  # the parser says what is wrong
    for record in records_in(check):
        kind = record.get("kind")
        does = _outside(kind, record) if isinstance(kind, str) else ""
        if not does:
            continue
        what = f"problem {problem.id}: its check {does}"
        if isolation is Isolation.STRICT:
            raise UsageError(f"{what}, which strict isolation forbids")
        if not allowed and kind in KINDS:  # a plugin is allowed by its name
            hint = "if you trust it, give --allow-commands (see grv verify --help)"
            raise UsageError(f"{what}; {hint}")


def _outside(kind: str, record: Mapping[str, Any]) -> str:
    """What a check does outside the sandbox; "" if it does nothing there."""
    if kind not in KINDS:
        return f"is a plugin, {kind}" if is_allowed_check(kind) else ""
    outside = KINDS[kind].outside
    return "" if outside is None else outside(record)


def unprotected(problems: Iterable[Problem]) -> str:
    """The commands that the checks of some problems run, for a summary; "" if there are none."""
    records = (record for problem in problems for record in records_in(problem.check))
    commands = (
        record
        for record in records
        if record.get("kind") == "command" and record.get("jail") is not True
    )
    named = {str(record["argv"][0]): None for record in commands}
    names = ", ".join([*named][:_NAMED])
    return names if len(named) <= _NAMED else f"{names} and {len(named) - _NAMED} more"


class CommandCheck(TextCheck):
    """Asks a command about a candidate's text.

    Args:
        argv: a list of the program and its arguments; `{}` is the path of the candidate's file.
        timeout_seconds: the time limit for one candidate.
    """

    judged_by = 0

    def __init__(self, argv: object, *, timeout_seconds: float = 60.0) -> None:
        if not isinstance(argv, list) or not all(isinstance(part, str) for part in argv):
            raise UsageError(f"argv must be a list of strings, not {shown(argv)}")
        if not argv or not argv[0] or any("\0" in part for part in argv):
            raise UsageError(f"argv names no program, or has a null character: {shown(argv)}")
        if not timeout_seconds > 0:
            raise UsageError(f"timeout_seconds must be positive, not {timeout_seconds}")
        self.argv = tuple(argv)
        self._timeout = timeout_seconds

    @classmethod
    def of(cls, problem: Problem) -> WholeTextCheck:
        """The check of a problem; its `limits.seconds` replace the 60 seconds."""
        if "jail" in problem.check:
            from .jailed_command import JailedCommandCheck

            return JailedCommandCheck.of(problem)
        for name in ("readable", "run"):
            if name in problem.check:
                raise UsageError(f'{name} needs "jail": true')
        seconds = problem.check.get("limits", {}).get("seconds", 60.0)
        return cls(problem.check.get("argv"), timeout_seconds=seconds)

    def content(self) -> str:
        """A checksum of the files that `argv` names: an edited script is another check."""
        return digest_of_files(named_files(self.argv))

    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text. May be called from any thread."""
        started = time.monotonic()
        with tempfile.TemporaryDirectory(
            dir=process_folder(), ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder) / "candidate.txt"
            path.write_bytes(text.encode("utf-8", "replace"))
            argv = [part.replace("{}", str(path)) for part in self.argv]
            try:
                with path.open("rb") as stdin, _running(argv, stdin) as process:
                    evidence = _watch(process, started + self._timeout)
            except OSError as exc:
                return Finding(Verdict.BROKEN, "checker could not start", {"detail": str(exc)})
        usage = Usage(seconds=time.monotonic() - started)
        return Finding(*verdict_of(evidence["exit"]), evidence, usage)


def named_files(argv: Sequence[str]) -> list[str]:
    """The files that a command names: its program, and each argument that is the path of a file.

    An argument may also be an option with a value (`--tests=FILE`), a folder with a program of
    Python, or a module of the current directory (`-m NAME`). What a line for a shell names is not
    looked for: it may write there.
    """
    found = [shutil.which(argv[0]) or argv[0]]
    for before, part in pairwise(argv):
        found += [part, part.partition("=")[2], f"{part}/__main__.py"]
        if before == "-m":
            module = part.replace(".", "/")
            found += [f"{module}.py", f"{module}/__main__.py"]
    return [path for path in dict.fromkeys(found) if path and os.path.isfile(path)]


@functools.cache
def _own_folder(process: int) -> str:
    """The folder for candidates of this process. It is locked, so `sweep` removes it later."""
    folder = tempfile.mkdtemp(prefix=PREFIX)
    fcntl.flock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
    atexit.register(_remove, folder, process)
    return folder


def process_folder() -> str:
    """A folder of this process for its files. It is removed when the process ends."""
    with _making:
        if not os.path.isdir(_own_folder(os.getpid())):  # a cleaner of old files removed it
            _own_folder.cache_clear()
        return _own_folder(os.getpid())


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not in a fork
        shutil.rmtree(folder, ignore_errors=True)


def verdict_of(status: int | None) -> tuple[Verdict, str]:
    """What an exit status means; None is a timeout."""
    match status:
        case None:
            return Verdict.BROKEN, "timeout"
        case 0:
            return Verdict.PASSED, "checker passed it"
        case 1:
            return Verdict.FAILED, "checker failed it"
        case start.NOT_STARTED:
            return Verdict.BROKEN, "checker could not start"
        case _ if status < 0:
            return Verdict.BROKEN, f"checker was killed by signal {-status}"
        case _:
            return Verdict.BROKEN, f"checker exited with status {status}"


@contextlib.contextmanager
def _running(argv: list[str], stdin: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A command in its own session. Its whole process group is killed at the end of the block."""
    notice_children()
    with subprocess.Popen(
        with_default_signals(argv),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=in_fixed_locale(os.environ),
        start_new_session=True,
        umask=UMASK,
    ) as process:
        try:
            yield process
        finally:
            # The process was not waited for, so no other group can have its number.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _watch(process: subprocess.Popen[bytes], deadline: float) -> dict[str, Any]:
    """The exit status (None after a timeout) and the ends of the outputs.

    Stops when the command ends, even if other processes keep the outputs open.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    kept = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    with contextlib.ExitStack() as closing:
        waiting = closing.enter_context(selectors.DefaultSelector())
        for pipe in kept:
            os.set_blocking(pipe, False)
            waiting.register(pipe, selectors.EVENT_READ)
        if hasattr(os, "pidfd_open"):  # readable when the process ends
            ending = os.pidfd_open(process.pid)
            closing.callback(os.close, ending)
            waiting.register(ending, selectors.EVENT_READ)
        while (status := _status(process)) is None:
            if time.monotonic() >= deadline:
                break
            _read(waiting, kept, _TICK_SECONDS)
        for _ in range(_LAST_READS):
            _read(waiting, kept, 0)
    stdout, stderr = (end.decode("utf-8", "replace") for end in kept.values())
    return {"exit": status, "stdout": stdout, "stderr": stderr}


def _read(waiting: selectors.BaseSelector, kept: dict[int, bytes], seconds: float) -> None:
    """Read the available output and keep its last bytes."""
    for key, _ in waiting.select(seconds):
        if key.fd not in kept:
            continue
        part = os.read(key.fd, 1 << 16)
        kept[key.fd] = (kept[key.fd] + part)[-_KEPT:]
        if not part:
            waiting.unregister(key.fd)


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """The status of a process, negative for a signal; None while it runs. Does not reap it."""
    if not hasattr(os, "waitid"):
        return process.poll()
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
