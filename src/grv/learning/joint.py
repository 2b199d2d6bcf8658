"""Fits types of problems to what several generators passed and failed.

The counts may be censored: a search stops at its first pass, and tries some generators only. This
needs no correction: given the type of a problem, each verdict is a fair draw, and the decision to
stop depends on earlier verdicts only. A generator that was not tried adds no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..policies.portfolio import JointPrior, ProblemType

EXPONENTS = tuple(2.0**power for power in (-6, -4, -2, -1, 0, 1, 2, 3, 5))  # from easy to hard
PULL = 2.0  # verdicts per type and generator that the first guess counts for
OWN = 1.0  # verdicts per problem and generator that similar problems count for
ROUNDS = 40  # of expectation and maximisation; it has settled long before
Tally = Mapping[str, tuple[int, int]]  # by generator: passes and failures


@dataclass(frozen=True)
class _Counts:
    """`[problems, generators]`: passes and failures."""

    passed: NDArray[np.float64]
    failed: NDArray[np.float64]

    @classmethod
    def of(cls, tallies: Sequence[Tally], names: Sequence[str]) -> _Counts:
        rows = [[tally.get(name, (0, 0)) for name in names] for tally in tallies]
        both = np.array(rows, dtype=np.float64).reshape(len(rows), len(names), 2)
        return cls(both[:, :, 0], both[:, :, 1])


def fit_joint(tallies: Sequence[Tally], names: Sequence[str]) -> JointPrior:
    """The prior for these generators, by empirical Bayes.

    First guess: a type of exponent e passes with the mean rate of the generator to the power e, for
    every generator. So difficulty is shared at first, and the counts decide how far it is. The
    result has one type per problem: its own counts, completed by those of similar problems.

    Args:
        tallies: for each past problem, the passes and failures of the generators that were tried.
        names: the generators.
    """
    if not tallies:
        raise UsageError("there are no past problems to learn from")
    counts = _Counts.of(tallies, names)
    tried = counts.passed.sum(0) + counts.failed.sum(0)
    mean = (counts.passed.sum(0) + 1) / (tried + 2)
    guess = mean[None, :] ** np.array(EXPONENTS)[:, None]
    chances, weights = guess, np.full(len(guess), 1 / len(guess))
    for _ in range(ROUNDS):
        likely = _likely(counts, chances, weights)
        passed = likely.T @ counts.passed + PULL * guess
        failed = likely.T @ counts.failed + PULL * (1 - guess)
        chances = passed / (passed + failed)
        weights = (likely.sum(0) + 1 / len(guess)) / (len(tallies) + 1)
    return _completed(counts, chances, _likely(counts, chances, weights), weights, names)


def _likely(
    counts: _Counts, chances: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`[problems, types]`: the probability of each type, given the counts."""
    inside = np.clip(chances, 1e-9, 1 - 1e-9)
    logs = counts.passed @ np.log(inside).T + counts.failed @ np.log1p(-inside).T + np.log(weights)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    normal: NDArray[np.float64] = likely / likely.sum(axis=1, keepdims=True)
    return normal


def _completed(
    counts: _Counts,
    chances: NDArray[np.float64],
    likely: NDArray[np.float64],
    weights: NDArray[np.float64],
    names: Sequence[str],
) -> JointPrior:
    """One type per problem, and the fitted types with the weight of one problem together."""
    expected = likely @ chances
    own = (counts.passed + OWN * expected) / (counts.passed + counts.failed + OWN)
    rows = [(1.0, row) for row in own.tolist()]
    rows += [(weight, row) for weight, row in zip(weights.tolist(), chances.tolist(), strict=True)]
    types = tuple(ProblemType(weight, dict(zip(names, row, strict=True))) for weight, row in rows)
    return JointPrior(types, len(own))
