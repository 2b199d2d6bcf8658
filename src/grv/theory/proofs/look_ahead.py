"""What looking ahead costs in the worst case (docs/theory/width.md).

The *course* is what a search does with width 1. `C(j)` is the cost of its first j verifications
with the candidates generated for them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

from ..slots import Slot

# statement 4
ALTERNATE = Fraction(33, 13)
BALANCED = Fraction(3)


def block_ends(width: int, *, ramp: bool = True) -> Iterator[int]:
    """Where the blocks of a search end, as numbers of verifications.

    >>> list(itertools.islice(block_ends(16), 6))
    [2, 6, 14, 30, 46, 62]
    """
    end = 0
    while True:
        end += min(width, end + 2) if ramp else width
        yield end


def end_of(number: int, width: int, *, ramp: bool = True) -> int:
    """M: the end of the block of a verification."""
    return next(end for end in block_ends(width, ramp=ramp) if end >= number)


def rounds_to(number: int, width: int) -> int:
    """The number of blocks up to that of a verification, with the ramp."""
    return next(at for at, end in enumerate(block_ends(width), 1) if end >= number)


def rounds_bound(number: int, width: int) -> float:
    """Statement 5: an upper bound on `rounds_to`."""
    if number <= 2 * width - 2:
        return math.log2(number + 2)
    return math.log2(width) + 1 + number / width


def course_costs(slots: Iterable[Slot], rho: Fraction, verifications: int) -> list[Fraction]:
    """C(1), C(2), ..., in candidates."""
    spent = (slot.draws + rho for slot in itertools.islice(slots, verifications))
    return list(itertools.accumulate(spent))


def worst_factor(slots: Iterable[Slot], rho: Fraction, first: int = 200) -> Fraction:
    """The largest C(2N) / C(N), for N up to `first`."""
    costs = course_costs(slots, rho, 2 * first)
    return max(costs[2 * n - 1] / costs[n - 1] for n in range(1, first + 1))


def best_block(more: float, waiting: float, cost: float) -> float:
    """Statement 7: the block size that minimises `waiting_cost`."""
    return math.sqrt(2 * more * waiting / cost)


def waiting_cost(block: float, more: float, waiting: float, cost: float) -> float:
    """What rounds of waiting and half a block of waste cost, if `more` verifications are needed."""
    return waiting * more / block + cost * block / 2
