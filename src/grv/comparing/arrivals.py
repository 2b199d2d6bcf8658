"""Replays the policy `learning`: problems arrive one after the other, and it learns as it goes.

Each repetition takes the problems in another random order, and of each problem the next order of
its candidates. What a search leaves is what a live ledger has: the scores of the candidates that it
generated, and the labels of those that it verified. `learning.online` decides which prior is in
force, as in live runs. Between two fits the prior does not change, so these problems are replayed
together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.search import Policy, Search
from ..core.values import Costs
from ..learning.history import PastProblem
from ..learning.online import next_refit, prior_after
from ..logs.log import LoggedProblem
from ..parallel import divided
from ..policies import Learned, Learning
from ..replay.engine import replayed
from ..replay.kernels.dispatch import kernels_apply, searched_trials
from ..replay.kernels.learned import MeritLimits, StackedOrders, learned_trials
from ..replay.orders import OrderBatch, Orders
from ..replay.trials import Trials, stacked

_STREAM = 20  # distinguishes the order of problems from other things drawn from a seed
_PART = 16_384  # candidates of the problems that are replayed together

Place = NDArray[np.intp]
Left = tuple[Trials, PastProblem]  # what a search cost, and what it leaves behind


def arrival(problems: int, repetition: int, seed: int) -> Place:
    """The order in which the problems of one repetition arrive."""
    return np.random.default_rng([seed, _STREAM, repetition]).permutation(problems)


def positions(places: Sequence[int], repetitions: int, seed: int) -> Place:
    """`[problems, repetitions]`: when each problem arrives; 0 is the first.

    Args:
        places: the place of each problem, in the sequence in which orders are drawn.
        repetitions: the number of repetitions.
        seed: the seed of the orders.
    """
    result = np.empty((len(places), repetitions), dtype=np.intp)
    for repetition in range(repetitions):
        result[places, repetition] = np.argsort(arrival(len(places), repetition, seed))
    return result


def cost_by_position(spent: NDArray[np.float64], arrived: Place) -> tuple[float, ...]:
    """The mean over repetitions of what the first problem cost, the second, and so on.

    Args:
        spent: `[problems, repetitions]`, the cost of each problem.
        arrived: `[problems, repetitions]`, its position.
    """
    by_position = np.take_along_axis(spent, np.argsort(arrived, axis=0), axis=0)
    return tuple(by_position.mean(axis=1).tolist())


def by_repetition(found: Sequence[Trials]) -> Trials:
    """Trials `[problems, repetitions]` from those of each repetition."""
    trials = stacked(found)
    arrays = {f.name: getattr(trials, f.name) for f in dataclasses.fields(trials)}
    return Trials(**{n: np.swapaxes(a, 0, 1) for n, a in arrays.items() if a is not None})


class Arrivals:
    """Replays repetitions of the problems of a log.

    Args:
        orders: the problems with the orders of their candidates, one per repetition.
        score: the name of the score.
        seed: the seed of the order of problems.
        limits: those of the searches.
    """

    def __init__(
        self,
        orders: Orders,
        score: str,
        *,
        seed: int = 0,
        limits: Limits = Limits(),  # noqa: B008 (a frozen value)
    ) -> None:
        self._orders = orders
        self._score = score
        self._seed = seed
        self._limits = limits
        self._pasts: dict[tuple[str, ...], list[PastProblem]] = {}  # by the ledgers of a policy

    @cached_property
    def _batches(self) -> list[OrderBatch]:
        return list(self._orders.batches())

    def _recorded(self, policy: Learning) -> list[PastProblem]:
        """The problems of the ledgers from which the policy starts."""
        if not policy.history:
            return []
        from ..learning.ledger_history import RecordedPast  # most comparisons read no ledger

        if policy.history not in self._pasts:
            self._pasts[policy.history] = RecordedPast(policy.history, self._score)[:]
        return [*self._pasts[policy.history]]

    def trials(self, policy: Learning, costs: Costs, repetition: int) -> Trials:
        """What each problem cost in one repetition; arrays are `[problems]`."""
        finished = self._recorded(policy)
        order = arrival(len(self._batches), repetition, self._seed)
        arriving = [self._in_order(place, repetition) for place in order.tolist()]
        results: list[Trials] = []
        while len(results) < len(arriving):
            stop = len(results) + next_refit(len(finished)) - len(finished)
            prior = prior_after(finished, self._score)
            for trial, left in self._together(
                policy.chosen(prior), arriving[len(results) : stop], costs
            ):
                results.append(trial)
                finished.append(left)
        whole = stacked(results)
        arrays = {f.name: getattr(whole, f.name) for f in dataclasses.fields(whole)}
        back = np.argsort(order)
        return Trials(**{n: a[back, 0] for n, a in arrays.items() if a is not None})

    def _in_order(self, place: int, repetition: int) -> OrderBatch:
        batch = self._batches[place]
        return OrderBatch(batch.problem, batch.orders[repetition : repetition + 1], batch.keyed)

    def _together(self, policy: Policy, batches: Sequence[OrderBatch], costs: Costs) -> list[Left]:
        """Replay problems by one policy, with the kernel where it applies."""
        plain = kernels_apply(costs, self._limits) and math.isinf(self._limits.value)
        if not (isinstance(policy, Learned) and plain):
            return [self._by_engine(policy, batch, costs) for batch in batches]
        results: list[Left] = []
        for start, stop in divided([len(batch.problem) for batch in batches], _PART):
            results += self._by_kernel(policy, batches[start:stop], costs)
        return results

    def _by_kernel(
        self, policy: Learned, batches: Sequence[OrderBatch], costs: Costs
    ) -> list[Left]:
        """Equals the engine; a test proves it."""
        merits = [MeritLimits.of(policy.prior, costs.planning.ratio)]
        stack = StackedOrders.of(batches)
        ahead = (costs, self._limits) if self._limits.looks_ahead else None
        got = learned_trials(policy.prior, stack, merits, policy.factor, ahead)
        results: list[Left] = []
        for index, batch in enumerate(batches):
            if got.unlike[0, index]:
                results.append(self._by_engine(policy, batch, costs))
                continue
            drawn = int(got.generated[0, index])
            checked = np.zeros(len(batch.problem), np.bool_)
            checked[batch.ranked[0]] = got.checked[0, index, : len(batch.problem)]
            trial = got.trials(slice(index, index + 1))
            results.append((trial, _left(batch.problem, batch.orders[0, :drawn], checked[:drawn])))
        return results

    def _by_engine(self, policy: Policy, batch: OrderBatch, costs: Costs) -> Left:
        order = batch.orders[0]
        search = replayed(
            policy,
            batch.problem,
            costs,
            self._limits,
            order=order.tolist(),
            keys=batch.keyed,
        )
        trial = searched_trials([search], costs, self._limits)
        return trial, left_by(search, batch.problem, order)


def left_by(search: Search, problem: LoggedProblem, order: Place) -> PastProblem:
    """What a search leaves behind."""
    return left_after(problem, order[: search.arrived], search.pool.verdicts)


def left_after(problem: LoggedProblem, arrived: Place, verified: Collection[int]) -> PastProblem:
    """What is left of a problem: the candidates that have arrived, some of them verified."""
    checked = np.zeros(len(arrived), dtype=np.bool_)
    checked[list(verified)] = True
    return _left(problem, arrived, checked)


def _left(problem: LoggedProblem, arrived: Place, checked: NDArray[np.bool_]) -> PastProblem:
    """The scores of all candidates generated, and the labels of those that were verified."""
    refuted = None if problem.refuted is None else problem.refuted[arrived]
    if refuted is not None and not refuted.any():
        refuted = None
    labelled = checked if refuted is None else checked | refuted
    passed = problem.passed[arrived] & checked
    alike = None if problem.alike is None else problem.alike[arrived]
    scores = problem.scores[arrived]
    return PastProblem(problem.id, scores, passed, labelled, refuted=refuted, alike=alike)
