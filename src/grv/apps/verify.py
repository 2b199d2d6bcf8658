"""`grv verify`: verdicts for a file of candidates."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..core.errors import UsageError
from ..core.values import Verdict
from .console import check_outputs

if TYPE_CHECKING:
    from ..backends.labels import LabelFile
    from ..backends.protocols import Problem
    from ..backends.sandbox.limits import Isolation, Limits
    from ..backends.verifier import CheckVerifier

_SHOWN = 5  # broken candidates that are named


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
) -> None:
    """Give every candidate of a file its verdict: passed, failed or broken.

    Programs run in a sandbox. Each verdict is written as soon as it is there; started again with
    the same LABELS, verification goes on where it stopped. Exit code 1: some verdicts are broken.

    \b
    FILE    {"problem": "p1", "check": {"kind": "stdin", "tests": [...]}, "candidates": ["..."]}
    LABELS  {"problem": "p1", "candidate": 0, "verdict": "failed", "reason": "wrong answer", ...}
    """
    from ..backends.labels import LabelFile, read_batches
    from ..backends.verdict_store import VerdictStore
    from ..backends.verifier import CheckVerifier

    level, limits = parse_isolation(isolation), _limits(timeout, memory)
    check_outputs([out, cache], [file])
    store = VerdictStore(Path(cache)) if cache is not None else None
    started = time.monotonic()
    with CheckVerifier(
        workers=parse_workers(workers), isolation=level, limits=limits, store=store
    ) as verifier:
        sizes = {}
        for batch in read_batches(file):  # every mistake in the file, before any work
            verifier.prepare(batch.problem)
            sizes[batch.problem.id] = len(batch.texts)
        labels = LabelFile(out, sizes, file)
        with contextlib.closing(labels):
            counts = Counter(labels.done.values())
            resumed = len(labels.done)
            broken: list[str] = []
            total = sum(sizes.values())
            jobs = (
                ((batch.problem, number), batch.problem, text)
                for batch in read_batches(file)
                for number, text in enumerate(batch.texts)
                if (batch.problem.id, number) not in labels.done
            )
            with _progress(total) as show:
                _run(verifier, jobs, labels, counts, broken, show, evidence)
        in_force = str(verifier.in_force) if total > resumed else isolation
    seconds = time.monotonic() - started
    typer.echo(
        f"{total} candidates of {len(sizes)} problems: "
        + ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict)
    )
    new = total - resumed
    before = f" ({resumed} were there before)" if resumed else ""
    typer.echo(f"{new} verified in {seconds:.1f} s{before}; isolation {in_force}")
    for line in broken[:_SHOWN]:
        typer.echo(f"broken: {line}", err=True)
    if broken:
        typer.echo(f"grv: {len(broken)} broken; start again to retry them", err=True)
        raise typer.Exit(1)


def _run(
    verifier: CheckVerifier,
    jobs: Iterator[tuple[tuple[Problem, int], Problem, str]],
    labels: LabelFile,
    counts: Counter[Verdict],
    broken: list[str],
    show: Callable[[int], None],
    evidence: bool,
) -> None:
    for (problem, number), judged in verifier.find_all(jobs):
        finding = judged.finding
        labels.add(problem.id, number, finding, judged.key, finding.evidence if evidence else None)
        counts[finding.verdict] += 1
        if finding.verdict is Verdict.BROKEN:
            broken.append(f"{problem.id}, candidate {number}: {finding.reason}")
        show(sum(counts.values()))


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
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1024:
        raise UsageError(f"--workers {text}: give a whole number from 1 to 1024")
    return int(text)


def _limits(timeout: str, memory: str) -> Limits:
    from ..backends.sandbox.limits import Limits

    try:
        seconds = float(timeout)
        Limits(seconds=seconds)
    except ValueError:
        raise UsageError(f"--timeout {timeout}: give seconds, more than 0") from None
    try:
        return Limits(seconds=seconds, memory_mb=int(memory))
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
