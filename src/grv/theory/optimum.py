"""The distribution-aware optimum: the lowest expected cost if the law is known (section 3).

A *law* is the score distribution D together with h, the probability of passing given the score.
Laws in this module are discrete or empirical; `continuous.py` has continuous laws. The paper's
letters: tau* is the break-even probability of passing, J* the optimal expected cost, q_t the
probability of scoring at least t, and s_t the probability of scoring at least t and passing.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..core.errors import UsageError
from ..core.values import Costs


@dataclass(frozen=True)
class Law:
    """Definition 2.1, discrete: score, probability and chance of passing of each atom.

    Attributes:
        scores: increasing.
        masses: positive; scaled to sum to 1.
        passes: h at each atom, in [0, 1], not all zero; need not be monotone.
    """

    scores: tuple[float, ...]
    masses: tuple[float, ...]
    passes: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = {len(self.scores), len(self.masses), len(self.passes)}
        if len(sizes) > 1 or not self.scores:
            raise UsageError("a law needs as many scores as masses and passes, and at least one")
        if any(math.isnan(score) for score in self.scores):
            raise UsageError("a score of a law is NaN")
        if any(not a < b for a, b in zip(self.scores, self.scores[1:], strict=False)):
            raise UsageError("the scores of a law must increase")
        if not all(math.isfinite(m) and m > 0 for m in self.masses):
            raise UsageError("the masses of a law must be positive and finite")
        if not all(0 <= p <= 1 for p in self.passes):
            raise UsageError("the chances of passing must be between 0 and 1")
        if not any(self.passes):
            raise UsageError("no candidate of this law ever passes, so no search can succeed")
        total = math.fsum(self.masses)
        object.__setattr__(self, "masses", tuple(m / total for m in self.masses))

    @classmethod
    def empirical(cls, scores: Sequence[float], passed: Sequence[bool]) -> Law:
        """The law of logged candidates: h is the pass rate at each distinct score."""
        if len(scores) != len(passed):
            raise UsageError(f"{len(scores)} scores have {len(passed)} verdicts")
        counts: dict[float, list[int]] = {}
        for score, label in zip(scores, passed, strict=True):
            count = counts.setdefault(score, [0, 0])
            count[0] += 1
            count[1] += bool(label)
        atoms = sorted(counts)
        return cls(
            tuple(atoms),
            tuple(float(counts[score][0]) for score in atoms),
            tuple(counts[score][1] / counts[score][0] for score in atoms),
        )

    @property
    def pass_rate(self) -> float:
        """The probability that a candidate passes."""
        return math.fsum(m * p for m, p in zip(self.masses, self.passes, strict=True))

    def passing(self, score: float) -> float:
        """The value of h at the nearest atom at or below `score`; 0 below all atoms."""
        at = bisect.bisect_right(self.scores, score)
        return self.passes[at - 1] if at else 0.0


class Optimum(NamedTuple):
    """tau*, the lowest chance of passing worth a verification, and J*, the optimal cost."""

    tau: float
    cost: float


class BestThreshold(NamedTuple):
    """The lowest score to verify, and the cost J_t."""

    score: float
    cost: float


class Tail(NamedTuple):
    """q_t = P(score >= t) and s_t = P(score >= t and passes)."""

    q: float
    s: float


def mean_price(chance: float, costs: Costs) -> float:
    """The expected cost of one verification that passes with this chance."""
    return costs.failure + chance * (costs.verify - costs.failure)


def rule_cost(q: float, s: float, costs: Costs) -> float:
    """The cost of a rule that verifies each new candidate with probability q (Lemma C.1).

    A candidate is verified and passes with probability s. The rule continues until one has passed.
    It pays for (1 - s) / s candidates that do not pass and for one that does. With a price c_fail
    of failures, this is `(c_rew + c_fail q) / s + (c_ver - c_fail)`.
    """
    planned = (costs.candidate + costs.failure * q) / s if s else math.inf
    return planned + (costs.verify - costs.failure)


def optimum(law: Law, costs: Costs) -> Optimum:
    """Theorem 3.2: tau* solves `c_ver E[(h(R) - tau)+] = tau c_rew`, and J* = c_ver / tau*.

    If failures have a price of their own, it takes the place of c_ver in both, and J* is higher by
    the difference (docs/theory/failure-price.md).

    For a discrete law J* is the minimum of `(c_rew + c_ver q) / s` over the sets of atoms with the
    largest h, where q is the probability of the set and s that of being in it and passing: this is
    the best rule that decides on each candidate as it comes (Lemma B.1). Every pass needs a
    candidate and a verification, so J* >= c_rew + c_ver and tau* < 1.
    """
    atoms = sorted(zip(law.passes, law.masses, strict=True), reverse=True)
    planning = costs.planning
    q = s = 0.0
    cost = math.inf
    for passes, mass in atoms:
        q += mass
        s += mass * passes
        cost = min(cost, rule_cost(q, s, planning))
    return Optimum(costs.failure / cost, cost + (costs.verify - costs.failure))


def tail(law: Law, t: float) -> Tail:
    """q_t and s_t (Lemma C.1)."""
    chosen = range(bisect.bisect_left(law.scores, t), len(law.scores))
    q = math.fsum(law.masses[i] for i in chosen)
    s = math.fsum(law.masses[i] * law.passes[i] for i in chosen)
    return Tail(min(q, 1.0), min(s, 1.0))  # the sum of the masses has a rounding error


def threshold_cost(law: Law, t: float, costs: Costs) -> float:
    """J_t = (c_rew + c_ver q_t) / s_t, the cost of verifying all candidates that score >= t.

    With a price of failures, see `rule_cost`.
    """
    return rule_cost(*tail(law, t), costs)


def best_threshold(law: Law, costs: Costs) -> BestThreshold:
    """The lowest J_t; on ties, the higher t. It equals J* if h is non-decreasing (Lemma C.1)."""
    q = s = 0.0
    best = BestThreshold(math.inf, math.inf)
    for score, mass, passes in reversed(list(zip(law.scores, law.masses, law.passes, strict=True))):
        q += mass
        s += mass * passes
        cost = rule_cost(q, s, costs)
        if cost < best.cost:
            best = BestThreshold(score, cost)
    return best
