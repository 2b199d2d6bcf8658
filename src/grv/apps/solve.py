"""`grv solve`: verified answers to a file of problems, live."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import UsageError
from ..core.values import Costs, Measured
from ..policies import DEFAULT, Learned, spec
from . import live
from .console import check_outputs, parse_cascade, parse_costs, parse_prices, parse_value, say
from .live import LiveOptions, backends_of, options_of, protection, read_job, search_options

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..runtime.calls import Caller
    from ..runtime.prices import Meter, Prices
    from ..runtime.progress import Listener, Progress
    from ..runtime.solution import Solution
    from ..runtime.solve import SolveOptions
    from .answers import AnswerFile


@dataclass(frozen=True)
class Options(LiveOptions):
    """What `grv solve` was asked for."""

    policy: str = "default"
    costs: str = "1,10"
    budget: float = math.inf
    total_budget: float = math.inf
    value: float = math.inf
    most: str | None = None
    width: int = 4
    prices: str | None = None


def solve(
    problems: str = live.PROBLEMS,
    generator: str = live.GENERATOR,
    score: str = live.SCORE,
    score_model: str = live.SCORE_MODEL,
    score_step: str = live.SCORE_STEP,
    out: str = typer.Option(None, "--out", "-o", metavar="FILE", help="Where answers go."),
    base_url: str = live.BASE_URL,
    temperature: float = live.TEMPERATURE,
    top_p: float = live.TOP_P,
    max_tokens: int = live.MAX_TOKENS,
    stop: list[str] = live.STOP,
    seed: int = live.SEED,
    policy: str = typer.Option(
        None, metavar="SPEC", help=f"What decides.  [default: {spec.spec(DEFAULT)}]"
    ),
    costs: str = typer.Option(
        None,
        metavar="G,V|measured:G,V",
        help="Cost of generating, and of verifying; measured counts real dollars (see --prices) and"
        " begins with a guess of them.  [default: 1,10]",
    ),
    value: float = typer.Option(
        None,
        metavar="V",
        help="What a solved problem is worth: a search gives up when the expected cost to go"
        " exceeds it.",
    ),
    most: str = typer.Option(
        None,
        metavar="G,V",
        help="With measured costs, the most that one candidate and one verification can cost:"
        " budgets reserve it.",
    ),
    budget: float = typer.Option(None, help="The most that one problem may cost."),
    total_budget: float = typer.Option(None, help="The most that the whole run may cost."),
    width: int = typer.Option(
        None, help="Verifications of a problem in flight at once.  [default: 4]"
    ),
    concurrency: int = live.CONCURRENCY,
    attempts: int = live.ATTEMPTS,
    first_pause: float = live.FIRST_PAUSE,
    call_timeout: float = live.CALL_TIMEOUT,
    ledger: str = live.LEDGER,
    keys: bool = live.KEYS,
    prices: str = typer.Option(None, metavar="FILE", help="Dollars, in TOML."),
    isolation: str = live.ISOLATION,
    timeout: float = live.TIMEOUT,
    memory: int = live.MEMORY,
    workers: int = live.WORKERS,
    allow_commands: bool = live.ALLOW_COMMANDS,
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
    grv solve problems.jsonl --generator openai:gpt-x --prices prices.toml --value 0.50 \\
        --costs measured:0.0004,0.01 --out answers.jsonl
    grv runs list answers.jsonl.ledger
    """
    given = {name: value for name, value in locals().items() if name not in ("job", "dry_run")}
    options = _options(job, given)
    _run(options, job, dry_run)


def _options(job: str | None, given: Mapping[str, Any]) -> Options:
    """Flags over the job file over the defaults."""
    return options_of(Options, "solve", job, read_job(job), given)


def _run(options: Options, job_file: str | None, dry_run: bool) -> None:
    from ..backends.problems.files import read_problems
    from ..learning.prior_file import parse_policy
    from ..runtime.prices import Prices

    check_outputs(
        (options.out, options.ledger_path),
        (options.problems, options.prices, job_file),
        (options.policy,),
    )
    problems = list(read_problems(options.problems))
    prices = Prices.load(options.prices) if options.prices is not None else Prices()
    price_list = parse_prices(options.costs)
    most = None if options.most is None else parse_costs(options.most, option="--most")
    parse_value(str(options.value))
    _check_measured(options, prices, measured=isinstance(price_list, Measured))
    if dry_run:
        say(_at_most(options, price_list, len(problems)))
        return
    plan = parse_policy(options.policy)
    if isinstance(plan, Learned):
        plan.check_score(options.score)
    with backends_of(options, problems) as backends:
        how = search_options(backends, options.about) | {
            **{"policy": plan, "costs": price_list, "most": most, "value": options.value},
            **{"budget": options.budget, "total_budget": options.total_budget},
            "width": options.width,
        }
        if scores := parse_cascade(options.score):
            how["cascade"] = scores[2]
        if isinstance(price_list, Measured):
            how["meter"] = _meter(prices, options)
        _solve_all(problems, how, options, prices)


