"""Schedules: sequences of draws and verifications that do not depend on scores or failures.

A policy that only ranks candidates sees nothing but failures until it stops. So it follows a fixed
schedule: how many candidates to generate before the first verification, before the second, and so
on. A schedule is a sequence of *slots*, one per verification. Proofs call it a path.

The letters: rho is c_ver / c_rew. Balanced generates 1 + rho candidates per round on average, and
g1 in the first round; Alternate generates n, and d in the first round. Sizes are exact for the
given rho, a fraction or a float. `decimals.exact_ratio` returns the exact rho of a decimal price
list; dividing two floats may miss it by a rounding error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

from ..core.values import Costs


@dataclass(frozen=True, slots=True)
class Slot:
    """Generate `draws` candidates, then verify one: the best open one, or the newest.

    Attributes:
        draws: the number of candidates to generate first; 1 in a blind slot.
        blind: verify the new candidate whatever its score. Verify nothing if no candidate came or
            if its key is refuted.
    """

    draws: int
    blind: bool = False


BLIND = Slot(1, blind=True)
LONGEST_CYCLE = 100  # a path with a longer cycle is not stored as a schedule


@dataclass(frozen=True, slots=True)
class SlotSchedule:
    """A schedule that becomes periodic.

    Attributes:
        first: the slots before the cycle.
        cycle: the slots that repeat forever.
    """

    first: tuple[Slot, ...]
    cycle: tuple[Slot, ...]

    def __iter__(self) -> Iterator[Slot]:
        return itertools.chain(self.first, itertools.cycle(self.cycle))

    def __getitem__(self, number: int) -> Slot:
        first = len(self.first)
        return (
            self.first[number] if number < first else self.cycle[(number - first) % len(self.cycle)]
        )


class Path(Hashable, Protocol):
    """A policy that follows a schedule."""

    def slots(self, costs: Costs) -> Iterable[Slot]:
        """The infinite sequence of slots."""
        ...


def one_by_one(steps: Iterable[tuple[int, int]]) -> Iterator[Slot]:
    """Convert steps (generate m, verify the best k one at a time until one passes) to slots."""
    for draws, checks in steps:
        yield Slot(draws)
        yield from itertools.repeat(Slot(0), checks - 1)


class Draws(NamedTuple):
    """How many candidates the first round chooses from, and every later round."""

    first: int
    later: int


def block_draws(rho: Fraction | float) -> Draws:
    """Equal rounds, the blocks of the guard: g = floor(1 + rho) and g1 = ceil(g / 4)."""
    later = math.floor(1 + Fraction(rho))
    return Draws(-(-later // 4), later)


@dataclass(frozen=True, slots=True)
class BalancedPath:
    """The slots of Balanced: 1 + rho candidates per round on average (docs/theory/balanced.md).

    >>> [slot.draws for slot in itertools.islice(BalancedPath(Fraction(5, 2)), 6)]
    [1, 4, 3, 4, 3, 4]
    """

    rho: Fraction

    def drawn(self, rounds: int) -> int:
        """G_k: the candidates generated in the first k rounds; 0 for k = 0.

        For k >= 1 it is ceil(ceil(1 + rho) / 4) + ceil((k - 1) (1 + rho) - max(0, (1 - rho) / 2)).
        """
        if rounds == 0:
            return 0
        top = self.rho.numerator
        bottom = self.rho.denominator
        twice = 2 * (rounds - 1) * (bottom + top) - max(0, bottom - top)  # over 2 * bottom
        first = -((top // -bottom - 1) // 4)  # a quarter of ceil(1 + rho), rounded up
        return first - twice // (-2 * bottom)

    def __iter__(self) -> Iterator[Slot]:
        for last, drawn in itertools.pairwise(map(self.drawn, itertools.count())):
            yield Slot(drawn - last)

    def schedule(self) -> SlotSchedule:
        """The same slots with their cycle. Its length is the denominator of rho."""
        slots = tuple(itertools.islice(self, 1 + self.rho.denominator))
        return SlotSchedule(slots[:1], slots[1:])


def balanced_slots(rho: Fraction) -> SlotSchedule | BalancedPath:
    """The slots of Balanced, as a schedule if the cycle is short."""
    path = BalancedPath(rho)
    return path.schedule() if rho.denominator <= LONGEST_CYCLE else path


def alternate_draws(rho: Fraction | float) -> Draws:
    """The draws of Alternate: n = max(1, round(rho)) and d = ceil(n / 4)."""
    later = max(1, round_half_up(rho))
    return Draws(-(-later // 4), later)


def most_blind_draws(rho: Fraction | float) -> int:
    """How many candidates a blind slot may draw if verify-all would verify none: ceil(1 + rho).

    They cost verify-all as much as one candidate and its verification.
    """
    return 1 + math.ceil(rho)


def hedged_draws(rho: Fraction | float, alpha: float) -> int:
    """The draws of Hedged: max(1, round(alpha (1 + rho)))."""
    return max(1, round_half_up(Fraction(repr(float(alpha))) * (1 + Fraction(rho))))


def round_half_up(x: Fraction | float) -> int:
    """The nearest whole number, with halves rounded up; Python's `round` rounds them to even."""
    return math.floor(Fraction(x) + Fraction(1, 2))
