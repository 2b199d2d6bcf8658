"""When a prior says to verify, found by replaying its history: ties, votes and tilts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.pool import Pool
from ..core.values import Costs, Step
from ..policies.learned import learned_plan
from ..policies.prior import Prior
from .engine import replay
from .history import History, PastProblem
from .learning import completed, prior_of
from .log import LoggedProblem
from .orders import Batch, batches
from .rehearsal import Line, rehearse

RATIOS = (1.0, 3.0, 10.0, 30.0, 100.0)
TILTS = (-0.45, -0.3, -0.6, -0.15, -0.8, 0.0, -1.1, 0.2, -1.6, -3.0)  # of equals the first
TIES = (1.0, 0.5, 0.1)
VOTES = (0.0, 0.5, 1.0, 2.0)
_FEW_TILTS = (-0.3, -0.8, 0.0, -1.6, -3.0)  # to choose tie and votes by
_FEW_RATIOS = (10.0, 30.0)
_ORDERS, _SEED = 2, 1
_MOST_PROBLEMS = 100
_TIED = 0.95  # of a problem's scores differ, or they count as tied

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Trial:
    """The policy that goes by a prior in memory."""

    prior: Prior

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        return learned_plan(self.prior, pool, costs)


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
            sum(
                math.log(min(self._costs(prior, ratio, _FEW_TILTS, keyed=keyed)))
                for ratio in _FEW_RATIOS
            )
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
        """What each tilt costs."""
        costs = costs_of(prior, self._batches[keyed], ratio, tilts, self._lines[keyed])
        self._done += 1
        self._progress(self._done, self._total)
        return costs


def costs_of(
    prior: Prior,
    batches: Sequence[Batch],
    ratio: float,
    tilts: Sequence[float],
    line: Line | None = None,
) -> list[float]:
    """What going by a prior with each of these tilts costs, all searches together.

    The line is that of the batches, where somebody has it already.
    """
    found = rehearse(prior, line or Line.of(batches), ratio, [math.exp(tilt) for tilt in tilts])
    costs = np.where(found.unlike, 0.0, found.generated + ratio * found.verified)
    totals = costs.sum(axis=1).tolist()
    orders = [(batch, order) for batch in batches for order in batch.orders.tolist()]
    for at, number in np.argwhere(found.unlike).tolist():
        tilted = dataclasses.replace(
            prior, ratios=(ratio,), tilts=(tilts[at],), keyed_tilts=(tilts[at],)
        )
        batch, order = orders[number]
        totals[at] += replay(
            *(_Trial(tilted), batch.problem, Costs(1, ratio)),
            order=order,
            width=1,
            keys=batch.keyed,
        ).bill.total
    return [float(total) for total in totals]


def _is_tied(problem: PastProblem) -> bool:
    return len(np.unique(problem.scores)) < _TIED * len(problem.scores)


def _logged(problems: Sequence[PastProblem]) -> list[LoggedProblem]:
    """Some of the problems, evenly spread, as they are replayed."""
    step = max(1, math.ceil(len(problems) / _MOST_PROBLEMS))
    return [LoggedProblem(p.id, p.scores, p.passed, p.keys) for p in problems[::step]]
