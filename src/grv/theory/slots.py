"""Paths: schedules of draws and verifications that no score and no failure changes.

A policy that only ranks sees nothing but failures before it stops, so all it does is follow a path:
so many candidates generated before the first verification, so many before the second, and so on. A
path is written as its *slots*, one a verification.

The letters: rho is c_ver / c_rew; Balanced generates g a round, g1 in the first; Alternate n, and d
in the first. Sizes are exact for the rho given, a fraction or a float; `decimals.exact_ratio` is
that of a price list in decimals, which a quotient of floats may just miss.
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
    """Generate `draws` candidates, then verify one: the best that is open, or the newest.

    Attributes:
        draws: the candidates generated first; one where the slot is blind.
        blind: verify the candidate just generated, whatever its score; nothing where there is none,
            or where its key is refuted.
    """

    draws: int
    blind: bool = False


BLIND = Slot(1, blind=True)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A path that repeats itself from some slot on.

    Attributes:
        first: the slots before that.
        cycle: what is repeated without end.
    """

    first: tuple[Slot, ...]
    cycle: tuple[Slot, ...]

    def __iter__(self) -> Iterator[Slot]:
        return itertools.chain(self.first, itertools.cycle(self.cycle))


class Path(Hashable, Protocol):
    """A policy that is a path."""

    def slots(self, costs: Costs) -> Iterable[Slot]:
        """The slots, in order, without end."""
        ...


def one_by_one(steps: Iterable[tuple[int, int]]) -> Iterator[Slot]:
    """Steps that generate m and verify the best k, one at a time up to the first pass, as slots."""
    for draws, checks in steps:
        yield Slot(draws)
        yield from itertools.repeat(Slot(0), checks - 1)


class Draws(NamedTuple):
    """The candidates of the first round that are chosen from, and those of every later one."""

    first: int
    later: int


def balanced_draws(rho: Fraction | float) -> Draws:
    """Of Balanced: g = floor(1 + rho); g1, a quarter of it, rounded up."""
    later = math.floor(1 + Fraction(rho))
    return Draws(-(-later // 4), later)


def alternate_draws(rho: Fraction | float) -> Draws:
    """Of Alternate: n = max(1, round(rho)); d, a quarter of it, rounded up."""
    later = max(1, round_half_up(rho))
    return Draws(-(-later // 4), later)


def hedged_draws(rho: Fraction | float, alpha: float) -> int:
    """Of Hedged: max(1, round(alpha (1 + rho)))."""
    return max(1, round_half_up(Fraction(repr(float(alpha))) * (1 + Fraction(rho))))


def round_half_up(x: Fraction | float) -> int:
    """The nearest whole number, halves up; Python's `round` takes them to the even one."""
    return math.floor(Fraction(x) + Fraction(1, 2))
