"""When a prior says to verify, found by replaying its history: ties, votes and tilts.

What counts is the mean of the logarithm of what a problem costs. The mean cost itself is that of
the few problems that are hardest, and what is best for them is no guide to others.
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
from ..replay.kernels.learned import Limits, Line, rehearse
from ..replay.orders import Batch, batches
from .fit import completed, prior_of
from .history import History, PastProblem

RATIOS = (1.0, 3.0, 10.0, 30.0, 100.0)
TILTS = (-0.45, -0.3, -0.6, -0.15, -0.8, 0.0, -1.1, 0.2, -1.6, -3.0)  # of equals the first
TIES = (1.0, 0.5, 0.1)
VOTES = (0.0, 0.5, 1.0, 2.0)
_FEW_TILTS = (-0.3, -0.8, 0.0, -1.6, -3.0)  # to choose tie and votes by
_FEW_RATIOS = (10.0, 30.0)
_ORDERS, _SEED = 4, 1
_MOST_PROBLEMS = 100
_TIED = 0.95  # of a problem's scores differ, or they count as tied

Progress = Callable[[int, int], None]


def learn(history: History, progress: Progress = lambda done, total: None) -> Prior:
    """The prior that fits a history, with what would have cost least on it."""
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
    """The history as it is replayed, and how much of that is done."""

    def __init__(self, history: History, progress: Progress, ties: int, *, keyed: bool) -> None:
        problems = _logged(completed(history, prior_of(history)))
        self._batches = {
            with_keys: list(batches(problems, _ORDERS, seed=_SEED, keyed=with_keys))
            for with_keys in ((False, True) if keyed else (False,))
        }
        self._lines = {name: Line.of(each) for name, each in self._batches.items()}
        self._progress = progress
        choices = (ties > 1) * ties + keyed * len(VOTES)
        self._total = choices * len(_FEW_RATIOS) + (1 + keyed) * len(RATIOS)
        self._done = 0

    def cheapest(self, priors: Sequence[Prior], *, keyed: bool) -> Prior:
        """The best of some priors, each with its best tilts."""
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
        """What each tilt costs, as the mean of logarithms."""
        tilted = [tilted_at(prior, ratio, tilt) for tilt in tilts]
        costs = costs_of(tilted, self._batches[keyed], ratio, self._lines[keyed])
        self._done += 1
        self._progress(self._done, self._total)
        by_problem = costs.reshape(len(tilts), -1, _ORDERS).mean(axis=2)
        means: list[float] = np.log(by_problem).mean(axis=1).tolist()
        return means


def tilted_at(prior: Prior, ratio: float, tilt: float) -> Prior:
    """The prior with another tilt."""
    return dataclasses.replace(prior, ratios=(ratio,), tilts=(tilt,), keyed_tilts=(tilt,))


def costs_of(
    priors: Sequence[Prior], batches: Sequence[Batch], ratio: float, line: Line | None = None
) -> NDArray[np.float64]:
    """`[priors, orders]`: what searches cost that go by priors which differ in their tilts only.

    The line is that of the batches, where somebody has it already.
    """
    line = line or Line.of(batches)
    found = rehearse(priors[0], line, ratio, [Limits.of(prior, ratio) for prior in priors])
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
    """Some of the problems, evenly spread, as they are replayed."""
    step = max(1, math.ceil(len(problems) / _MOST_PROBLEMS))
    return [LoggedProblem(p.id, p.scores, p.passed, p.keys) for p in problems[::step]]
