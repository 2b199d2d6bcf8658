"""The doubling cost shells of the adaptive policy (Algorithm 1).

The paper's letters: a pair (a, b) with 0 <= a <= b means a strategy that generates 2^b candidates
and verifies 2^j of them, j = b - a. Shell s, written S_s, contains the pairs whose cost
`c_rew 2^b + c_ver 2^j` lies in [2^s c_min, 2^(s+1) c_min), where c_min is the smaller of the two
costs; b* and j* are the largest b and the largest j in it.

Costs are converted from their decimal notation to whole numbers before they are compared. So
(0.1, 0.7) has the same schedule as (1, 7), a pair on the edge of a shell is on the right side, and
no cost ratio overflows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ..core.values import Costs
from .decimals import whole


@dataclass(frozen=True, slots=True)
class Shell:
    """One non-empty shell: its number, its largest exponents, and its range of costs."""

    s: int
    b: int
    j: int
    low: float  # 2^s c_min
    high: float  # 2^(s+1) c_min, not included

    def draws(self, factor: float = 2) -> int:
        """m_s, the number of candidates to generate: ceil(factor 2^b*). The paper's factor is 2."""
        return _scaled(factor, self.b)

    def checks(self, factor: float = 6) -> int:
        """k_s, the maximum number of verifications: ceil(factor 2^j*). The paper's factor is 6."""
        return _scaled(factor, self.j)


def shells(costs: Costs) -> Iterator[Shell]:
    """The infinite sequence of non-empty shells.

    The first one contains the smallest pair, (0, 0), and no later one is empty (Lemma C.4).
    """
    return (nth_shell(number, costs) for number in itertools.count())


def nth_shell(number: int, costs: Costs) -> Shell:
    """The non-empty shell with this number, counted from 0."""
    s = shell_number(0, 0, costs) + number
    unit = min(costs.candidate, costs.verify)
    b, j = _largest(s, *whole(costs))
    return Shell(s, b, j, _times_power(unit, s), _times_power(unit, s + 1))


def shell_number(b: int, j: int, costs: Costs) -> int:
    """The s whose shell contains the pair (b - j, b)."""
    generate, verify = whole(costs)
    return (((generate << b) + (verify << j)) // min(generate, verify)).bit_length() - 1


def _scaled(factor: float, exponent: int) -> int:
    """ceil(factor 2^exponent), exact even if it is too large for a float."""
    return math.ceil(Fraction(factor) * (1 << exponent))


def _times_power(unit: float, s: int) -> float:
    """2^s unit; infinity if that is too large for a float."""
    try:
        return math.ldexp(unit, s)
    except OverflowError:
        return math.inf


@lru_cache(maxsize=4096)
def _largest(s: int, generate: int, verify: int) -> tuple[int, int]:
    """The largest b and the largest j of the non-empty shell s."""
    unit = min(generate, verify)
    low = unit << s
    high = unit << (s + 1)
    found: list[tuple[int, int]] = []
    for b in range(((high - 1) // generate).bit_length()):
        room = high - 1 - (generate << b)  # 2^j verifications may cost no more than this
        if room >= verify:
            j = min(b, (room // verify).bit_length() - 1)
            if (generate << b) + (verify << j) >= low:
                found.append((b, j))
    return max(b for b, _ in found), max(j for _, j in found)
