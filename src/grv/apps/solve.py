"""`grv solve`: verified answers to a file of problems, live."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import typer

from .. import schedules
from ..backends.models import Generators, parse_generators
from ..conditions import answers
from ..core.errors import RunStopped, UsageError
from ..core.limits import Limits
from ..core.values import Costs, Measured
from ..ledger.ledger import ROUNDING
from ..options import MOST, option
from ..pace_options import PaceOptions
from ..policies import POLICIES
from ..runtime.options import Spending
from ..schedules import SCHEDULES
from ..text import counted
from .console import check_outputs, report, say, waiting_bar
from .options.command import command
from .options.job import job_option
from .options.live import (
    LiveOptions,
    backends_of,
    check_measured,
    check_resources,
    pricing_of,
    unprotected_lines,
    with_guess,
)
from .options.portfolio import check_portfolio, generators_of, own_models, past_of, policies_of
from .summary import NO_LIMIT, OUT_OF_TOTAL, Reasons, Summary, spending_lines

if TYPE_CHECKING:
    from ..backends.protocols import Problem
    from ..conditions import Conditions
    from ..core.search import Policy
    from ..ledger.tables import TableLedger
    from ..runtime.answers import AnswerFile
    from ..runtime.calls import Caller
    from ..runtime.config import SearchConfig
    from ..runtime.prices import Prices
    from ..runtime.progress import Listener, Progress
    from ..runtime.solution import Solution
    from ..runtime.solve import SolveRun


_DEFAULT = Limits()


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
        _DEFAULT.width,
        "Verifications of a problem in flight at once. Above 1, a search looks ahead (--ramp,"
        " --overlap): it ends sooner and costs more. If checks run on this machine, at most the"
        " number of workers.",
        least=1,
        most=MOST,
    )
    pacing: PaceOptions = field(default_factory=PaceOptions)
    schedule: str | None = option(
        None,
        f"Which problem goes next: {', '.join(SCHEDULES)}. least-spent gives the next step to the"
        " problem that has cost least, so that hard problems do not use up the money. All processes"
        " of a ledger follow the same one.",
        metavar="RULE",
        shown="least-spent with --total-budget, otherwise in-order",
    )
    at_once: int | None = option(
        None,
        "Problems searched at the same time: those that the schedule puts first. Others wait"
        " between two verdicts. With 1, the order of the schedule is exact, and a run that is"
        " interrupted and continued takes the same course as one that is not.",
        least=1,
        most=100_000,
        shown="twice the calls at once",
    )
    batch: bool = option(
        False,
        "Ask for the candidates of all open problems together, as one batch, at half the price. A"
        " batch may take up to a day. If the run is stopped, the same command finds the batch"
        " again. For openai:, openai-text:, responses: and anthropic: models.",
        "--batch",
    )
    run_deadline: float = option(
        math.inf,
        "Seconds after which the whole run ends; --deadline is for one problem. Calls in flight"
        " may end; the same command continues.",
        metavar="S",
        least=0,
        shown="none",
    )
    expected_problems: int | None = option(
        None,
        "With - for PROBLEMS: how many will arrive. The schedule stream needs it.",
        least=1,
        most=1_000_000_000,
        metavar="N",
    )
    answers: int = option(
        _DEFAULT.answers,
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

    @property
    def is_stream(self) -> bool:
        """Whether problems arrive on standard input."""
        from ..backends.problems.arriving import NAME

        return self.problems == NAME

    @property
    def limits(self) -> Limits:
        """The value that searches take. Several generators have no second scores."""
        return Limits(
            budget=self.spending.budget,
            value=self.spending.value,
            width=self.width,
            pace=self.pacing.pace,
            answers=self.answers,
            cascade=None if self.generators else self.spending.reserved(self.models.cascade),
            most=self.spending.most,
        )


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

    PROBLEMS may be - for standard input: each line is searched as it arrives. With --total-budget,
    grv solves as many problems as it can for the money: see --schedule.

    The policy learning decides by the verdicts on earlier problems, in this ledger or in another
    one; --policy varied does not.

    \b
    grv solve problems.jsonl --generator openai:qwen2.5-coder --base-url http://localhost:8000/v1 \\
        --costs 1,10 --budget 500 --out answers.jsonl
    grv solve problems.jsonl --generator openai:gpt-x --prices prices.toml --value 0.50 \\
        --costs measured:0.0004,0.01 --out answers.jsonl
    grv solve problems.jsonl --generator small=openai:qwen2.5-coder --costs small=1,10 \\
        --generator large=openai:gpt-x --costs large=20,10 --budget 500 --out answers.jsonl
    grv solve problems.jsonl --generator openai:gpt-x --costs 1,10 --total-budget 20000 \\
        --out answers.jsonl
    grv solve more.jsonl --generator openai:gpt-x --policy "learning('answers.jsonl.ledger')" \\
        --budget 500 --out more-answers.jsonl
    grv solve problems.jsonl --generator anthropic:claude-x --batch --policy balanced \\
        --costs measured --max-tokens 2000 --total-budget 20usd --out answers.jsonl
    grv runs list answers.jsonl.ledger
    """
    from ..runtime.prices import Prices

    spending = options.spending
    check_outputs(
        options.written,
        (
            None if options.is_stream else options.problems,
            options.prompts,
            spending.prices,
            job,
            *options.history,
        ),
        (options.policy, options.models.generator, options.models.score, options.verifier),
        continued=True,
    )
    problems = [] if options.is_stream else options.read_problems()
    prices = Prices.load(spending.prices) if spending.prices is not None else Prices()
    options = _guessed(options, problems, prices)
    _check(options, prices)
    if dry_run:
        if options.is_stream:
            raise UsageError("--dry-run: it is not known how many problems will arrive on -")
        say(_at_most(_cheapest(options), len(problems)))
        return
    alike = options.about.get("alike")
    policy = policies_of(options.generators, options.policy, options.models.score, alike)
    check_resources(options)
    with _config(options, problems, policy, prices) as config:
        _solve_all(problems, config, options)


