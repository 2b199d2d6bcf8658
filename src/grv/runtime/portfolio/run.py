"""One live search with several generators. All of them share one record in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from ...backends.protocols import Problem
from ...core.values import Bill, CandidateId, Event, Rescore, Rescored, Stop, Task, Verified, Verify
from ...ledger.entries import Told
from ..calls import Caller
from ..executor import Executor
from ..one_search import SearchRun, nothing, reserves_of
from ..results.solution import Solution, solution_of
from ..search_record import SearchRecord
from ..spending import RunBudget
from .config import PortfolioConfig


class MemberExecutor(Executor):
    """Executes the actions of one of several generators.

    In the ledger, candidate `i` of the generator at place `p` of `n` has the number `n * i + p`.
    So the numbers do not depend on who acted when, and a resumed search finds its candidates.
    """

    def __init__(self, name: str, place: int, members: int, *more: Any) -> None:
        super().__init__(*more)
        self.name, self._place, self._members = name, place, members

    def numbers(self, seen: int, n: int) -> Sequence[int]:
        """The numbers in the ledger of the next n candidates, after the first `seen`."""
        return [self.number(id) for id in range(seen, seen + n)]

    def number(self, id: int) -> CandidateId:
        """The number in the ledger of a candidate of this generator."""
        return CandidateId(id * self._members + self._place)

    def first(self, number: int) -> int:
        """Which candidate of this generator has this number in the ledger."""
        return number // self._members

    def numbered(self, task: Task) -> Task:
        """The task with the ledger's numbers."""
        if isinstance(task, Verify | Rescore):
            return replace(task, ids=tuple(map(self.number, task.ids)))
        return task

    def own(self, event: Event) -> Event:
        """The event with the numbers of this generator."""
        match event:
            case Verified(verdicts):
                found = {self._own(number): verdict for number, verdict in verdicts.items()}
                return replace(event, verdicts=found)
            case Rescored(scores):
                return replace(event, scores={self._own(n): s for n, s in scores.items()})
            case _:
                return event

    def _own(self, number: int) -> CandidateId:
        return CandidateId(self.first(number))


class PortfolioRun(SearchRun):
    """A search with several generators over its record."""

    def __init__(
        self,
        problem: Problem,
        config: PortfolioConfig,
        record: SearchRecord,
        caller: Caller,
        budget: RunBudget,
        on_step: Callable[[], None] = nothing,
        leaving: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.problem, self.record, self.budget, self.on_step = problem, record, budget, on_step
        self.started = config.started(problem, budget.account)
        self.members, self.portfolio = config.members, config.portfolio()
        self.executors: dict[str, MemberExecutor] = {}
        for place, (name, each) in enumerate(config.members.items()):
            self.executors[name] = MemberExecutor(
                *(name, place, len(config.members)),
                *(problem, each.backends, caller, record, each.meter),
                *(reserves_of(each, budget), leaving),
            )
            self.executors[name].answers = config.answers

    @property
    def bill(self) -> Bill:
        """What all generators have cost so far."""
        return self.portfolio.bill

    def solved(self, outcome: str, message: str = "") -> Solution:
        """The solution with this outcome."""
        members = self.portfolio.members
        best = [self.executors[m.name].number(id) for m in members for id in m.search.pool.best(1)]
        return solution_of(
            *(self.problem, next(iter(self.executors.values())), outcome, self.bill),
            trace=[turn for member in members for turn in member.search.trace],
            best=next(iter(best), None),
            answers=[self.executors[name].number(id) for name, id in self.portfolio.answers],
            message=message,
            bills=self.portfolio.bills,
            seconds=sum(member.search.seconds for member in members),
        )

    async def pin_scorer(self) -> str:
        """Trained scores work with one generator only."""
        return ""

    async def _steps(self) -> Stop:
        events: list[Event] = []
        portfolio = self.portfolio
        while not isinstance(action := (request := portfolio.ask()).action, Stop):
            name, executor = request.name, self.executors[request.name]
            config, task = self.members[name], executor.numbered(action)
            pool = next(m.search.pool for m in portfolio.members if m.name == name)
            price = executor.price(task, len(pool), config.reserve, config.second_cost)
            known, start = self.record.upcoming, time.monotonic()
            async with self.budget.plan(price) as executor.plan:
                event = await executor.carry_out(task, len(pool), pool.costs)
            seconds = round(time.monotonic() - start, 3) if known is None else known.seconds
            event = replace(event, seconds=seconds)
            await self.record.tell(Told(event, f"{name}: {task.why}"))
            portfolio.tell(executor.own(event))
            events.append(event)
            self.on_step()
            executor.stop_if_broken(reversed(events))
        answer = action.answer
        number = None if answer is None else self.executors[request.name].number(answer)
        return replace(action, answer=number)
