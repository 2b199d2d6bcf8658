"""Finds the ties, votes and tilts of a prior by replaying its history.

The objective is the mean logarithm of a problem's cost. The mean cost itself would be dominated by
the few hardest problems, and the best choice for them is not the best for others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from ..logs.log import LoggedProblem
from ..parallel import divided, in_parts
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
# Candidates of the problems that are replayed together. Long problems take as many steps as they
# have candidates, so more of them share each step; with keys a step also takes memory for each.
_PART, _KEYED_PART = 131_072, 16_384
_TIED = 0.95  # below this share of distinct scores, a problem's scores count as tied

Progress = Callable[[int, int], None]


def learn(
    history: History,
    progress: Progress = lambda done, total: None,
    *,
    jobs: int | None = None,
) -> Prior:
    """The prior that fits a history, with the ties, votes and tilts of the lowest cost on it.

    Args:
        history: the past problems.
        progress: called with the amount of work done and the total.
        jobs: the number of processes; None for one per core.
    """
    ties = TIES if any(_is_tied(problem) for problem in history.problems) else TIES[:1]
    keyed = any(problem.keys is not None for problem in history.problems)
    plain = prior_of(history, TIES[0])
    tuning = _Tuning(history, plain, progress, len(ties), keyed=keyed, jobs=jobs)
    prior = tuning.cheapest([plain, *(prior_of(history, tie) for tie in ties[1:])], keyed=False)
    tilts = tuning.tilts(prior, keyed=False)
    keyed_tilts = tilts
    if keyed:
        voted = [dataclasses.replace(prior, votes=votes) for votes in VOTES]
        prior = tuning.cheapest(voted, keyed=True)
        keyed_tilts = tuning.tilts(prior, keyed=True)
    return dataclasses.replace(prior, ratios=RATIOS, tilts=tilts, keyed_tilts=keyed_tilts)


class _Tuning:
    """The replays of a history, and their progress."""

    def __init__(
        self,
        history: History,
        plain: Prior,
        progress: Progress,
        ties: int,
        *,
        keyed: bool,
        jobs: int | None,
    ) -> None:
        problems = _logged(completed(history, plain))
        self._size = sum(map(len, problems))
        self._parts: dict[bool, list[tuple[list[OrderBatch], StackedOrders]]] = {}
        for with_keys in (False, True) if keyed else (False,):
            made = list(batches(problems, _ORDERS, seed=_SEED, keyed=with_keys))
            most = _KEYED_PART if with_keys else _PART
            runs = divided([len(problem) for problem in problems], most)
            parts = [made[start:stop] for start, stop in runs]
            self._parts[with_keys] = [(part, StackedOrders.of(part)) for part in parts]
        self._progress, self._jobs = progress, jobs
        choices = (ties > 1) * ties + keyed * len(VOTES)
        self._total = choices * len(_FEW_RATIOS) + (1 + keyed) * len(RATIOS)
        self._done = 0

    def cheapest(self, priors: Sequence[Prior], *, keyed: bool) -> Prior:
        """The best of these priors, each with its best tilts."""
        if len(priors) == 1:
            return priors[0]
        asked = [(prior, ratio) for prior in priors for ratio in _FEW_RATIOS]
        least = [min(costs) for costs in self._costs(asked, _FEW_TILTS, keyed=keyed)]
        step = len(_FEW_RATIOS)
        sums = [sum(least[at : at + step]) for at in range(0, len(least), step)]
        return priors[sums.index(min(sums))]

    def tilts(self, prior: Prior, *, keyed: bool) -> tuple[float, ...]:
        """The best tilt at every ratio."""
        found = self._costs([(prior, ratio) for ratio in RATIOS], TILTS, keyed=keyed)
        return tuple(TILTS[costs.index(min(costs))] for costs in found)

    def _costs(
        self, asked: Sequence[tuple[Prior, float]], tilts: Sequence[float], *, keyed: bool
    ) -> Iterator[list[float]]:
        """For each prior and ratio, the cost of each tilt, as a mean of logarithms."""
        parts = self._parts[keyed]

        def work(number: int) -> NDArray[np.float64]:
            (prior, ratio), part = asked[number // len(parts)], parts[number % len(parts)]
            return costs_of(
                [tilted_at(prior, ratio, tilt) for tilt in tilts], part[0], ratio, part[1]
            )

        units = self._size * _ORDERS * len(tilts) * len(asked)
        found = in_parts(work, len(asked) * len(parts), self._jobs, units)
        for _ in asked:
            costs = np.concatenate([next(found) for _ in parts], axis=1)
            self._done += 1
            self._progress(self._done, self._total)
            by_problem = costs.reshape(len(tilts), -1, _ORDERS).mean(axis=2)
            means: list[float] = np.log(by_problem).mean(axis=1).tolist()
            yield means
        next(found, None)  # so that the processes end


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
    return len(np.unique(problem.ties)) < _TIED * len(problem.ties)


def _logged(problems: Sequence[PastProblem]) -> list[LoggedProblem]:
    """At most `_MOST_PROBLEMS` of the problems, evenly spread, in the form for replays."""
    step = max(1, math.ceil(len(problems) / _MOST_PROBLEMS))
    return [
        LoggedProblem(p.id, p.scores, p.passed, p.keys, refuted=p.refuted, alike=p.alike)
        for p in problems[::step]
    ]
