"""Scores of past problems by models that were fitted to others: what a score is worth on new ones.

A model knows the verdicts that it was fitted to, so its own scores of those problems would flatter
it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...backends.scorers.trained.model import TrainedModel
from ...core.errors import UsageError
from ..history import PastProblem
from .fit import ScoredTexts, fit
from .texts import PastTexts

Numbers = NDArray[np.float64]

FOLDS = 5


def scores_on_arrival(model: TrainedModel, problem: PastTexts) -> Numbers:
    """`[candidates]`: the scores that a live search would have given them."""
    return np.array([model.score(each) for each in problem.arriving()])


def cross_fitted(
    problems: Sequence[PastTexts],
    given: Sequence[str] = (),
    folds: int = FOLDS,
    seed: int = 0,
    trained: Sequence[ScoredTexts] | None = None,
) -> list[Numbers]:
    """For each problem, the scores by a model that was fitted to the other folds.

    All scores are 0 where the other folds allow no model.

    Args:
        problems: past problems.
        given: the names of given scores to use.
        folds: the number of models.
        seed: decides which problems are in which fold.
        trained: what `training` returns for each problem, if it is known.
    """
    trained = trained or [problem.training() for problem in problems]
    fold = np.random.default_rng(seed).permutation(len(problems)) % folds
    scores: list[Numbers] = [np.zeros(len(problem.arrivals)) for problem in problems]
    for k in range(folds):
        try:
            model = fit([each for each, own in zip(trained, fold, strict=True) if own != k], given)
        except UsageError:
            continue  # no problem of the other folds has both a pass and a failure
        for index in np.flatnonzero(fold == k).tolist():
            scores[index] = scores_on_arrival(model, problems[index])
    return scores


def values_of(problem: PastTexts, name: str) -> Numbers | None:
    """`[candidates]`: a given score; -inf for none. None if the name is empty."""
    if not name:
        return None
    return np.array([each.given.get(name, -np.inf) for each in problem.arrivals])


def past_problems(
    problems: Sequence[PastTexts], scores: Sequence[Numbers], alike: str = ""
) -> list[PastProblem]:
    """The problems as the history of a prior, with these scores."""
    return [
        PastProblem(p.id, each, p.passed, p.verified, alike=values_of(p, alike))
        for p, each in zip(problems, scores, strict=True)
    ]
