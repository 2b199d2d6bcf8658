"""When a prior says to verify, found by replaying its history: the ties and the tilts."""

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
from .orders import batches

RATIOS = (1.0, 3.0, 10.0, 30.0, 100.0)
TILTS = (0.2, 0.0, -0.15, -0.3, -0.45, -0.6, -0.8, -1.1, -1.6, -3.0)
TIES = (1.0, 0.5, 0.1)
_FEW_TILTS = (0.0, -0.3, -0.8, -1.6, -3.0)  # to choose the tie by
_TIE_RATIOS = (10.0, 30.0)
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
    """The prior that fits a history, with the ties and tilts that would have cost least on it."""
    ties = TIES if any(_is_tied(problem) for problem in history.problems) else TIES[:1]
    total = len(RATIOS) * len(TILTS)
    total += len(ties) * len(_TIE_RATIOS) * len(_FEW_TILTS) if len(ties) > 1 else 0
    done = 0

    def told(prior: Prior, problems: Sequence[LoggedProblem], ratio: float, tilt: float) -> float:
        nonlocal done
        found = _cost(prior, problems, ratio, tilt)
        done += 1
        progress(done, total)
        return found

    priors = {tie: prior_of(history, tie) for tie in ties}
    problems = _logged(completed(history, priors[1.0]))
    best = ties[0]
    if len(ties) > 1:
        costs = {
            tie: sum(
                math.log(min(told(prior, problems, ratio, tilt) for tilt in _FEW_TILTS))
                for ratio in _TIE_RATIOS
            )
            for tie, prior in priors.items()
        }
        best = min(costs, key=costs.__getitem__)
    prior = priors[best]
    tilts = []
    for ratio in RATIOS:
        found = {tilt: told(prior, problems, ratio, tilt) for tilt in TILTS}
        tilts.append(min(found, key=found.__getitem__))
    return dataclasses.replace(prior, ratios=RATIOS, tilts=tuple(tilts))


def _is_tied(problem: PastProblem) -> bool:
    return len(np.unique(problem.scores)) < _TIED * len(problem.scores)


def _logged(problems: Sequence[PastProblem]) -> list[LoggedProblem]:
    """Some of the problems, evenly spread, as they are replayed."""
    step = max(1, math.ceil(len(problems) / _MOST_PROBLEMS))
    return [LoggedProblem(p.id, p.scores, p.passed) for p in problems[::step]]


def _cost(prior: Prior, problems: Sequence[LoggedProblem], ratio: float, tilt: float) -> float:
    """The mean cost of going by a prior."""
    policy = _Trial(dataclasses.replace(prior, ratios=(ratio,), tilts=(tilt,)))
    costs = Costs(1, ratio)
    return float(
        np.mean(
            [
                replay(policy, batch.problem, costs, order=order, width=1).bill.total
                for batch in batches(problems, _ORDERS, seed=_SEED)
                for order in batch.orders.tolist()
            ]
        )
    )
