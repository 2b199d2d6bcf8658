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
# statement 8: the same in the mean over random phases
ALTERNATE_MEAN = Fraction(5, 3)
BALANCED_MEAN = Fraction(2)
MEAN_END = 1 / math.log(2)


def block_ends(width: int, *, ramp: bool = True) -> Iterator[int]:
    """Where the blocks of a search end, as numbers of verifications.

    >>> list(itertools.islice(block_ends(16), 6))
    [2, 6, 14, 30, 46, 62]
    """
    end = 0
    while True:
        end += min(width, end + 2) if ramp else width
        yield end


def random_block_ends(width: int, start: float) -> Iterator[int]:
    """Where blocks end with a random phase: `start` is 2 to the power of the phase, from 1 to 2.

    >>> list(itertools.islice(random_block_ends(16, 1.1), 6))
    [1, 3, 7, 16, 32, 48]
    """
    end = 0
    for doubled in itertools.count(1):
        following = math.floor(start * 2**doubled) - 1
        if following - end > width:
            break
        end = following
        yield end
    yield from itertools.count(end + width, width)


def mean_end(number: int, width: int) -> float:
    """The mean of the end of a verification's block, over random phases; exact.

    The ends change only where 2^(i + u) is a whole number, so the mean is a finite sum.
    """
    odd = range(1, 4 * max(number, width) + 8, 2)
    starts = sorted({each / 2 ** (each.bit_length() - 1) for each in odd})
    total = 0.0
    for low, high in itertools.pairwise([*starts, 2.0]):
        ends = random_block_ends(width, low)
        total += math.log2(high / low) * next(end for end in ends if end >= number)
    return total


def end_chances(number: int) -> dict[int, float]:
    """The chance of each end of a verification's block, if the width does not limit it.

    >>> {end: round(chance, 3) for end, chance in end_chances(1).items()}
    {1: 0.585, 2: 0.415}
    """
    return {end: math.log2((end + 2) / (end + 1)) for end in range(number, 2 * number + 1)}


def mean_factor(slots: Iterable[Slot], rho: Fraction, first: int = 200) -> float:
    """The largest mean of C(M) / C(N) over random phases, for N up to `first`."""
    costs = [float(cost) for cost in course_costs(slots, rho, 2 * first)]

    def mean(number: int) -> float:
        return sum(chance * costs[end - 1] for end, chance in end_chances(number).items())

    return max(mean(number) / costs[number - 1] for number in range(1, first + 1))


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
