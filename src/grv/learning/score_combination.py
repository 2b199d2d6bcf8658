"""Combines several scores into one: a weighted sum on the common scale.

The weights come from a logistic regression on the history, with a level for each problem. So they
measure which candidate of a problem is better, not which problem is easier.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..logs.log import Log
from ..logs.readers import read_log
from ..logs.reading_options import Reading
from ..policies.learned.prior import ScorePart
from ..theory.scales import on_scale
from .prior_file import load_prior

if TYPE_CHECKING:
    from .history import PastProblem

_RIDGE = 1.0  # the penalty on the weights; the levels have a tenth of it
_MOST_LABELS = 60  # the maximum weight of one problem, in labels
_ROUNDS = 50


def combined_name(scores: Sequence[str]) -> str:
    """The name of the combination of these scores."""
    return f"combined({', '.join(scores)})"


def combine(
    scores: Sequence[str], pasts: Sequence[Sequence[PastProblem]]
) -> tuple[tuple[ScorePart, ...], list[PastProblem]]:
    """The best combination, and the problems with the combined score.

    Args:
        scores: the names of the scores.
        pasts: for each score, the same problems with the same candidates.
    """
    from .fit import scale_of  # reading a log needs no fit

    scales = [scale_of(np.concatenate([p.scores for p in past])) for past in pasts]
    normals = [
        np.stack(
            [
                on_scale(scale.values, scale.normals, p.scores)
                for scale, p in zip(scales, same, strict=True)
            ],
            axis=1,
        )
        for same in zip(*pasts, strict=True)
    ]
    weights = _weights(normals, pasts[0])
    parts = tuple(
        ScorePart(name, scale, float(f"{weight:.6g}"))
        for name, scale, weight in zip(scores, scales, weights, strict=True)
    )
    rounded = np.array([part.weight for part in parts])
    return parts, [
        dataclasses.replace(problem, scores=x @ rounded)
        for problem, x in zip(pasts[0], normals, strict=True)
    ]


def with_alike(
    scores: Sequence[str],
    pasts: Sequence[Sequence[PastProblem]],
    problems: Sequence[PastProblem],
) -> tuple[str, list[PastProblem]]:
    """The column by which failures are counted, and the combined problems with its values.

    The arguments are those of `combine` and the problems that it returns. The name is empty if
    equal values of the combination itself agree most.
    """
    from .alike import most_alike

    columns = {"": [p.scores for p in problems]}
    columns |= {name: [p.scores for p in past] for name, past in zip(scores, pasts, strict=True)}
    name = most_alike(problems, columns)
    if not name:
        return name, list(problems)
    both = zip(problems, columns[name], strict=True)
    return name, [dataclasses.replace(problem, alike=values) for problem, values in both]


def _weights(
    normals: Sequence[NDArray[np.float64]], problems: Sequence[PastProblem]
) -> NDArray[np.float64]:
    """The weights, by Newton's method, alternating with the levels of the problems."""
    known = [(x[p.labelled], p.passed[p.labelled]) for x, p in zip(normals, problems, strict=True)]
    known = [(x, passed) for x, passed in known if passed.any() and not passed.all()]
    size = normals[0].shape[1]
    weights = np.zeros(size)
    levels = np.zeros(len(known))
    for _ in range(_ROUNDS):
        slope = -_RIDGE * weights
        bend = _RIDGE * np.eye(size)
        for at, (x, passed) in enumerate(known):
            chance = 1 / (1 + np.exp(-(levels[at] + x @ weights)))
            spread = chance * (1 - chance)
            step = (passed - chance).sum() - _RIDGE / 10 * levels[at]
            levels[at] += np.clip(step / (spread.sum() + _RIDGE / 10), -1, 1)
            counts = min(1.0, _MOST_LABELS / len(passed))
            centred = x - (spread @ x) / max(spread.sum(), 1e-12)
            slope = slope + counts * (passed - chance) @ centred
            bend = bend + counts * (centred * spread[:, None]).T @ centred
        weights = weights + np.clip(np.linalg.solve(bend, slope), -1, 1)
    return weights


def read_scored(
    path: str,
    score: str | None,
    *,
    second: str | None = None,
    reading: Reading | None = None,
    may_bound: bool = False,
) -> Log:
    """The log in a file, by the score of a column, of a prior that combines, or of a scorer."""
    how = {**dataclasses.asdict(reading or Reading()), "may_bound": may_bound}
    if score is None or not score.endswith(".json"):
        return read_log(path, score=score, second=second, **how)
    from ..backends.scorers.trained.model import is_scorer, load_model  # a column needs neither
    from .trained.texts import trained_log

    if is_scorer(score):
        if second is not None or how["rewards"] is not None:
            raise UsageError(f"{score}: a trained score has no cascade and reads no --rewards")
        return trained_log(path, load_model(score), reading or Reading(), may_bound=may_bound)
    prior = load_prior(score)
    if not prior.parts:
        raise UsageError(f"{score} does not combine scores; use --score {prior.score}")
    how["alike"] = how["alike"] or prior.alike or None
    logs = [read_log(path, score=part.score, second=second, **how) for part in prior.parts]
    problems = []
    for same in zip(*(log.problems for log in logs), strict=True):
        total = sum(
            part.weight * on_scale(part.scale.values, part.scale.normals, problem.scores)
            for part, problem in zip(prior.parts, same, strict=True)
        )
        unscored = max(problem.unscored for problem in same)
        problems.append(dataclasses.replace(same[0], scores=total, unscored=unscored))
    return dataclasses.replace(logs[0], problems=tuple(problems), score=prior.score)
