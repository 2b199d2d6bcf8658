"""`grv collect`: a log of candidates, or training data with verified answers, live."""

from __future__ import annotations

import enum
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import UsageError
from ..core.values import Costs
from ..files import check_writable
from ..options import MOST, option
from ..parsing import parse_costs
from ..runtime.training import ExportFormat, Target, judged_path
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

    n: int = option(
        ...,
        "Candidates per problem; with --passes or --failures, the most.",
        "-n",
        metavar="N",
        least=1,
        most=MOST,
    )
    target: Target = field(default_factory=Target)
    format: ExportFormat = option(
        ExportFormat.LOG,
        "A log for grv compare; or JSON lines for training: sft has prompt and completion, dpo"
        " prompt, chosen and rejected, as TRL reads them; rlvr has the problems that both pass and"
        " fail, with their checks, as verl reads them.",
    )
    costs: Costs = option(
        Costs(),
        "With --passes or --failures: cost of generating one candidate, and of verifying one. It"
        " decides how many to generate before the best is verified.",
        metavar="G,V[,F]",
        parse=parse_costs,
        shown="1,10",
    )
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
        return self.format is ExportFormat.LOG

    @property
    def written(self) -> tuple[str, ...]:
        """The files that the run writes."""
        apart = () if self.format is ExportFormat.LOG else (judged_path(self.out),)
        return (*super().written, *apart)

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
    """Generate and score candidates, verify them, and write a log or training data.

    grv writes everything to the ledger before it uses it. If a run stops, the same command
    continues it and does not pay again for results that are recorded. The log is written at the
    end. Equivalent candidates are verified once. Exit code 1: some problems are missing.

    With --passes and --failures it stops at each problem as soon as both are found. It chooses
    which candidates are verified, and never changes their texts. So the file is no fair sample of
    what the model writes: use it to train, and a log to measure. Verdicts of checks that err, such
    as a judge, are not verified: their lines go to a file of their own, OUT.judged.jsonl.

    \b
    grv collect problems.jsonl --generator openai:qwen2.5-coder \\
        --base-url http://localhost:8000/v1 -n 64 --out log.parquet
    grv compare log.parquet
    grv collect problems.jsonl --generator openai:qwen2.5-coder -n 64 --passes 4 --failures 4 \\
        --format dpo --out pairs.jsonl
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
    if run.format is ExportFormat.LOG:
        if run.target.is_set:
            raise UsageError(
                "--passes and --failures choose what is verified, so a log would not be a fair"
                " sample: give --format sft, dpo or rlvr"
            )
        check_ending(run.out)
    else:
        _check_training(run)
    check_writable(run.out)
    check_outputs(
        run.written,
        [run.problems, run.prompts, run.prices, job],
        [run.models.generator, run.models.score, run.verifier],
        continued=True,
    )


def _check_training(run: CollectOptions) -> None:
    """Refuse what cannot be training data."""
    from ..runtime.training import check_rows_path

    for flag, is_given in (
        ("--labels published", run.labels is LabelSource.PUBLISHED),
        ("--verify", run.sample is not None),
        ("--prices", run.prices is not None),
    ):
        if is_given:
            raise UsageError(f"{flag} is for a log: leave it out with --format {run.format.value}")
    target = run.target
    if run.format is ExportFormat.DPO and target.is_set and not (target.passes and target.failures):
        raise UsageError("--format dpo pairs answers with failures: give --passes and --failures")
    if run.format is ExportFormat.RLVR and run.verifier is not None:
        raise UsageError("--format rlvr writes the problems' checks: leave out --verifier")
    check_rows_path(run.out)


def _run(run: CollectOptions) -> bool:
    """Collect, and write the results; whether every problem is in them."""
    from ..runtime.collect import Collection
    from ..runtime.prices import Meter, Prices, model_of

    problems = run.read_problems()
    meter = None
    if run.prices is not None:
        meter = Meter(Prices.load(run.prices), model_of(run.models.generator))
    check_resources(run)
    with backends_of(run, problems) as backends:
        seed = run.sampling.seed or 0
        collection = Collection(
            backends,
            run.n,
            run.sample,
            seed,
            run.costs,
            about=run.about,
            meter=meter,
            target=run.target,
        )
        results = _collect_all(problems, collection, run)
    failed = [each for each in results.values() if each.message]
    elsewhere = [problem.id for problem in problems if problem.id not in results]
    if elsewhere:
        say(
            f"nothing is written yet: another process collects {listed(elsewhere)}; run the same"
            " command again when it is done"
        )
        return False
    scores = Counter(each.score for each in results.values())
    say(
        *(
            _write(problems, results, run)
            if run.format is ExportFormat.LOG
            else _write_training(problems, results, run, collection)
        ),
        *_score_lines(scores, run),
        *unprotected_lines(run.verification, problems, run.verifier),
    )
    reasons = Reasons(partial(say, err=True))
    for result in failed:
        reasons.add(result.problem, "is not in the results", result.message)
    if len(failed) > 1:
        say(f"grv: {len(failed)} problems are not in the results; see grv runs list", err=True)
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


def _write_training(
    problems: Sequence[Problem],
    found: Mapping[str, Collected],
    run: CollectOptions,
    collection: Collection,
) -> list[str]:
    """Write the training data; what is in it, in words."""
    from ..ledger.opening import open_ledger
    from ..ledger.view import SearchView
    from ..runtime.training import ProblemTexts, rows_of, write_rows

    there = [problem for problem in problems if not found[problem.id].message]
    with closing(open_ledger(run.ledger_path, read_only=True)) as ledger:
        texts = [
            ProblemTexts.of(problem, SearchView(ledger.read(collection.search_id(problem))))
            for problem in there
        ]
    rows = write_rows(rows_of(texts, run.format, run.target), run.out)
    collected = [found[problem.id] for problem in there]
    generated = sum(len(each.rows) for each in collected)
    verified = sum(each.verified for each in collected)
    lines = [
        f"{run.out}: {rows_named(rows.verified, run.format)} of {counted(len(there), 'problem')};"
        f" {counted(generated, 'candidate')}, {counted(verified, 'verification')}"
    ]
    if rows.judged:
        lines.append(f"{rows.judged_path}: {rows.judged} that are judged, not verified")
    if run.target.is_set:
        short = sum(not run.target.is_met(each) for each in texts)
        spared = run.n * len(there) - generated
        lines.append(f"{counted(spared, 'candidate')} of {run.n} per problem were not needed")
        if short:
            lines.append(
                f"{counted(short, 'problem')} with fewer different ones than asked for:"
                " raise -n, or ask for fewer"
            )
    return [*lines, f"{run.ledger_path} has what was paid for"]


def rows_named(count: int, format: ExportFormat) -> str:
    """How many lines of training data there are, in words."""
    if format is ExportFormat.RLVR:
        return f"{counted(count, 'problem')} that both pass and fail"
    return counted(count, "verified answer" if format is ExportFormat.SFT else "pair")


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
    """Candidates generated, and candidates with a label, on one bar; or problems, to a target."""
    sample = run.n if run.sample is None else min(run.n, run.sample)
    total = problems if run.target.is_set else problems * (run.n + sample)
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
