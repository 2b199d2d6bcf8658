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
TILTS = (-0.45, -0.3, -0.6, -0.15, -0.8, 0.0, -1.1, 0.2, -1.6, -3.0)  # the likely ones first
TIES = (1.0, 0.5, 0.1)
_FEW_TILTS = (-0.3, -0.8, 0.0, -1.6, -3.0)  # to choose the tie by
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
    stages = len(RATIOS) + (len(ties) * len(_TIE_RATIOS) if len(ties) > 1 else 0)
    priors = {tie: prior_of(history, tie) for tie in ties}
    problems = _logged(completed(history, priors[1.0]))
    sums = dict.fromkeys(ties, 0.0)
    done = 0
    if len(ties) > 1:
        for tie, prior in priors.items():
            for ratio in _TIE_RATIOS:
                sums[tie] += math.log(_cheapest(prior, problems, ratio, _FEW_TILTS)[0])
                done += 1
                progress(done, stages)
    prior = priors[min(sums, key=sums.__getitem__)]
    tilts = []
    for ratio in RATIOS:
        tilts.append(_cheapest(prior, problems, ratio, TILTS)[1])
        done += 1
        progress(done, stages)
    return dataclasses.replace(prior, ratios=RATIOS, tilts=tuple(tilts))


def _cheapest(
    prior: Prior, problems: Sequence[LoggedProblem], ratio: float, tilts: Sequence[float]
) -> tuple[float, float]:
    """The least cost over some tilts, and the tilt."""
    best = (math.inf, math.nan)
    for tilt in tilts:
        best = min(best, (cost_of(prior, problems, ratio, tilt, best[0]), tilt))
    return best


def _is_tied(problem: PastProblem) -> bool:
    return len(np.unique(problem.scores)) < _TIED * len(problem.scores)


def _logged(problems: Sequence[PastProblem]) -> list[LoggedProblem]:
    """Some of the problems, evenly spread, as they are replayed."""
    step = max(1, math.ceil(len(problems) / _MOST_PROBLEMS))
    return [LoggedProblem(p.id, p.scores, p.passed) for p in problems[::step]]


def cost_of(
    prior: Prior,
    problems: Sequence[LoggedProblem],
    ratio: float,
    tilt: float,
    limit: float = math.inf,
) -> float:
    """The cost of going by a prior, all searches together; infinity once it is above the limit."""
    policy = _Trial(dataclasses.replace(prior, ratios=(ratio,), tilts=(tilt,)))
    costs, total = Costs(1, ratio), 0.0
    for batch in batches(problems, _ORDERS, seed=_SEED):
        for order in batch.orders.tolist():
            total += replay(policy, batch.problem, costs, order=order, width=1).bill.total
        if total > limit:
            return math.inf
    return total
