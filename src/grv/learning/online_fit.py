"""Fits a prior to censored labels in milliseconds, without any replay.

How much equal scores count as evidence, the *tie*, is fitted too. Take two candidates that are
equally likely to pass by their bins, after equally many failures on their problem. If only one of
them has the score of a candidate that has failed, it passes less often. The tie is that factor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..policies.failure_ranking import ties_are_evidence
from ..policies.learned.prior import Prior
from .fit import (
    Fitted,
    Numbers,
    Placed,
    TiedLabels,
    chances_of,
    maximised,
    pooled_scale,
    prior_from,
)
from .history import PastProblem

TILT = -0.3  # the logarithm of the limit of a merit
VOTES = 0.5  # a merit grows with this power of the number of candidates with the same key
EVEN = 2.0  # problems of which nothing is known
MOST_FAILURES = 100.0  # of one problem
TIES = np.linspace(0.1, 1.0, 19)
# the tie without evidence, and its weight in passes
TIE = 0.5
TIE_WEIGHT = 3.0
_CALIBRATED = 1.0  # passes that speak for right chances at each level
_LONGEST = 64  # the number of verdicts of a problem that the tie is judged by


def censored_prior(problems: Sequence[PastProblem], score: str) -> Prior:
    """The prior that fits the labels best."""
    scale = pooled_scale(problems)
    placed = Placed.of(problems, scale)
    labels = TiedLabels.of(problems, placed)
    tie = 1.0
    if (labels.sizes > 1).any():
        plain = maximised(*_limited(*labels.counts(tie)), placed.shares, placed.centres, EVEN)
        tie = Verdicts.of(problems, placed, plain).tie(_tie_by_looks(problems))
    counts = _limited(*labels.counts(tie))
    fitted = maximised(*counts, placed.shares, placed.centres, EVEN)
    prior = prior_from(problems, score, scale, placed, fitted, tie, float(counts[0].sum()))
    return dataclasses.replace(prior, votes=VOTES, tilts=(TILT,), keyed_tilts=(TILT,))


def _limited(labels: Numbers, passes: Numbers) -> tuple[Numbers, Numbers]:
    """Limit the failures of each problem; arrays are `[problems, bins]`, as those returned.

    A search that has failed thousands of times shows no more than that its problem is very hard.
    """
    failures = labels - passes
    total = failures.sum(axis=1, keepdims=True)
    return passes + failures * np.minimum(1, MOST_FAILURES / np.maximum(total, 1)), passes


def _tie_by_looks(problems: Sequence[PastProblem]) -> float:
    """The tie without evidence: 1 if equal scores are mostly due to rounding or marks."""
    sizes = [len(problem.scores) for problem in problems]
    alike = [ties_are_evidence(problem.ties.tolist()) for problem in problems]
    return TIE if 2 * sum(np.multiply(sizes, alike)) >= sum(sizes) else 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Verdicts:
    """All verdicts, one after the other; those of a problem with the failures first.

    Attributes:
        expected: the chance of passing, given the verdicts before it on its problem.
        before: the number of failures before it on its problem.
        repeated: whether one of these was at exactly its score.
        passed: whether the candidate passed.
    """

    expected: Numbers
    before: NDArray[np.intp]
    repeated: NDArray[np.bool_]
    passed: NDArray[np.bool_]

    @classmethod
    def of(cls, problems: Sequence[PastProblem], placed: Placed, fitted: Fitted) -> Verdicts:
        """The first `_LONGEST` verdicts of each problem; a pass ends a search."""
        rows = [_sequence(problem) for problem in problems]
        shape = (len(rows), max(len(row) for row in rows))
        bins = np.zeros(shape, dtype=np.intp)
        repeated, passed, known = np.zeros((3, *shape), dtype=np.bool_)
        for at, (row, own) in enumerate(zip(rows, placed.bins, strict=True)):
            bins[at, : len(row)] = own[row]
            repeated[at, : len(row)] = _repeats(problems[at].ties[row])
            passed[at, : len(row)] = problems[at].passed[row]
            known[at, : len(row)] = True
        before = np.broadcast_to(np.arange(shape[1]), shape)
        expected = _expected(bins, known, fitted)
        return cls(expected[known], before[known], repeated[known], passed[known])

    def tie(self, likely: float) -> float:
        """The most likely tie; `likely` is the one without evidence.

        Verdicts after about equally many failures are compared.
        """
        levels = np.log2(self.before + 1).astype(np.intp)
        size = int(levels.max()) + 1
        fresh, again = (
            np.bincount(levels, self.expected * (self.repeated == flag), minlength=size)
            for flag in (False, True)
        )
        passes = np.bincount(levels, self.passed, minlength=size)
        repeats = float((self.passed & self.repeated).sum())
        # At each level, the chances may be wrong by a common factor, which is about 1.
        sums = fresh[:, None] + again[:, None] * TIES + _CALIBRATED
        logs = (repeats + TIE_WEIGHT) * np.log(TIES) - TIE_WEIGHT * TIES / likely
        logs = logs - (passes + _CALIBRATED) @ np.log(sums)
        return float(TIES[int(np.argmax(logs))])


def _expected(bins: NDArray[np.intp], known: NDArray[np.bool_], fitted: Fitted) -> Numbers:
    """`[problems, verdicts]`: the chance of each pass, given failures before it."""
    chances = np.clip(chances_of(fitted.shape), 1e-9, 1 - 1e-9).T  # [bins, pairs]
    failing = np.log1p(-chances)
    logs = np.tile(np.log(fitted.weights), (len(bins), 1))
    found = np.zeros(bins.shape)
    for at in range(bins.shape[1]):
        rows = np.flatnonzero(known[:, at])
        own = bins[rows, at]
        here = logs[rows]
        weights = np.exp(here - here.max(axis=1, keepdims=True))
        found[rows, at] = (weights * chances[own]).sum(axis=1) / weights.sum(axis=1)
        logs[rows] += failing[own]
    return found


def _sequence(problem: PastProblem) -> NDArray[np.intp]:
    """The candidates with a verdict: failures first, then a pass."""
    known = np.flatnonzero(problem.verified)
    passed = problem.passed[known]
    return np.concatenate([known[~passed][:_LONGEST], known[passed][:1]])


def _repeats(scores: Numbers) -> NDArray[np.bool_]:
    """Whether each score has occurred before."""
    found = np.ones(len(scores), dtype=np.bool_)
    found[np.unique(scores, return_index=True)[1]] = False
    return found
