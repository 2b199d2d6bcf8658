"""Replays a batch of searches by the policy `learning`, in the order of a schedule.

With `in-order` a search keeps the policy that it began with, and the prior is fitted to finished
problems, as in `arrivals`. With `least-spent` hardly any problem is finished early. So a search
that goes on takes the newest prior, and the prior is fitted to all searches that have begun: those
that are open are censored, like those that have ended. It is fitted again after 6, 10, 15, 22,
33 ... verdicts.

What a search costs to its next verdict is not known in advance, because the prior decides how many
candidates it generates. The schedule gets the least that it can be: one candidate and one
verification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.pool import Pool
from ..core.search import Policy, Search
from ..core.values import Costs, Step, Verified
from ..learning.history import PastProblem
from ..learning.online import LEARNING, fitted_prior, last_refit
from ..policies import Learned, Learning
from ..replay.batch import SortedSteps
from ..replay.engine import turns
from ..replay.orders import OrderBatch, Orders
from ..schedules import parse
from .arrivals import arrival, left_by

LEARNING_SCHEDULES = ("least-spent", "in-order")


@dataclass(frozen=True)
class Newest:
    """Decides by the newest policy of a source; a new one starts over what the pool has.

    Attributes:
        source: the policy in force.
    """

    source: Callable[[], Policy]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the steps of the policy in force."""
        policy = self.source()
        plan = policy.plan(pool, costs)
        while True:
            if (newest := self.source()) is not policy:
                policy = newest
                plan = policy.plan(pool, costs)
            step = next(plan, None)
            if step is None:
                return
            yield step


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
    """A search that has begun.

    Attributes:
        policy: what decides its next step.
    """

    def __init__(
        self, policy: Policy, batch: OrderBatch, repetition: int, costs: Costs, limits: Limits
    ) -> None:
        self.policy = policy
        self.problem = batch.problem
        self.order = batch.orders[repetition]
        self.search = Search(Newest(lambda: self.policy), costs, limits.of(batch.problem.id))
        arrivals = self.order.tolist()
        self._events = turns(self.search, batch.problem, order=arrivals, keys=batch.keyed)

    def advance(self) -> float:
        """Go on to the next verdict; return what it cost."""
        before = self.search.bill.total
        for event in self._events:
            if isinstance(event, Verified):
                self.search.ask()  # notices the end
                break
        return self.search.bill.total - before

    @property
    def left(self) -> PastProblem:
        """What it has shown so far."""
        return left_by(self.search, self.problem, self.order)


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
        self, policy: Learning, schedule: str, repetition: int, budgets: Sequence[float]
    ) -> NDArray[np.bool_]:
        """`[budgets, problems]`: what is solved with each budget."""
        run = self.run(policy, schedule, repetition, max(budgets))
        result = np.zeros((len(budgets), len(self._batches)), dtype=np.bool_)
        for row, problems in zip(result, run.steps.solved(budgets), strict=True):
            row[problems] = True
        return result

    def run(self, policy: Learning, schedule: str, repetition: int, budget: float) -> LearningRun:
        """Run a batch until the money is gone."""
        order = arrival(len(self._batches), repetition, self._seed).tolist()
        queue = parse(schedule).begin(budget=budget, problems=len(order))
        least = self._costs.of(1, 1)
        for number in range(len(order)):
            queue.add(number, next_cost=least)
        in_order = schedule == "in-order"
        searches: dict[int, _Open] = {}
        ended: list[PastProblem] = []
        newest = policy.chosen(None)
        fitted = 0
        total = 0.0
        steps: list[tuple[int, float, bool]] = []
        decided: list[bool] = []
        while total <= budget and (place := queue.ask()) is not None:
            if (due := last_refit(len(ended) if in_order else len(steps))) > fitted:
                fitted = due
                shown = ended if in_order else [each.left for each in searches.values()]
                newest = policy.chosen(fitted_prior(shown[-LEARNING.most :], self._score))
            if place not in searches:
                batch = self._batches[order[place]]
                searches[place] = _Open(newest, batch, repetition, self._costs, self._limits)
            search = searches[place]
            if not in_order:
                search.policy = newest
            decided.append(isinstance(search.policy, Learned))
            cost = search.advance()
            outcome = search.search.outcome
            steps.append((order[place], cost, outcome is not None and outcome.solved))
            total += cost
            if outcome is not None:
                ended.append(search.left)
            spent = search.search.bill.total
            queue.tell(place, spent=spent, next_cost=least, ended=outcome is not None)
        problems, costs, solves = zip(*steps, strict=True)
        run = SortedSteps(
            np.array(problems, dtype=np.int64),
            np.array(costs, dtype=np.float64),
            np.array(solves, dtype=np.bool_),
        )
        return LearningRun(run, np.array(decided))
