"""Why no policy can do better: how many events a given spend must contain (Lemma S).

A *clock* is a sequence 0 < s(1) <= s(2) <= ...: the spend at the first, second, ... candidate
generated (or verified) in a run in which everything fails. The letters: X(s) is the number of ticks
up to spend s; kappa ~ Geom(pi) is the tick of the first pass; Gamma and c satisfy
`pi E s(kappa) <= Gamma + c pi` for all pi, which follows from a bound on the expected cost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...core.errors import UsageError
from ..slots import Slot


class Occupation(NamedTuple):
    """The spend S, and the lower bound of Lemma S on the integral of X(s) / s^2 up to S."""

    spend: float
    least: float


def least_occupation(delta: float, gamma: float, extra: float) -> Occupation:
    """Lemma S for finite delta: `log^2((Y + 2) / 2) (1 - L^-2) / (Gamma L + c) - 2 / L^2`.

    L = log 1/delta, Y = floor(1 / (delta L)) and S = Y L^2; as delta goes to 0 this is
    (1 - o(1)) log S / Gamma.
    """
    if not 0 < delta < 0.3:
        raise UsageError(f"delta must be between 0 and 0.3, not {delta}")
    length = math.log(1 / delta)
    ticks = math.floor(1 / (delta * length))
    sums = math.log((ticks + 2) / 2) ** 2 * (1 - length**-2)
    return Occupation(ticks * length**2, sums / (gamma * length + extra) - 2 / length**2)


def occupation(clock: Iterable[float], spend: float) -> float:
    """The integral of X(s) / s^2 from 0 to S: the sum of 1/s(j) - 1/S over the ticks up to S."""
    ticks = itertools.takewhile(lambda s: s <= spend, clock)
    return math.fsum(1 / s - 1 / spend for s in ticks)


def first_pass(clock: Callable[[], Iterable[float]], pi: float) -> float:
    """The mean of s(kappa), the spend at the tick of the first pass."""
    total = 0.0
    chance = pi
    for s in clock():
        total += chance * s
        chance *= 1 - pi
        if chance * s < 1e-14 * pi * total:
            break
    return total


def generations(slots: Iterable[Slot], rho: float) -> Iterator[float]:
    """The clock of the candidates that a path generates."""
    spent = 0.0
    for slot in slots:
        for _ in range(slot.draws):
            spent += 1
            yield spent
        spent += rho


def verifications(slots: Iterable[Slot], rho: float) -> Iterator[float]:
    """The clock of the candidates that a path verifies; the path must draw in every slot."""
    spent = 0.0
    for slot in slots:
        spent += slot.draws + rho
        yield spent
