"""Search for verified answers: `grv.solve` for one problem, `grv.solve_many` for many.

Each has a counterpart for programs without an event loop: `grv.solve_now`, `grv.solve_many_now`.
"""

from __future__ import annotations

import math
import queue
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread

from ..backends.callables import (
    Answer,
    Given,
    Made,
)
from ..backends.protocols import Generator, Problem, Scorer, Verifier
from ..core.errors import LedgerError, UsageError
from ..core.pace import Pace
from ..core.search import Policy
from ..core.values import Cascade, Costs
from ..ledger.entries import Entry
from ..ledger.ledger import Ledger, MemoryLedger
from ..ledger.opening import open_ledger
from .calls import Caller
from .config import one_config
from .executor import Keying
from .ledger_writer import LedgerWriter
from .one_search import claimed_search, recorded_solution
from .options import Calls
from .portfolio.config import AnyConfig, portfolio_config
from .prices import Meter
from .progress import Listener, Progress
from .results.solution import Solution, failed_solution
from .spending import Gate, RunBudget, check_total
from .tasks import first_error

if TYPE_CHECKING:
    from ..learning.joint import PastAttempts

_LOOKED_UP = 64  # problems whose records are read at once

Generating = Generator | Callable[[Problem], Made | Awaitable[Made]]
Scoring = Scorer | Callable[[Problem, str], Given | Awaitable[Given]]
Verifying = Verifier | Callable[[Problem, str], Answer | Awaitable[Answer]]

_LONGEST_NAME = 60


class SolveOptions(TypedDict, total=False):
    """The options of `solve` and its counterparts; `SearchConfig` explains those it shares.

    Attributes:
        generator: a function of the problem that returns one text, or a `Generator`. Or several of
            them, by name; then `costs` has the price list of each, and `scorer` and `policy` may be
            one for each too. Required.
        scorer: a function of the problem and a text that returns a number, or a `Scorer`. Required.
        verifier: a function of the problem and a text that returns a bool, or a `Verifier`.
            Drafts that its method `refutation` refutes, if it has one, are not verified. Required.
        policy: decides what to do next: a policy or its specification; by default
            `grv.policies.DEFAULT`. `learning` learns from the searches that the ledger has.
        costs: the price list that the policy plans with; by default a verification costs as much as
            ten candidates.
        budget: the highest cost allowed per problem, in the unit of the costs.
        total_budget: the highest cost allowed for all problems together.
        value: what an answer is worth, in the same unit. A search gives up when the expected
            remaining cost is higher.
        width: the highest number of verifications in flight at once; None means a whole step of
            the plan.
        pace: how far a search looks ahead if the width is above 1; what a second of waiting costs,
            and the seconds after which a search ends.
        ledger: the ledger that records everything paid for, or its file or address. Recorded
            results are reused, not paid for again.
        key: a function of the problem and a draft that returns its equivalence class, or None for
            no class. Drafts of one class must pass or fail together; grv verifies one of them.
        keys: whether to use the keys of the verifier, if it has some and `key` is not given. Drafts
            with equal keys share failures, not passes.
        about: settings that results depend on (model, temperature, seed). Recorded results are
            reused if these, the problem, and the names of generator, scorer and verifier are equal.
        identity: replaces `about` and those names, for callers that name their runs themselves.
        calls: attempts, timeouts and concurrency of calls; or a `Caller`, to watch or stop them.
        second_scorer: gives second scores, for a `cascade`.
        cascade: how to use second scores.
        most: the highest cost of one candidate and of one verification, if costs are measured.
        meter: computes the measured cost of calls, if costs are measured.
        answers: how many different answers to find per problem.
        past: what several generators did on earlier problems; see `grv.learning.joint_history`.
        at_once: the number of problems searched at once; by default twice the calls at once.
        skip: ids of problems already solved; their cost counts against `total_budget`.
        progress: a function that is called with a `Progress` after each step.
    """

    generator: Required[Generating | Mapping[str, Generating]]
    scorer: Required[Scoring | Mapping[str, Scoring]]
    verifier: Required[Verifying]
    policy: Policy | str | Mapping[str, Policy | str] | None
    costs: Costs | Mapping[str, Costs] | None
    budget: float
    total_budget: float
    value: float
    width: int | None
    pace: Pace
    ledger: Ledger | str | Path | None
    key: Keying | None
    keys: bool
    about: Mapping[str, Any] | None
    identity: Mapping[str, Any] | None
    calls: Calls | Caller | None
    second_scorer: Scorer | None
    cascade: Cascade | None
    most: Costs | None
    meter: Meter | Mapping[str, Meter] | None
    answers: int
    past: Sequence[PastAttempts]
    at_once: int | None
    skip: Collection[str]
    progress: Listener | None


