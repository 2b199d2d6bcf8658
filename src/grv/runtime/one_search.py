"""One live search: asks the core for the next action, executes it, and tells the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import anyio
import anyio.to_thread

from ..backends.protocols import Problem
from ..core.errors import BackendError
from ..core.values import Reason, Stop
from ..ledger.entries import Ended, Entry, Failed, Told
from ..ledger.ledger import Ledger
from .calls import Caller
from .config import SearchConfig
from .executor import Executor, Reserves
from .ledger_writer import LedgerWriter, claim, claim_when_free
from .results.solution import FAILED, UNFINISHED, Solution, solution_of
from .search_record import ReadOnly, SearchRecord
from .spending import PROBLEM_SPENT, OutOfBudget, RunBudget


def nothing() -> None:
    """Do nothing after a step."""


async def find_answer(
    problem: Problem,
    config: SearchConfig,
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
    config: SearchConfig,
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
    config: SearchConfig,
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
    return await _Run(problem, config, record, caller, budget, on_step, leaving).solution()


async def recorded_solution(
    problem: Problem,
    config: SearchConfig,
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
    try:
        return await _Run(problem, config, record, caller, budget).solution()
    except ReadOnly:
        return None


async def solution_so_far(
    problem: Problem, config: SearchConfig, ledger: Ledger, caller: Caller, budget: RunBudget
) -> Solution:
    """The solution of a search, which is unfinished unless it has ended. This writes nothing."""
    run = _Run(problem, config, await _read(problem, config, ledger), caller, budget)
    try:
        return await run.solution()
    except ReadOnly:
        return solution_of(problem, run.search, run.executor, UNFINISHED)


async def _read(problem: Problem, config: SearchConfig, ledger: Ledger) -> SearchRecord:
    """The record of a search, which can only be read."""
    search = config.search_id(problem)
    return SearchRecord(None, search, await anyio.to_thread.run_sync(ledger.read, search))


class _Run:
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
        self.problem, self.config, self.record, self.budget = problem, config, record, budget
        self.on_step = on_step
        self.search = config.search()
        caps = replace(budget.caps, search=config.budget)
        reserves = Reserves(config.reserve, config.second_cost, caps)
        self.executor = Executor(
            problem, config.backends, caller, record, config.meter, reserves, leaving
        )

    async def solution(self) -> Solution:
        problem, search, executor = self.problem, self.search, self.executor
        await self.record.begin(self.config.started(problem, self.budget.account))
        try:
            end = await self._steps()
        except OutOfBudget as out:
            end = Stop(Reason.OUT_OF_BUDGET, why=str(out))
        except BackendError as error:
            message = f"{error}; {error.hint}" if error.hint else str(error)
            await self.record.write(Failed(message))
            return solution_of(problem, search, executor, FAILED, message=message)
        bill = search.bill
        counts = (bill.generated, bill.verified, bill.total)
        ended = Ended(end.reason.value, end.answer, *counts, end.why)
        if self.record.ended != ended:
            await self.record.write(ended)
        spent = PROBLEM_SPENT if end.reason is Reason.OUT_OF_BUDGET else ""
        return solution_of(
            problem, search, executor, end.reason.value, answer=end.answer, message=end.why or spent
        )

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
