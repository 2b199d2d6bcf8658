"""`grv verify`: verdicts for a file of candidates."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..core.errors import UsageError
from ..core.values import Verdict
from .console import check_outputs, parse_whole, say

if TYPE_CHECKING:
    from ..backends.protocols import Finding, Problem
    from ..backends.sandbox.limits import Isolation, Limits
    from ..backends.verifiers.labels import LabelFile
    from ..backends.verifiers.pool import CheckVerifier

_SHOWN = 5  # broken candidates that are named
_LONGEST, _MOST_MB = 1e8, 1 << 30  # of a timeout and of memory; more is the same as no limit


def verify(
    file: str = typer.Argument(
        metavar="FILE", help="JSON lines: a problem, its check, its candidates' texts."
    ),
    out: str = typer.Option(
        ..., "--out", "-o", metavar="LABELS", help="Where verdicts go; goes on where it stopped."
    ),
    workers: str = typer.Option(
        None, metavar="N", help="Candidates verified at once. Default: one a processor."
    ),
    isolation: str = typer.Option(
        "jail", metavar="strict|jail|unsafe", help="How far programs are kept from this machine."
    ),
    timeout: str = typer.Option(
        "10", metavar="S", help="Seconds of wall clock per test, where the check sets no limit."
    ),
    memory: str = typer.Option(
        "1024", metavar="MB", help="Memory per program, where the check sets no limit."
    ),
    cache: str = typer.Option(
        None, metavar="FILE", help="Remember verdicts here, by check and equivalence class."
    ),
    evidence: bool = typer.Option(
        False, "--evidence", help="Add to each label what shows it: the first failing test."
    ),
    allow_commands: bool = typer.Option(
        False,
        "--allow-commands",
        help='Let checks of kind "command" run commands with your rights, and checks of kind "http"'
        " send candidates to servers.",
    ),
) -> None:
    """Give every candidate of a file its verdict: passed, failed or broken.

    Programs run in a sandbox. Each verdict is written as soon as it is there; started again with
    the same LABELS, verification goes on where it stopped. Exit code 1: some verdicts are broken.

    \b
    FILE    {"problem": "p1", "check": {"kind": "stdin", "tests": [...]}, "candidates": ["..."]}
    LABELS  {"problem": "p1", "candidate": 0, "verdict": "failed", "reason": "wrong answer", ...}
    """
    from ..backends.verifiers.command import unprotected
    from ..backends.verifiers.labels import FINGERPRINT, LabelFile, fingerprint, read_batches
    from ..backends.verifiers.pool import CheckVerifier
    from ..backends.verifiers.verdict_store import VerdictStore

    level, limits = parse_isolation(isolation), _limits(timeout, memory)
    count = parse_workers(workers)
    check_outputs([out, cache], [file])
    store = VerdictStore(Path(cache)) if cache is not None else None
    started = time.monotonic()
    done = _Done()
    with CheckVerifier(
        workers=count, isolation=level, limits=limits, store=store, allow_commands=allow_commands
    ) as verifier:
        candidates = {}
        for batch in read_batches(file):  # every mistake in the file, before any work
            check = verifier.prepare(batch.problem).digest
            marks = (fingerprint(check, text) for text in batch.texts)
            candidates[batch.problem.id] = b"".join(marks)
        total = sum(map(len, candidates.values())) // FINGERPRINT
        with contextlib.closing(LabelFile(out, candidates, file)) as labels:
            done.verdicts.update(labels.done.values())
            resumed = len(labels.done)
            with _progress(total) as show:
                _run(verifier, _jobs(file, labels), labels, done, show, evidence)
        in_force = str(verifier.in_force) if done.programs else "not needed: no program was run"
    seconds = time.monotonic() - started
    before = f" ({resumed} were there before)" if resumed else ""
    say(
        f"{total} candidates of {len(candidates)} problems: "
        + ", ".join(f"{done.verdicts[verdict]} {verdict.value}" for verdict in Verdict)
    )
    say(f"{total - resumed} verified in {seconds:.1f} s{before}")
    say(f"isolation {in_force}")
    if done.commands:
        named = unprotected(done.commands.values())
        say(f"unprotected, with your rights, ran the commands of checks: {named}")
    done.say_broken()


@dataclass
class _Done:
    """What was verified: verdicts, programs in the sandbox, problems whose commands ran."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    programs: int = 0
    commands: dict[str, Problem] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def add(self, problem: Problem, number: int, finding: Finding) -> None:
        """Count a verdict."""
        from ..backends.verifiers.command import is_command

        self.verdicts[finding.verdict] += 1
        if is_command(problem):
            self.commands[problem.id] = problem
        elif problem.check["kind"] not in ("http", "math"):
            self.programs += 1
        if finding.verdict is Verdict.BROKEN and len(self.broken) < _SHOWN:
            self.broken.append(f"{problem.id}, candidate {number}: {finding.reason}")

    def say_broken(self) -> None:
        """Name the first of the broken ones; they make the exit code 1."""
        for line in self.broken:
            say(f"broken: {line}", err=True)
        if self.broken:
            count = self.verdicts[Verdict.BROKEN]
            say(f"grv: {count} broken; start again to retry them", err=True)
            raise typer.Exit(1)


_Job = tuple[tuple["Problem", int], "Problem", str]


def _jobs(file: str, labels: LabelFile) -> Iterator[_Job]:
    """The candidates that have no label yet."""
    from ..backends.verifiers.labels import read_batches

    for batch in read_batches(file):
        for number, text in enumerate(batch.texts):
            if (batch.problem.id, number) not in labels.done:
                yield (batch.problem, number), batch.problem, text


def _run(
    verifier: CheckVerifier,
    jobs: Iterator[_Job],
    labels: LabelFile,
    done: _Done,
    show: Callable[[int], None],
    evidence: bool,
) -> None:
    for (problem, number), judged in verifier.find_all(jobs):
        finding = judged.finding
        labels.add(problem.id, number, finding, judged.key, finding.evidence if evidence else None)
        done.add(problem, number, finding)
        show(sum(done.verdicts.values()))


def parse_isolation(text: str) -> Isolation:
    """The level that `--isolation` names."""
    from ..backends.sandbox.limits import Isolation

    try:
        return Isolation(text)
    except ValueError:
        names = ", ".join(level.value for level in Isolation)
        raise UsageError(f"--isolation {text}: give one of {names}") from None


def parse_workers(text: str | None) -> int | None:
    """The number that `--workers` gives; None for one a processor."""
    return None if text is None else parse_whole("--workers", text, most=1024)


def _limits(timeout: str, memory: str) -> Limits:
    from ..backends.sandbox.limits import Limits

    try:
        seconds = min(float(timeout), _LONGEST)
        Limits(seconds=seconds)
    except ValueError:
        raise UsageError(f"--timeout {timeout}: give seconds, more than 0") from None
    try:
        return Limits(seconds=seconds, memory_mb=min(int(memory), _MOST_MB))
    except ValueError:
        raise UsageError(f"--memory {memory}: give MiB, a whole number from 1 on") from None


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal's error stream, gone when the work is done; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("verifying", total=total)
        yield lambda done: bar.update(task, completed=done)
