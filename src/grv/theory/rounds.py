"""Why rounds are cheap: the bounds of Balanced and Alternate as functions of the law.

The letters: costs are in units of c_rew, and rho = c_ver / c_rew. In a *step law* (q, p), a share q
of the candidates is at or above a threshold and passes with probability p; the others never pass;
a = 1 - q. Its optimum is J_t = (1 + rho q) / (p q). For any law with non-decreasing h, each
threshold t gives a step law with the same J_t. A round with k new candidates passes with
probability at least p U, U = 1 - a^k; for the first round, V replaces U. The proofs are in
`docs/theory/`; this module computes their inequalities.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from .slots import alternate_draws, block_draws


class StepLaw(NamedTuple):
    """A share q of the candidates passes with probability p, the others never."""

    q: float
    p: float

    def optimum(self, rho: float) -> float:
        """J_t: generate until a candidate reaches the threshold, verify it, and repeat."""
        return (1 + rho * self.q) / (self.p * self.q)

    def verify_all(self, rho: float) -> float:
        """J_VA: verify everything."""
        return (1 + rho) / (self.p * self.q)


class Round(NamedTuple):
    """The number of new candidates of a round, and the highest cost of the round."""

    fresh: int
    cost: float


class RoundPlan(NamedTuple):
    """The first round, and every later one."""

    first: Round
    later: Round


def equal_rounds(rho: Fraction | float) -> RoundPlan:
    """Generate g1, later g = floor(1 + rho); verify one. At whole rho, Balanced."""
    draws = block_draws(rho)
    return RoundPlan(*(Round(fresh, fresh + float(rho)) for fresh in draws))


def alternate_rounds(rho: Fraction | float) -> RoundPlan:
    """Alternate: generate 1 + d, later 1 + n; verify two."""
    draws = alternate_draws(rho)
    return RoundPlan(*(Round(1 + fresh, 1 + fresh + 2 * float(rho)) for fresh in draws))


def chance_above(q: float, k: int) -> float:
    """1 - a^k: the probability that one of k new candidates reaches the threshold.

    By (i), if h is non-decreasing, the best of them passes with probability at least p times this.
    """
    return 1.0 if q == 1 else -math.expm1(k * math.log1p(-q))


def expected_cost_bound(rounds: RoundPlan, law: StepLaw) -> float:
    """Lemma B: the expected cost is at most c1 + (1 - p V) c / (p U)."""
    first, later = rounds
    fails = 1 - law.p * chance_above(law.q, first.fresh)
    return first.cost + fails * later.cost / (law.p * chance_above(law.q, later.fresh))


def room_for_first(rounds: RoundPlan, q: float) -> float:
    """H of Lemma B: the highest allowed cost of the first round, over the cost of a later one.

    H = (1 + (G-1) q) / (G q) - (1 - V) / U, where G is the number of new candidates of a later
    round. By (ii), H >= 0 if the first round is no larger than the others.
    """
    g = rounds.later.fresh
    fails = 1 - chance_above(q, rounds.first.fresh)
    return (1 + (g - 1) * q) / (g * q) - fails / chance_above(q, g)


def alternate_cost_bound(rho: Fraction | float, law: StepLaw) -> float:
    """Theorem 2: the cost of Alternate if leftover candidates never pass.

    If the blind candidate passes, the rest of its round is not paid for.
    """
    (q, p), ratio = law, float(rho)

    def cost_and_chance(draws: int) -> tuple[float, float]:
        """The mean cost of a round, and the chance that it passes."""
        best = chance_above(q, draws)
        return 1 + ratio + (1 - p * q) * (draws + ratio), p * (q + best - p * q * best)

    first, later = alternate_draws(rho)
    (cost, passes), (cost_later, passes_later) = cost_and_chance(first), cost_and_chance(later)
    return cost + (1 - passes) * cost_later / passes_later


def spread_gain(q: float, r: float) -> float:
    """(ii): (1 - a^(1+r)) (1 + r q) - (1 + r) q >= 0 for r >= 0."""
    above = 1.0 if q == 1 else -math.expm1((1 + r) * math.log1p(-q))
    return above * (1 + r * q) - (1 + r) * q


def exponential_gain(theta: float, x: float) -> float:
    """Lemma A: (1 + (theta - 1/2) x) (e^x - 1) - x e^(theta x), divided by x e^x.

    It is not negative for theta from 1/2 to 3/4 and x > 0.
    """
    return (1 + (theta - 0.5) * x) * -math.expm1(-x) / x - math.exp((theta - 1) * x)


def exponential_coefficient(theta: Fraction, k: int) -> Fraction:
    """Lemma A: the coefficient of x^k / k! in (1 + (theta - 1/2) x) (e^x - 1) - x e^(theta x)."""
    if k < 1:
        return Fraction(0)
    linear = k * (theta - Fraction(1, 2)) if k > 1 else Fraction(0)
    return 1 + linear - k * theta ** (k - 1)
