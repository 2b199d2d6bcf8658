"""`grv verify`: verdicts for a file of candidates."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..backends.verifiers.options import Verification
from ..core.errors import UsageError
from ..core.values import REFUTED, Verdict
from ..options import option
from ..text import counted
from .console import check_outputs, progress, say
from .dashboard import need_packages
from .options.command import command
from .options.job import job_option
from .options.live import unprotected_lines
from .options.serving import Listening
from .serve import address_of, clients_of, connections_of, door_of

if TYPE_CHECKING:
    import socket

    from ..backends.protocols import Problem
    from ..backends.verifiers.labels import LabelFile
    from ..backends.verifiers.pool import CheckVerifier, Judged
    from ..conditions import Level

_SHOWN = 5  # broken candidates that are named


@command
def verify(
    verification: Verification,
    listening: Listening,
    file: str | None = option(
        None,
        "JSON lines: a problem, its check, its candidates' texts.",
        argument=True,
        metavar="FILE",
    ),
    out: str | None = option(
        None, "Where verdicts go; an existing file is continued.", "--out", "-o", metavar="LABELS"
    ),
    serve: bool = option(
        False,
        "Instead of a file, answer requests at --host and --port: POST /verify, as a resources"
        " server of NeMo Gym does.",
        "--serve",
    ),
    cache: str | None = option(
        None, "Remember verdicts here, by check and program.", metavar="FILE"
    ),
    evidence: bool = option(
        False, "Add the evidence to each label: the first failing test.", "--evidence"
    ),
    job: str | None = job_option(),
) -> None:
    """Give every candidate of a file its verdict: passed, failed or broken.

    Programs run in a sandbox. grv writes each verdict at once. Run again with the same LABELS, it
    continues where it stopped. Exit code 1: some verdicts are broken.

    \b
    grv verify FILE -o LABELS
    grv verify --serve --port 8003

    \b
    FILE    {"problem": "p1", "check": {"kind": "stdin", "tests": [...]}, "candidates": ["..."]}
    LABELS  {"problem": "p1", "candidate": 0, "verdict": "failed", "reason": "wrong answer", ...}
    """
    from ..backends.verifiers.labels import FINGERPRINT, LabelFile

    if serve:
        if file is not None or out is not None:
            raise UsageError("--serve answers requests: leave out FILE and --out")
        check_outputs([cache], [job, listening.clients], continued=True)
        _serve(verification, listening, cache)
        return
    if file is None or out is None:
        missing = "FILE" if file is None else "--out LABELS"
        raise UsageError(f"give {missing}, or --serve to answer requests")
    check_outputs([out, cache], [file, job], continued=True)
    started = time.monotonic()
    done = _Done()
    with contextlib.ExitStack() as opened:
        verifier = opened.enter_context(_verifier(verification, cache, published=True))
        with progress("reading"):
            candidates, levels = _candidates(verifier, file)
        total = sum(map(len, candidates.values())) // FINGERPRINT
        with contextlib.closing(LabelFile(out, candidates, file, levels)) as labels:
            done.verdicts.update(labels.done.values())
            resumed = len(labels.done)
            with progress("verifying") as tell:
                _run(verifier, labels, done, file, lambda n: tell(n, total), evidence)
        in_force = str(verifier.in_force) if done.programs else "not needed: no program was run"
    seconds = time.monotonic() - started
    before = f" ({resumed} were there before)" if resumed else ""
    say(
        f"{counted(total, 'candidate')} of {counted(len(candidates), 'problem')}: "
        + ", ".join(f"{done.verdicts[verdict]} {verdict.value}" for verdict in Verdict),
        f"{total - resumed - done.refuted - done.shared} verified in {seconds:.1f} s{before}",
        *([f"{done.refuted} refuted without verification"] if done.refuted else []),
        *([f"{done.shared} known already, so nothing was run"] if done.shared else []),
        f"isolation {in_force}",
        *unprotected_lines(verification, tuple(done.commands.values())),
    )
    done.say_broken()


@contextlib.contextmanager
def _verifier(
    verification: Verification, cache: str | None, *, published: bool
) -> Iterator[CheckVerifier]:
    """The verifier, which remembers verdicts in a file if there is one."""
    from ..backends.verifiers.verdict_store import VerdictStore

    with contextlib.ExitStack() as opened:
        store = None
        if cache is not None:
            store = opened.enter_context(contextlib.closing(VerdictStore(Path(cache))))
        yield opened.enter_context(verification.verifier(store, decides=False, published=published))


def _serve(verification: Verification, listening: Listening, cache: str | None) -> None:
    """Answer requests until a signal arrives."""
    need_packages("grv verify --serve")
    import anyio

    from ..serve.events import Events
    from ..serve.gym import PATH, GymApplication
    from ..serve.server import bind, run

    clients = clients_of(listening, None)

    async def work(verifier: CheckVerifier, place: socket.socket) -> int:
        events = Events()
        door = door_of(listening, clients)
        app = GymApplication(verifier, verification.limits, clients, door, events, listening.slow)
        address = f"{address_of(place)}{PATH}"
        say(f"{address} verifies")
        events("listening", address=address)
        return await run(
            app,
            app,
            place,
            events,
            slow=listening.slow,
            grace=listening.grace,
            connections=connections_of(listening),
        )

    with (
        _verifier(verification, cache, published=False) as verifier,
        bind(listening.host, listening.port) as place,
    ):
        first = anyio.run(work, verifier, place)
    if first == signal.SIGINT:
        raise KeyboardInterrupt


def _candidates(verifier: CheckVerifier, file: str) -> tuple[dict[str, bytes], dict[str, Level]]:
    """Per problem, the fingerprints of its candidates, and the isolation of its labels.

    Finds every mistake before any work.
    """
    from ..backends.verifiers.labels import fingerprint, read_batches

    digests: dict[str, bytes] = {}
    levels: dict[str, Level] = {}
    for batch in read_batches(file):
        conditions = verifier.conditions(batch.problem)
        prints = [fingerprint(conditions, text) for text in batch.texts]
        digests[batch.problem.id] = b"".join(prints)
        levels[batch.problem.id] = conditions.isolation
    return digests, levels


@dataclass
class _Done:
    """What was verified: verdicts, programs in the sandbox, problems whose commands ran."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    refuted: int = 0
    shared: int = 0
    programs: int = 0
    commands: dict[str, Problem] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def add(self, problem: Problem, number: int, judged: Judged) -> None:
        """Count a verdict."""
        from ..backends.verifiers.checks import kinds_in, runs_programs

        finding = judged.finding
        self.verdicts[finding.verdict] += 1
        if judged.key == REFUTED:
            self.refuted += 1
        elif finding.shared:
            self.shared += 1
        else:
            kinds = kinds_in(problem.check)
            if "command" in kinds:
                self.commands[problem.id] = problem
            self.programs += any(map(runs_programs, kinds))
        if finding.verdict is Verdict.BROKEN and len(self.broken) < _SHOWN:
            self.broken.append(f"{problem.id}, candidate {number}: {finding.reason}")

    def say_broken(self) -> None:
        """Name the first broken candidates and end with exit code 1, if there are any."""
        for line in self.broken:
            say(f"broken: {line}", err=True)
        if self.broken:
            count = self.verdicts[Verdict.BROKEN]
            say(f"grv: {count} broken; run the same command again to retry them", err=True)
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
    labels: LabelFile,
    done: _Done,
    file: str,
    show: Callable[[int], None],
    evidence: bool,
) -> None:
    for (problem, number), judged in verifier.find_all(_jobs(file, labels)):
        finding = judged.finding
        labels.add(problem.id, number, finding, judged.key, finding.evidence if evidence else None)
        done.add(problem, number, judged)
        show(sum(done.verdicts.values()))
