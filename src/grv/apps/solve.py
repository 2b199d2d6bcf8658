"""`grv solve`: verified answers to a file of problems, live."""

from __future__ import annotations

import math
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import UsageError
from ..core.values import Costs
from .console import parse_costs

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..backends.sandbox.limits import Limits
    from ..backends.verifier import CheckVerifier
    from ..runtime.calls import Calls
    from ..runtime.money import Purse
    from ..runtime.solve import Job, Solution


@dataclass(frozen=True)
class Options:
    """What `grv solve` was asked for, from the command line or from a job file."""

    problems: str = ""
    generator: str = ""
    score: str = "logprob"
    out: str = ""
    base_url: str | None = None
    temperature: float = 0.7
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int = 0
    policy: str = "adaptive"
    costs: str = "1,10"
    budget: float = math.inf
    total_budget: float = math.inf
    width: int = 4
    concurrency: int = 16
    attempts: int = 6
    ledger: str | None = None
    keys: bool = True
    prices: str | None = None
    isolation: str = "jail"
    timeout: float = 10.0
    memory: int = 1024
    workers: int | None = None

    @property
    def ledger_path(self) -> str:
        """The ledger: as given, or beside the answers."""
        return self.ledger if self.ledger is not None else f"{self.out}.ledger"

    @property
    def about(self) -> dict[str, Any]:
        """What makes candidates, scores and verdicts what they are; see `Job.about`."""
        names = ("generator", "score", "base_url", "temperature", "top_p", "max_tokens", "seed")
        return {name: getattr(self, name) for name in names} | {"stop": list(self.stop)}


def solve(
    problems: str = typer.Argument(
        None, metavar="PROBLEMS", help='JSON lines: {"problem", "prompt", "check"}.'
    ),
    generator: str = typer.Option(
        None, metavar="SPEC", help="openai:MODEL, openai-text:MODEL, embedded or embedded-chat."
    ),
    score: str = typer.Option(
        None,
        metavar="SPEC",
        help="logprob, logprob-sum, logprob-min, length, judge:MODEL, score:URL, classify:URL,"
        " pooling:URL.  [default: logprob]",
    ),
    out: str = typer.Option(None, "--out", "-o", metavar="FILE", help="Where answers go."),
    base_url: str = typer.Option(None, metavar="URL", help="An OpenAI-compatible endpoint."),
    temperature: float = typer.Option(None, help="How freely tokens are chosen.  [default: 0.7]"),
    top_p: float = typer.Option(None, help="The share of probability they are chosen from."),
    max_tokens: int = typer.Option(None, help="Where a candidate is cut."),
    stop: list[str] = typer.Option(None, help="A text that ends a candidate. Repeatable."),
    seed: int = typer.Option(None, help="What candidates are drawn from.  [default: 0]"),
    policy: str = typer.Option(None, metavar="SPEC", help="What decides.  [default: adaptive]"),
    costs: str = typer.Option(
        None, metavar="G,V", help="Cost of generating, and of verifying.  [default: 1,10]"
    ),
    budget: float = typer.Option(None, help="The most that one problem may cost."),
    total_budget: float = typer.Option(None, help="The most that the whole run may cost."),
    width: int = typer.Option(
        None, help="Verifications of a problem in flight at once.  [default: 4]"
    ),
    concurrency: int = typer.Option(
        None, help="Calls in flight at once, over the whole run.  [default: 16]"
    ),
    attempts: int = typer.Option(None, help="How often a call is tried.  [default: 6]"),
    ledger: str = typer.Option(
        None, metavar="FILE", help="What was paid for.  [default: OUT.ledger]"
    ),
    keys: bool = typer.Option(
        None, "--keys/--no-keys", help="Verify equivalent candidates once.  [default: keys]"
    ),
    prices: str = typer.Option(None, metavar="FILE", help="Dollars, in TOML."),
    isolation: str = typer.Option(
        None, metavar="strict|jail|unsafe", help="How far programs are kept in.  [default: jail]"
    ),
    timeout: float = typer.Option(None, help="Seconds per test.  [default: 10]"),
    memory: int = typer.Option(None, help="Megabytes per program.  [default: 1024]"),
    workers: int = typer.Option(None, help="Programs at once.  [default: one a processor]"),
    job: str = typer.Option(None, metavar="FILE", help="These options in TOML; flags win."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Say what the run can cost at most, and stop."
    ),
) -> None:
    """Find a verified answer to each problem, live, for the least money.

    Every draft, score and verdict is in the ledger before it is used. The same command again goes
    on where it stopped, whatever stopped it, and pays for nothing twice. Exit code 1: some problems
    are not solved.

    \b
    grv solve problems.jsonl --generator openai:qwen2.5-coder --base-url http://localhost:8000/v1 \\
        --costs 1,10 --budget 500 --out answers.jsonl
    grv runs list answers.jsonl.ledger
    """
    given = {name: value for name, value in locals().items() if name not in ("job", "dry_run")}
    options = _options(job, given)
    _run(options, dry_run=dry_run)


