"""Search for verified answers: `grv.solve` for one problem, `grv.solve_many` for many.

Each has a counterpart for programs without an event loop: `grv.solve_now`, `grv.solve_many_now`.
"""

from __future__ import annotations

import inspect
import math
import queue
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, TypeVar, cast

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread

from ..backends.callables import (
    Answer,
    Given,
    Made,
)
from ..backends.protocols import Generator as MakesDrafts
from ..backends.protocols import Problem, Scorer, Verifier
from ..core.errors import GrvError, LedgerError, UsageError
from ..core.limits import Limits
from ..core.pace import Pace
from ..core.search import Policy
from ..core.values import Cascade, Costs
from ..ledger.ledger import Ledger, MemoryLedger
from ..ledger.opening import open_ledger
from ..options import names_checked
from ..schedules import InOrder, LeastSpent, Rule, Stream, parse, written
from .arguments import (
    ELSEWHERE,
    NEEDED,
    checked,
    many_problems,
    one_problem,
    warn_without_limit,
)
from .batches import BatchReport
from .budget import check_total
from .calls import Caller
from .config import SearchConfig, config_of
from .options import Calls
from .prices import Meter
from .progress import Listener
from .solution import Solution
from .turns import Problems, Turns

if TYPE_CHECKING:
    from ..learning.joint import PastAttempts

Generating = MakesDrafts | Callable[[Problem], Made | Awaitable[Made]]
Scoring = Scorer | Callable[[Problem, str], Given | Awaitable[Given]]
Verifying = Verifier | Callable[[Problem, str], Answer | Awaitable[Answer]]

GivenScorer = Scoring | Literal["auto"]
GivenCosts = Costs | tuple[float, float] | tuple[float, float, float] | str
GivenPolicy = Policy | str
GivenProblems = Iterable[Problem | str] | AsyncIterable[Problem | str]

_LIMITS = Limits()
_TO_CALLER = 4  # frames from the warning to the program that calls `solve`


