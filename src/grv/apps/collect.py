"""`grv collect`: a log of generated, scored and verified candidates, live."""

from __future__ import annotations

import enum
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import UsageError
from ..files import check_writable
from ..options import MOST, option
from ..text import counted
from .console import check_outputs, listed, progress, report, say
from .options.command import command
from .options.job import job_option
from .options.live import LiveOptions, backends_of, check_resources, unprotected_lines
from .summary import Reasons, score_line

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..runtime.calls import Caller
    from ..runtime.collect import Collected, Collection
    from ..runtime.progress import CandidateListener
    from ..runtime.resources import Resources


class LabelSource(enum.StrEnum):
    """By whose rules candidates are labelled."""

    CHECKS = "checks"
    PUBLISHED = "published"


@dataclass(frozen=True)
class Expected:
    """What a job file says about its problems, for a dry run before their file exists."""

    problems: int
    tests: int = 0


def _parse_expected(table: Any) -> Expected:
    match table:
        case {"problems": int(problems), **rest} if problems > 0 and rest.keys() <= {"tests"}:
            tests = rest.get("tests", 0)
            if isinstance(tests, int) and tests >= 0:
                return Expected(problems, tests)
    raise UsageError("[expected] has problems and tests, as counts")


def _parse_sample(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= MOST):
        raise UsageError(f"give a whole number from 0 to {MOST:,}, or all")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class CollectOptions(LiveOptions):
    """The options of `grv collect`; with the name of a run, if a job file has several."""

    n: int = option(..., "Candidates per problem.", "-n", metavar="N", least=1, most=MOST)
    sample: int | None = option(
        None,
        "Verify all candidates, or N of each problem, drawn at random.",
        "--verify",
        metavar="all|N",
        parse=_parse_sample,
        shown="all",
    )
    labels: LabelSource = option(
        LabelSource.CHECKS,
        "By whose rules candidates are labelled: published labels answers and programs as the"
        " paper's published code does, for comparison with the paper only, and marks the log.",
    )
    prices: str | None = option(
        None,
        "A TOML file with prices in dollars. The log then has what each candidate and each verdict"
        " really cost, for grv compare --costs measured.",
        metavar="FILE",
    )
    expected: Expected | None = option(
        None,
        "The size of the problems, for dry runs.",
        parse=_parse_expected,
        job_only=True,
        tables=True,
    )
    name: str = ""

    @property
    def collects(self) -> bool:
        """Whether all candidates are labelled for a log, and no verdict decides anything."""
        return True

    def asked(self, problem: Problem) -> Problem:
        """A problem as it is asked and labelled."""
        from ..backends.verifiers.checks import as_published

        asked = super().asked(problem)
        return as_published(asked) if self.labels is LabelSource.PUBLISHED else asked


@command
def collect(
    runs: list[CollectOptions],
    job: str | None = job_option("; each table [runs.NAME] is a run"),
    only: tuple[str, ...] = option((), "Only this run of a job file. Repeatable.", metavar="NAME"),
    dry_run: bool = option(False, "Print what the run needs, and stop.", "--dry-run"),
) -> None:
    """Generate and score candidates, verify them, and write a log for grv compare.

    grv writes everything to the ledger before it uses it. If a run stops, the same command
    continues it and does not pay again for results that are recorded. The log is written at the
    end. Equivalent candidates are verified once. Exit code 1: some problems are missing.

    \b
    grv collect problems.jsonl --generator openai:qwen2.5-coder \\
        --base-url http://localhost:8000/v1 -n 64 --out log.parquet
    grv compare log.parquet
    """
    chosen = _chosen(runs, only)
    for run in chosen:
        _check(run, job)
    outs = Counter(os.path.realpath(each.out) for each in chosen)
    if len(outs) < len(chosen):
        raise UsageError(f"two runs write {outs.most_common(1)[0][0]}; choose one with --only")
    if dry_run:
        for run in chosen:
            say(*_needs(run))
    elif not all([_run(each) for each in chosen]):
        raise typer.Exit(1)


def _chosen(runs: Sequence[CollectOptions], only: Sequence[str]) -> list[CollectOptions]:
    names = [run.name for run in runs]
    if unknown := sorted(set(only) - {*names}):
        there = ", ".join(filter(None, names)) or "none"
        raise UsageError(f"--only {', '.join(unknown)}: no such run; there are {there}")
    return [run for run in runs if not only or run.name in only]


