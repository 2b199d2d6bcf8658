"""The live loop: asks what to do next, carries it out, and tells the result.

The search is a `Portfolio` of one generator or several. They differ only in the numbers that the
candidates have in the ledger.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from ..core.errors import BackendError
from ..core.values import Action, Bill, Costs, Event, Generate, Reason, Stop, Task, Verify
from ..ledger.entries import Ended, Failed, Started, Told
from ..policies.learned.prediction import predicted_cost
from ..policies.learned.prior import Prior
from ..policies.portfolio.portfolio import sum_of
from ..theory.confirmations import RightShares
from .budget import PROBLEM_SPENT, OutOfBudget, Reserves
from .executor import Executor, finding_of
from .ledger_shares import LedgerShares
from .numbering import Numbering
from .record import SearchRecord
from .solution import FAILED, Solution, bill_of, recorded_bill, solution_of

if TYPE_CHECKING:
    from ..backends.scorers.trained.model import TrainedModel
    from ..core.search import Search
    from ..policies.portfolio import Portfolio
    from .config import SearchConfig
    from .live_search import LiveSearch


@dataclass(frozen=True)
class LoopRequest:
    """What a search wants next: the task with the ledger's numbers, or the end.

    Attributes:
        action: the task, or the end.
        executor: that of the generator that acts.
        seen: how many candidates the generator has made.
        costs: the estimate of its costs.
    """

    action: Action
    executor: Executor
    seen: int
    costs: Costs

    def price(self, task: Task, *, recorded: bool = False) -> float:
        """What the part of the task costs at most that is not recorded yet, or that is."""
        return self.executor.price(task, self.seen, recorded=recorded)


class Loop:
    """Runs a search over its record: what is recorded is told to it, the rest is requested.

    Args:
        live: the search, with what it works with.
        config: how to search; if the policy learns, as it was decided for this search.
        record: what the ledger has of it.
        model: the newest model for the score `auto`, which counts if the search starts.
    """

    def __init__(
        self,
        live: LiveSearch,
        config: SearchConfig,
        record: SearchRecord,
        model: TrainedModel | None = None,
    ) -> None:
        self._live = live
        self._model = model
        confirms = getattr(config.first.backends.verifier, "confirms", None)
        config = config.confirming(None if confirms is None else confirms(live.problem))
        self._config = config
        self._deadline = config.limits.pace.deadline
        self._record = record
        self._has_begun = False
        self._events: list[Event] = []  # that it was told
        self._out: OutOfBudget | None = None  # the last step that the money did not cover
        self._limit = math.inf  # what the search was told then: the highest bill
        self._told_at = time.monotonic()  # when the last result was told, or the turn began
        # The budget of the search does not count what it paid for verdicts under other conditions.
        caps = replace(live.budget.caps, search=config.limits.budget + record.tally.aside)
        self._executors: dict[str, Executor] = {}
        for place, (name, generator) in enumerate(config.generators.items()):
            limits = config.limits_of(name)
            costs = generator.costs if limits.most is None else limits.most
            self._executors[name] = Executor(
                live.problem,
                generator.backends,
                live.caller,
                record,
                meter=generator.meter,
                pricing=config.meters[name],
                reserves=Reserves(costs, limits.second_cost, caps, generator.costs),
                numbering=Numbering(name, place, len(config.generators)),
                answers=limits.answers,
                outside=live.outside,
                batches=live.batches,
            )

    @cached_property
    def _portfolio(self) -> Portfolio:
        return self._config.portfolio(self._live.problem.id)

    @cached_property
    def _searches(self) -> dict[str, Search]:
        return {member.name: member.search for member in self._portfolio.members}

    async def recorded_end(self) -> Solution | None:
        """The solution of a search that has ended, from its last entry; None if that is too little.

        To run the search over its record takes longer and gives the same, if nothing but the search
        has decided its end, and nothing has changed since.
        """
        record = self._record
        ended = record.ended
        if ended is None or record.started is None or record.is_corrected:
            return None
        if self._config.is_named or self._config.limits.answers > 1 or not self._decided(ended):
            return None
        started = await self._started(shares=record.shares)
        bill = recorded_bill(record, ended)
        if started != record.started or bill is None:
            return None
        (executor,) = self._executors.values()
        return solution_of(
            self._live.problem,
            executor,
            ended.reason,
            bill,
            answers=[] if ended.answer is None else [ended.answer],
            message=ended.why,
            meters=self._config.meters,
            seconds=sum([told.event.seconds or 0.0 for told in record.told]),
            score=executor.ranked_by,
        )

    def _decided(self, ended: Ended) -> bool:
        """Whether the search itself decided its end, and left nothing to return but its answer.

        Limits that it shares with others, and calls without a result, may have ended it otherwise.
        """
        if ended.reason == Reason.SOLVED.value:
            return ended.answer is not None
        caps = self._live.budget.caps
        is_alone = math.isinf(caps.total) and math.isinf(caps.account)
        return (
            ended.reason == Reason.FINISHED.value
            and is_alone
            and math.isinf(self._deadline)
            and self._record.is_settled
        )

    async def solution(self) -> Solution:
        """Run the search to its end."""
        while (solution := await self.turn()) is None:
            pass
        return solution

    async def turn(self) -> Solution | None:
        """Run the search until a new verdict is told, or to its end; None if it has to go on."""
        if not self._has_begun:
            await self._begin()
        try:
            end = await self._steps()
        except OutOfBudget as out:
            end = Stop(Reason.OUT_OF_BUDGET, why=str(out))
        except BackendError as error:
            message = f"{error}; {error.hint}" if error.hint else str(error)
            await self._record.write(Failed(message))
            return self.solved(FAILED, message)
        return None if end is None else await self.end(end)

    async def end(self, stop: Stop) -> Solution:
        """End the search: record it, and return the solution."""
        bills = self._bills
        bill = sum_of(bills)
        ended = Ended(
            stop.reason.value,
            stop.answer,
            bill.generated,
            bill.verified,
            bill.total,
            stop.why,
            bill.shared,
            None if stop.answer is None else self._wrong_probability(stop.answer),
        )
        await self._record.end(ended)
        spent = PROBLEM_SPENT if stop.reason is Reason.OUT_OF_BUDGET else ""
        return self.solved(stop.reason.value, stop.why or spent, bills)

    def _wrong_probability(self, answer: int) -> float | None:
        """That of an answer that a check which errs has passed; None for others."""
        found = self._record.found.get(answer)
        return None if found is None else finding_of(found).wrong_probability

    async def catch_up(self) -> None:
        """Tell the search what is recorded, as far as its course needs no call."""
        if not self._has_begun:
            await self._begin()
        await self._steps(calls=False)

    @property
    def to_verdict(self) -> float:
        """What the search will spend until its next verdict, as it expects; 0 if it ends."""
        request = self._request()
        if isinstance(request.action, Stop):
            return 0.0
        return max(0.0, self._portfolio.to_verdict - request.price(request.action, recorded=True))

    @property
    def prediction(self) -> float | None:
        """What the search is predicted to cost, if a prior of one generator decides."""
        if not isinstance(self._config.prior, Prior):
            return None
        (member,) = self._portfolio.members
        turns = member.search.trace
        verified = [id for turn in turns for id in getattr(turn.action, "ids", ())]
        pool = member.search.pool
        judged = [id for id in verified if id in pool.verdicts]
        return predicted_cost(self._config.prior, pool, judged, pool.costs)

    async def _begin(self) -> None:
        started = await self._started(shares=await self._pin_shares())
        executors = list(self._executors.values())
        self._record.begin(
            started, lambda call, id: executors[id % len(executors)].unused(call, id)
        )
        for executor in self._executors.values():
            await executor.recall()
        self._has_begun = True

    async def _started(self, *, shares: str) -> Started:
        """The entry with which the search starts now."""
        scorer = await self._pin_scorers()
        started = self._config.started(self._live.problem, self._live.budget.account)
        conditions = self._record.conditions
        return replace(started, conditions=conditions, scorer=scorer, shares=shares)

    async def _pin_shares(self) -> str:
        """Keep what earlier problems say about the share of right candidates, if it is wanted."""
        learns = getattr(self._config.first.backends.verifier, "learns_shares", None)
        errors = None if learns is None else learns(self._live.problem)
        if errors is None:
            return ""
        started = self._record.started
        if started is not None and started.conditions == self._record.conditions:
            shares = RightShares.of(started.shares) if started.shares else None
        else:
            shares = await LedgerShares.of(self._config, self._live.writer).fitted(errors)
        for executor in self._executors.values():
            executor.shares = shares
        return "" if shares is None else shares.to_text()

    async def _pin_scorers(self) -> str:
        """Keep the model of a trained score; all generators use the same one."""
        content = ""
        for executor in self._executors.values():
            recorded = self._record.scorer or content
            content = await executor.pin_scorer(recorded, self._model) or content
        return content

    def solved(
        self, outcome: str, message: str = "", bills: Mapping[str, Bill] | None = None
    ) -> Solution:
        """The solution with this outcome; `bills` are what each generator has cost, if known."""
        bills = bills or self._bills
        ranked = [executor.ranked_by for executor in self._executors.values()]
        best = [
            self._executors[name].numbering.number(id)
            for name, search in self._searches.items()
            for id in search.pool.best(1)
        ]
        return solution_of(
            self._live.problem,
            next(iter(self._executors.values())),
            outcome,
            sum_of(bills),
            best=next(iter(best), None),
            answers=[
                self._executors[name].numbering.number(id) for name, id in self._portfolio.answers
            ],
            message=message,
            bills=bills if self._config.is_named else None,
            meters=self._config.meters,
            seconds=self._portfolio.seconds,
            score=" and ".join(dict.fromkeys(filter(None, ranked))),
        )

    def restrict(self, budget: float) -> None:
        """Replace the budget of the search."""
        self._portfolio.restrict(budget)

    @property
    def _bills(self) -> dict[str, Bill]:
        """What each generator has cost so far."""
        bills = {}
        for place, (name, search) in enumerate(self._searches.items()):
            bills[name] = bill_of(
                search.bill,
                self._record.tally_of(place, len(self._executors)),
                len(search.pool),
                is_reserved=self._executors[name].reserves.costs is not None,
            )
        return bills

    @property
    def _seconds(self) -> float:
        """How long the search has taken, until now."""
        return self._portfolio.seconds + time.monotonic() - self._told_at

    def _request(self) -> LoopRequest:
        """What the search wants next."""
        asked = self._portfolio.ask()
        executor = self._executors[asked.name]
        action = asked.action
        if isinstance(action, Stop):
            if action.answer is not None:
                action = replace(action, answer=executor.numbering.number(action.answer))
        else:
            action = executor.numbering.numbered(action)
        search = self._searches[asked.name]
        return LoopRequest(action, executor, search.arrived, search.pool.costs)

    async def _steps(self, *, calls: bool = True) -> Stop | None:
        """Carry out steps until a new verdict is told; the end of the search, if it comes first.

        After the verdict, and without `calls`, only steps whose results are recorded. So the search
        knows what its next verdict will cost.
        """
        self._told_at = time.monotonic()
        is_done = not calls
        while not isinstance(action := (request := self._request()).action, Stop):
            if is_done and not request.executor.is_recorded(action, request.seen):
                return None
            self._config.check_step(action)
            recorded = self._record.upcoming
            wanted = action.ids if isinstance(action, Verify) else ()
            is_new = not all(id in self._record.found for id in wanted)
            try:
                event = await self._carry_out(request, action)
            except OutOfBudget as error:
                self._out = error
                await self._restrict(request, action, error)
                continue
            if event is None:
                await request.executor.drop_batches()
                why = f"the deadline of {self._deadline:g} seconds has passed"
                return Stop(Reason.FINISHED, why=why)
            now = time.monotonic()
            seconds = round(now - self._told_at, 3) if recorded is None else recorded.seconds
            event = replace(event, seconds=seconds)
            self._portfolio.tell(request.executor.numbering.told(event))
            told = Told(event, action.why, request.executor.numbering.name)
            self._record.tell(told, *request.executor.cancelled(wanted))
            self._told_at = now
            is_done = is_done or is_new
            self._events.append(event)
            self._live.on_step()
            request.executor.stop_if_broken(reversed(self._events))
            if self._out is not None:
                await self._loosen()
        if self._out is not None and action.reason is Reason.OUT_OF_BUDGET:
            return replace(action, why=str(self._out))
        return action

    async def _carry_out(self, request: LoopRequest, task: Task) -> Event | None:
        """Carry out a task, if the total budget covers it; None if the deadline passes.

        Candidates leave the money for a verification.
        """
        executor = request.executor
        spare = executor.reserves.verification if isinstance(task, Generate) else 0.0
        async with self._live.budget.plan(request.price(task), spare) as executor.plan:
            if math.isinf(self._deadline):
                return await executor.carry_out(task, request.seen, request.costs)
            with anyio.move_on_after(self._deadline - self._seconds):
                return await executor.carry_out(task, request.seen, request.costs)
        return None

    async def _restrict(self, request: LoopRequest, task: Task, out: OutOfBudget) -> None:
        """Tell the search how much money is left, so that it takes a smaller step, or ends.

        It does not know of calls without a result, nor of other problems that share the money.

        Raises:
            OutOfBudget: the search would take the same step, and no smaller one.
        """
        spent = self._portfolio.bill.total + request.price(task, recorded=True)
        self._limit = spent + await self._room()
        self.restrict(self._limit)
        while self._request().action == task:
            # An attempt to score reserves more than the search knows: a smaller step may fit, or
            # the verification of an open candidate.
            costs = request.executor.reserves.costs
            if not isinstance(task, Generate) or costs is None or not costs.candidate:
                raise out
            self._limit -= costs.candidate
            self.restrict(self._limit)

    async def _loosen(self) -> None:
        """Tell a restricted search of money that has come back, before it decides that it ends."""
        limit = self._portfolio.bill.total + await self._room()
        if limit > self._limit * (1 + 1e-9):
            self._limit = limit
            self.restrict(limit)

    async def _room(self) -> float:
        """How much the search may still reserve, by its own budget and by those that it shares."""
        tally = self._record.tally
        room = await self._live.budget.room()
        return max(0.0, min(room, self._config.limits.budget - tally.paid + tally.aside))
