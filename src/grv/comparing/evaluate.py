"""What a trained score is worth on problems that it was not fitted to.

Problems of a log are cross-fitted: each is scored by a model that was fitted to others. Searches of
a ledger are taken in the order in which they ended: each is scored by the model that was the newest
then. Intervals are over problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import UsageError
from ..core.values import Costs
from ..learning.history import PastProblem
from ..learning.online import fitted_prior, last_refit
from ..learning.trained.cross_fit import (
    FOLDS,
    Numbers,
    past_problems,
    scores_on_arrival,
    values_of,
)
from ..learning.trained.fit import ScoredTexts, fit
from ..learning.trained.texts import TRAINED, PastTexts
from ..logs.log import LoggedProblem
from ..policies import Learned, VerifyAll
from ..policies.learned.prior import Prior
from ..replay.kernels.dispatch import many_trials
from ..replay.orders import OrderBatch

_RESAMPLES = 1000


@dataclass(frozen=True)
class Figure:
    """A mean over problems, with its 95 % interval; None if there are too few problems."""

    mean: float
    interval: tuple[float, float] | None
    problems: int

    def __str__(self) -> str:
        shown = f"{self.mean:.2f}"
        if self.interval is None:
            return shown
        return f"{shown} [{self.interval[0]:.2f}, {self.interval[1]:.2f}]"


def resampled(top: Numbers, bottom: Numbers | None = None, seed: int = 0) -> Figure:
    """The mean of `top`, or the ratio of the two means, over problems."""
    below = np.ones(len(top)) if bottom is None else bottom
    mean = float(top.mean() / below.mean())
    interval = None
    if len(top) > 2:
        rows = np.random.default_rng(seed).integers(0, len(top), (_RESAMPLES, len(top)))
        low, high = np.quantile(top[rows].mean(axis=1) / below[rows].mean(axis=1), (0.025, 0.975))
        interval = float(low), float(high)
    return Figure(mean, interval, len(top))


def in_order(problems: Sequence[PastTexts], given: Sequence[str] = ()) -> list[Numbers | None]:
    """For each problem, the scores by the newest model before it; None if there was none."""
    trained: list[ScoredTexts] = [problem.training() for problem in problems]
    scores: list[Numbers | None] = []
    model = None
    size = 0
    for index, problem in enumerate(problems):
        if last_refit(index) != size:
            size = last_refit(index)
            try:
                model = fit(trained[:size], given)
            except UsageError:
                model = None  # no problem has both a pass and a failure yet
        scores.append(None if model is None else scores_on_arrival(model, problem))
    return scores


def ranking(problems: Sequence[PastTexts], scores: Sequence[Numbers | None]) -> Figure | None:
    """How often a pass has a higher score than a failure of its problem; None if unknown.

    This is the area under the ROC curve within problems; 0.5 is chance. Ties count half.
    """
    areas = []
    for problem, values in zip(problems, scores, strict=True):
        if values is None:
            continue
        passed = values[problem.verified & problem.passed][:, None]
        failed = values[problem.verified & ~problem.passed]
        if passed.size and failed.size:
            areas.append(float((passed > failed).mean() + (passed == failed).mean() / 2))
    return resampled(np.array(areas)) if areas else None


def live_prior(problems: Sequence[PastProblem]) -> Prior:
    """The prior of the policy `learning` after these problems; some candidate must have passed."""
    prior = fitted_prior(problems, TRAINED)
    if prior is None:
        raise UsageError("no candidate passed, so there is nothing to learn from")
    return prior


def search_costs(
    prior: Prior | None,
    problems: Sequence[PastTexts],
    scores: Sequence[Numbers],
    ratio: float,
    alike: str = "",
) -> Numbers:
    """`[problems]`: the cost of each search, in candidates; by `learned`, or else by verify-all."""
    policy = VerifyAll() if prior is None else Learned(prior)
    batches = [
        OrderBatch(
            LoggedProblem(str(at), each, problem.passed, alike=values_of(problem, alike)),
            np.arange(len(each))[None, :],
        )
        for at, (problem, each) in enumerate(zip(problems, scores, strict=True))
    ]
    costs = Costs(1, ratio)
    results = many_trials(policy, batches, costs)
    return np.array([float(each.costs(costs)[0]) for each in results])


def cost(
    problems: Sequence[PastTexts],
    scores: Sequence[Numbers],
    ratio: float,
    alike: str = "",
    seed: int = 0,
) -> Figure:
    """The cost of `learned` with cross-fitted scores over that of verify-all.

    The prior of each fold is fitted to the scores of the other folds. Problems without a pass are
    left out, and candidates arrive in the order of the log.
    """
    solvable = [at for at, problem in enumerate(problems) if problem.passed.any()]
    fold = np.random.default_rng(seed).permutation(len(solvable)) % FOLDS
    trained, spent = np.zeros((2, len(solvable)))
    for k in range(FOLDS):
        past = [problems[at] for at, own in zip(solvable, fold, strict=True) if own != k]
        before = [scores[at] for at, own in zip(solvable, fold, strict=True) if own != k]
        now = [problems[at] for at, own in zip(solvable, fold, strict=True) if own == k]
        here = [scores[at] for at, own in zip(solvable, fold, strict=True) if own == k]
        trained[fold == k] = search_costs(
            live_prior(past_problems(past, before, alike)), now, here, ratio, alike
        )
        spent[fold == k] = search_costs(None, now, here, ratio)
    return resampled(trained, spent)
