"""Finds the ties, votes and tilts of a prior by replaying its history.

The objective is the mean logarithm of a problem's cost. The mean cost itself would be dominated by
the few hardest problems, and the best choice for them is not the best for others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from ..logs.log import LoggedProblem
from ..policies import Learned
from ..policies.learned.prior import Prior
from ..replay.engine import replay
from ..replay.kernels.learned import MeritLimits, StackedOrders, learned_trials
from ..replay.orders import OrderBatch, batches
from .fit import completed, prior_of
from .history import History, PastProblem

RATIOS = (1.0, 3.0, 10.0, 30.0, 100.0)
TILTS = (-0.45, -0.3, -0.6, -0.15, -0.8, 0.0, -1.1, 0.2, -1.6, -3.0)  # on ties, the first
TIES = (1.0, 0.5, 0.1)
VOTES = (0.0, 0.5, 1.0, 2.0)
_FEW_TILTS = (-0.3, -0.8, 0.0, -1.6, -3.0)  # used to choose tie and votes
_FEW_RATIOS = (10.0, 30.0)
_ORDERS, _SEED = 4, 1
_MOST_PROBLEMS = 100
_TIED = 0.95  # below this share of distinct scores, a problem's scores count as tied

Progress = Callable[[int, int], None]


def learn(history: History, progress: Progress = lambda done, total: None) -> Prior:
    """The prior that fits a history, with the ties, votes and tilts of the lowest cost on it."""
    ties = TIES if any(_is_tied(problem) for problem in history.problems) else TIES[:1]
    keyed = any(problem.keys is not None for problem in history.problems)
    tuning = _Tuning(history, progress, len(ties), keyed=keyed)
    prior = tuning.cheapest([prior_of(history, tie) for tie in ties], keyed=False)
    tilts = tuning.tilts(prior, keyed=False)
    keyed_tilts = tilts
    if keyed:
        voted = [dataclasses.replace(prior, votes=votes) for votes in VOTES]
        prior = tuning.cheapest(voted, keyed=True)
        keyed_tilts = tuning.tilts(prior, keyed=True)
    return dataclasses.replace(prior, ratios=RATIOS, tilts=tilts, keyed_tilts=keyed_tilts)


class _Tuning:
    """The replays of a history, and their progress."""

    def __init__(self, history: History, progress: Progress, ties: int, *, keyed: bool) -> None:
        problems = _logged(completed(history, prior_of(history)))
        self._batches = {
            with_keys: list(batches(problems, _ORDERS, seed=_SEED, keyed=with_keys))
            for with_keys in ((False, True) if keyed else (False,))
        }
        self._stacks = {name: StackedOrders.of(each) for name, each in self._batches.items()}
        self._progress = progress
        choices = (ties > 1) * ties + keyed * len(VOTES)
        self._total = choices * len(_FEW_RATIOS) + (1 + keyed) * len(RATIOS)
        self._done = 0

    def cheapest(self, priors: Sequence[Prior], *, keyed: bool) -> Prior:
        """The best of these priors, each with its best tilts."""
        if len(priors) == 1:
            return priors[0]
        sums = [
            sum(min(self._costs(prior, ratio, _FEW_TILTS, keyed=keyed)) for ratio in _FEW_RATIOS)
            for prior in priors
        ]
        return priors[sums.index(min(sums))]

    def tilts(self, prior: Prior, *, keyed: bool) -> tuple[float, ...]:
        """The best tilt at every ratio."""
        found = []
        for ratio in RATIOS:
            costs = self._costs(prior, ratio, TILTS, keyed=keyed)
            found.append(TILTS[costs.index(min(costs))])
        return tuple(found)

    def _costs(
        self, prior: Prior, ratio: float, tilts: Sequence[float], *, keyed: bool
    ) -> list[float]:
        """The cost of each tilt, as a mean of logarithms."""
        tilted = [tilted_at(prior, ratio, tilt) for tilt in tilts]
        costs = costs_of(tilted, self._batches[keyed], ratio, self._stacks[keyed])
        self._done += 1
        self._progress(self._done, self._total)
        by_problem = costs.reshape(len(tilts), -1, _ORDERS).mean(axis=2)
        means: list[float] = np.log(by_problem).mean(axis=1).tolist()
        return means


def tilted_at(prior: Prior, ratio: float, tilt: float) -> Prior:
    """The prior with another tilt."""
    return dataclasses.replace(prior, ratios=(ratio,), tilts=(tilt,), keyed_tilts=(tilt,))


def costs_of(
    priors: Sequence[Prior],
    batches: Sequence[OrderBatch],
    ratio: float,
    stack: StackedOrders | None = None,
) -> NDArray[np.float64]:
    """`[priors, orders]`: the cost of each search. The priors must differ only in their tilts.

    Pass `stack` if the batches are already stacked.
    """
    stack = stack or StackedOrders.of(batches)
    found = learned_trials(
        priors[0], stack, ratio, [MeritLimits.of(prior, ratio) for prior in priors]
    )
    costs: NDArray[np.float64] = found.generated + ratio * found.verified
    orders = [(batch, order) for batch in batches for order in batch.orders.tolist()]
    for at, number in np.argwhere(found.unlike).tolist():
        batch, order = orders[number]
        outcome = replay(
            *(Learned(priors[at]), batch.problem, Costs(1, ratio)),
            order=order,
            width=1,
            keys=batch.keyed,
        )
        costs[at, number] = outcome.bill.total
    return costs


def _is_tied(problem: PastProblem) -> bool:
    return len(np.unique(problem.scores)) < _TIED * len(problem.scores)


def _logged(problems: Sequence[PastProblem]) -> list[LoggedProblem]:
    """At most `_MOST_PROBLEMS` of the problems, evenly spread, in the form for replays."""
    step = max(1, math.ceil(len(problems) / _MOST_PROBLEMS))
    return [
        LoggedProblem(p.id, p.scores, p.passed, p.keys, refuted=p.refuted) for p in problems[::step]
    ]
