"""Why rounds are cheap: the bounds of Balanced and Alternate before any constant is taken.

The letters: costs are in units of c_rew, and rho = c_ver / c_rew. A *step law* (q, p) has a share q
of candidates at or above a threshold, and those pass with probability p; a = 1 - q. Its optimum is
J_t = (1 + rho q) / (p q), and for any law with non-decreasing h each threshold t gives a step law
whose J_t is that of the threshold. A round with k fresh candidates passes with probability at least
p U, U = 1 - a^k; the first one has V in the place of U. The pages in `docs/theory/` have the
proofs; here are their inequalities, to be computed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from .slots import alternate_draws, balanced_draws


class StepLaw(NamedTuple):
    """A share q of the candidates passes with probability p, the others never."""

    q: float
    p: float

    def optimum(self, rho: float) -> float:
        """J_t: generate until one is at or above the threshold, verify that one, and so on."""
        return (1 + rho * self.q) / (self.p * self.q)

    def verify_all(self, rho: float) -> float:
        """J_VA: verify everything."""
        return (1 + rho) / (self.p * self.q)


class Round(NamedTuple):
    """The fresh candidates of a round, and the most that it costs."""

    fresh: int
    cost: float


class Rounds(NamedTuple):
    """A first round, and all the others."""

    first: Round
    later: Round


def balanced_rounds(rho: Fraction | float) -> Rounds:
    """Generate g1, later g; verify one."""
    draws = balanced_draws(rho)
    return Rounds(*(Round(fresh, fresh + float(rho)) for fresh in draws))


def alternate_rounds(rho: Fraction | float) -> Rounds:
    """Generate 1 + d, later 1 + n; verify two."""
    draws = alternate_draws(rho)
    return Rounds(*(Round(1 + fresh, 1 + fresh + 2 * float(rho)) for fresh in draws))


def chance_above(q: float, k: int) -> float:
    """1 - a^k: that one of k fresh candidates is at or above the threshold.

    By (i), p times this is the least with which the best of them passes where h is non-decreasing.
    """
    return 1.0 if q == 1 else -math.expm1(k * math.log1p(-q))


def expected_cost_bound(rounds: Rounds, law: StepLaw) -> float:
    """Lemma B: c1 + (1 - p V) c / (p U), which the expected cost does not exceed."""
    first, later = rounds
    fails = 1 - law.p * chance_above(law.q, first.fresh)
    return first.cost + fails * later.cost / (law.p * chance_above(law.q, later.fresh))


def room_for_first(rounds: Rounds, q: float) -> float:
    """H of Lemma B: how much the first round may cost, over what a later one costs.

    H = (1 + (G-1) q) / (G q) - (1 - V) / U, with G the fresh candidates of a later round. At least
    0 by (ii) where the first round is no larger than the others.
    """
    g = rounds.later.fresh
    fails = 1 - chance_above(q, rounds.first.fresh)
    return (1 + (g - 1) * q) / (g * q) - fails / chance_above(q, g)


def spread_gain(q: float, r: float) -> float:
    """(ii): (1 - a^(1+r)) (1 + r q) - (1 + r) q, which is not negative for r >= 0."""
    above = 1.0 if q == 1 else -math.expm1((1 + r) * math.log1p(-q))
    return above * (1 + r * q) - (1 + r) * q


def exponential_gain(theta: float, x: float) -> float:
    """Lemma A: (1 + (theta - 1/2) x) (e^x - 1) - x e^(theta x), over x e^x.

    Not negative for theta from 1/2 to 3/4 and x > 0.
    """
    return (1 + (theta - 0.5) * x) * -math.expm1(-x) / x - math.exp((theta - 1) * x)


def exponential_coefficient(theta: Fraction, k: int) -> Fraction:
    """Lemma A: the coefficient of x^k / k! in (1 + (theta - 1/2) x) (e^x - 1) - x e^(theta x)."""
    if k < 1:
        return Fraction(0)
    linear = k * (theta - Fraction(1, 2)) if k > 1 else Fraction(0)
    return 1 + linear - k * theta ** (k - 1)