class SolveOptions(TypedDict, total=False):
    """The options of `solve` and its counterparts, for programs that keep them in a dictionary.

        options: SolveOptions = {"generator": ..., "scorer": ..., "verifier": ..., "budget": 500}
        solution = grv.solve_now("What is 2 + 2?", **options)

    Attributes:
        generator: a function of the problem that returns one text, or a `Generator`. Or several of
            them, by name; then `costs` has the price list of each, and `scorer` and `policy` may be
            one for each too. Required.
        scorer: a function of the problem and a text that returns a number, or a `Scorer`. By
            default "auto": log-probabilities if the generator returns them, otherwise a score that
            is trained on the verdicts of the ledger; see `grv.scorers.Auto`.
        verifier: a function of the problem and a text that returns a bool, or a `Verifier`.
            Drafts that its method `refutation` refutes, if it has one, are not verified. Required.
        policy: decides what to do next: a policy or its specification; by default
            `grv.policies.DEFAULT`. `learning` learns from the searches that the ledger has.
        costs: the price list that the policy plans with: `grv.Costs(1, 10)`, `(1, 10)` or "1,10";
            with the price of a verification that fails, `grv.Costs(1, 10, failure=2)`, "1,10,2".
            By default a verification costs as much as ten candidates.
        budget: the highest cost allowed per problem, in the unit of the costs.
        total_budget: the highest cost allowed for all problems together.
        value: what an answer is worth, in the same unit. A search gives up when the expected
            remaining cost is higher.
        width: the highest number of verifications in flight at once; None means a whole step of
            the plan.
        pace: how far a search looks ahead if the width is above 1; what a second of waiting costs,
            and the seconds after which a search ends: `grv.core.Pace(deadline=60)`.
        limits: budget, value, width, pace, answers, cascade and most as one value; those that are
            given by themselves take precedence.
        ledger: the ledger that records everything paid for, or its file or address. Recorded
            results are reused, not paid for again.
        key: a function of the problem and a text that returns its equivalence class, or None for
            no class. Texts of one class must pass or fail together; grv verifies one of them.
        keys: whether to use the keys of the verifier, if it has some and `key` is not given. Drafts
            with equal keys share failures, not passes.
        about: settings that results depend on (model, temperature, seed). Recorded results are
            reused if these, the problem, and the names of generator, scorer and verifier are equal.
        identity: replaces `about` and those names, for callers that name their runs themselves.
        calls: attempts, timeouts and concurrency of calls, `grv.runtime.Calls(concurrency=8)`; or a
            `Caller`, to watch or stop them.
        second_scorer: gives second scores, for a `cascade`.
        cascade: how to use second scores: `grv.core.Cascade(top=4, cost=0.5)`, or only the number
            of candidates that get one.
        most: the highest cost of one candidate and of one verification, if costs are measured.
        meter: computes the measured cost of calls, if costs are measured; see `grv.prices`.
        answers: how many different answers to find per problem.
        past: what several generators did on earlier problems; see `grv.learning.read_attempts`.
        at_once: the number of problems searched at once; by default twice the calls at once.
        skip: ids of problems already solved; their cost counts against `total_budget`.
        progress: a function that is called with a `grv.runtime.Progress` after each step.
        schedule: which problem goes next: a rule of `grv.schedules` or its specification. By
            default `least-spent` if there is a total budget, otherwise `in-order`.
        run_deadline: the seconds after which the run ends; problems without an end are not yielded.
    """

    generator: Required[Generating | Mapping[str, Generating]]
    scorer: GivenScorer | Mapping[str, GivenScorer]
    verifier: Required[Verifying]
    policy: GivenPolicy | Mapping[str, GivenPolicy] | None
    costs: GivenCosts | Mapping[str, GivenCosts] | None
    budget: float | str
    total_budget: float | str
    value: float | str
    width: int | None
    pace: Pace | None
    limits: Limits | None
    ledger: Ledger | str | Path | None
    key: Callable[[Problem, str], str | None] | None
    keys: bool
    about: Mapping[str, Any] | None
    identity: Mapping[str, Any] | None
    calls: Calls | Caller | None
    second_scorer: Scoring | None
    cascade: Cascade | int | None
    most: GivenCosts | Mapping[str, GivenCosts] | None
    meter: Meter | Mapping[str, Meter] | None
    answers: int
    past: Sequence[PastAttempts]
    at_once: int | None
    skip: Collection[str]
    progress: Listener | None
    schedule: Rule | str | None
    run_deadline: float | str


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _door(function: _Function) -> _Function:
    """A function of the Python door: its options are checked by name, and its help lists them."""
    options = (SolveOptions.__doc__ or "").partition("Attributes:\n")[2].rstrip()
    function.__doc__ = f"{function.__doc__}\n    Options:\n{options}\n    "
    made = names_checked(function, needed=NEEDED, elsewhere=ELSEWHERE)
    return cast(_Function, made)


@_door
def solve(
    problem: Problem | str,
    *,
    generator: Generating | Mapping[str, Generating],
    scorer: GivenScorer | Mapping[str, GivenScorer] = "auto",
    verifier: Verifying,
    policy: GivenPolicy | Mapping[str, GivenPolicy] | None = None,
    costs: GivenCosts | Mapping[str, GivenCosts] | None = None,
    budget: float | str = _LIMITS.budget,
    total_budget: float | str = math.inf,
    value: float | str = _LIMITS.value,
    width: int | None = _LIMITS.width,
    pace: Pace | None = None,
    limits: Limits | None = None,
    ledger: Ledger | str | Path | None = None,
    key: Callable[[Problem, str], str | None] | None = None,
    keys: bool = True,
    about: Mapping[str, Any] | None = None,
    identity: Mapping[str, Any] | None = None,
    calls: Calls | Caller | None = None,
    second_scorer: Scoring | None = None,
    cascade: Cascade | int | None = None,
    most: GivenCosts | Mapping[str, GivenCosts] | None = None,
    meter: Meter | Mapping[str, Meter] | None = None,
    answers: int = _LIMITS.answers,
    past: Sequence[PastAttempts] = (),
    at_once: int | None = None,
    skip: Collection[str] = (),
    progress: Listener | None = None,
    schedule: Rule | str | None = None,
    run_deadline: float | str = math.inf,
) -> Coroutine[Any, Any, Solution]:
    """Search for a verified answer to one problem, or to a prompt; await the result.

    The options are described in `grv.runtime.SolveOptions`.

    If another caller already runs this search, in this process or in another one, wait for its
    result; if that caller dies, take over.

    Raises:
        UsageError: an option is wrong; nothing has been paid for.
        RunStopped: no call can succeed until you act, e.g. after a wrong API key.
        LedgerError: the ledger cannot be used.
    """
    options = _options(dict(locals()))
    return _first(SolveCall.of([one_problem(problem)], options))