def _options(job: str | None, given: Mapping[str, Any]) -> Options:
    """Flags over the job file over the defaults."""
    table: dict[str, Any] = {}
    if job is not None:
        try:
            with open(job, "rb") as file:
                table = {name.replace("-", "_"): v for name, v in tomllib.load(file).items()}
        except OSError as error:
            raise UsageError(f"{job}: cannot be read: {error.strerror}") from error
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{job}: not TOML: {error}") from error
        unknown = table.keys() - {field.name for field in fields(Options)}
        if unknown:
            raise UsageError(f"{job}: unknown option {', '.join(sorted(unknown))}")
    table |= {name: value for name, value in given.items() if value not in (None, [])}
    table["stop"] = tuple(table.get("stop", ()))
    for name in ("problems", "generator", "out"):
        if not table.get(name):
            raise UsageError(f"what {name}? See grv solve --help")
    try:
        return Options(**table)
    except TypeError as error:
        raise UsageError(f"an option has the wrong type: {error}") from error


def _run(options: Options, *, dry_run: bool) -> None:
    from ..backends import specs
    from ..backends.problems import read_problems
    from ..backends.verifier import CheckVerifier
    from ..policies import spec
    from ..runtime.desk import Backends
    from ..runtime.prices import Prices
    from ..runtime.solve import Job
    from .verify import parse_isolation

    problems = list(read_problems(options.problems))
    prices = Prices.load(options.prices) if options.prices is not None else Prices()
    price_list = parse_costs(options.costs)
    if dry_run:
        typer.echo(_at_most(options, price_list, len(problems)))
        return
    limits = _limits(options)
    with CheckVerifier(
        workers=options.workers, isolation=parse_isolation(options.isolation), limits=limits
    ) as verifier:
        for problem in problems:
            verifier.prepare(problem)
        generator = specs.generator(
            options.generator,
            base_url=options.base_url,
            temperature=options.temperature,
            top_p=options.top_p,
            max_tokens=options.max_tokens,
            stop=options.stop,
            seed=options.seed,
            logprobs=options.score.startswith("logprob"),
            batch=None if options.generator.startswith("embedded") else 8,
        )
        scorer = specs.scorer(options.score, base_url=options.base_url)
        backends = Backends(generator, scorer, verifier, _key(verifier) if options.keys else None)
        plan = spec.parse(options.policy)
        job = Job(backends, plan, price_list, options.budget, options.width, options.about)
        _solve_all(problems, job, options, prices)


def _key(verifier: CheckVerifier) -> Any:
    return lambda problem, draft: verifier.prepare(problem).how.key(draft.text)


def _solve_all(problems: list[Problem], job: Job, options: Options, prices: Any) -> None:
    import anyio

    from ..ledger.sqlite import SqliteLedger
    from ..runtime.calls import Calls
    from .answers import AnswerFile, record_of

    ledger = SqliteLedger(options.ledger_path)
    answers = AnswerFile(options.out)
    model = options.generator.partition(":")[2]
    calls = Calls(attempts=options.attempts, concurrency=options.concurrency)
    outcomes = Counter({"solved": sum(p.id in answers.solved for p in problems)})
    todo = [problem for problem in problems if problem.id not in answers.solved]

    def done(solution: Solution) -> None:
        answers.add(record_of(solution, prices, model))
        outcomes[solution.outcome] += 1

    try:
        interrupted = anyio.run(partial(_drive, todo, job, ledger, calls, options, done))
    finally:
        answers.close()
        ledger.close()
    counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items() if count)
    typer.echo(f"{len(problems)} problems: {counted}")
    typer.echo(f"{options.out} has the answers, {options.ledger_path} what was paid for")
    if interrupted:
        raise KeyboardInterrupt
    if outcomes["solved"] < len(problems):
        raise typer.Exit(1)


async def _drive(
    todo: list[Problem], job: Job, ledger: Any, calls: Calls, options: Options, done: Any
) -> bool:
    """Solve what is left; whether it was interrupted."""
    import anyio

    from ..runtime.money import Purse
    from ..runtime.solve import solve_many

    purse = Purse(options.total_budget)
    interrupted = False

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal interrupted
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                interrupted = True
                scope.cancel()
                return

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        with _progress(len(todo), purse, calls) as show:
            async for solution in solve_many(todo, job, ledger=ledger, calls=calls, purse=purse):
                done(solution)
                show(solution)
        group.cancel_scope.cancel()
    await job.backends.aclose()
    return interrupted


def _limits(options: Options) -> Limits:
    from ..backends.sandbox.limits import Limits

    try:
        return Limits(seconds=options.timeout, memory_mb=options.memory)
    except ValueError as error:
        raise UsageError(str(error)) from error


@contextmanager
def _progress(total: int, purse: Purse, calls: Calls) -> Iterator[Callable[[Solution], None]]:
    """Solved, spent, in flight and time left, on the terminal's error stream; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda solution: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, solved = bar.add_task("solving", total=total), 0

        def show(solution: Solution) -> None:
            nonlocal solved
            solved += solution.verified
            words = f"{solved} solved, {purse.spent:g} spent, {calls.in_flight} in flight"
            bar.update(task, advance=1, description=words)

        yield show


def _at_most(options: Options, costs: Costs, problems: int) -> str:
    """What a run can cost at most, in plain words."""
    each = options.budget
    total = min(options.total_budget, each * problems)
    if math.isinf(total):
        return (
            f"{problems} problems, without a limit: a problem that cannot be solved costs without"
            " end; give --budget or --total-budget"
        )
    generated = math.floor(total / costs.candidate)
    return (
        f"{problems} problems: at most {total:g} in all"
        + (f", {each:g} each" if math.isfinite(each) else "")
        + f"; that is at most {generated} candidates, or {math.floor(total / costs.verify)}"
        f" verifications, and anything between"
    )
