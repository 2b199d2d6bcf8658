"""`grv solve`: verified answers to a file of problems, live."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import typer

from ..backends.models import Generators, parse_generators
from ..core.errors import RunStopped, UsageError
from ..core.values import Costs, Measured
from ..options import MOST, option
from ..pacing import Pacing
from ..policies import POLICIES
from ..runtime.options import Spending
from ..text import counted
from .console import check_outputs, report, say, waiting_bar
from .options.command import command
from .options.job import job_option
from .options.live import (
    LiveOptions,
    backends_of,
    check_measured,
    check_resources,
    search_options,
    unprotected_lines,
)
from .options.portfolio import check_portfolio, past_of, policies_of, portfolio_options
from .screen.summary import NO_LIMIT, OUT_OF_TOTAL, Reasons, Summary, spending_lines

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..ledger.tables import TableLedger
    from ..runtime.calls import Caller
    from ..runtime.prices import Prices
    from ..runtime.progress import Listener, Progress
    from ..runtime.results.answers import AnswerFile
    from ..runtime.results.solution import Solution
    from ..runtime.solve import SolveOptions


@dataclass(frozen=True, kw_only=True)
class Options(LiveOptions):
    """The options of `grv solve`."""

    policy: str = option(
        "learning",
        f"Decides when to generate and when to verify: {', '.join(POLICIES)}, default (the one that"
        " learning starts with), or FILE.py:CLASS of your own. learning('OLD.ledger') starts from"
        " the verdicts of an earlier run.",
        metavar="SPEC",
        code=True,
        named="generators",
    )
    width: int = option(
        1,
        "Verifications of a problem in flight at once. Above 1, a search looks ahead (--ramp,"
        " --overlap): it ends sooner and costs more. If checks run on this machine, at most the"
        " number of workers.",
        least=1,
        most=MOST,
    )
    pacing: Pacing = field(default_factory=Pacing)
    at_once: int | None = option(
        None,
        "Problems searched at once. With 1, a run that is interrupted and continued takes the same"
        " course as one that is not.",
        least=1,
        most=100_000,
        shown="twice --concurrency",
    )
    answers: int = option(
        1,
        "Different verified answers to find per problem: of different keys, or else texts.",
        least=1,
        most=MOST,
    )
    generators: Generators = option(
        Generators(),
        "Several generators by name: tables [generators.NAME] with generator, costs, score,"
        " base_url and policy.",
        job_only=True,
        parse=parse_generators,
        tables=True,
        code=True,
    )
    history: tuple[str, ...] = option(
        (),
        "A log with a column generator, or the ledger of an earlier run: what it says about several"
        " generators decides which one is tried next. Repeatable.",
        metavar="FILE",
    )
    spending: Spending = field(default_factory=Spending)


@command
def solve(
    options: Options,
    job: str | None = job_option(),
    dry_run: bool = option(False, "Print what the run can cost at most, and stop.", "--dry-run"),
) -> None:
    """Find a verified answer to each problem, live, for the least money.

    grv writes every draft, score and verdict to the ledger before it uses it. If a run stops for
    any reason, the same command continues it and does not pay again for results that are recorded.
    Exit code 1: some problems are not solved.

    The policy learning decides by the verdicts on earlier problems, in this ledger or in another
    one; --policy default does not.

    \b
    grv solve problems.jsonl --generator openai:qwen2.5-coder --base-url http://localhost:8000/v1 \\
        --costs 1,10 --budget 500 --out answers.jsonl
    grv solve problems.jsonl --generator openai:gpt-x --prices prices.toml --value 0.50 \\
        --costs measured:0.0004,0.01 --out answers.jsonl
    grv solve problems.jsonl --generator small=openai:qwen2.5-coder --costs small=1,10 \\
        --generator large=openai:gpt-x --costs large=20,10 --budget 500 --out answers.jsonl
    grv solve more.jsonl --generator openai:gpt-x --policy "learning('answers.jsonl.ledger')" \\
        --budget 500 --out more-answers.jsonl
    grv runs list answers.jsonl.ledger
    """
    from ..runtime.prices import Prices

    spending = options.spending
    check_outputs(
        options.written,
        (options.problems, options.prompts, spending.prices, job, *options.history),
        (options.policy, options.models.generator, options.models.score, options.verifier),
    )
    problems = options.read_problems()
    prices = Prices.load(spending.prices) if spending.prices is not None else Prices()
    _check(options, prices)
    if dry_run:
        say(_at_most(_cheapest(options), len(problems)))
        return
    alike = options.about.get("alike")
    policy = policies_of(options.generators, options.policy, options.models.score, alike)
    check_resources(options)
    with _backends(options, problems, prices) as backends:
        how = backends | {
            **{"policy": policy, "most": spending.most, "answers": options.answers},
            **{"value": spending.value, "budget": spending.budget},
            **{"total_budget": spending.total_budget, "width": options.width},
            **{"pace": options.pacing.pace, "at_once": options.at_once},
        }
        _solve_all(problems, how, options, prices)


def _check(options: Options, prices: Prices) -> None:
    """Refuse options that contradict each other, before any work."""
    if options.generators:
        if options.models.generator:
            raise UsageError("--generator: name all generators, as in small=SPEC, or none of them")
        check_portfolio(options.generators, options.spending, prices)
        return
    if options.history:
        raise UsageError("--history needs several generators: --generator NAME=SPEC")
    check_measured(options.models.generator, options.spending, prices)


@contextmanager
def _backends(
    options: Options, problems: Sequence[Problem], prices: Prices
) -> Iterator[SolveOptions]:
    """The options of the search that its generators decide: one, or several by name."""
    from ..runtime.prices import Meter, model_of

    if options.generators:
        with portfolio_options(options, options.generators, problems, prices) as how:
            about = how["identity"] or {}
            how["past"] = past_of(options.history, about["generators"])
            yield how
        return
    costs = options.spending.costs
    with backends_of(options, problems) as backends:
        how = search_options(backends, options.about)
        how["costs"], how["cascade"] = costs, options.models.cascade
        if isinstance(costs, Measured):
            how["meter"] = Meter(prices, model_of(options.models.generator))
        yield how


def _solve_all(
    problems: list[Problem], how: SolveOptions, options: Options, prices: Prices
) -> None:
    import anyio

    from ..ledger.opening import open_ledger
    from ..runtime.calls import Caller
    from ..runtime.prices import model_of
    from ..runtime.results.answers import record_of
    from ..runtime.results.solution import FAILED
    from ..runtime.solve import check_options

    caller = Caller(options.calls)
    report(caller)
    check_options(how)  # before any file is created
    ledger = open_ledger(options.ledger_path)
    summary = Summary(len(problems), before=ledger.possibly_paid(None))
    reasons = Reasons(partial(say, err=True))
    with closing(ledger), closing(_answers(options, problems)) as answers:
        model = model_of(options.models.generator)
        solved = {problem.id for problem in problems if problem.id in answers.solved}
        for problem in solved:
            summary.add(answers.solved[problem], "solved")

        def done(solution: Solution) -> None:
            record = record_of(solution, prices, model)
            answers.add(record)
            summary.add(record, _outcome(solution))
            summary.policies[solution.policy] += 1
            if solution.outcome == FAILED:
                reasons.add(solution.problem, "failed", solution.message)

        how = how | {"ledger": ledger, "skip": solved}
        limits = (options.spending.at_most, options.spending.total_budget)
        if math.isinf(min(limits)) and len(solved) < len(problems):
            say(NO_LIMIT, err=True)
        try:
            interrupted = anyio.run(drive, problems, how, caller, done)
        except RunStopped:
            if summary.outcomes:
                unfinished, paid = _paid(ledger, problems), ledger.possibly_paid(None)
                said = summary.lines(options.ledger_path, options.spending, unfinished, paid)
                say(*said[:2])
            raise
        unfinished = _paid(ledger, problems) if summary.unfinished else 0.0
        paid = ledger.possibly_paid(None)
    first, *more = summary.lines(options.ledger_path, options.spending, unfinished, paid)
    say(first, *caller.complaints.summary(), *more[:-1])
    say(f"{options.out} has the answers, {options.ledger_path} has what was paid for")
    say(*unprotected_lines(options.verification, problems, options.verifier), more[-1])
    if interrupted:
        raise KeyboardInterrupt
    if summary.outcomes["solved"] < len(problems):
        raise typer.Exit(1)


def _outcome(solution: Solution) -> str:
    """The outcome in the summary, which distinguishes the two budgets."""
    from ..runtime.spending import TOTAL_SPENT

    return OUT_OF_TOTAL if solution.message == TOTAL_SPENT else solution.outcome


def _paid(ledger: TableLedger, problems: Sequence[Problem]) -> float:
    """What was possibly paid for problems whose search has no outcome yet."""
    names = {problem.id for problem in problems}
    found = (each for each in ledger.searches() if each.outcome is None and each.problem in names)
    return sum(each.paid for each in found)


def _answers(options: Options, problems: Sequence[Problem]) -> AnswerFile:
    from ..runtime.results.answers import AnswerFile

    return AnswerFile(options.out, {problem.id for problem in problems})


async def drive(
    problems: Sequence[Problem],
    how: SolveOptions,
    caller: Caller,
    done: Callable[[Solution], None],
) -> bool:
    """Solve the remaining problems, with a progress bar; return whether it was interrupted."""
    from ..runtime.interrupts import until_interrupted
    from ..runtime.solve import config_of, solve_many
    from ..runtime.tasks import first_error

    async def work() -> None:
        with _progress(caller) as show:
            options = how | {"calls": caller, "progress": show}
            async with aclosing(solve_many(problems, **options)) as solutions:
                async for solution in solutions:
                    done(solution)

    try:
        return await until_interrupted(work, caller, partial(say, err=True))
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    finally:
        await config_of(how).aclose()


@contextmanager
def _progress(caller: Caller) -> Iterator[Listener]:
    """Solved, spent, in flight, time passed and outages, on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        yield spending_lines(partial(say, err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console, shared = Console(stderr=True), sys.stdout.isatty()
    shown = (*columns, TimeElapsedColumn())
    bars = waiting_bar(lambda: caller.waiting)
    with bars(*shown, console=console, transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task("solving", total=None)

        def show(progress: Progress) -> None:
            words = f"{progress.solved} solved, {progress.spent:g} spent"
            words += f", {progress.in_flight} in flight"
            bar.update(task, completed=progress.done, total=progress.problems, description=words)

        yield show


def _cheapest(options: Options) -> Spending:
    """The spending, with the lowest costs of several generators."""
    lists = [each.costs for each in options.generators.by_name.values()]
    if not lists:
        return options.spending
    lowest = Costs(min(each.candidate for each in lists), min(each.verify for each in lists))
    return dataclasses.replace(options.spending, costs=lowest)


def _at_most(spending: Spending, problems: int) -> str:
    """What a run can cost at most, in a sentence."""
    each, costs = spending.at_most, spending.costs
    total = min(spending.total_budget, each * problems)
    if math.isinf(total):
        return (
            f"{counted(problems, 'problem')}, without a limit: the search for an unsolvable problem"
            " never ends; give --budget, --total-budget or --value"
        )
    return (
        f"{counted(problems, 'problem')}: at most {total:g} in all"
        + (f", {each:g} each" if math.isfinite(each) else "")
        + f"; that is at most {math.floor(total / costs.candidate)} candidates, or"
        f" {math.floor(total / costs.verify)} verifications, or a mix of both"
    )