@_door
def solve_many(
    problems: GivenProblems,
    *,
    generator: Generating | Mapping[str, Generating],
    scorer: GivenScorer | Mapping[str, GivenScorer] = "auto",
    verifier: Verifying,
    policy: GivenPolicy | Mapping[str, GivenPolicy] | None = None,
    costs: GivenCosts | Mapping[str, GivenCosts] | None = None,
    budget: float | str = _LIMITS.budget,
    total_budget: float | str = math.inf,
    value: float | str = _LIMITS.value,
    width: int | None = _LIMITS.width,
    pace: Pace | None = None,
    limits: Limits | None = None,
    ledger: Ledger | str | Path | None = None,
    key: Callable[[Problem, str], str | None] | None = None,
    keys: bool = True,
    about: Mapping[str, Any] | None = None,
    identity: Mapping[str, Any] | None = None,
    calls: Calls | Caller | None = None,
    second_scorer: Scoring | None = None,
    cascade: Cascade | int | None = None,
    most: GivenCosts | Mapping[str, GivenCosts] | None = None,
    meter: Meter | Mapping[str, Meter] | None = None,
    answers: int = _LIMITS.answers,
    past: Sequence[PastAttempts] = (),
    at_once: int | None = None,
    skip: Collection[str] = (),
    progress: Listener | None = None,
    schedule: Rule | str | None = None,
    run_deadline: float | str = math.inf,
) -> AsyncGenerator[Solution]:
    """Search for answers to many problems at once; yield each solution as its search ends.

    Problems may arrive while others are searched, from an asynchronous iterator. With a total
    budget, grv solves as many of them as it can for the money; see `schedule`.

    A search that another caller runs already, in this process or in another one, is joined: its
    result is yielded here too. Errors are those of `solve`. The options are
    described in `grv.runtime.SolveOptions`.
    """
    options = _options(dict(locals()))
    asked = problems if isinstance(problems, AsyncIterable) else many_problems(problems)
    return SolveCall.of(asked, options).solutions()


@_door
def solve_now(
    problem: Problem | str,
    *,
    generator: Generating | Mapping[str, Generating],
    scorer: GivenScorer | Mapping[str, GivenScorer] = "auto",
    verifier: Verifying,
    policy: GivenPolicy | Mapping[str, GivenPolicy] | None = None,
    costs: GivenCosts | Mapping[str, GivenCosts] | None = None,
    budget: float | str = _LIMITS.budget,
    total_budget: float | str = math.inf,
    value: float | str = _LIMITS.value,
    width: int | None = _LIMITS.width,
    pace: Pace | None = None,
    limits: Limits | None = None,
    ledger: Ledger | str | Path | None = None,
    key: Callable[[Problem, str], str | None] | None = None,
    keys: bool = True,
    about: Mapping[str, Any] | None = None,
    identity: Mapping[str, Any] | None = None,
    calls: Calls | Caller | None = None,
    second_scorer: Scoring | None = None,
    cascade: Cascade | int | None = None,
    most: GivenCosts | Mapping[str, GivenCosts] | None = None,
    meter: Meter | Mapping[str, Meter] | None = None,
    answers: int = _LIMITS.answers,
    past: Sequence[PastAttempts] = (),
    at_once: int | None = None,
    skip: Collection[str] = (),
    progress: Listener | None = None,
    schedule: Rule | str | None = None,
    run_deadline: float | str = math.inf,
) -> Solution:
    """Search for a verified answer to one problem, or to a prompt.

    This is `solve` for programs without an event loop. It runs its own loop in a thread, so it
    works in a notebook too. It closes the backends' connections at the end. The options are
    described in `grv.runtime.SolveOptions`.

        >>> import itertools
        >>> numbers = itertools.count(1)
        >>> solution = solve_now(
        ...     "A multiple of 7",
        ...     generator=lambda problem: str(next(numbers)),
        ...     scorer=lambda problem, text: 0.0,
        ...     verifier=lambda problem, text: int(text) % 7 == 0,
        ...     costs=(1, 10),
        ...     budget=500,
        ... )
        >>> solution.verified, solution.text
        (True, '7')
    """
    options = _options(dict(locals()))
    for solution in SolveCall.of([one_problem(problem)], options).solutions_now():
        return solution
    raise UsageError(_SKIPPED)


