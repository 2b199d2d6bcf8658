"""The searches of a run, one turn at a time: the schedule says whose turn is next.

Theory of operation
-------------------
A *turn* takes a search to its next verdict, or to its end. Then the search gives way: the schedule
is told what it has cost, and says which search is next. As many turns run at once as the gate
admits. A search that waits holds no slot, no worker, no connection and no claim; and, but for the
few that are kept in memory, no candidate. It is a place in the file and three numbers.

A search goes on by running again over what the ledger has of it (docs/design/007). So what the
schedule knows is a lower bound, and the ledger is right:

1. A turn begins with a claim. If another process has it, the search is asked for later.
2. If the ledger has entries of a search that this process does not know, another process has gone
   on with it. The schedule is told what it has cost now, and asked again. So all processes of a
   ledger follow one schedule.
3. What a search will spend until its next verdict is known once it was opened. If that is more than
   was assumed, the schedule is told and asked again. So a run that was killed takes the same order.

A search that learns takes the newest prior when it goes on after it has waited, if it has spent
twice as much as when it took its last one. The ledger records that as a new start, and the search
runs again from its first step over the same candidates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from ..backends.generators.batches import BatchedGenerator
from ..backends.protocols import Problem
from ..core.errors import LedgerError
from ..core.values import Reason
from ..ledger.entries import JUDGED
from ..ledger.ledger import ROUNDING, SearchStanding
from ..schedules import CheapestPredicted, InOrder, Schedule
from .batches import Batches
from .budget import SHARE_SPENT, Gate, RunBudget
from .calls import GRACE_SECONDS
from .ledger_writer import JOIN_SECONDS, LedgerWriter, in_ledger_thread
from .live_search import LiveSearch, OpenSearch
from .progress import Progress
from .record import SearchRecord
from .solution import Solution, failed_solution
from .tasks import raise_first

if TYPE_CHECKING:
    from .solve import SolveRun

_LOOKED_UP = 64  # problems whose records are read at once
_WARM = 2000  # candidates of searches that wait in memory
# A search that ended in another way may go on with more money, or with a server that is back.
_ENDS = (Reason.SOLVED.value, JUDGED, Reason.FINISHED.value, Reason.EXHAUSTED.value)

Problems = Sequence[Problem] | AsyncIterable[Problem]


@dataclass(frozen=True, slots=True)
class _Known:
    """What the schedule was told of a search.

    Attributes:
        entries: how many entries the ledger had of it.
        spent: what it had possibly paid.
        next_cost: what it will spend up to and with its next verdict, as far as it is known.
    """

    entries: int
    spent: float
    next_cost: float


class _WarmSearches:
    """Searches that wait in memory, by place: as many as have `_WARM` candidates together.

    Those that came first stay. A search that has just had its turn is the last to have another, so
    to put it in the place of an earlier one would lose both.
    """

    def __init__(self) -> None:
        self._searches: dict[int, OpenSearch] = {}
        self._candidates = 0

    def keep(self, place: int, search: OpenSearch) -> None:
        """Keep a search, if there is room."""
        if self._candidates + _size(search) <= _WARM:
            self._searches[place] = search
            self._candidates += _size(search)

    def take(self, place: int, entries: int) -> OpenSearch | None:
        """The search, if it is here and the ledger has only these entries of it."""
        search = self._searches.pop(place, None)
        if search is None:
            return None
        self._candidates -= _size(search)
        return search if len(search.record.entries) == entries else None


def _size(search: OpenSearch) -> int:
    return 1 + len(search.record.made)


class Turns:
    """The searches of a run, and how far they are.

    Args:
        run: how to search, and what for.
        skipped: how many problems are solved already.
        expected: how many others there are, if it is known.
    """

    def __init__(self, run: SolveRun, skipped: int, expected: int | None) -> None:
        self.run = run
        self._config = replace(run.config, waits=True) if run.gives_way else run.config
        self.writer = LedgerWriter(run.ledger)
        self.budget = RunBudget(run.total_budget, self.writer)
        # Calls reserve the highest cost. Near the end of the money one search runs at a time, so
        # that no search ends for want of money that calls in flight are about to return.
        costs = run.config.limits.most or run.config.costs
        self.gate = Gate(run.most_at_once, self.budget, costs, run.config.limits.budget)
        self.done = self.solved = skipped
        self.problems = skipped + (expected or 0)
        self._expected = expected
        self._schedule: Schedule
        self._first_cost = 0.0  # of a search that has not begun; an order of the file needs none
        if not isinstance(run.rule, InOrder):
            self._first_cost = run.config.chosen(None).portfolio().to_verdict
        self._arrived = 0  # problems
        self._open: dict[int, Problem] = {}  # those that have no solution yet, by place
        self._known: dict[int, _Known] = {}
        self._warm = _WarmSearches()
        self._chosen: deque[int] = deque()  # asked for, and not begun
        self._running = 0
        self._releasing: set[int] = set()  # those that wait, and have their claim still
        self._is_fed = False
        self._is_choosing = False  # whether the dispatcher waits for a search to choose
        self._changed = anyio.Event()
        generators = [each.backends.generator for each in run.config.generators.values()]
        self.batches: Batches | None = None
        if any(isinstance(each, BatchedGenerator) for each in generators):
            self.batches = Batches(run.caller, self._is_idle, run.batches)

    def tell(self) -> None:
        """Report the progress to the listener."""
        if self.run.progress is not None:
            self.run.progress(
                Progress(
                    self.problems,
                    self.done,
                    self.solved,
                    self.budget.paid,
                    self.run.caller.in_flight,
                    self.run.caller.waiting,
                )
            )

    async def solutions(self, problems: Problems) -> AsyncGenerator[Solution]:
        """Search for answers until all searches have ended; yield each solution when found."""
        send, receive = anyio.create_memory_object_stream[Solution](math.inf)
        self._send = send

        async def everything() -> None:
            async with send, anyio.create_task_group() as group:
                if math.isfinite(self.run.run_deadline):
                    group.start_soon(self._stop_later, group)
                if self.batches is not None:
                    group.start_soon(self.batches.run)
                group.start_soon(self._feed, problems)
                await self._dispatch()
                group.cancel_scope.cancel()

        self.tell()
        on_growth = self.run.caller.lanes.on_growth
        on_growth.append(self.gate.look)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(everything)
                async with receive:
                    async for solution in receive:
                        self.done += 1
                        self.solved += solution.status != "unverified"
                        self.tell()
                        yield solution
        except BaseExceptionGroup as errors:
            raise_first(errors)
        finally:
            on_growth.remove(self.gate.look)

    async def _stop_later(self, group: anyio.abc.TaskGroup) -> None:
        """End the run at its deadline. Calls in flight are paid for, so they get some seconds."""
        await anyio.sleep(self.run.run_deadline)
        await self.run.caller.settle(GRACE_SECONDS)
        group.cancel_scope.cancel()

    # What there is to search for:

    async def _feed(self, problems: Problems) -> None:
        """Add all problems: those of a list together, others as they arrive."""
        if isinstance(problems, Sequence):
            await self._begin(problems)
        else:
            await self._begin(())
            async for problem in problems:
                if problem.id not in self.run.skip:
                    self.problems += self._expected is None
                    await self._add([problem], await self._standings([problem]))
        self._is_fed = True
        self._change()

    async def _begin(self, problems: Sequence[Problem]) -> None:
        """Begin the schedule. What the ledger has charged for other problems is not for these."""
        standings = await self._standings(problems)
        elsewhere = self.budget.paid - sum(standing.paid for standing in standings)
        budget = self.run.total_budget - max(0.0, elsewhere)
        self._schedule = self.run.rule.begin(budget=max(0.0, budget), problems=self._expected)
        self._change()
        await self._add(problems, standings)

    async def _standings(self, problems: Sequence[Problem]) -> Sequence[SearchStanding]:
        def look_up() -> Sequence[SearchStanding]:
            ids = [self.run.config.search_id(problem) for problem in problems]
            return self.run.ledger.standings(ids)

        return await in_ledger_thread(look_up)

    async def _add(self, problems: Sequence[Problem], standings: Sequence[SearchStanding]) -> None:
        """Add problems, which wait; of those that have ended, give the recorded solution."""
        ended: list[tuple[int, Problem, SearchStanding]] = []
        for problem, standing in zip(problems, standings, strict=True):
            place = self._arrived
            self._arrived += 1
            if standing.outcome in _ENDS:
                ended.append((place, problem, standing))
                self._schedule.add(place, spent=standing.paid, ended=True)
            else:
                self._wait(place, problem, standing)
        self._running += bool(ended)  # the run has not ended before they are read
        self._change()
        for first in range(0, len(ended), _LOOKED_UP):
            await self._recall(ended[first : first + _LOOKED_UP])
        self._running -= bool(ended)
        self._change()

    def _wait(self, place: int, problem: Problem, standing: SearchStanding) -> None:
        known = _Known(standing.entries, standing.paid, 0.0 if standing.paid else self._first_cost)
        self._open[place] = problem
        self._known[place] = known
        self._schedule.add(
            place,
            weight=problem.weight,
            expected=problem.expected_cost,
            spent=known.spent,
            next_cost=known.next_cost,
        )

    async def _recall(self, ended: Sequence[tuple[int, Problem, SearchStanding]]) -> None:
        """Give the recorded solutions; a search whose end does not hold any more has to wait."""
        searches = [self._search(problem) for _, problem, _ in ended]
        recorded = await in_ledger_thread(self._read, searches)
        for (place, problem, standing), search, record in zip(
            ended, searches, recorded, strict=True
        ):
            solution = None if record is None else await search.recorded(record)
            if solution is None:
                self._wait(place, problem, standing)
            else:
                await self._send.send(solution)

    def _read(self, searches: Sequence[LiveSearch]) -> list[SearchRecord | None]:
        """Their records; None for a damaged one, which shows when the search starts."""
        records: list[SearchRecord | None] = []
        for search in searches:
            try:
                records.append(search.read(live=False))
            except LedgerError as error:
                if error.entry is None:
                    raise
                records.append(None)
        return records

    def _search(self, problem: Problem) -> LiveSearch:
        return LiveSearch(
            problem,
            self._config,
            self.writer,
            self.run.caller,
            self.budget,
            self.tell,
            self.gate.outside if self.batches is None else self.gate.in_batch,
            batches=self.batches,
        )

    def _is_idle(self) -> bool:
        """Whether all searches wait for a batch, for a person, or for their turn."""
        dispatcher = 1 if self._is_choosing else 0  # it holds a place
        return self.gate.inside == dispatcher and not self.run.caller.in_flight

    # Whose turn it is:

    def _change(self) -> None:
        self._changed.set()

    async def _dispatch(self) -> None:
        """Let searches have their turns until all have ended."""
        async with anyio.create_task_group() as group:
            while True:
                await self.gate.enter()
                place = await self._next()
                if place is None:
                    break
                self._running += 1
                group.start_soon(self._slot, place, False)
            self.gate.leave()
            for place in list(self._open):  # those that the schedule does not ask for any more
                await self.gate.enter()
                self._running += 1
                group.start_soon(self._slot, place, True)

    async def _next(self) -> int | None:
        """The next search; None if all have ended, or have no money left for a turn."""
        while True:
            self._changed = anyio.Event()
            place = self._ask()
            if place is not None:
                while place in self._releasing:
                    await self._changed.wait()
                    self._changed = anyio.Event()
                return place
            if self._is_fed and not self._running:
                return None
            self._is_choosing = True
            await self._changed.wait()
            self._is_choosing = False

    def _ask(self) -> int | None:
        if self._chosen:
            return self._chosen.popleft()
        return self._schedule.ask() if self._arrived else None

    async def _slot(self, place: int, is_last: bool) -> None:
        """Give a search its turn, or several if no other search is before it.

        A damaged search is reported, and the others continue. `is_last` means that there is no
        money for a turn: the search ends.
        """
        search = self._search(self._open[place])
        try:
            with search.traced() as span:
                solution = await self._turn(place, search, is_last)
                if solution is not None:
                    span.attributes(solution.traced)
        except LedgerError as error:
            if error.entry is None:
                raise
            solution = failed_solution(search.problem, search.id, str(error))
            if not is_last:
                self._schedule.tell(place, spent=self._known[place].spent, ended=True)
        finally:
            self._running -= 1
            self._releasing.discard(place)
            self.gate.leave()
            self._change()
        if solution is not None:
            del self._open[place]
            del self._known[place]
            await self._send.send(solution)

    async def _turn(self, place: int, search: LiveSearch, is_last: bool) -> Solution | None:
        """The solution, if the search has ended; otherwise it waits again."""
        known = self._known[place]
        standing, record = await self._take(search)
        if standing is None:  # another caller has the claim
            with self.gate.outside():
                await anyio.sleep(JOIN_SECONDS)
            if is_last:
                return await self._turn(place, search, is_last)
            self._tell(place, known)
            return None
        try:
            is_stale = standing.entries != known.entries
            if is_stale and standing.outcome not in _ENDS and not is_last:
                self._releasing.add(place)
                self._tell(place, _Known(standing.entries, standing.paid, known.next_cost))
                return None
            opened = await self._opened(place, search, standing, record)
            if is_last:
                return await opened.stop(SHARE_SPENT)
            return await self._turns(place, opened)
        finally:
            with anyio.CancelScope(shield=True):
                await in_ledger_thread(self.run.ledger.release, search.id)

    async def _take(self, search: LiveSearch) -> tuple[SearchStanding | None, SearchRecord | None]:
        """Claim a search and say how far it is; None if another caller has claimed it.

        And the record of a search that is new. Others may be in memory.
        """

        def take() -> tuple[SearchStanding | None, SearchRecord | None]:
            ledger = self.run.ledger
            if not ledger.claim(search.id):
                return None, None
            try:
                standing = ledger.standings([search.id])[0]
                return standing, None if standing.entries else search.read()
            except BaseException:
                ledger.release(search.id)
                raise

        return await in_ledger_thread(take)

    async def _opened(
        self,
        place: int,
        search: LiveSearch,
        standing: SearchStanding,
        record: SearchRecord | None,
    ) -> OpenSearch:
        """The search, from memory if it is there and nothing has changed, or from its record."""
        warm = self._warm.take(place, standing.entries)
        if warm is not None and not await warm.is_outdated():
            return warm
        return await search.open(record)

    async def _turns(self, place: int, opened: OpenSearch) -> Solution | None:
        """Let an open search have turns as long as it is next; the solution, if it has ended."""
        known = self._known[place]
        expected = known.spent + known.next_cost
        is_next = opened.spent + opened.next_cost <= expected * (1 + ROUNDING)
        while True:
            if not is_next:
                entries = len(opened.record.entries)
                known = _Known(entries, opened.spent, opened.next_cost)
                if not self._tell(place, known, self._prediction(place, opened)):
                    return await opened.stop(SHARE_SPENT)
                if not self._is_chosen(place):
                    self._releasing.add(place)
                    await opened.record.flush()
                    self._warm.keep(place, opened)
                    return None
            is_next = False
            solution = await opened.turn()
            if solution is not None:
                self._schedule.tell(place, spent=opened.spent, ended=True)
                return solution

    def _prediction(self, place: int, opened: OpenSearch) -> float | None:
        """What a search is predicted to cost, if the schedule asks and the user does not say."""
        if not isinstance(self.run.rule, CheapestPredicted):
            return None
        return None if self._open[place].expected_cost is not None else opened.prediction

    def _tell(self, place: int, known: _Known, expected: float | None = None) -> bool:
        """Tell the schedule how far a search is; whether it may have another turn."""
        self._known[place] = known
        return self._schedule.tell(
            place, spent=known.spent, next_cost=known.next_cost, expected=expected
        )

    def _is_chosen(self, place: int) -> bool:
        """Whether the search that waits since a moment is the next one."""
        chosen = self._schedule.ask()
        if chosen is not None and chosen != place:
            self._chosen.append(chosen)
        return chosen == place