def _check_measured(options: Options, prices: Prices, *, measured: bool) -> None:
    """Say what does not go together before anything is done."""
    from ..runtime.prices import model_of

    model = model_of(options.generator)
    for call in ("generate", "verify") if measured else ():
        if not prices.has(call, model):
            raise UsageError(
                f"measured costs need a price to {call}: give --prices FILE with a table for the"
                f" model, and with {call}_second or {call}_call in [other]"
            )
    budgets = (options.budget, options.total_budget)
    if not measured and options.most is not None:
        raise UsageError("--most is for --costs measured:G,V; a price list says what things cost")
    if measured and options.most is None and any(map(math.isfinite, budgets)):
        raise UsageError(
            "a budget over measured costs needs --most G,V, the most that one candidate and one"
            " verification can cost: what is not paid yet is reserved at that"
        )


def _meter(prices: Prices, options: Options) -> Meter:
    from ..runtime.prices import Meter, model_of

    return Meter(prices, model_of(options.generator))


def _solve_all(
    problems: list[Problem], how: SolveOptions, options: Options, prices: Prices
) -> None:
    import anyio

    from ..ledger.sqlite import SqliteLedger
    from ..runtime.calls import Caller
    from ..runtime.prices import model_of
    from ..runtime.solve import check_options
    from .answers import record_of

    caller = Caller(options.calls())
    check_options(how)  # before any file is made
    ledger = SqliteLedger(options.ledger_path)
    with closing(ledger), closing(_answers(options, problems)) as answers:
        model = model_of(options.generator)
        solved = {problem.id for problem in problems if problem.id in answers.solved}
        outcomes = Counter(solved=len(solved))

        def done(solution: Solution) -> None:
            answers.add(record_of(solution, prices, model))
            outcomes[solution.outcome] += 1

        how = how | {"ledger": ledger, "skip": solved}
        interrupted = anyio.run(drive, problems, how, caller, done)
    say(f"{len(problems)} problems: {_counted(outcomes, len(problems))}")
    say(f"{options.out} has the answers, {options.ledger_path} what was paid for")
    for line in protection(options, problems):
        say(line)
    if interrupted:
        raise KeyboardInterrupt
    if outcomes["solved"] < len(problems):
        raise typer.Exit(1)


def _answers(options: Options, problems: Sequence[Problem]) -> AnswerFile:
    from .answers import AnswerFile

    return AnswerFile(options.out, {problem.id for problem in problems})


def _counted(outcomes: Counter[str], problems: int) -> str:
    """How many problems came to which end, as people say it."""
    counts = {outcome: count for outcome, count in outcomes.items() if count}
    missing = problems - sum(counts.values())  # interrupted, or another process is at it
    words = counts | ({"not over": missing} if missing else {})
    return ", ".join(f"{count} {outcome}" for outcome, count in words.items())


async def drive(
    problems: Sequence[Problem],
    how: SolveOptions,
    caller: Caller,
    done: Callable[[Solution], None],
) -> bool:
    """Solve what is left, with a progress bar; whether it was interrupted."""
    from ..runtime.interrupts import until_interrupted
    from ..runtime.solve import config_of, solve_many
    from ..runtime.tasks import first_error

    async def work() -> None:
        with _progress() as show:
            options = how | {"calls": caller, "progress": show}
            async with aclosing(solve_many(problems, **options)) as solutions:
                async for solution in solutions:
                    done(solution)

    try:
        return await until_interrupted(work, caller, partial(say, err=True))
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    finally:
        await config_of(how).backends.aclose()


@contextmanager
def _progress() -> Iterator[Listener]:
    """Solved, spent, in flight and time left, on the terminal's error stream; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console, shared = Console(stderr=True), sys.stdout.isatty()
    shown = (*columns, TimeRemainingColumn())
    with Bar(*shown, console=console, transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task("solving", total=None)

        def show(progress: Progress) -> None:
            words = f"{progress.solved} solved, {progress.spent:g} spent"
            words += f", {progress.in_flight} in flight"
            bar.update(task, completed=progress.done, total=progress.problems, description=words)

        yield show


def _at_most(options: Options, costs: Costs, problems: int) -> str:
    """What a run can cost at most, in plain words."""
    each = min(options.budget, options.value)
    total = min(options.total_budget, each * problems)
    if math.isinf(total):
        return (
            f"{problems} problems, without a limit: a problem that cannot be solved costs without"
            " end; give --budget, --total-budget or --value"
        )
    generated = math.floor(total / costs.candidate)
    return (
        f"{problems} problems: at most {total:g} in all"
        + (f", {each:g} each" if math.isfinite(each) else "")
        + f"; that is at most {generated} candidates, or {math.floor(total / costs.verify)}"
        f" verifications, and anything between"
    )