@_door
def solve_many_now(
    problems: Iterable[Problem | str],
    *,
    generator: Generating | Mapping[str, Generating],
    scorer: GivenScorer | Mapping[str, GivenScorer] = "auto",
    verifier: Verifying,
    policy: GivenPolicy | Mapping[str, GivenPolicy] | None = None,
    costs: GivenCosts | Mapping[str, GivenCosts] | None = None,
    budget: float | str = _LIMITS.budget,
    total_budget: float | str = math.inf,
    value: float | str = _LIMITS.value,
    width: int | None = _LIMITS.width,
    pace: Pace | None = None,
    limits: Limits | None = None,
    ledger: Ledger | str | Path | None = None,
    key: Callable[[Problem, str], str | None] | None = None,
    keys: bool = True,
    about: Mapping[str, Any] | None = None,
    identity: Mapping[str, Any] | None = None,
    calls: Calls | Caller | None = None,
    second_scorer: Scoring | None = None,
    cascade: Cascade | int | None = None,
    most: GivenCosts | Mapping[str, GivenCosts] | None = None,
    meter: Meter | Mapping[str, Meter] | None = None,
    answers: int = _LIMITS.answers,
    past: Sequence[PastAttempts] = (),
    at_once: int | None = None,
    skip: Collection[str] = (),
    progress: Listener | None = None,
    schedule: Rule | str | None = None,
    run_deadline: float | str = math.inf,
) -> Generator[Solution]:
    """Search for answers to many problems at once; yield each solution as its search ends.

    This is `solve_many` for programs without an event loop; see `solve_now`. The options are
    described in `grv.runtime.SolveOptions`.
    """
    options = _options(dict(locals()))
    return SolveCall.of(many_problems(problems), options).solutions_now()


_SKIPPED = "the problem is among those to skip"
_DEFAULTS = {
    parameter.name: parameter.default
    for parameter in inspect.signature(solve_now).parameters.values()
    if parameter.kind is parameter.KEYWORD_ONLY
}


def _options(given: Mapping[str, Any]) -> SolveOptions:
    """The options that a caller has set, checked; not the problems."""
    options = {name: value for name, value in given.items() if name in _DEFAULTS}
    return cast(SolveOptions, checked(options, _DEFAULTS))


@dataclass(frozen=True)
class SolveCall:
    """One call of `solve` or of a counterpart: what is asked, and how to search."""

    problems: Sequence[Problem] | AsyncIterable[Problem | str]
    options: SolveOptions
    config: SearchConfig

    @classmethod
    def of(
        cls, problems: Sequence[Problem] | AsyncIterable[Problem | str], options: SolveOptions
    ) -> SolveCall:
        """The call; a UsageError if the options do not fit together."""
        config = config_of(options)
        total_budget = float(options.get("total_budget", math.inf))
        warn_without_limit(config, total_budget, stacklevel=_TO_CALLER)
        skipped = options.get("skip", ())
        for problem in problems if isinstance(problems, Sequence) else ():
            if problem.id not in skipped:
                config.conditions(problem)  # refuses a check that the verifier cannot carry out
        return cls(problems, options, config)

    async def solutions(self) -> AsyncGenerator[Solution]:
        """Each solution, when it is found."""
        async with (
            _running(self.config, self.options) as run,
            aclosing(run.solutions(self.problems)) as solutions,
        ):
            async for solution in solutions:
                yield solution

    def solutions_now(self) -> Generator[Solution]:
        """Each solution, when it is found by an event loop in a thread."""
        found: queue.SimpleQueue[Solution | None] = queue.SimpleQueue()

        async def run(*, task_status: anyio.abc.TaskStatus[anyio.CancelScope]) -> None:
            with anyio.CancelScope() as scope:
                task_status.started(scope)
                try:
                    async with aclosing(self.solutions()) as solutions:
                        async for solution in solutions:
                            found.put(solution)
                finally:
                    with anyio.CancelScope(shield=True):
                        await self.config.aclose()

        with anyio.from_thread.start_blocking_portal() as portal:
            future, scope = portal.start_task(run)
            future.add_done_callback(lambda _: found.put(None))
            try:
                while (solution := found.get()) is not None:
                    yield solution
                future.result()
            except GrvError as error:  # the frames of the event loop do not help
                raise error.with_traceback(None) from error.__cause__
            finally:
                portal.call(scope.cancel)


async def _first(call: SolveCall) -> Solution:
    async with aclosing(call.solutions()) as solutions:
        async for solution in solutions:
            return solution
    raise UsageError(_SKIPPED)


