"""Replays a batch of searches by the policy `learning`, in the order of a schedule.

It does what a live run does with one search at a time (`runtime/turns.py`, `runtime/experience.py`;
a test compares the two). The prior is fitted after 6, 10, 15, 22, 33 ... problems have ended. With
`in-order` a search keeps the policy that it began with, and the prior is fitted to the problems
that have ended, as in `arrivals`. With a schedule by which searches wait, hardly any problem ends
early, and the easy ones end first. Then two things differ:

- The prior is fitted to the open problems too, as far as they are when it becomes due. They are
  censored, like those that have ended.
- A search that goes on after it has waited takes the newest prior, if it has spent twice as much as
  when it took its last one. It runs again from its first step over what is on record, and pays only
  for new results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.search import Search
from ..core.values import (
    Action,
    CandidateId,
    Costs,
    Generate,
    Rescore,
    Rescored,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from ..learning.history import PastProblem
from ..learning.online import fitted_prior, last_refit, window
from ..policies import Learning
from ..policies.learned.prediction import predicted_cost
from ..policies.learned.prior import Prior
from ..policies.portfolio.portfolio import Member
from ..replay.batch import SortedSteps
from ..replay.engine import logged_costs, turns
from ..replay.orders import OrderBatch, Orders
from ..schedules import CheapestPredicted, InOrder, Rule, Schedule
from .arrivals import arrival, left_after

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LearningRun:
    """What a batch did.

    Attributes:
        steps: all steps in their order.
        decided: `[steps]`, whether a prior decided the step.
    """

    steps: SortedSteps
    decided: NDArray[np.bool_]


class _Open:
    """A search that has begun, and what is on record of it.

    Attributes:
        prior: what decides; None if the default policy does.
        spent: what was paid for the record.
        expected: the prediction of the log, if it has one.
    """

    def __init__(
        self,
        policy: Learning,
        batch: OrderBatch,
        repetition: int,
        costs: Costs,
        limits: Limits,
    ) -> None:
        self._policy = policy
        self._batch = batch
        self._order = batch.orders[repetition]
        self._costs = costs
        self._limits = limits.of(batch.problem.id)
        self._arrived = 0  # candidates on record; the next three are about them
        self._verdicts: dict[CandidateId, bool] = {}
        self._rescored: set[CandidateId] = set()
        self._spent_at_start = 0.0
        self.prior: Prior | None = None
        self.spent = 0.0
        self.expected = batch.problem.expected

    def begin(self, prior: Prior | None) -> None:
        """Run from the first step, by this prior, as far as the record goes."""
        self.prior = prior
        self._spent_at_start = self.spent
        self.search = Search(self._policy.chosen(prior), self._costs, self._limits)
        arrivals = self._order.tolist()
        problem = self._batch.problem
        self._events = turns(self.search, problem, order=arrivals, keys=self._batch.keyed)
        self._repeat()

    def _repeat(self) -> None:
        """Take the steps whose results are on record."""
        while self._is_recorded(self.search.ask()):
            next(self._events)

    @property
    def may_change(self) -> bool:
        """Whether it may take another prior: it has spent twice as much as at its last start."""
        return self.spent >= 2 * self._spent_at_start

    def turn(self) -> None:
        """Go on to the next new verdict, or to the end."""
        is_new = False
        while not is_new and not isinstance(action := self.search.ask(), Stop):
            is_new = isinstance(action, Verify) and not self._verdicts.keys() >= set(action.ids)
            event = next(self._events)
            self._arrived = max(self._arrived, self.search.arrived)
            if isinstance(event, Verified):
                passed = {id: each is Verdict.PASSED for id, each in event.verdicts.items()}
                self._verdicts |= passed
            elif isinstance(event, Rescored):
                self._rescored |= event.scores.keys()
        self._repeat()
        self.spent = self._paid()

    @property
    def next_cost(self) -> float:
        """What it will spend until its next verdict, as it expects; 0 if it has ended."""
        action = self.search.ask()
        recorded = 0.0
        if isinstance(action, Generate):
            there = min(action.n, self._arrived - self.search.arrived)
            recorded = there * self.search.pool.costs.candidate
        return max(0.0, Member("", self.search).to_verdict - recorded)

    @property
    def prediction(self) -> float | None:
        """What it is predicted to cost in all; None without a prior."""
        if self.prior is None:
            return None
        pool = self.search.pool
        asked = [id for turn in self.search.trace for id in getattr(turn.action, "ids", ())]
        judged = [id for id in asked if id in pool.verdicts]
        return predicted_cost(self.prior, pool, judged, pool.costs)

    @property
    def left(self) -> PastProblem:
        """What it has shown so far."""
        return left_after(self._batch.problem, self._order[: self._arrived], self._verdicts)

    def _is_recorded(self, action: Action) -> bool:
        match action:
            case Generate(n):
                return self.search.arrived + n <= self._arrived
            case Verify(ids, _, ahead):
                there = self.search.arrived + ahead <= self._arrived
                return there and self._verdicts.keys() >= set(ids)
            case Rescore(ids):
                return self._rescored >= set(ids)
            case Stop():
                return False

    def _paid(self) -> float:
        """What all that is on record has cost."""
        verified = len(self._verdicts)
        failed = verified - sum(self._verdicts.values())
        rescoring = len(self._rescored) * self._limits.second_cost
        generating, verifying = logged_costs(self._batch.problem, self._costs)
        if generating is None and verifying is None:
            return self._costs.of(self._arrived, verified, failed) + rescoring
        order = self._order.tolist()
        generated = order[: self._arrived]
        judged = [order[id] for id in self._verdicts]
        total = _sum(generating, generated, self._costs.candidate)
        return total + _sum(verifying, judged, self._costs.verify) + rescoring


def _sum(column: Sequence[float] | None, candidates: Sequence[int], price: float) -> float:
    """What these candidates have cost; `price` each if that was not measured."""
    if column is None:
        return price * len(candidates)
    return math.fsum(column[each] for each in candidates)


class LearningBatch:
    """Batches of the problems of a log, one repetition after the other.

    Args:
        orders: the problems with the orders of their candidates, one per repetition.
        score: the name of the score.
        costs: the price list.
        limits: those of the searches.
        seed: the seed of the order of problems.
    """

    def __init__(
        self, orders: Orders, score: str, costs: Costs, limits: Limits, *, seed: int = 0
    ) -> None:
        self._batches = list(orders.batches())
        self._score = score
        self._costs = costs
        self._limits = limits
        self._seed = seed

    def solved(
        self, policy: Learning, rule: Rule, repetition: int, budgets: Sequence[float]
    ) -> NDArray[np.bool_]:
        """`[budgets, problems]`: what is solved with each budget."""
        run = self.run(policy, rule, repetition, max(budgets))
        result = np.zeros((len(budgets), len(self._batches)), dtype=np.bool_)
        for row, problems in zip(result, run.steps.solved(budgets), strict=True):
            row[problems] = True
        return result

    def run(
        self,
        policy: Learning,
        rule: Rule,
        repetition: int,
        budget: float,
        order: Sequence[int] | None = None,
    ) -> LearningRun:
        """Run a batch until the money is gone, in a random order of its problems or in this one."""
        if order is None:
            order = arrival(len(self._batches), repetition, self._seed).tolist()
        searches = [
            _Open(policy, self._batches[place], repetition, self._costs, self._limits)
            for place in order
        ]
        cold = Member("", Search(policy.chosen(None), self._costs))
        earlier = _recorded(policy, self._score)
        run = _Run(rule, self._score, cold.to_verdict, searches, earlier)
        return run.steps(order, budget)


def _recorded(policy: Learning, score: str) -> Sequence[PastProblem]:
    """The problems of the ledgers from which the policy starts."""
    if not policy.history:
        return ()
    from ..learning.ledger_history import RecordedPast  # most comparisons read no ledger

    return RecordedPast(policy.history, score)[:]


class _Run:
    """The course of one batch.

    Args:
        rule: says which search is next.
        score: the name of the score.
        first_cost: what a search spends until its first verdict, without a prior.
        searches: in the order of the file.
        earlier: the problems that had ended before.
    """

    def __init__(
        self,
        rule: Rule,
        score: str,
        first_cost: float,
        searches: Sequence[_Open],
        earlier: Sequence[PastProblem],
    ) -> None:
        self._rule = rule
        self._score = score
        self._first_cost = first_cost
        self._searches = searches
        self._waits = not isinstance(rule, InOrder)
        self._prior: Prior | None = None
        self._fitted = 0  # the number of ended problems at the last fit
        self._begun: dict[int, None] = {}  # those that are open, in the order of their beginning
        self._ended = [*earlier]
        self._fit()

    def steps(self, order: Sequence[int], budget: float) -> LearningRun:
        """All steps until the money is gone; `order` has the problem of each search."""
        searches = self._searches
        queue = self._rule.begin(budget=budget, problems=len(searches))
        for number, each in enumerate(searches):
            queue.add(number, next_cost=self._first_cost, expected=each.expected)
        expected = [self._first_cost] * len(searches)  # what each was said to reach
        total = 0.0
        previous = -1
        rows: list[tuple[int, float, bool]] = []
        decided: list[bool] = []
        while total <= budget and (place := queue.ask()) is not None:
            search = searches[place]
            if place != previous:
                self._open(place)
            level = search.spent + search.next_cost
            if level > expected[place] * (1 + _ROUNDING):
                previous = place if self._tell(queue, place, expected) else -1
                continue
            before = search.spent
            search.turn()
            outcome = search.search.outcome
            is_solved = outcome is not None and outcome.solved
            rows.append((order[place], search.spent - before, is_solved))
            decided.append(search.prior is not None)
            total += search.spent - before
            previous = place
            if outcome is None:
                self._tell(queue, place, expected)
            else:
                queue.tell(place, spent=search.spent, ended=True)
                self._end(place)
        problems, costs, solves = zip(*rows, strict=True)
        run = SortedSteps(
            np.array(problems, dtype=np.int64),
            np.array(costs, dtype=np.float64),
            np.array(solves, dtype=np.bool_),
        )
        return LearningRun(run, np.array(decided))

    def _open(self, place: int) -> None:
        """Let a search begin, or go on after it has waited: with the newest prior, if it may."""
        search = self._searches[place]
        if place not in self._begun:
            self._begun[place] = None
            search.begin(self._prior)
        elif self._waits and search.may_change and self._prior not in (None, search.prior):
            search.begin(self._prior)

    def _tell(self, queue: Schedule, place: int, expected: list[float]) -> bool:
        """Report how far a search is."""
        search = self._searches[place]
        next_cost = search.next_cost
        expected[place] = search.spent + next_cost
        predicts = isinstance(self._rule, CheapestPredicted) and search.expected is None
        prediction = search.prediction if predicts else None
        return queue.tell(place, spent=search.spent, next_cost=next_cost, expected=prediction)

    def _end(self, place: int) -> None:
        """Take account of a search that has ended, and fit the prior if that is due."""
        del self._begun[place]
        self._ended.append(self._searches[place].left)
        self._fit()

    def _fit(self) -> None:
        due = last_refit(len(self._ended))
        if due > self._fitted:
            used = self._ended[window(due)]
            if self._waits:
                used += [self._searches[place].left for place in self._begun]
            self._prior = fitted_prior(used, self._score)
            self._fitted = due
