"""Runs `inside.py` on a copy of a repository, in the jail."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from ...sandbox.limits import End, RunLimits
from ...sandbox.tool_worker import Grants, Step, ToolWorker
from ..languages.building import wait
from ..programs.findings import silent
from . import inside
from .inside import MARK
from .runners import RESULTS, RunnerCommand

PROGRAM = "inside.py"
_SOURCE = Path(inside.__file__)


@dataclass(frozen=True)
class Ran:
    """One run of tests.

    Attributes:
        output: what was printed on standard output.
        errors: what was printed on standard error, with the reports.
        problem: why the run was ended, or how it ended badly; "" if it ended by itself.
        is_machines_fault: whether it was ended for a reason that is not the candidate's.
    """

    output: bytes
    errors: bytes
    problem: str = ""
    is_machines_fault: bool = False

    @property
    def printed(self) -> str:
        """Standard output as text."""
        return self.output.decode("utf-8", "replace")

    @property
    def said(self) -> str:
        """What was printed for people."""
        lines = self.errors.decode("utf-8", "replace").splitlines()
        shown = [line for line in lines if line and not line.startswith(f"{MARK} ")]
        return "\n".join([self.printed.strip(), *shown]).strip()


def order(command: RunnerCommand, root: str, *, secret: bytes, source: str, results: str) -> bytes:
    """What `inside.py` reads from standard input."""
    argv = [part.replace("{results}", results) for part in command.job.get("argv", [])]
    more = {"root": root, "source": source, "secret": secret.hex(), "results": results}
    return json.dumps({**command.job, **more, "argv": argv}).encode()


def program() -> str:
    """The program that runs in the jail."""
    return _SOURCE.read_text(encoding="utf-8")


def run_in_jail(
    worker: ToolWorker,
    command: RunnerCommand,
    folder: Path,
    *,
    secret: bytes,
    source: str,
    readable: tuple[str, ...],
    writable: bool,
    limits: RunLimits,
    reads_results: bool,
) -> Ran:
    """Run tests in a copy of a repository. It cannot be written to, unless `writable`."""
    root = str(folder)
    grants = Grants(
        (*command.grants.readable, *(os.path.realpath(path) for path in readable)),
        (*command.grants.executable, root),
        (*command.grants.writable, *((root,) if writable else ())),
    )
    argv = (command.python, "-I", "-B", f"{{work}}/{PROGRAM}")
    step = Step(argv, grants, command.environment, folder=root)
    results = worker.path("work", RESULTS) if reads_results else ""
    stdin = order(command, root, secret=secret, source=source, results=results)
    files = {PROGRAM: program()}
    with worker.step("command", step, limits, files=files, stdin=stdin, clears=True) as run:
        status = wait(run)
        output = bytes(run.output)
        errors = run.errors
        if not isinstance(status, End) and status.exit_code is not None and not status.cause:
            return Ran(output, errors)
        end = status if isinstance(status, End) else End.CLOSED
        found = silent(run, end, limits.seconds)
        is_fault = found.verdict.value == "broken"
        return Ran(output, errors, found.reason, is_fault)
