"""How much variety the bounds of Alternate allow (docs/theory, Theorem 7).

Alternate is at its worst if the best candidates are rare, or if the score misleads. Between these
extremes its bounds leave room: one in `period` of the slots that verify the best candidate may
verify any other one.

The letters, as in `slots.py`: rho is c_ver / c_rew, n the draws of a round, d those of the first
round, q the share of scores at or above a threshold, p the chance that such a candidate passes, and
J_1 = (1 + rho q) / q the cost of a threshold rule if p = 1.
"""

from __future__ import annotations

import math

from .slots import alternate_draws


def period(n: int) -> int:
    """One in this many best slots may verify any candidate: max(3, 1 + ceil(sqrt(n) / 2)).

    >>> [period(n) for n in (1, 10, 16, 17, 100)]
    [3, 3, 3, 4, 6]
    """
    half_root = math.isqrt(n)  # ceil(sqrt(n) / 2) is the ceiling of half the ceiling of the root
    ceiling = half_root if half_root * half_root == n else half_root + 1
    return max(3, 1 + -(-ceiling // 2))


def varied_ratio(rho: float, q: float, e: int | None = None) -> float:
    """A bound on the cost of Varied over J_t, for a threshold with share q and the worst p.

    Up to the first verification above the threshold, Varied is Alternate and costs at most
    `before`. If that verification fails, blocks follow: `e - 1` rounds, and one more round if the
    last of them gives its best slot to another candidate. A block passes with a chance of at least
    `p ((1 - p) apart + p together)`: `apart` adds the chances of all slots; `together` counts a
    round only once if two of its slots would pass.
    """
    first, n = alternate_draws(rho)
    e = period(n) if e is None else e
    c = 1 + n + 2 * rho

    def hit(k: int) -> float:  # the chance that one of k draws is at or above the threshold
        return -math.expm1(k * math.log1p(-q)) if q < 1 else 1.0

    before = 1 + first + 2 * rho + (1 - hit(1 + first)) * c / hit(1 + n)
    block = (e - 1 + hit(n)) * c
    apart = (e - 1) * (q + hit(n)) + q * hit(n)
    together = (e - 1) * hit(1 + n) - q * q * hit(n)
    return _worst_mix(block, apart, together, before) / ((1 + rho * q) / q)


def _worst_mix(block: float, apart: float, together: float, before: float) -> float:
    """The maximum over p of `(1 - p) block / ((1 - p) apart + p together) + p before`, concave."""
    worst = max(block / apart, before)
    if together < apart:
        p = (apart - math.sqrt(block * together / before)) / (apart - together)
        if 0 < p < 1:
            mixed = (1 - p) * apart + p * together
            worst = max(worst, (1 - p) * block / mixed + p * before)
    return worst
