"""The proof that Balanced attains the constant 2 - 1 / (1 + rho), step by step.

The letters are those of docs/theory/balanced.md: gamma = 1 + rho, n = floor(gamma), and phi is the
rest. Rounds draw n or n + 1 candidates; the first draws g1. Under a step law (q, p), a = 1 - q, a
round of k draws passes with probability at least p (1 - a^k). K is the last round if it passes with
exactly that, G_k the candidates of k rounds, and e_k = G_k - gamma k the *phase*.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

from ..constants import least_constant
from ..rounds import StepLaw, chance_above
from ..slots import BalancedPath
from .continuation import Bracket

Polynomial = dict[tuple[int, int], Fraction]  # exponents of a and phi -> coefficient


def mean_chance(rho: float, q: float) -> float:
    """The mean of 1 - a^k over the rounds: 1 - a^n (1 - phi q)."""
    n = math.floor(1 + rho)
    phi = 1 + rho - n
    return chance_above(q, n) + phi * q * (1 - q) ** n


def mean_rate(rho: float, q: float) -> float:
    """Lambda: the cost per round over the mean chance. Many rounds cost lambda / p."""
    return (1 + 2 * rho) / mean_chance(rho, q)


def phase_weight(rho: float, q: float) -> float:
    """Kappa, the cost of a unit of phase: E[J] is lambda / p + kappa E[e_K] (Lemma 1)."""
    return 1 - mean_rate(rho, q) * q * (1 - q) ** math.floor(1 + rho)


def allowed(rho: float, q: float) -> float:
    """C p J_t: what a search may cost, times p."""
    return least_constant(rho) * (1 + rho * q) / q


def rounds_cost(rho: Fraction, law: StepLaw, rounds: int = 20_000) -> Bracket:
    """Bounds on the expected cost of Balanced if each round passes with exactly p (1 - a^k).

    The true cost is no higher, and equal for p = 1. The first rounds are summed; what follows costs
    lambda / p up to one unit, by Lemma 1.
    """
    path = BalancedPath(rho)
    ratio = float(rho)
    cost = 0.0
    reached = 1.0
    for slot in itertools.islice(path, rounds):
        cost += reached * (slot.draws + ratio)
        reached *= 1 - law.p * chance_above(law.q, slot.draws)
        if reached < 1e-18:
            break
    later = mean_rate(ratio, law.q) / law.p
    return Bracket(cost + reached * max(0.0, later - 1), cost + reached * (later + 1))


def early_look_margin(rho: float, q: float) -> float:
    """Case rho >= 1: what is left of C J_1 after the first round, in the worst phase.

    It is not negative for rho > 3, where g1 >= 2. For whole rho the phase is 0, and kappa is left
    out.
    """
    first = BalancedPath(Fraction(rho)).drawn(1)
    weight = 0.0 if rho == math.floor(rho) else max(0.0, phase_weight(rho, q))
    after = allowed(rho, q) - (1 - q) ** first * mean_rate(rho, q)
    return after - (first + rho) - weight


def early_look_polynomials(n: int) -> tuple[Polynomial, Polynomial]:
    """Case 1 < rho < 3, where g1 = 1 and n is 2 or 3: two polynomials in a and phi.

    They are the Bernstein coefficients in p, times positive factors, of what is left of C p J_t
    after the cost. The third coefficient is the slack C p J_t - lambda, which is never negative.
    """
    one: Polynomial = {(0, 0): Fraction(1)}
    a: Polynomial = {(1, 0): Fraction(1)}
    gamma: Polynomial = {(0, 0): Fraction(n), (0, 1): Fraction(1)}
    rho = _add(gamma, one, -1)
    q = _add(one, a, -1)
    cost = _add(gamma, rho)
    power: Polynomial = {(n, 0): Fraction(1)}
    mean: Polynomial = {(i, 0): Fraction(1) for i in range(n)} | {(n, 1): Fraction(1)}
    # Over q the mean chance is 1 + a + ... + a^(n-1) + phi a^n.
    slack = _times(cost, _over_q(_add(_times(_add(one, _times(rho, q)), mean), gamma, -1)))
    linear = _add(_times(_add(gamma, one), mean), _times(cost, _add(one, power)), -1)
    square = _times(q, _add(mean, _times(cost, power), -1))
    middle = _add(_add(slack, slack), _times(gamma, linear), -1)
    last = _add(slack, _times(gamma, _add(linear, square, -1)), -1)
    return middle, last


def bernstein(polynomial: Polynomial, degree: int) -> list[Fraction]:
    """Coefficients over the unit square. If none is negative, neither is the polynomial there."""
    if any(max(powers) > degree for powers in polynomial):
        raise ArithmeticError(f"a polynomial of a higher degree than {degree}")
    return [
        sum(
            (
                value
                * Fraction(math.comb(i, k), math.comb(degree, k))
                * Fraction(math.comb(j, m), math.comb(degree, m))
                for (k, m), value in polynomial.items()
                if k <= i and m <= j
            ),
            Fraction(0),
        )
        for i in range(degree + 1)
        for j in range(degree + 1)
    ]


def phase_sums(rho: Fraction, rounds: int) -> list[Fraction]:
    """Case rho < 1: F_k, the sum of -e_1 ... -e_k. It is never negative (Lemma 3)."""
    path = BalancedPath(rho)
    return list(itertools.accumulate((1 + rho) * k - path.drawn(k) for k in range(1, rounds + 1)))


def reserve_margin(rho: float, r: float) -> float:
    """Case rho < 1/3, r = p q >= 2 rho / (1 - rho): the rounds before the first double draw.

    Their share of E[F_K], over the chance to get further and theta, less the mean number of
    later double draws given one. It is not negative.
    """
    theta = (1 - rho) / 2
    last = math.floor(0.5 / rho + 0.5)  # the last round before the first double draw
    series = [r * (last + 1) * (last + 2) / 6, r * r * (last + 1) * (last + 2) * (last + 3) / 24]
    return last * rho / theta * sum(series) - 1 / (1 - (1 - r) ** math.floor(1 / rho))


def doubles(rho: float, law: StepLaw) -> float:
    """Case rho < 1, q < rho a: a lower bound on E[N_K], the mean number of double draws, times p.

    For q <= (1 - q)^2 it does not increase with p.
    """
    r = law.p * law.q
    a = 1 - law.q
    single = -math.log1p(-r)
    double = -math.log1p(-r * (1 + a))
    cycle = single * (1 / rho - 1) + double
    return law.p * math.exp(double / 2 - single) / (2 * math.sinh(cycle / 2))


def needle_margin(rho: float, x: float) -> float:
    """Case rho < 1, p = 1, q = rho a x with x < 1: the tolerance for E[-e_K], less its bound.

    It is at least rho (1 + x) / (2 (1 - x)) - (1 + rho)^2 x / 24, not negative for rho >= 1/67.
    """
    a = 1 / (1 + rho * x)
    q = 1 - a
    phase = rho / q - (1 + rho * a) * doubles(rho, StepLaw(q, 1.0))
    return least_constant(rho) * rho / (1 - x) - phase


def excess(rho: float, x: float) -> float:
    """A bound on E[J] / J_t above the constant, for rho < 1/67 and q = rho a x; below 2e-7."""
    return rho**2 * max(0.0, (1 + rho) ** 2 * x * x * (1 - x) / 24 - rho * x * (1 + x) / 2)


def phased_draws(rho: float, phase: float) -> Iterator[int]:
    """Case rho < 1, random phase: rounds of 1 or 2 draws; k rounds draw k + ceil(rho k - phase)."""
    for k in itertools.count(1):
        yield 1 + math.ceil(rho * k - phase) - math.ceil(rho * (k - 1) - phase)


def phased_doubles(rho: float, law: StepLaw) -> Bracket:
    """E[N_K] for a phase that is uniform on (0, 1): between these two sums over the points v.

    The exact sum has (1 - r)^floor(v / rho) where the low end has (1 - r)^(v / rho), r = p q, and
    the high end has rho / r in all, as if earlier double draws did not raise the chance to stop.
    """
    r = law.p * law.q
    a = 1 - law.q
    single = -math.log1p(-r)
    stays = math.exp(-single / rho)  # alpha
    share = 1 - r * a / (1 - r)  # beta
    return Bracket(rho / single * (1 - stays) / (1 - stays * share), rho / r)


def phased_margin(rho: float, law: StepLaw) -> float:
    """Random phase: what is left of the tolerance for E[-e_K] in (2). It is never negative."""
    q = law.q
    a = 1 - law.q
    p = law.p
    low, high = phased_doubles(rho, law) if p * q < 1 else Bracket(rho, rho)
    phase = rho / (p * q) - (1 + rho * a) * (low if q < rho * a else high)
    return least_constant(rho) * rho**2 * a / p - (rho * a - q) * phase


def _add(one: Polynomial, other: Polynomial, sign: int = 1) -> Polynomial:
    return {
        at: one.get(at, Fraction(0)) + sign * other.get(at, Fraction(0))
        for at in one.keys() | other.keys()
    }


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    product: Polynomial = {}
    for (i, j), x in one.items():
        for (k, m), y in other.items():
            product[i + k, j + m] = product.get((i + k, j + m), Fraction(0)) + x * y
    return product


def _over_q(polynomial: Polynomial) -> Polynomial:
    """Divide by 1 - a. The coefficients of the quotient are partial sums; the last is 0."""
    degree = max(i for i, _ in polynomial)
    powers = {j for _, j in polynomial}
    sums = {
        (i, j): sum((polynomial.get((k, j), Fraction(0)) for k in range(i + 1)), Fraction(0))
        for i in range(degree + 1)
        for j in powers
    }
    if any(sums[degree, j] for j in powers):
        raise ArithmeticError("1 - a does not divide the polynomial")
    return sums
