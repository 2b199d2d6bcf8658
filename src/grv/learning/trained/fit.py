"""Fits a score to verdicts: logistic regression with a level for each problem.

The level takes up how hard a problem is, so that the weights tell which of its candidates are
better. Only labels of candidates that were verified count. Which ones were verified depends on
scores and on earlier verdicts, so that no correction is needed (docs/theory/guard.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...backends.scorers.trained.features import BUCKETS, DENSE, Features
from ...backends.scorers.trained.model import (
    FURTHEST,
    GivenWeight,
    ScorerEvidence,
    TrainedModel,
    Weight,
)
from ...core.errors import UsageError
from ...theory.scales import on_scale
from ..alike import most_alike
from ..fit import scale_of
from ..history import PastProblem
from .minimise import minimise

Numbers = NDArray[np.float64]

# On the weights of n-grams and of dense features; the best pair on held-out problems is used.
PENALTIES = ((0.3, 1.0), (1.0, 3.0), (3.0, 10.0))
_GIVEN_PENALTY = 1e-2  # a given score is known to rank, unlike the features
_LEVEL_PENALTY = 1e-3  # so small that no other weight explains how hard a problem is
_MOST_LABELS = 60  # the maximum weight of one problem, in labels
_TIE = 0.5  # the n-th verdict at one value of `alike` counts by this to the power of n - 1
_FOLDS = 3  # for the choice of the penalty
_LEAST_SPREAD = 1e-6


@dataclass(frozen=True, eq=False)
class ScoredTexts:
    """One past problem with the features of its candidates, in order of arrival.

    Attributes:
        id: the problem's id.
        features: one per candidate.
        passed: `[candidates]`, whether the candidate is known to have passed.
        verified: `[candidates]`, whether it has a verdict.
    """

    id: str
    features: tuple[Features, ...]
    passed: NDArray[np.bool_]
    verified: NDArray[np.bool_]

    def given(self, name: str) -> Numbers:
        """`[candidates]`: a given score; -inf for none."""
        return np.array([each.given.get(name, -np.inf) for each in self.features], dtype=np.float64)


def fit(
    problems: Sequence[ScoredTexts], given: Sequence[str] = (), sources: Sequence[str] = ()
) -> TrainedModel:
    """The score that fits the verdicts best.

    Args:
        problems: past problems.
        given: the names of the given scores to use.
        sources: the files, for the record.
    """
    useful = [p for p in problems if 0 < p.passed[p.verified].sum() < p.verified.sum()]
    check_useful(problems, useful, sources)
    alike = _alike(useful, given)
    rows = _Rows(useful, [(name, scale_of(_all(problems, name))) for name in given], alike)
    weights = rows.weights(rows.best_penalties(), np.ones(len(useful), dtype=np.bool_))
    dense = [
        Weight(name, _short(mean), _short(spread), _short(weight))
        for name, mean, spread, weight in zip(
            DENSE, rows.means, rows.spreads, weights[BUCKETS:], strict=False
        )
    ]
    after = weights[BUCKETS + len(DENSE) :]
    parts = tuple(
        GivenWeight(name, scale.values, scale.normals, _short(weight))
        for (name, scale), weight in zip(rows.scales, after, strict=True)
    )
    verdicts = sum(int(p.verified.sum()) for p in problems)
    passes = sum(int(p.passed[p.verified].sum()) for p in problems)
    return TrainedModel(
        tuple(dense),
        parts,
        tuple(map(_short, weights[:BUCKETS])),
        alike,
        ScorerEvidence(len(problems), verdicts, passes, tuple(sources)),
    )


def check_useful(
    problems: Sequence[ScoredTexts], useful: Sequence[ScoredTexts], sources: Sequence[str]
) -> None:
    """Refuse a history from which no score can be learned."""
    where = ", ".join(sources) or "the history"
    if not any(problem.verified.any() for problem in problems):
        raise UsageError(f"{where}: no candidate has a label, so there is nothing to learn from")
    if not any(problem.passed[problem.verified].any() for problem in problems):
        raise UsageError(f"{where}: no candidate passed, so there is nothing to learn from")
    if not useful:
        raise UsageError(
            f"{where}: no problem has both a pass and a failure, so no score can be learned"
        )


def _all(problems: Sequence[ScoredTexts], name: str) -> Numbers:
    return np.concatenate([problem.given(name) for problem in problems])


def _alike(problems: Sequence[ScoredTexts], given: Sequence[str]) -> str:
    """The given score whose equal values agree most on verdicts; empty if none does."""
    if not given:
        return ""
    pasts = [PastProblem(p.id, p.given(given[0]), p.passed, p.verified) for p in problems]
    own = [np.arange(len(p.features), dtype=np.float64) for p in problems]  # no two are equal
    return most_alike(pasts, {"": own} | {n: [p.given(n) for p in problems] for n in given})


class _Rows:
    """The verified candidates of all problems as a matrix: n-grams, dense features, given scores.

    Attributes:
        means: of the dense features.
        spreads: of the dense features, within problems.
        scales: of the given scores, by name.
    """

    def __init__(
        self, problems: Sequence[ScoredTexts], scales: Sequence[tuple[str, Any]], alike: str
    ) -> None:
        from scipy.sparse import csr_array, hstack

        self.scales = scales
        chosen = [p.features[i] for p in problems for i in np.flatnonzero(p.verified)]
        self.of = np.repeat(np.arange(len(problems)), [int(p.verified.sum()) for p in problems])
        self.passed = np.concatenate([p.passed[p.verified] for p in problems]).astype(np.float64)
        sizes = np.bincount(self.of)
        self.counts = np.minimum(1.0, _MOST_LABELS / sizes)[self.of]
        if alike:
            self.counts *= np.concatenate([_shares(p.given(alike)[p.verified]) for p in problems])
        dense = self._dense(chosen)
        for name, scale in scales:
            scores = np.concatenate([p.given(name)[p.verified] for p in problems])
            dense = np.column_stack([dense, on_scale(scale.values, scale.normals, scores)])
        lengths = [len(each.grams) for each in chosen]
        columns = np.concatenate([np.array(each.grams, dtype=np.int32) for each in chosen])
        values = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        grams = csr_array((values, columns, starts), shape=(len(chosen), BUCKETS))
        self.matrix = hstack([grams, csr_array(dense)], format="csr")

    def _dense(self, chosen: Sequence[Features]) -> Numbers:
        """The dense features, standardised; unknown ones are 0."""
        values = np.array([[each.value for each in row.dense] for row in chosen])
        counts = np.array([[each.counts for each in row.dense] for row in chosen])
        total = np.maximum(counts.sum(axis=0), 1e-9)
        self.means = (counts * values).sum(axis=0) / total
        within = np.zeros_like(self.means)
        for at in range(values.shape[1]):
            known = np.bincount(self.of, weights=counts[:, at])
            sums = np.bincount(self.of, weights=counts[:, at] * values[:, at])
            means = sums / np.maximum(known, 1e-9)
            within[at] = (counts[:, at] * (values[:, at] - means[self.of]) ** 2).sum()
        self.spreads = np.sqrt(within / total)
        self.spreads[self.spreads < _LEAST_SPREAD] = 1.0
        far = (values - self.means) / self.spreads
        scaled: Numbers = counts * np.clip(far, -FURTHEST, FURTHEST)
        return scaled

    def best_penalties(self) -> tuple[float, float]:
        """The penalties with the highest likelihood of problems that were left out."""
        problems = int(self.of.max()) + 1
        if problems < 2 * _FOLDS:
            return PENALTIES[-1]
        fold = np.arange(problems) % _FOLDS
        found = [
            sum(self._likelihood(self.weights(pair, fold != k), fold == k) for k in range(_FOLDS))
            for pair in PENALTIES
        ]
        return PENALTIES[int(np.argmax(found))]

    def weights(self, penalties: tuple[float, float], used: NDArray[np.bool_]) -> Numbers:
        """The weights that fit the verdicts of some problems."""
        rows = used[self.of]
        x, passed, counts, of = (
            each[rows] for each in (self.matrix, self.passed, self.counts, self.of)
        )
        there = np.flatnonzero(abs(x).sum(axis=0))  # the weights of other columns are 0
        x = x[:, there]
        size = len(there)
        ridge = np.full(size + len(used), _LEVEL_PENALTY)
        kind = np.searchsorted([BUCKETS, BUCKETS + len(DENSE)], there, side="right")
        ridge[:size] = np.array([*penalties, _GIVEN_PENALTY])[kind]

        def loss(at: Numbers) -> tuple[float, Numbers]:
            logits = x @ at[:size] + at[size:][of]
            error = counts * (1 / (1 + np.exp(-np.clip(logits, -500, 500))) - passed)
            value = (counts * (np.logaddexp(0, logits) - passed * logits)).sum()
            slope = np.concatenate([x.T @ error, np.bincount(of, error, len(used))])
            return float(value + (ridge * at * at).sum() / 2), slope + ridge * at

        weights = np.zeros(self.matrix.shape[1])
        weights[there] = minimise(loss, np.zeros(len(ridge)))[:size]
        return weights

    def _likelihood(self, weights: Numbers, used: NDArray[np.bool_]) -> float:
        """The log-likelihood of the verdicts of some problems, each with its best level."""
        rows = used[self.of]
        logits = self.matrix[rows] @ weights
        passed = self.passed[rows]
        of = self.of[rows]
        levels = np.zeros(len(used))
        for _ in range(25):
            chance = 1 / (1 + np.exp(-np.clip(logits + levels[of], -500, 500)))
            slope = np.bincount(of, passed - chance, len(used)) - _LEVEL_PENALTY * levels
            bend = np.bincount(of, chance * (1 - chance), len(used)) + _LEVEL_PENALTY
            levels += np.clip(slope / bend, -1, 1)
        total = logits + levels[of]
        return float((self.counts[rows] * (passed * total - np.logaddexp(0, total))).sum())


def _shares(values: Numbers) -> Numbers:
    """`[labels]`: how much each label counts; those at equal values say much the same."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    each: Numbers = ((1 - _TIE**sizes) / ((1 - _TIE) * sizes))[group]
    return np.where(values > -np.inf, each, 1.0)


def _short(number: float) -> float:
    return float(f"{number:.4g}")