def _check(options: Options, prices: Prices) -> None:
    """Refuse options that contradict each other, before any work."""
    if options.schedule is not None:
        rule = schedules.parse(options.schedule)
        if options.batch and not isinstance(rule, schedules.InOrder | schedules.LeastSpent):
            raise UsageError(
                f"--batch asks for all problems at once: --schedule {options.schedule} does not;"
                " choose in-order or least-spent"
            )
        if isinstance(rule, schedules.Stream):
            if math.isinf(options.spending.total_budget):
                raise UsageError("--schedule stream needs --total-budget")
            if options.is_stream and options.expected_problems is None:
                raise UsageError("--schedule stream needs --expected-problems if problems arrive")
    if options.expected_problems is not None and not options.is_stream:
        raise UsageError("--expected-problems is for problems that arrive on -")
    if options.generators:
        if options.models.generator:
            raise UsageError("--generator: name all generators, as in small=SPEC, or none of them")
        check_portfolio(options.generators, options.models, options.spending, prices)
        return
    if options.history:
        raise UsageError("--history needs several generators: --generator NAME=SPEC")
    check_measured(pricing_of(options.models, prices), options.spending)


def _guessed(options: Options, problems: Sequence[Problem], prices: Prices) -> Options:
    """The options with what prices and prompts say about measured costs."""
    if not options.generators:
        pricing = pricing_of(options.models, prices, batch=options.batch)
        spending = with_guess(options.spending, pricing, problems, options)
        return dataclasses.replace(options, spending=spending)
    generators = {}
    highest: list[Costs] = []
    for name, each in options.generators.by_name.items():
        alone = dataclasses.replace(options, models=own_models(options.models, each))
        own = dataclasses.replace(options.spending, costs=each.costs)
        pricing = pricing_of(alone.models, prices, batch=options.batch)
        own = with_guess(own, pricing, problems, alone)
        generators[name] = dataclasses.replace(each, costs=own.costs)
        highest += [] if own.most is None else [own.most]
    spending = options.spending
    if len(highest) == len(generators):
        most = Costs(
            max(costs.generate for costs in highest),
            max(costs.verify for costs in highest),
            score=max(costs.score for costs in highest),
        )
        spending = dataclasses.replace(spending, most=most)
    return dataclasses.replace(options, generators=Generators(generators), spending=spending)


