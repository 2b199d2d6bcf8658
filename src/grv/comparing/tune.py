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
from ..learning.fit import completed, prior_of
from ..learning.history import History, PastProblem
from ..logs.log import LoggedProblem
from ..parallel import divided, in_parts
from ..policies import Learned
from ..policies.learned.prior import Prior
from ..replay.engine import replay
from ..replay.kernels.learned import MeritLimits, StackedOrders, learned_trials
from ..replay.orders import OrderBatch, batches

RATIOS = (1.0, 3.0, 10.0, 30.0, 100.0)
TILTS = (-0.45, -0.3, -0.6, -0.15, -0.8, 0.0, -1.1, 0.2, -1.6, -3.0)  # on ties, the first
TIES = (1.0, 0.5, 0.1)
VOTES = (0.0, 0.5, 1.0, 2.0)
_FEW_TILTS = (-0.3, -0.8, 0.0, -1.6, -3.0)  # used to choose tie and votes
_FEW_RATIOS = (10.0, 30.0)
_ORDERS = 4
_SEED = 1
_MOST_PROBLEMS = 100
# Candidates of the problems that are replayed together, at most. The searches share the time of a
# step, and the longest takes as many steps as it has candidates. With keys or ties each search also
# takes much more memory.
_PART = 262_144
_CLASSED_PART = 32_768
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
            half = self._size // 2 + max(map(len, problems))  # for two processes, if there are
            most = min(half, _CLASSED_PART if with_keys or ties > 1 else _PART)
            runs = divided([len(problem) for problem in problems], most)
            parts = [made[start:stop] for start, stop in runs]
            self._parts[with_keys] = [(part, StackedOrders.of(part)) for part in parts]
        self._progress = progress
        self._jobs = jobs
        unkeyed = (ties > 1) * ties + 1
        voted = len(VOTES) + 1
        self._total = unkeyed * len(self._parts[False]) + voted * len(self._parts.get(True, ()))
        self._done = 0

    def cheapest(self, priors: Sequence[Prior], *, keyed: bool) -> Prior:
        """The best of these priors, each with its best tilts."""
        if len(priors) == 1:
            return priors[0]
        tables = self._costs(priors, _FEW_RATIOS, _FEW_TILTS, keyed=keyed)
        sums = [float(costs.min(axis=1).sum()) for costs in tables]
        return priors[sums.index(min(sums))]

    def tilts(self, prior: Prior, *, keyed: bool) -> tuple[float, ...]:
        """The best tilt at every ratio."""
        (costs,) = self._costs([prior], RATIOS, TILTS, keyed=keyed)
        return tuple(TILTS[at] for at in costs.argmin(axis=1))

    def _costs(
        self,
        priors: Sequence[Prior],
        ratios: Sequence[float],
        tilts: Sequence[float],
        *,
        keyed: bool,
    ) -> Iterator[NDArray[np.float64]]:
        """For each prior, `[ratios, tilts]`: the cost, as a mean of logarithms."""
        parts = self._parts[keyed]
        pairs = [(ratio, tilt) for ratio in ratios for tilt in tilts]

        def work(number: int) -> NDArray[np.float64]:
            prior = priors[number // len(parts)]
            part = parts[number % len(parts)]
            asked = [(tilted_at(prior, *pair), pair[0]) for pair in pairs]
            return costs_of(asked, *part)

        units = self._size * _ORDERS * len(pairs) * len(priors)
        results = in_parts(work, len(priors) * len(parts), self._jobs, units)
        for _ in priors:
            costs = []
            for _ in parts:
                costs.append(next(results))
                self._done += 1
                self._progress(self._done, self._total)
            by_problem = np.concatenate(costs, axis=1).reshape(len(pairs), -1, _ORDERS).mean(axis=2)
            means: NDArray[np.float64] = np.log(by_problem).mean(axis=1)
            yield means.reshape(len(ratios), len(tilts))
        next(results, None)  # so that the processes end


def tilted_at(prior: Prior, ratio: float, tilt: float) -> Prior:
    """The prior with another tilt."""
    return dataclasses.replace(prior, ratios=(ratio,), tilts=(tilt,), keyed_tilts=(tilt,))


def costs_of(
    asked: Sequence[tuple[Prior, float]],
    batches: Sequence[OrderBatch],
    stack: StackedOrders | None = None,
) -> NDArray[np.float64]:
    """`[asked, orders]`: the cost of each search, for each prior with its ratio of costs.

    The priors must differ only in their tilts. Pass `stack` if the batches are already stacked.
    """
    stack = stack or StackedOrders.of(batches)
    limits = [MeritLimits.of(prior, ratio) for prior, ratio in asked]
    results = learned_trials(asked[0][0], stack, limits)
    ratios = np.array([ratio for _, ratio in asked])
    costs: NDArray[np.float64] = results.generated + ratios[:, None] * results.verified
    orders = [(batch, order) for batch in batches for order in batch.orders.tolist()]
    for index, number in np.argwhere(results.unlike).tolist():
        (prior, ratio), (batch, order) = asked[index], orders[number]
        costs_of_pair = Costs(1, ratio)
        outcome = replay(
            Learned(prior), batch.problem, costs_of_pair, order=order, keys=batch.keyed
        )
        costs[index, number] = outcome.bill.total
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
