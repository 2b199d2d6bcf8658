"""`grv collect`: a log of generated, scored and verified candidates, live."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import UsageError
from . import live
from .console import check_outputs, listed, parse_cascade, parse_whole, progress, say
from .live import LiveOptions, backends_of, limits_of, options_of, protection, read_job

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..runtime.collect import Collected, Collection
    from ..runtime.progress import CandidateListener
    from .resources import Resources


@dataclass(frozen=True)
class Options(LiveOptions):
    """What `grv collect` was asked for."""

    n: int = 0
    verify: str = "all"
    prices: str | None = None

    @property
    def sample(self) -> int | None:
        """How many candidates a problem are verified; None is all."""
        return None if self.verify == "all" else parse_whole("--verify", self.verify, 0)


@dataclass(frozen=True)
class Expected:
    """What a job file says of its problems, for a dry run before their file is made."""

    problems: int
    tests: int = 0


@dataclass(frozen=True)
class Run:
    """One run of a job file, by its name; "" where the file, or the command line, is one run."""

    name: str
    options: Options
    expected: Expected | None = None


def collect(
    problems: str = live.PROBLEMS,
    generator: str = live.GENERATOR,
    score: str = live.SCORE,
    score_model: str = live.SCORE_MODEL,
    score_step: str = live.SCORE_STEP,
    n: int = typer.Option(None, "-n", metavar="N", help="Candidates a problem."),
    verify: str = typer.Option(
        None,
        metavar="all|N",
        help="Verify them all, or so many of each problem, drawn at random.  [default: all]",
    ),
    out: str = typer.Option(
        None, "--out", "-o", metavar="LOG", help="The log: .parquet, .jsonl or .csv."
    ),
    prices: str = typer.Option(
        None,
        metavar="FILE",
        help="Dollars, in TOML. The log then says what each candidate and each verdict really cost,"
        " for grv compare --costs measured.",
    ),
    base_url: str = live.BASE_URL,
    temperature: float = live.TEMPERATURE,
    top_p: float = live.TOP_P,
    max_tokens: int = live.MAX_TOKENS,
    stop: list[str] = live.STOP,
    seed: int = live.SEED,
    concurrency: int = live.CONCURRENCY,
    attempts: int = live.ATTEMPTS,
    first_pause: float = live.FIRST_PAUSE,
    call_timeout: float = live.CALL_TIMEOUT,
    ledger: str = live.LEDGER,
    keys: bool = live.KEYS,
    isolation: str = live.ISOLATION,
    timeout: float = live.TIMEOUT,
    memory: int = live.MEMORY,
    workers: int = live.WORKERS,
    allow_commands: bool = live.ALLOW_COMMANDS,
    job: str = typer.Option(
        None, metavar="FILE", help="These options in TOML, perhaps of several runs; flags win."
    ),
    only: list[str] = typer.Option(
        None, metavar="NAME", help="Of a job file's runs only this one. Repeatable."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what the run needs, and stop."),
) -> None:
    """Generate and score candidates, verify them, and write a log for grv compare.

    Everything is in the ledger before it is used. The same command again goes on where it stopped
    and pays for nothing twice; the log is written at the end. Equivalent candidates are verified
    once. Exit code 1: some problems are missing.

    \b
    grv collect problems.jsonl --generator openai:qwen2.5-coder \\
        --base-url http://localhost:8000/v1 -n 64 --out log.parquet
    grv compare log.parquet
    """
    given = {name: v for name, v in locals().items() if name not in ("job", "only", "dry_run")}
    runs = runs_of(job, given, only or ())
    if any(parse_cascade(each.options.score) is not None for each in runs):
        raise UsageError("a cascade is for grv solve; collect a log with one of its scores")
    if dry_run:
        for each in runs:
            say(*_needs(each))
        return
    complete = [_run(each) for each in runs]
    if not all(complete):
        raise typer.Exit(1)


def runs_of(job: str | None, given: Mapping[str, Any], only: Sequence[str]) -> list[Run]:
    """The runs of a job file: its options for all of them, and those of each `[runs.NAME]`."""
    table = read_job(job)
    table.pop("compare", None)  # which is grv compare's
    expected = _expected(job, table.pop("expected", None))
    tables = table.pop("runs", {"": {}})
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        raise UsageError(f"{job}: runs must be tables, as in [runs.large]")
    unknown = set(only) - tables.keys()
    if unknown:
        there = ", ".join(tables) if "" not in tables else "none"
        raise UsageError(f"--only {', '.join(sorted(unknown))}: no such run; there are {there}")
    runs = []
    for name in tables if not only else [each for each in tables if each in only]:
        own = {key.replace("-", "_"): value for key, value in tables[name].items()}
        merged = table | own
        if "verify" in merged:
            merged["verify"] = str(merged["verify"])
        options = options_of(Options, "collect", job, merged, given)
        runs.append(Run(name, _checked(options, job), expected))
    outs = Counter(os.path.realpath(each.options.out) for each in runs)
    if len(outs) < len(runs):
        raise UsageError(f"two runs write {outs.most_common(1)[0][0]}; choose one with --only")
    return runs


def _checked(options: Options, job: str | None) -> Options:
    from ..logs.converting import check_ending

    if options.n < 1:
        raise UsageError("how many candidates a problem? Give -n")
    _ = options.sample
    check_ending(options.out)
    check_outputs([options.out, options.ledger_path], [options.problems, options.prices, job])
    return options


def _expected(job: str | None, table: Any) -> Expected | None:
    if table is None:
        return None
    match table:
        case {"problems": int(problems), **rest} if problems > 0 and rest.keys() <= {"tests"}:
            tests = rest.get("tests", 0)
            if isinstance(tests, int) and tests >= 0:
                return Expected(problems, tests)
    raise UsageError(f"{job}: [expected] has problems and tests, as counts")


def _run(run: Run) -> bool:
    """Collect, and write the log; whether every problem is in it."""
    from ..backends.problems.files import read_problems
    from ..runtime.collect import Collection
    from ..runtime.prices import Meter, Prices, model_of

    options = run.options
    problems = list(read_problems(options.problems))
    meter = None
    if options.prices is not None:
        meter = Meter(Prices.load(options.prices), model_of(options.generator))
    with backends_of(options, problems) as backends:
        collection = Collection(
            backends, options.n, options.sample, options.seed, about=options.about, meter=meter
        )
        found = _collect_all(problems, collection, options)
    failed = [each for each in found.values() if each.message]
    elsewhere = [problem.id for problem in problems if problem.id not in found]
    if elsewhere:
        say(
            f"no log yet: another process is collecting {listed(elsewhere)}; start again when it is"
            " done"
        )
        return False
    for line in [*_write(problems, found, options), *protection(options, problems)]:
        say(line)
    for each in failed:
        say(f"grv: {each.problem} is not in the log: {each.message}", err=True)
    return not failed


def _collect_all(
    problems: Sequence[Problem], collection: Collection, options: Options
) -> dict[str, Collected]:
    import anyio

    from ..ledger.sqlite import SqliteLedger
    from ..runtime.calls import Caller
    from ..runtime.collect import collect_many
    from ..runtime.interrupts import until_interrupted
    from ..runtime.tasks import first_error

    found: dict[str, Collected] = {}
    ledger = SqliteLedger(options.ledger_path)
    caller = Caller(options.calls())

    def done(collected: Collected) -> None:
        found[collected.problem] = collected

    async def work() -> None:
        with _progress(len(problems), options) as tell:
            collecting = partial(collect_many, problems, collection, done=done, progress=tell)
            await collecting(ledger=ledger, caller=caller)

    async def everything() -> bool:
        try:
            return await until_interrupted(work, caller, partial(say, err=True))
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors
        finally:
            await collection.backends.aclose()

    with closing(ledger):
        interrupted = anyio.run(everything)
    if interrupted:
        raise KeyboardInterrupt
    return found


def _write(
    problems: Sequence[Problem], found: Mapping[str, Collected], options: Options
) -> list[str]:
    """Write the log; what is in it, in words."""
    from ..logs.converting import write_log

    there = [found[problem.id] for problem in problems if not found[problem.id].message]
    rows = [(each.problem, row) for each in there for row in each.rows]
    columns = ["candidate", "passed", "score", "key"]
    if options.prices is not None:
        columns += ["generate_cost", "verify_cost"]
    write_log(
        {"problem": [problem for problem, _ in rows]}
        | {name: [getattr(row, name) for _, row in rows] for name in columns},
        options.out,
    )
    passed = sum(row.passed is True for _, row in rows)
    solvable = sum(any(row.passed for row in each.rows) for each in there)
    unscored = sum(row.score is None for _, row in rows)
    unlabelled = sum(row.passed is None for _, row in rows)
    broken = sum(each.broken for each in there)
    lost = sum((Counter(each.lost) for each in there), Counter[str]())
    lines = [
        f"{options.out}: {len(rows)} candidates of {len(there)} problems, {passed} passed;"
        f" {solvable} problems are solvable; {sum(each.verified for each in there)} verifications"
    ]
    if unlabelled:
        why = f", of {broken} of them because the verifier could not tell" if broken else ""
        lines.append(f"{unlabelled} have no label{why}: see --unlabelled of grv compare")
    if unscored:
        lines.append(f"{unscored} have no score, and rank last: see grv runs show")
    if lost:
        shown = ", ".join(f"{count} to {call}" for call, count in lost.items())
        lines.append(f"possibly paid, lost when a process died: {shown}")
    return [*lines, f"{options.ledger_path} has what was paid for"]


@contextmanager
def _progress(problems: int, options: Options) -> Iterator[CandidateListener]:
    """Candidates generated, and candidates with a label, on one bar."""
    sample = options.n if options.sample is None else min(options.n, options.sample)
    total, so_far = problems * (options.n + sample), 0
    with progress("collecting") as tell:

        def more(done: int) -> None:
            nonlocal so_far
            so_far += done
            tell(so_far, total)

        yield more


def _needs(run: Run) -> list[str]:
    """What a run needs, in plain words."""
    lines = [*([f"{run.name}:"] if run.name else [])]
    if not os.path.exists(run.options.problems) and run.expected is not None:
        lines.append(f"{run.options.problems} is not there yet; as many are expected:")
    return [*lines, *resources_of(run).lines()]


def resources_of(run: Run) -> Resources:
    """What a run needs."""
    from ..backends.http.web import shown
    from ..backends.problems.files import read_problems
    from ..backends.specs import reward_address
    from ..backends.verifiers.checks import parse_check
    from .resources import needed, worst_seconds

    options, expected = run.options, run.expected
    limits = limits_of(options)
    if expected is not None and not os.path.exists(options.problems):
        seconds = [expected.tests * limits.seconds] * expected.problems
    else:
        problems = read_problems(options.problems)
        seconds = [worst_seconds(parse_check(problem, limits)) for problem in problems]
    servers = []
    if options.generator.startswith("openai"):
        where = shown(options.base_url or "https://api.openai.com/v1")
        servers.append(f"{options.generator.partition(':')[2]} at {where}, to generate")
    name, _, where = options.score.partition(":")
    if name == "judge":
        at = shown(options.base_url or "https://api.openai.com/v1")
        servers.append(f"{where} at {at}, to judge")
    elif where:
        model = options.score_model or "a reward model"
        server = shown(reward_address(name, where)[0])
        servers.append(f"{model} behind /{name} of {server}, to score")
    return needed(
        seconds,
        n=options.n,
        sample=options.sample,
        max_tokens=options.max_tokens,
        logprobs=options.score.startswith("logprob"),
        workers=options.workers or os.cpu_count() or 1,
        servers=servers,
    )