def _check(run: CollectOptions, job: str | None) -> None:
    """Refuse, before any work, what cannot be collected."""
    from ..logs.converting import check_ending

    if run.labels is LabelSource.PUBLISHED and run.verifier is not None:
        raise UsageError("--labels published is for the problems' checks: leave out --verifier")
    if run.models.cascade is not None:
        raise UsageError("a cascade is for grv solve; collect a log with one of its scores")
    if run.models.alike is not None or run.models.score.startswith("trained:"):
        raise UsageError("--alike and trained scores are for grv solve; collect a log without them")
    check_ending(run.out)
    check_writable(run.out)
    check_outputs(
        run.written,
        [run.problems, run.prompts, run.prices, job],
        [run.models.generator, run.models.score, run.verifier],
        continued=True,
    )


def _run(run: CollectOptions) -> bool:
    """Collect, and write the log; whether every problem is in it."""
    from ..runtime.collect import Collection
    from ..runtime.prices import Meter, Prices, model_of

    problems = run.read_problems()
    meter = None
    if run.prices is not None:
        meter = Meter(Prices.load(run.prices), model_of(run.models.generator))
    check_resources(run)
    with backends_of(run, problems) as backends:
        seed = run.sampling.seed or 0
        collection = Collection(backends, run.n, run.sample, seed, about=run.about, meter=meter)
        results = _collect_all(problems, collection, run)
    failed = [each for each in results.values() if each.message]
    elsewhere = [problem.id for problem in problems if problem.id not in results]
    if elsewhere:
        say(
            f"no log yet: another process collects {listed(elsewhere)}; run the same command again"
            " when it is done"
        )
        return False
    scores = Counter(each.score for each in results.values())
    say(
        *_write(problems, results, run),
        *_score_lines(scores, run),
        *unprotected_lines(run.verification, problems, run.verifier),
    )
    reasons = Reasons(partial(say, err=True))
    for result in failed:
        reasons.add(result.problem, "is not in the log", result.message)
    if len(failed) > 1:
        say(f"grv: {len(failed)} problems are not in the log; see grv runs list", err=True)
    return not failed


def _collect_all(
    problems: Sequence[Problem], collection: Collection, run: CollectOptions
) -> dict[str, Collected]:
    import anyio

    from ..ledger.opening import open_ledger
    from ..runtime.calls import Caller
    from ..runtime.collect import collect_many
    from ..runtime.interrupts import until_interrupted
    from ..runtime.tasks import raise_first

    results: dict[str, Collected] = {}
    ledger = open_ledger(run.ledger_path)
    caller = Caller(run.calls)
    report(caller)

    def done(collected: Collected) -> None:
        results[collected.problem] = collected

    async def work() -> None:
        with _progress(len(problems), run, caller) as tell:
            collecting = partial(collect_many, problems, collection, done=done, progress=tell)
            await collecting(ledger=ledger, caller=caller)

    async def everything() -> bool:
        try:
            return await until_interrupted(work, caller, partial(say, err=True))
        except BaseExceptionGroup as errors:
            raise_first(errors)
        finally:
            await collection.backends.aclose()

    with closing(ledger):
        interrupted = anyio.run(everything)
    if interrupted:
        raise KeyboardInterrupt
    say(*caller.complaints.summary(), *caller.lanes.summary())
    return results