@contextmanager
def _config(
    options: Options,
    problems: Sequence[Problem],
    policies: Mapping[str, Policy],
    prices: Prices,
) -> Iterator[SearchConfig]:
    """How to search, with one generator or with several by name."""
    from ..runtime.config import ALONE, GeneratorConfig, SearchConfig, apart, within_workers

    limits = options.limits
    if options.generators:
        with generators_of(options, options.generators, problems, policies, prices) as generators:
            about = {name: each.about for name, each in generators.items()}
            yield SearchConfig(generators, apart(limits), past=past_of(options.history, about))
        return
    costs = options.spending.costs
    measured = isinstance(costs, Measured)
    pricing = pricing_of(options.models, prices)
    meter = pricing if measured else None
    with backends_of(options, problems) as backends:
        generator = GeneratorConfig(backends, policies[ALONE], costs, meter, pricing=pricing)
        limits = within_workers(limits, backends.verifier)
        yield SearchConfig.alone(generator, limits, options.about)


def _solve_all(problems: list[Problem], config: SearchConfig, options: Options) -> None:
    import anyio

    from ..backends.problems.arriving import arriving_problems
    from ..ledger.opening import open_ledger
    from ..runtime.answers import conditions_of, record_of
    from ..runtime.calls import Caller
    from ..runtime.solution import FAILED
    from ..runtime.solve import SolveRun

    caller = Caller(options.calls)
    report(caller)
    ledger = open_ledger(options.ledger_path)
    summary = Summary(len(problems))
    reasons = Reasons(partial(say, err=True))
    with closing(ledger), closing(_answers(options, problems, config)) as written:
        solved = {problem.id for problem in problems if problem.id in written.solved}
        for problem in solved:
            summary.add(written.solved[problem], "solved")

        def done(solution: Solution) -> None:
            record = record_of(solution)
            written.add(record)
            summary.add(record, _outcome(solution))
            summary.policies[solution.policy] += 1
            summary.scores[solution.score] += 1
            if solution.outcome == FAILED:
                reasons.add(solution.problem, "failed", solution.message)

        async def arriving() -> AsyncGenerator[Problem]:
            """The problems of standard input that are not solved yet."""
            checks = options.verifier is None
            async with aclosing(arriving_problems(0, checks=checks)) as lines:
                async for line in lines:
                    problem = options.asked(line)
                    current = config.conditions(problem)  # refuses a wrong check
                    problems.append(problem)
                    summary.problems = len(problems)
                    recorded = written.solved.get(problem.id)
                    if recorded is not None and answers(conditions_of(recorded), current):
                        summary.add(recorded, "solved")
                    else:
                        yield problem

        run = SolveRun(
            config,
            ledger,
            caller,
            total_budget=options.spending.total_budget,
            at_once=options.at_once,
            skip=solved,
            schedule=options.schedule,
            run_deadline=options.run_deadline,
            expected=options.expected_problems,
        )
        limits = (options.spending.at_most, options.spending.total_budget)
        if math.isinf(min(limits)) and (options.is_stream or len(solved) < len(problems)):
            say(NO_LIMIT, err=True)
        asked = arriving() if options.is_stream else problems
        try:
            interrupted = anyio.run(drive, asked, run, done, written.is_stream)
        except RunStopped:
            if summary.outcomes:
                unfinished = _paid(ledger, problems)
                paid = _paid_here(ledger)
                lines = summary.lines(options.ledger_path, options.spending, unfinished, paid)
                say(*lines[:2])
            raise
        unfinished = _paid(ledger, problems) if summary.unfinished else 0.0
        paid = _paid_here(ledger)
    summary.lacks_tokens = caller.complaints.lacks_tokens
    first, *more = summary.lines(options.ledger_path, options.spending, unfinished, paid)
    measured = isinstance(options.spending.costs, Measured)
    batches = run.batches.lines(options.pacing.wait_price, measured=measured)
    say(first, *caller.complaints.summary(), *more[:-1], *batches, *caller.lanes.summary())
    say(f"{options.out} has the answers, {options.ledger_path} has what was paid for")
    say(*unprotected_lines(options.verification, problems, options.verifier), more[-1])
    if interrupted:
        raise KeyboardInterrupt
    if summary.outcomes["solved"] < len(problems):
        raise typer.Exit(1)


