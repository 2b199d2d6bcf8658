"""A case run in a process of its own, forked from one that has everything loaded."""

from __future__ import annotations

import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from .commands import Case
from .mutations import spoil

SECONDS = 60.0  # until a case counts as one that hangs; the machine may be busy
MEMORY = 6 << 30
CODES = (0, 1, 2, 130)
# What a run prints while it goes on.
_NOTICE = re.compile(rb"grv: warning: |grv: problem |\d+ of the first \d+ candidates ")
_CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Ended:
    """How a case ended; `code` is None for one that hung."""

    case: Case
    code: int | None
    out: bytes
    err: bytes
    seconds: float

    @property
    def faults(self) -> list[str]:
        """What must never be, and is."""
        said = self.out + self.err
        found = []
        if self.code is None:
            found.append("hangs")
        elif self.code not in CODES:
            found.append(f"exit code {self.code}")
        if b"Traceback" in said:
            found.append("a traceback")
        if b"bug in grv" in said:
            found.append("a bug in grv")
        if _CONTROL.search(said) and "--help" not in self.case.arguments:
            found.append("a control character")
        if self.code == 2 and not self._is_one_error:
            found.append("not one line")
        return found

    @property
    def _is_one_error(self) -> bool:
        """Whether the error is one line, the last. A run may print notices before it."""
        *before, last = self.err.splitlines() or [b""]
        return last.startswith(b"grv: ") and all(map(_NOTICE.match, before))

    def __str__(self) -> str:
        words = [word if len(word) < 60 else f"{word[:57]}..." for word in self.case.arguments]
        said = self.err[-600:].decode("utf-8", "replace")
        faults = ", ".join(self.faults)
        return f"case {self.case.number} ({faults}): {words} {self.case.spoilt} {said}"


def run(case: Case, corpus: Path, folder: Path, *, forked: bool = True) -> Ended:
    """Run a case in a new folder with copies of the valid inputs."""
    shutil.copytree(corpus, folder)
    for name in case.spoilt:
        for _ in range(case.random.choice((1, 1, 1, 2))):
            spoil(folder / name, case.random)
    started = time.monotonic()
    code = _fork(case, folder) if forked else _spawn(case, folder)
    seconds = time.monotonic() - started
    out, err = ((folder / f".{name}").read_bytes() for name in ("out", "err"))
    ended = Ended(case, code, out, err, seconds)
    if not ended.faults:
        shutil.rmtree(folder, ignore_errors=True)
    return ended


def _fork(case: Case, folder: Path) -> int | None:
    pid = os.fork()
    if pid == 0:
        _child(case, folder)
    return _waited(pid)


def _child(case: Case, folder: Path) -> None:
    """Never returns."""
    code = 99
    try:
        os.setsid()
        os.chdir(folder)
        for descriptor, name in ((1, ".out"), (2, ".err")):
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, descriptor)
        sys.stdin = open(os.devnull)  # noqa: SIM115 - the process ends with it
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        warnings.resetwarnings()  # those of pytest are errors
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        from grv.apps.cli import run as run_command

        code = run_command(list(case.arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _spawn(case: Case, folder: Path) -> int | None:
    with (folder / ".out").open("wb") as out, (folder / ".err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "grv", *(word.replace("\0", "") for word in case.arguments)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            return process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def _waited(pid: int) -> int | None:
    """The exit code; negative for a signal, None for a process that hung and was ended."""
    descriptor = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], SECONDS)
        if not ready:
            os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status) if ready else None
    finally:
        os.close(descriptor)