def _write(
    problems: Sequence[Problem], found: Mapping[str, Collected], run: CollectOptions
) -> list[str]:
    """Write the log; what is in it, in words."""
    from ..backends.verifiers.checks import errs, is_published
    from ..logs.converting import write_log
    from ..logs.readers import JUDGED, PUBLISHED

    there = [found[problem.id] for problem in problems if not found[problem.id].message]
    rows = [(each.problem, row) for each in there for row in each.rows]
    columns = ["candidate", "passed", "score", "key", "refuted"]
    if run.prices is not None:
        columns += ["generate_cost", "verify_cost"]
    if any(row.stage_costs is not None and not row.refuted for _, row in rows):
        columns += ["failed_stage", "stage_costs"]
    published = {problem.id for problem in problems if is_published(problem.check)}
    sources = {problem.id: JUDGED for problem in problems if not run.verifier and errs(problem)}
    sources |= dict.fromkeys(published, PUBLISHED)
    marks = [sources.get(problem) for problem, _ in rows]
    write_log(
        {"problem": [problem for problem, _ in rows]}
        | {name: [getattr(row, name) for _, row in rows] for name in columns}
        | ({"labels": marks} if sources else {}),
        run.out,
    )
    passed = sum(row.passed is True for _, row in rows)
    solvable = sum(any(row.passed for row in each.rows) for each in there)
    unscored = sum(row.score is None for _, row in rows)
    unlabelled = sum(row.passed is None for _, row in rows)
    broken = sum(each.broken for each in there)
    lost = sum((Counter(each.lost) for each in there), Counter[str]())
    lines = [
        f"{run.out}: {counted(len(rows), 'candidate')} of {counted(len(there), 'problem')},"
        f" {passed} passed; {counted(solvable, 'problem')} with a pass;"
        f" {counted(sum(each.verified for each in there), 'verification')}"
    ]
    if shared := sum(each.shared for each in there):
        lines.append(f"known already, so neither run nor billed: {counted(shared, 'verdict')}")
    if refuted := sum(row.refuted for _, row in rows):
        lines.append(f"{refuted} were refuted without verification: see grv runs show")
    if count := sum(mark is not None for mark in marks):
        lines.append(f"{count} are labelled as the paper's published code does (column labels)")
    if unlabelled:
        why = f", {broken} of them because the verifier could not tell" if broken else ""
        lines.append(f"{unlabelled} have no label{why}: see --unlabelled of grv compare")
    if unscored:
        lines.append(f"{unscored} have no score, and rank last: see grv runs show")
    if lost:
        shown = ", ".join(f"{count} to {call}" for call, count in lost.items())
        lines.append(f"possibly paid, lost when a process died: {shown}")
    return [*lines, f"{run.ledger_path} has what was paid for"]


def _score_lines(scores: Mapping[str, int], run: CollectOptions) -> list[str]:
    """What ranks the candidates with `--score auto`, and what to do if nothing does."""
    from ..backends.scorers.auto import UNRANKED

    lines = [line for line in [score_line(scores)] if line]
    if scores.get(UNRANKED):
        ledger = shlex.quote(run.ledger_path)
        lines.append(
            "without log-probabilities the scores of a log are 0; train one on its verdicts:"
            f" grv learn {ledger} --scorer -o scorer.json"
        )
    return lines


@contextmanager
def _progress(problems: int, run: CollectOptions, caller: Caller) -> Iterator[CandidateListener]:
    """Candidates generated, and candidates with a label, on one bar."""
    sample = run.n if run.sample is None else min(run.n, run.sample)
    total = problems * (run.n + sample)
    so_far = 0
    with progress("collecting", lambda: caller.waiting) as tell:

        def more(done: int) -> None:
            nonlocal so_far
            so_far += done
            tell(so_far, total)

        yield more


def _needs(run: CollectOptions) -> list[str]:
    """What a run needs, in plain words."""
    lines = [*([f"{run.name}:"] if run.name else [])]
    if not os.path.exists(run.problems) and run.expected is not None:
        lines.append(f"{run.problems} does not exist yet; the job file expects:")
    return [*lines, *resources_of(run).lines()]


def resources_of(run: CollectOptions) -> Resources:
    """What a run needs."""
    from ..backends.http.web import shown
    from ..backends.scorers import REWARDS, reward_address
    from ..backends.verifiers.checks import parse_check
    from ..runtime.resources import needed, worst_seconds

    models = run.models
    expected = run.expected
    limits = run.verification.limits
    if expected is not None and not os.path.exists(run.problems):
        tests = 1 if run.labels is LabelSource.PUBLISHED else expected.tests
        seconds = [tests * limits.seconds] * expected.problems
    else:
        own = run.verifier is not None
        seconds = [
            0.0 if own else worst_seconds(parse_check(problem, limits))
            for problem in run.read_problems()
        ]
    servers = []
    if models.generator.startswith("openai"):
        where = shown(models.base_url or "https://api.openai.com/v1")
        servers.append(f"{models.generator.partition(':')[2]} at {where}, to generate")
    name, _, where = models.score.partition(":")
    if name == "judge":
        address = shown(models.base_url or "https://api.openai.com/v1")
        servers.append(f"{where} at {address}, to judge")
    elif name in REWARDS:
        model = models.score_model or "a reward model"
        server = shown(reward_address(name, where)[0])
        servers.append(f"{model} behind /{name} of {server}, to score")
    return needed(
        seconds,
        n=run.n,
        sample=run.sample,
        max_tokens=run.sampling.max_tokens,
        logprobs=models.score == "auto" or models.score.startswith("logprob"),
        workers=run.verification.workers or os.cpu_count() or 1,
        servers=servers,
    )