async def solve(problem: Problem | str, **options: Unpack[SolveOptions]) -> Solution:
    """Search for a verified answer to one problem, or to a prompt.

    See `SolveOptions` for the options.

    If another caller already runs this search, in this process or in another one, wait for its
    result; if that caller dies, take over.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    async with aclosing(solve_many([problem], **options)) as solutions:
        async for solution in solutions:
            return solution
    raise UsageError("the problem is among those to skip")


async def solve_many(
    problems: Iterable[Problem | str], **options: Unpack[SolveOptions]
) -> AsyncGenerator[Solution]:
    """Search for answers to many problems at once; yield each solution as its search ends.

    A search that another caller runs already, in this process or in another one, is joined: its
    result is yielded here too. See `SolveOptions` for the options.
    """
    config = config_of(options)
    given = options.get("calls")
    caller = given if isinstance(given, Caller) else Caller(given)
    skip = options.get("skip", ())
    asked = [_problem(problem) for problem in problems]
    todo = [problem for problem in asked if problem.id not in skip]
    async with _opened(options.get("ledger")) as ledger:
        writer = LedgerWriter(ledger)
        budget = RunBudget(options.get("total_budget", math.inf), writer)
        run = _Run(config, writer, caller, budget, options.get("progress"), len(asked), len(todo))
        at_once = options.get("at_once") or 2 * caller.calls.concurrency
        gate = Gate(at_once, budget, config.costs, config.budget)
        async with aclosing(run.solutions(todo, gate)) as solutions:
            async for solution in solutions:
                yield solution


def solve_now(problem: Problem | str, **options: Unpack[SolveOptions]) -> Solution:
    """`solve`, for programs without an event loop; closes the backends' connections at the end.

    It runs its own event loop in a thread, so it works in a notebook too.
    """
    for solution in solve_many_now([problem], **options):
        return solution
    raise UsageError("the problem is among those to skip")


def solve_many_now(
    problems: Iterable[Problem | str], **options: Unpack[SolveOptions]
) -> Iterator[Solution]:
    """`solve_many`, for programs without an event loop; closes connections at the end."""
    found: queue.SimpleQueue[Solution | None] = queue.SimpleQueue()

    async def run(*, task_status: anyio.abc.TaskStatus[anyio.CancelScope]) -> None:
        with anyio.CancelScope() as scope:
            task_status.started(scope)
            try:
                async with aclosing(solve_many(problems, **options)) as solutions:
                    async for solution in solutions:
                        found.put(solution)
            finally:
                with anyio.CancelScope(shield=True):
                    await config_of(options).aclose()

    with anyio.from_thread.start_blocking_portal() as portal:
        future, scope = portal.start_task(run)
        future.add_done_callback(lambda _: found.put(None))
        try:
            while (solution := found.get()) is not None:
                yield solution
            future.result()
        finally:
            portal.call(scope.cancel)


class _Run:
    """The searches of one call of `solve_many`."""

    def __init__(
        self,
        config: AnyConfig,
        writer: LedgerWriter,
        caller: Caller,
        budget: RunBudget,
        listener: Listener | None,
        problems: int,
        todo: int,
    ) -> None:
        self.config, self.caller, self.budget = config, caller, budget
        self.writer = writer
        self.listener, self.problems = listener, problems
        self.done = self.solved = problems - todo

    def tell(self) -> None:
        """Report the progress to the listener."""
        if self.listener is not None:
            counts = (self.problems, self.done, self.solved, self.budget.paid)
            self.listener(Progress(*counts, self.caller.in_flight, self.caller.waiting))

    async def solutions(self, todo: Sequence[Problem], gate: Gate) -> AsyncGenerator[Solution]:
        """Search as many problems at once as the gate admits; yield each solution when found."""
        send, receive = anyio.create_memory_object_stream[Solution](math.inf)

        async def everything() -> None:
            async with send, anyio.create_task_group() as group:
                for at in range(0, len(todo), _LOOKED_UP):
                    for problem in await self._unsolved(todo[at : at + _LOOKED_UP], send):
                        await gate.enter()  # before the task starts: waiting tasks use memory
                        group.start_soon(self._one, problem, gate, send)

        self.tell()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(everything)
                async with receive:
                    async for solution in receive:
                        self.done += 1
                        self.solved += solution.verified
                        self.tell()
                        yield solution
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors

    async def _unsolved(
        self, problems: Sequence[Problem], send: anyio.abc.ObjectSendStream[Solution]
    ) -> list[Problem]:
        """The problems that have to be searched; the solutions of the others are recorded."""
        ids = [self.config.search_id(problem) for problem in problems]
        unsolved = []
        recorded = await anyio.to_thread.run_sync(self._read, ids)
        for problem, entries in zip(problems, recorded, strict=True):
            solution = await recorded_solution(
                problem, self.config, entries, self.caller, self.budget
            )
            if solution is None:
                unsolved.append(problem)
            else:
                await send.send(solution)
        return unsolved

    def _read(self, ids: Sequence[str]) -> list[Sequence[Entry]]:
        """The entries of these searches; none if they are damaged, which shows when they start."""
        found: list[Sequence[Entry]] = []
        for search in ids:
            try:
                found.append(self.writer.ledger.read(search))
            except LedgerError as error:
                if error.entry is None:
                    raise
                found.append(())
        return found

    async def _one(
        self, problem: Problem, gate: Gate, send: anyio.abc.ObjectSendStream[Solution]
    ) -> None:
        """Search one problem. A damaged search is reported, and the others continue."""
        try:
            await send.send(
                await claimed_search(
                    problem,
                    self.config,
                    self.writer,
                    self.caller,
                    self.budget,
                    self.tell,
                    gate.outside,
                )
            )
        except LedgerError as error:
            if error.entry is None:
                raise
            failed = failed_solution(problem, self.config.search_id(problem), str(error))
            await send.send(failed)
        finally:
            gate.leave()


def check_options(options: SolveOptions) -> None:
    """Raise a UsageError if options are out of bounds or contradict each other."""
    config_of(options)
    check_total(options.get("total_budget", math.inf))


def config_of(options: SolveOptions) -> AnyConfig:
    """The configuration that the options describe."""
    if isinstance(options["generator"], Mapping):
        return portfolio_config(options, one_config)
    return one_config(options)


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


def _problem(problem: Problem | str) -> Problem:
    """The problem; the id of a prompt is its first line, shortened if it is long."""
    if isinstance(problem, Problem):
        return problem
    line = problem.strip().partition("\n")[0]
    title = line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 3]}..."
    return Problem(title, problem)
