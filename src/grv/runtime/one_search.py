"""One live search: asks the core for the next action, executes it, and tells the result."""

from __future__ import annotations

from collections.abc import Callable

import anyio.to_thread

from ..backends.protocols import Problem
from ..core.errors import BackendError
from ..core.values import Reason, Stop
from ..ledger.entries import Ended, Failed, Told
from ..ledger.ledger import Caps, Ledger
from .calls import Caller
from .config import SearchConfig
from .executor import Executor, Reserves
from .ledger_writer import LedgerWriter
from .results.solution import FAILED, Solution, solution_of
from .search_record import ReadOnly, SearchRecord
from .spending import PROBLEM_SPENT, OutOfBudget, RunBudget


async def run_search(
    problem: Problem,
    config: SearchConfig,
    writer: LedgerWriter,
    caller: Caller,
    budget: RunBudget,
    on_step: Callable[[], None] = lambda: None,
) -> Solution:
    """Search for a verified answer. Results in the ledger are reused, not paid for again.

    `on_step` is called after each step.
    """
    record = await SearchRecord.open(writer, config.search_id(problem))
    return await _run(problem, config, record, caller, budget, on_step)


async def recorded_solution(
    problem: Problem, config: SearchConfig, ledger: Ledger, caller: Caller, budget: RunBudget
) -> Solution | None:
    """The solution of a search that has ended; None if it has to start or to continue.

    This writes nothing, so it needs no claim.
    """
    search = config.search_id(problem)
    entries = await anyio.to_thread.run_sync(ledger.read, search)
    record = SearchRecord(None, search, entries)
    if record.ended is None:
        return None
    try:
        return await _run(problem, config, record, caller, budget)
    except ReadOnly:
        return None


async def _run(
    problem: Problem,
    config: SearchConfig,
    record: SearchRecord,
    caller: Caller,
    budget: RunBudget,
    on_step: Callable[[], None] = lambda: None,
) -> Solution:
    await record.begin(config.started(problem, budget.account))
    search = config.search()
    caps = Caps(budget.total, config.budget)
    reserves = Reserves(config.reserve, config.second_cost, caps)
    executor = Executor(problem, config.backends, caller, record, config.meter, reserves)
    try:
        while not isinstance(action := search.ask(), Stop):
            seen = len(search.pool)
            price = executor.price(action, seen, config.reserve, config.second_cost)
            async with budget.plan(price) as executor.plan:
                event = await executor.carry_out(action, seen, search.pool.costs)
            await record.tell(Told(event, action.why))
            search.tell(event)
            on_step()
            executor.stop_if_broken(turn.event for turn in reversed(search.trace))
    except OutOfBudget as out:
        action = Stop(Reason.OUT_OF_BUDGET, why=str(out))
    except BackendError as error:
        message = f"{error}; {error.hint}" if error.hint else str(error)
        await record.write(Failed(message))
        return solution_of(problem, search, executor, FAILED, message=message)
    bill = search.bill
    counts = (bill.generated, bill.verified, bill.total)
    ended = Ended(action.reason.value, action.answer, *counts, action.why)
    if record.ended != ended:
        await record.write(ended)
    spent = PROBLEM_SPENT if action.reason is Reason.OUT_OF_BUDGET else ""
    message = action.why or spent
    return solution_of(
        problem, search, executor, action.reason.value, answer=action.answer, message=message
    )