@dataclass(frozen=True)
class SolveRun:
    """Searches for many problems, with one configuration and one ledger.

    Attributes:
        config: how to search.
        ledger: records everything paid for.
        caller: makes the calls.
        total_budget: the highest cost allowed for all problems together.
        at_once: the number of problems searched at once; by default twice the calls at once.
        skip: ids of problems already solved.
        progress: is told the progress after each step.
        schedule: which search goes next: a rule or its specification. By default `least-spent` if
            there is a total budget, otherwise `in-order`.
        run_deadline: the seconds after which the run ends.
        expected: how many problems there will be, if they arrive one by one.
        batches: counts what the batches of requests did, if there are some.
    """

    config: SearchConfig
    ledger: Ledger
    caller: Caller
    total_budget: float = math.inf
    at_once: int | None = None
    skip: Collection[str] = ()
    progress: Listener | None = None
    schedule: Rule | str | None = None
    run_deadline: float = math.inf
    expected: int | None = None
    batches: BatchReport = field(default_factory=BatchReport)

    def __post_init__(self) -> None:
        check_total(self.total_budget)
        self.config.check_plans()
        if isinstance(self.rule, Stream) and math.isinf(self.total_budget):
            raise UsageError("the schedule stream needs a total budget")

    @cached_property
    def rule(self) -> Rule:
        """Decides which search goes next."""
        if self.schedule is None:
            return InOrder() if math.isinf(self.total_budget) else LeastSpent()
        return parse(self.schedule) if isinstance(self.schedule, str) else self.schedule

    def most_at_once(self) -> int:
        """How many problems may be searched at once now."""
        return self.at_once or 2 * self.caller.lanes.room

    @property
    def gives_way(self) -> bool:
        """Whether a search that has begun may wait for others."""
        return not isinstance(self.rule, InOrder | Stream)

    async def solutions(self, problems: GivenProblems) -> AsyncGenerator[Solution]:
        """Search for answers; yield each solution when it is found."""
        skipped = 0
        expected = self.expected
        todo: Problems
        if isinstance(problems, AsyncIterable):
            todo = map_problems(problems)
        else:
            asked = [one_problem(problem) for problem in problems]
            todo = [problem for problem in asked if problem.id not in self.skip]
            skipped = len(asked) - len(todo)
            expected = len(todo)
        async with (
            self._following(is_alone=skipped + (expected or 2) == 1),
            aclosing(Turns(self, skipped, expected).solutions(todo)) as solutions,
        ):
            async for solution in solutions:
                yield solution

    @asynccontextmanager
    async def _following(self, *, is_alone: bool) -> AsyncIterator[None]:
        """Follow the schedule; refuse it if another process of the ledger follows another one.

        A search that is alone has no order.
        """
        if is_alone:
            yield
            return
        name = written(self.rule)
        other = await anyio.to_thread.run_sync(self.ledger.follow, name)
        if other is not None:
            followed = f"--schedule {other}" if other else "another schedule"
            raise UsageError(
                f"a run on this ledger follows {followed}, and this one would follow {name}: wait"
                " for its end, give the same schedule, or use another ledger"
            )
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True), suppress(LedgerError):  # then it is left already
                await anyio.to_thread.run_sync(self.ledger.leave, name)


async def map_problems(given: AsyncIterable[Problem | str]) -> AsyncGenerator[Problem]:
    """The problems that arrive."""
    async for problem in given:
        yield one_problem(problem)


@asynccontextmanager
async def _running(config: SearchConfig, options: SolveOptions) -> AsyncIterator[SolveRun]:
    """The run that the options describe, with its ledger open."""
    calls = options.get("calls")
    async with _opened(options.get("ledger")) as ledger:
        yield SolveRun(
            config,
            ledger,
            calls if isinstance(calls, Caller) else Caller(calls),
            float(options.get("total_budget", math.inf)),
            options.get("at_once"),
            options.get("skip", ()),
            options.get("progress"),
            options.get("schedule"),
            float(options.get("run_deadline", math.inf)),
        )


@asynccontextmanager
async def _opened(ledger: Ledger | str | Path | None) -> AsyncIterator[Ledger]:
    if not isinstance(ledger, str | Path):
        yield ledger if ledger is not None else MemoryLedger()
        return
    opened = open_ledger(ledger)
    try:
        yield opened
    finally:
        opened.close()
