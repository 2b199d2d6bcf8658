"""A class in which search needs one label and learning needs on the order of d (Remark D.7).

The points are c (number 0), where half of all candidates are, and e_1 ... e_d (numbers 1 to d),
equally likely. The concepts are h_w(z) = 1 if w.z >= 3/2, for w in {0, 1, 2}^d. For d >= 2 these
are the all-zero concept, and c together with any set of the e_j. So c passes under every concept
under which anything passes. (For d = 1 the remark is wrong: the weight 1 is the all-zero concept,
so c does not pass.)

A search draws until it has a candidate at c, and verifies it. A learner needs the labels of about
half of the e_j: each label that it does not know is a fair coin.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...core.errors import UsageError
from ..stars.classes import ConceptClass, check_size
from .active_learning import Hypothesis, disagreement_learner, pool_size, run_learner

CENTRE = 0  # the number of the point c


def separation_class(d: int) -> ConceptClass:
    """The whole class: 2^d + 1 concepts on d + 1 points, the all-zero concept first."""
    _check_dimension(d)
    name = f"the separation for d = {d}"
    check_size(2 ** min(d, 64) + 1, d + 1, name)
    sets = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    rows = np.hstack([np.ones((2**d, 1)), sets])
    return ConceptClass(np.vstack([np.zeros(d + 1), rows]), name)


class SeparationSpace:
    """The version space of that class, for any d, without a list of its concepts."""

    def __init__(self, d: int) -> None:
        _check_dimension(d)
        self._labels: dict[int, bool] = {}

    def is_open(self, point: int) -> bool:
        """Whether the remaining concepts disagree about a point."""
        if point in self._labels or self._labels.get(CENTRE) is False:
            return False
        return point != CENTRE or not any(self._labels.values())

    def tell(self, point: int, label: bool) -> None:
        """Remove the concepts that do not agree with this label."""
        self._labels[point] = label

    def hypothesis(self) -> Hypothesis:
        """The remaining concept under which the fewest points pass."""
        positive = {point for point, label in self._labels.items() if label}
        if positive:
            positive.add(CENTRE)
        return positive.__contains__


def success_bound(d: int, epsilon: float, labels: int) -> float:
    """An upper bound on the chance that a learner with this many labels errs by at most epsilon.

    The chance is an average over all sets of e_j. At least d - labels of them are fair coins to the
    learner, and it may be wrong about 2 d epsilon. This is the remark's bound, by Hoeffding; it is
    1 if it is trivial. If labels <= d (1 - 4 epsilon) / 2, it is at most
    exp(-(1 - 4 epsilon)^2 d / (4 (1 + 4 epsilon))).
    """
    _check_dimension(d)
    coins = d - labels
    excess = coins / 2 - 2 * d * epsilon
    return math.exp(-2 * excess**2 / coins) if coins > 0 and excess > 0 else 1.0


def best_success(d: int, epsilon: float, labels: int) -> float:
    """The exact bound: the chance of at most 2 d epsilon heads among d - labels coins."""
    _check_dimension(d)
    coins = max(0, d - labels)
    allowed = math.floor(2 * d * epsilon + 1e-9)
    if allowed >= coins:
        return 1.0
    ways = total = 1
    for heads in range(allowed):
        ways = ways * (coins - heads) // (heads + 1)
        total += ways
    return total / (1 << coins)


def fewest_labels(d: int, epsilon: float, delta: float) -> int:
    """The fewest labels of any (epsilon, delta)-learner: `best_success` must reach 1 - delta."""
    return _fewest(d, lambda labels: best_success(d, epsilon, labels) >= 1 - delta)


def labels_bound(d: int, epsilon: float, delta: float) -> int:
    """The same with `success_bound`: weaker, but it grows as d (1 - 4 epsilon) / 2."""
    return _fewest(d, lambda labels: success_bound(d, epsilon, labels) >= 1 - delta)


def _fewest(d: int, enough: Callable[[int], bool]) -> int:
    """The smallest sufficient number of labels; d labels always suffice."""
    return bisect.bisect_left(range(d), True, key=enough)


def search(pool: Sequence[int]) -> int | None:
    """The index of the only candidate to verify; None if c is not in the pool.

    c passes under every concept under which anything passes, so c alone hits all traces.
    """
    return next((index for index, point in enumerate(pool) if point == CENTRE), None)


@dataclass(frozen=True)
class Separation:
    """Searching and learning for one d, over random targets and pools.

    Attributes:
        d: the number of points besides c.
        search_pool: the number of unlabelled candidates that the search draws.
        search_labels: the mean number of verifications: 1 if c is in the pool, else 0.
        search_found: the share of pools in which a passing candidate was found.
        learn_pool: the number of unlabelled candidates that the learner draws.
        learn_labels: the mean number of labels that the learner requests.
        learn_error: the standard deviation of that number.
        learned: the share of hypotheses that err by at most epsilon.
        labels_bound: the fewest labels of any learner, by Hoeffding as in the remark.
        fewest_labels: the fewest labels of any learner, by exact binomials.
    """

    d: int
    search_pool: int
    search_labels: float
    search_found: float
    learn_pool: int
    learn_labels: float
    learn_error: float
    learned: float
    labels_bound: int
    fewest_labels: int


def measure(d: int, epsilon: float, delta: float, *, runs: int, seed: int = 0) -> Separation:
    """Remark D.7: run the search and a disagreement-based learner on the same sets of e_j."""
    if not 0 < epsilon < 0.25:
        raise UsageError(f"epsilon must be between 0 and 1/4, not {epsilon:g}")
    chance = np.random.default_rng((seed, d))
    small = math.ceil(-math.log2(delta))
    large = pool_size(2**d + 1, epsilon, delta)
    learner = disagreement_learner(partial(SeparationSpace, d))
    found = 0
    asked = 0
    right = 0
    labels = np.zeros(runs)
    for run in range(runs):
        target = {CENTRE, *(np.flatnonzero(chance.random(d) < 0.5) + 1).tolist()}
        index = search(_pool(d, small, chance))
        asked += index is not None
        found += index is not None and CENTRE in target
        learned = run_learner(learner, _pool(d, large, chance), target.__contains__)
        labels[run] = learned.labels
        right += _error(learned.hypothesis, target, d) <= epsilon
    return Separation(
        d,
        small,
        asked / runs,
        found / runs,
        large,
        float(labels.mean()),
        float(labels.std()),
        right / runs,
        labels_bound(d, epsilon, delta),
        fewest_labels(d, epsilon, delta),
    )


def _pool(d: int, size: int, chance: np.random.Generator) -> list[int]:
    """Random points: c with probability one half, else one of the e_j."""
    points = np.where(chance.random(size) < 0.5, CENTRE, chance.integers(1, d + 1, size))
    drawn: list[int] = points.tolist()
    return drawn


def _error(hypothesis: Hypothesis, target: set[int], d: int) -> float:
    """The probability that the two differ."""
    wrong = sum(hypothesis(point) != (point in target) for point in range(1, d + 1))
    return (hypothesis(CENTRE) != (CENTRE in target)) / 2 + wrong / (2 * d)


def _check_dimension(d: int) -> None:
    if d < 2:
        raise UsageError(f"d must be at least 2, not {d}")
