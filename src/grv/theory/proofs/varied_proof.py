"""A proof by computer of the inequality behind Theorem 7, one n at a time.

The claim (docs/theory/varied.md), for all rho that round to n, 0 < q <= 1 and 0 <= p <= 1, with
C = 3 and E = e - 1:

    p D + (1 - p) (E + U) c / ((1 - p) S0 + p S1) <= C J_1.

Multiplied by q, and by the denominator over q, this is Q(p) >= 0 for

    Q(p) = (1 - p)^2 b0 + p (1 - p) b1 + p^2 b2,
    b0 = T S0/q - A,  b1 = T S1/q + (T - q D) S0/q - A,  b2 = (T - q D) S1/q,

with T = C (1 + rho q) and A = (E + U) c. Q is not negative on [0, 1] if b0, b2 >= 0 and either
b1 >= 0 or b1^2 <= 4 b0 b2. For given p and q it is linear in rho, so the two ends of the interval
of rho are enough. The shares q from 0 to 1 are divided into cells. On each cell, interval
arithmetic encloses b0, b1 and b2; a cell that this does not decide is halved. No limit needs care:
U/q and V/q are sums of powers of 1 - q, equal to n and n + 1 at q = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..slots import alternate_draws
from ..varied_bound import period
from .intervals import Interval, geometric, power

BY_HAND = 400  # from this n on, docs/theory/varied.md has a proof without a computer
_CUTS = 40  # how often a cell is halved before it counts as undecided

_Bools = NDArray[np.bool_]


class Proof(NamedTuple):
    """The result of a proof.

    Attributes:
        holds: whether the claim is proved.
        cells: the number of cells on which it is proved.
        violated: a rho and a q for which the inequality is false for some p, if one was found.
    """

    holds: bool
    cells: int
    violated: tuple[float, float] | None = None


def prove(n: int, constant: float = 3.0, e: int | None = None) -> Proof:
    """Decide the claim for all ratios that round to n, optionally with another constant or period.

    >>> prove(10).holds, prove(10, constant=2.9).violated is None
    (True, False)
    """
    ends = [prove_at(rho, n, constant, e) for rho in (n - 0.5, n + 0.5)]
    violated = next((end.violated for end in ends if end.violated), None)
    return Proof(all(end.holds for end in ends), sum(end.cells for end in ends), violated)


def prove_at(rho: float, n: int, constant: float = 3.0, e: int | None = None) -> Proof:
    """The same for one rho, for which 1 + n + 2 rho must have no rounding error."""
    edges = np.concatenate(([0.0], np.geomspace(0.01 / n, 1.0, 200)))
    edges[-1] = 1.0
    low = edges[:-1]
    high = edges[1:]
    done = 0
    for _ in range(_CUTS):
        enclosed = _bernstein(Interval(low, high), rho, n, constant, e or period(n))
        wrong = _negative(*enclosed)
        right = _not_negative(*enclosed)
        done += int(right.sum())
        if wrong.any():
            return Proof(False, done, (rho, float(high[wrong][0])))
        if right.all():
            return Proof(True, done)
        low = low[~right]
        high = high[~right]
        middle = (low + high) / 2
        low = np.concatenate((low, middle))
        high = np.concatenate((middle, high))
    return Proof(False, done)


def _bernstein(
    q: Interval, rho: float, n: int, constant: float, e: int
) -> tuple[Interval, Interval, Interval]:
    """Enclosures of b0, b1 and b2 on each cell of shares."""
    first = alternate_draws(n).first
    c = 1 + n + 2 * rho
    a = 1.0 - q
    some = 1.0 - power(a, n)  # U
    either = geometric(a, 1 + n)  # V / q
    apart = some + (e - 1) * (1.0 + geometric(a, n))  # S0 / q
    together = (e - 1) * either - q * some  # S1 / q
    block = (some + (e - 1)) * c  # A
    t = constant * (1.0 + rho * q)
    room = t - q * (1 + first + 2 * rho) - power(a, 1 + first) * c / either  # T - q D
    return t * apart - block, t * together + room * apart - block, room * together


def _not_negative(b0: Interval, b1: Interval, b2: Interval) -> _Bools:
    """Cells on which Q >= 0 for all p. The lower ends suffice: Q increases with b0, b1 and b2."""
    least, dip, most = (Interval(x.low, x.low) for x in (b0, b1, b2))
    allowed = 4.0 * (least * most)
    ends = (b0.low >= 0) & (b2.low >= 0)
    return ends & ((b1.low >= 0) | ((dip * dip).high <= allowed.low))


def _negative(b0: Interval, b1: Interval, b2: Interval) -> _Bools:
    """Cells on which Q is certainly negative for some p."""
    dips = (b1.high < 0) & ((b1 * b1).low > (4.0 * (b0 * b2)).high)
    return (b0.high < 0) | (b2.high < 0) | dips
