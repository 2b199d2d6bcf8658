"""One live search: asks the core for the next action, executes it, and tells the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ..backends.protocols import Problem
from ..core.errors import BackendError
from ..core.values import Bill, Reason, Stop
from ..ledger.entries import Ended, Entry, Failed, Told
from ..ledger.ledger import Ledger
from .calls import Caller
from .config import SearchConfig
from .executor import Executor
from .experience import Experience
from .ledger_writer import LedgerWriter, claim, claim_when_free
from .results.solution import FAILED, UNFINISHED, Solution, solution_of
from .search_record import ReadOnly, SearchRecord
from .spending import PROBLEM_SPENT, OutOfBudget, Reserves, RunBudget

if TYPE_CHECKING:
    from .portfolio.config import AnyConfig


def reserves_of(config: SearchConfig, budget: RunBudget) -> Reserves:
    """What attempts reserve, and the caps of the search, its account and the ledger."""
    caps = replace(budget.caps, search=config.budget)
    return Reserves(config.reserve, config.second_cost, caps)


def nothing() -> None:
    """Do nothing after a step."""


async def find_answer(
    problem: Problem,
    config: AnyConfig,
    writer: LedgerWriter,
    caller: Caller,
    budget: RunBudget,
    on_step: Callable[[], None] = nothing,
    joining: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Solution:
    """The recorded solution, or else that of a search, which only one caller at a time runs.

    If another caller runs the search, in this process or in another one, wait for its result inside
    `joining`; if that caller dies, take over. A search that waits for a verdict from outside does
    so inside `joining` too.
    """
    entries = await anyio.to_thread.run_sync(writer.ledger.read, config.search_id(problem))
    recorded = await recorded_solution(problem, config, entries, caller, budget)
    if recorded is not None:
        return recorded
    return await claimed_search(problem, config, writer, caller, budget, on_step, joining)


async def claimed_search(
    problem: Problem,
    config: AnyConfig,
    writer: LedgerWriter,
    caller: Caller,
    budget: RunBudget,
    on_step: Callable[[], None] = nothing,
    joining: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Solution:
    """`find_answer`, for a problem that has no recorded solution, as far as the caller knows."""
    ledger, search = writer.ledger, config.search_id(problem)
    if not await claim(ledger, search):
        with joining():
            await claim_when_free(ledger, search)
    try:
        return await run_search(problem, config, writer, caller, budget, on_step, joining)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ledger.release, search)


async def run_search(
    problem: Problem,
    config: AnyConfig,
    writer: LedgerWriter,
    caller: Caller,
    budget: RunBudget,
    on_step: Callable[[], None] = nothing,
    leaving: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Solution:
    """Search for a verified answer. Results in the ledger are reused, not paid for again.

    `on_step` is called after each step. It waits for verdicts from outside inside `leaving`.
    """
    record = await SearchRecord.open(writer, config.search_id(problem))
    experience = Experience.of(config, writer)
    decided = config.recorded(record.started) or config.chosen(await experience.prior())
    solution = await _run(problem, decided, record, caller, budget, on_step, leaving).solution()
    await experience.add(record)
    return replace(solution, policy=decided.policy_name)


async def recorded_solution(
    problem: Problem,
    config: AnyConfig,
    entries: Sequence[Entry],
    caller: Caller,
    budget: RunBudget,
) -> Solution | None:
    """The solution of a search that has ended; None if it has to start or to continue.

    This writes nothing, so it needs no claim.
    """
    if not any(isinstance(entry, Ended) for entry in entries):
        return None
    record = SearchRecord(None, config.search_id(problem), entries)
    if record.ended is None:
        return None
    decided = config.recorded(record.started)
    if decided is None:
        return None
    try:
        solution = await _run(problem, decided, record, caller, budget).solution()
    except ReadOnly:
        return None
    return replace(solution, policy=decided.policy_name)


async def solution_so_far(
    problem: Problem, config: AnyConfig, ledger: Ledger, caller: Caller, budget: RunBudget
) -> Solution:
    """The solution of a search, which is unfinished unless it has ended. This writes nothing."""
    record = await _read(problem, config, ledger)
    decided = config.recorded(record.started) or config.chosen(None)
    run = _run(problem, decided, record, caller, budget)
    try:
        return await run.solution()
    except ReadOnly:
        return run.solved(UNFINISHED)


async def _read(problem: Problem, config: AnyConfig, ledger: Ledger) -> SearchRecord:
    """The record of a search, which can only be read."""
    search = config.search_id(problem)
    return SearchRecord(None, search, await anyio.to_thread.run_sync(ledger.read, search))


def _run(
    problem: Problem, config: AnyConfig, record: SearchRecord, caller: Caller, *more: Any
) -> SearchRun:
    """The search of a configuration; of several generators, if it has several."""
    if isinstance(config, SearchConfig):
        return SearchRun(problem, config, record, caller, *more)
    from .portfolio.run import PortfolioRun

    return PortfolioRun(problem, config, record, caller, *more)


class SearchRun:
    """A search over its record: what is recorded is told to it, the rest is requested."""

    def __init__(
        self,
        problem: Problem,
        config: SearchConfig,
        record: SearchRecord,
        caller: Caller,
        budget: RunBudget,
        on_step: Callable[[], None] = nothing,
        leaving: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.problem, self.record, self.budget, self.on_step = problem, record, budget, on_step
        self.started = config.started(problem, budget.account)
        self.config = config
        self.search = config.search()
        self.executor = Executor(
            *(problem, config.backends, caller, record, config.meter),
            *(reserves_of(config, budget), leaving),
        )
        self.executor.answers = config.answers

    @property
    def bill(self) -> Bill:
        """What the search has cost so far."""
        return self.search.bill

    def solved(self, outcome: str, message: str = "") -> Solution:
        """The solution with this outcome."""
        search = self.search
        return solution_of(
            *(self.problem, self.executor, outcome, search.bill),
            trace=search.trace,
            best=next(iter(search.pool.best(1)), None),
            answers=search.answers,
            message=message,
            seconds=search.seconds,
        )

    async def pin_scorer(self) -> str:
        """Keep the model of a score that is trained anew; what the ledger records of it."""
        return await self.executor.pin_scorer()

    async def solution(self) -> Solution:
        """Run the search to its end."""
        scorer = await self.pin_scorer()
        await self.record.begin(replace(self.started, scorer=scorer))
        try:
            end = await self._steps()
        except OutOfBudget as out:
            end = Stop(Reason.OUT_OF_BUDGET, why=str(out))
        except BackendError as error:
            message = f"{error}; {error.hint}" if error.hint else str(error)
            await self.record.write(Failed(message))
            return self.solved(FAILED, message)
        bill = self.bill
        counts = (bill.generated, bill.verified, bill.total)
        ended = Ended(end.reason.value, end.answer, *counts, end.why)
        if self.record.ended != ended:
            await self.record.write(ended)
        spent = PROBLEM_SPENT if end.reason is Reason.OUT_OF_BUDGET else ""
        return self.solved(end.reason.value, end.why or spent)

    async def _steps(self) -> Stop:
        search, executor, config = self.search, self.executor, self.config
        while not isinstance(action := search.ask(), Stop):
            seen = search.arrived
            price = executor.price(action, seen, config.reserve, config.second_cost)
            known, start = self.record.upcoming, time.monotonic()
            with anyio.move_on_after(config.pace.deadline - search.seconds) as scope:
                async with self.budget.plan(price) as executor.plan:
                    event = await executor.carry_out(action, seen, search.pool.costs)
            if scope.cancelled_caught:
                why = f"the deadline of {config.pace.deadline:g} seconds has passed"
                return Stop(Reason.FINISHED, why=why)
            seconds = round(time.monotonic() - start, 3) if known is None else known.seconds
            event = replace(event, seconds=seconds)
            await self.record.tell(Told(event, action.why))
            search.tell(event)
            self.on_step()
            executor.stop_if_broken(turn.event for turn in reversed(search.trace))
        return action
