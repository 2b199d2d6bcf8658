"""How far a search looks ahead: block sizes, overlap, the price of waiting, the deadline.

A *block* is what a search verifies at once. A search whose k verifications have all failed expects
to need about k more (docs/theory/width.md); every rule here follows from that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .errors import UsageError
from .values import Event, Generated, Latency, Rescored

SHARE = 0.1  # without a price of waiting, candidates ahead cost at most this share of the bill


@dataclass(frozen=True, slots=True)
class Pace:
    """How a search trades money for time. Only the deadline matters if the width is 1 or None.

    Attributes:
        ramp: whether blocks begin with 2 and grow with the search: k + 2 after k verifications, up
            to the width. Otherwise every block has the size of the width.
        overlap: whether candidates for the next block are generated while a block is verified, if
            they cost at most a tenth of the bill so far. The driver must be able to do both.
        second: the cost of a second of waiting, in the unit of the costs. If it is not 0, it
            decides the block sizes and the overlap.
        latency: the seconds of a round of each kind; measured if None.
        deadline: the seconds after which a search ends. It starts no round that would end later.
    """

    ramp: bool = True
    overlap: bool = False
    second: float = 0.0
    latency: Latency | None = None
    deadline: float = math.inf

    def __post_init__(self) -> None:
        if not (math.isfinite(self.second) and self.second >= 0):
            raise UsageError(f"a second must cost a finite amount from 0, not {self.second}")
        if math.isnan(self.deadline) or self.deadline <= 0:
            raise UsageError(f"the deadline must be a positive number, not {self.deadline}")

    def block(
        self, width: int, verified: int, round_cost: float, clock: Clock, pending: float
    ) -> int:
        """The size of the block after `verified` verifications, in `pending` seconds from now.

        `round_cost` is the mean cost of a verification with the candidates generated for it. With a
        price of waiting, the size is the square root of 2 (k + 1) seconds / cost: the least sum of
        what rounds of waiting and the rest of the last block cost, if k + 1 more are needed.
        """
        if (
            clock.left(self.deadline) - pending < 2 * clock.round
        ):  # the last round that ends in time
            return width
        if self.second and clock.round:
            return min(width, self._priced(clock.round, verified, round_cost))
        return min(width, verified + 2) if self.ramp else width

    def ends(self, width: int, most: int) -> list[int]:
        """Where blocks end, in verifications, up to the first end from `most` on.

        A price of waiting and a deadline are ignored: with them block sizes depend on seconds.
        """
        ends, clock = [0], Clock(None)
        while ends[-1] < most:
            ends.append(ends[-1] + self.block(width, ends[-1], 1.0, clock, 0.0))
        return ends

    def batch(self, width: int, arrived: int, cost: float, clock: Clock) -> int:
        """How many candidates to request if the plan cannot say how many it needs.

        As many as have arrived, and 2: so a search that uses n candidates requests at most 2 n.
        With a price of waiting, the size follows from it as that of a block, with the duration of a
        generation and the cost of a candidate; it is at most the width larger than `arrived`.
        """
        if self.second and clock.generate:
            return min(arrived + width, self._priced(clock.generate, arrived, cost))
        return arrived + 2

    def _priced(self, seconds: float, number: int, cost: float) -> int:
        """The best size after `number` of a kind, of which each costs `cost`."""
        return max(1, round(math.sqrt(2 * (number + 1) * self.second * seconds / cost)))

    def overlaps(self, price: float, spent: float, block: int, before: int, clock: Clock) -> bool:
        """Whether to generate candidates for `price` during a block, after `before` verifications.

        With a price of waiting: whether the seconds saved, if the block fails, are worth more than
        the candidates, which are wasted if it passes.
        """
        if self.second and clock.generate:
            return self.overlap and self.second * clock.generate * (before + 1) >= price * block
        return self.overlap and price <= SHARE * spent


class Clock:
    """The seconds that a search has waited, and the mean duration of a round of each kind."""

    def __init__(self, given: Latency | None) -> None:
        self.elapsed = 0.0
        self._given = given
        self._ready = False  # whether candidates have just arrived
        self._sum = [0.0, 0.0, 0.0]  # generation, verification, second scores
        self._count = [0, 0, 0]

    def see(self, event: Event) -> None:
        """Count one round; what was not measured takes as long as was given."""
        kind = 0 if isinstance(event, Generated) else 2 if isinstance(event, Rescored) else 1
        seconds = event.seconds
        if seconds is None:
            seconds = self._mean(kind)
            if kind == 1 and getattr(event, "meanwhile", None) is not None:
                seconds = max(seconds, self._mean(0))
        else:
            self._sum[kind] += seconds
            self._count[kind] += 1
        self.elapsed += seconds
        self._ready = kind == 0 or (kind == 1 and getattr(event, "meanwhile", None) is not None)

    def too_late(self, deadline: float) -> str:
        """Why no further verification ends before the deadline; "" if one does.

        Candidates are generated first, unless some have just arrived.
        """
        if self.left(deadline) >= (self.verify if self._ready else self.round):
            return ""
        return f"no further verification ends within the deadline of {deadline:g} seconds"

    def left(self, deadline: float) -> float:
        """The seconds until the deadline."""
        return deadline - self.elapsed

    @property
    def generate(self) -> float:
        """The seconds of a round of generation; 0 if unknown."""
        return self._mean(0)

    @property
    def verify(self) -> float:
        """The seconds of a round of verification; 0 if unknown."""
        return self._mean(1)

    @property
    def round(self) -> float:
        """The seconds of a round of generation and one of verification; 0 if unknown."""
        return self._mean(0) + self._mean(1)

    def _mean(self, kind: int) -> float:
        if self._given is not None:
            return (self._given.generate, self._given.verify, self._given.rescore)[kind]
        return self._sum[kind] / self._count[kind] if self._count[kind] else 0.0