def _outcome(solution: Solution) -> str:
    """The outcome in the summary, which distinguishes the two budgets."""
    from ..runtime.budget import SHARE_SPENT, TOTAL_SPENT

    is_total = solution.message in (TOTAL_SPENT, SHARE_SPENT)
    return OUT_OF_TOTAL if is_total else solution.outcome


def _paid(ledger: TableLedger, problems: Sequence[Problem]) -> float:
    """What was possibly paid for problems whose search has no outcome yet."""
    names = {problem.id for problem in problems}
    unfinished = (
        each for each in ledger.searches() if each.outcome is None and each.problem in names
    )
    return sum(each.paid for each in unfinished)


def _paid_here(ledger: TableLedger) -> float | None:
    """What this run has possibly paid; None if that is all that the ledger counts."""
    others = ledger.possibly_paid(None) > ledger.charged * (1 + ROUNDING)
    return ledger.charged if others else None


def _answers(options: Options, problems: Sequence[Problem], config: SearchConfig) -> AnswerFile:
    from ..runtime.answers import AnswerFile, Everything

    if options.is_stream:
        return AnswerFile(options.out, Everything())
    by_id = {problem.id: problem for problem in problems}

    def holds(name: str, given: Conditions | None) -> bool:
        return answers(given, config.conditions(by_id[name]))

    return AnswerFile(options.out, by_id, holds)


async def drive(
    problems: Sequence[Problem] | AsyncIterable[Problem],
    run: SolveRun,
    done: Callable[[Solution], None],
    may_block: bool = False,
) -> bool:
    """Solve the remaining problems, with a progress bar; return whether it was interrupted.

    `done` runs in a thread: a reader that does not read must not keep results from being recorded,
    nor the run from being interrupted. It is left behind then if it `may_block`.
    """
    import anyio.to_thread

    from ..runtime.interrupts import until_interrupted
    from ..runtime.tasks import raise_first

    async def work() -> None:
        with _progress(run.caller, run.total_budget) as show:
            shown = dataclasses.replace(run, progress=show)
            async with aclosing(shown.solutions(problems)) as solutions:
                async for solution in solutions:
                    await anyio.to_thread.run_sync(done, solution, abandon_on_cancel=may_block)

    try:
        return await until_interrupted(work, run.caller, partial(say, err=True))
    except BaseExceptionGroup as errors:
        raise_first(errors)
    finally:
        await run.config.aclose()


@contextmanager
def _progress(caller: Caller, budget: float) -> Iterator[Listener]:
    """Solved, spent, in flight, time passed and outages, on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        yield spending_lines(partial(say, err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    shared = sys.stdout.isatty()
    shown = (*columns, TimeElapsedColumn())
    bars = waiting_bar(lambda: caller.waiting)
    with bars(*shown, console=console, transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task("solving", total=None)

        def show(progress: Progress) -> None:
            limit = "" if math.isinf(budget) else f" of {budget:g}"
            words = f"{progress.solved} solved, {progress.spent:g}{limit} spent"
            words += f", {progress.in_flight} in flight"
            bar.update(task, completed=progress.done, total=progress.problems, description=words)

        yield show


def _cheapest(options: Options) -> Spending:
    """The spending, with the lowest costs of several generators."""
    lists = [each.costs for each in options.generators.by_name.values()]
    if not lists:
        return options.spending
    lowest = Costs(
        min(each.candidate for each in lists),
        min(each.verify for each in lists),
        failure=min(each.failure for each in lists),
    )
    return dataclasses.replace(options.spending, costs=lowest)


def _at_most(spending: Spending, problems: int) -> str:
    """What a run can cost at most, in a sentence."""
    per_problem = spending.at_most
    costs = spending.costs
    total = min(spending.total_budget, per_problem * problems)
    if math.isinf(total):
        return (
            f"{counted(problems, 'problem')}, without a limit: the search for an unsolvable problem"
            " never ends; give --budget, --total-budget or --value"
        )
    return (
        f"{counted(problems, 'problem')}: at most {total:g} in all"
        + (f", {per_problem:g} each" if math.isfinite(per_problem) else "")
        + f"; that is at most {math.floor(total / costs.candidate)} candidates, or"
        f" {math.floor(total / costs.failure)} verifications, or a mix of both"
    )
