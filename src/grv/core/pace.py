"""How far a search looks ahead: block sizes, overlap, the price of waiting, the deadline.

A *block* is what a search verifies at once. A search whose k verifications have all failed expects
to need about k more (docs/theory/width.md); every rule here follows from that.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass, replace

from .errors import UsageError
from .values import Event, Generated, Latency, Rescored, Verified

SHARE = 0.1  # without a price of waiting, candidates ahead cost at most this share of the bill


@dataclass(frozen=True, slots=True)
class Pace:
    """How a search trades money for time. Only the deadline matters if the width is 1 or None.

    Attributes:
        ramp: whether blocks begin with 2 and grow with the search: k + 2 after k verifications, up
            to the width. Otherwise every block has the size of the width.
        random_phase: whether the ramp begins at a random place. Blocks then begin with 1 or 2, and
            on average fewer verifications come after the first pass, for more rounds of waiting.
        overlap: whether candidates for the next block are generated while a block is verified, if
            they cost at most a tenth of the bill so far. The driver must be able to do both.
        wait_price: the cost of a second of waiting, in the unit of the costs. If it is not 0, it
            decides the block sizes and the overlap.
        latency: the seconds of a round of each kind; measured if None.
        deadline: the seconds after which a search ends. It starts no round that would end later.
        problem: the id of the problem, from which the random phase is computed; see `of`.

    Examples:
        >>> import grv
        >>> grv.core.Pace(deadline=60).deadline
        60
        >>> grv.core.Pace().ends(16, 40)
        [0, 2, 6, 14, 30, 46]
        >>> grv.core.Pace(random_phase=True).of("17 + 25").ends(16, 40)
        [0, 2, 5, 12, 25, 41]
    """

    ramp: bool = True
    overlap: bool = True
    wait_price: float = 0.0
    latency: Latency | None = None
    deadline: float = math.inf
    random_phase: bool = False
    problem: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.wait_price) and self.wait_price >= 0):
            raise UsageError(
                f"the price of waiting must be finite and not negative, not {self.wait_price}"
            )
        if math.isnan(self.deadline) or self.deadline <= 0:
            raise UsageError(f"the deadline must be a positive number, not {self.deadline}")

    def of(self, problem: str) -> Pace:
        """The pace of all searches for one problem: they have one phase, live and in replay."""
        return replace(self, problem=problem) if self.random_phase else self

    def block(
        self, width: int, verified: int, round_cost: float, clock: SearchClock, pending: float
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
        if self.wait_price and clock.round:
            return min(width, self._priced(clock.round, verified, round_cost))
        return min(width, self._ramped(width, verified)) if self.ramp else width

    def _ramped(self, width: int, verified: int) -> int:
        """The size of the block after `verified` verifications, if it is below the width.

        With a random phase u, blocks end at floor(2^(i + u)) - 1 for i = 1, 2, ...: the mean of the
        end of a verification's block is at most 1.443 times its number (docs/theory/width.md).
        """
        if not self.random_phase:
            return verified + 2
        if verified + 1 >= width:
            return width
        start = math.exp2(self.phase)
        ends = (math.floor(math.ldexp(start, doubled)) - 1 for doubled in itertools.count(1))
        return next(end for end in ends if end > verified) - verified

    @property
    def phase(self) -> float:
        """The random phase of the problem, from 0 to 1: a hash of its id."""
        digest = hashlib.blake2b(self.problem.encode(errors="surrogatepass"), digest_size=6)
        return int.from_bytes(digest.digest(), "big") / 2**48

    def ends(self, width: int, most: int) -> list[int]:
        """Where blocks end, in verifications, up to the first end from `most` on.

        A price of waiting and a deadline are ignored: with them block sizes depend on seconds.
        """
        ends = [0]
        clock = SearchClock(None)
        while ends[-1] < most:
            ends.append(ends[-1] + self.block(width, ends[-1], 1.0, clock, 0.0))
        return ends

    def batch(self, width: int, arrived: int, cost: float, clock: SearchClock) -> int:
        """How many candidates to request if the plan cannot say how many it needs.

        As many as have arrived, and 2: so a search that uses n candidates requests at most 2 n.
        With a price of waiting, the size follows from it as that of a block, with the duration of a
        generation and the cost of a candidate; it is at most the width larger than `arrived`.
        """
        if self.wait_price and clock.generate:
            return min(arrived + width, self._priced(clock.generate, arrived, cost))
        return arrived + 2

    def _priced(self, seconds: float, number: int, cost: float) -> int:
        """The best size after `number` of a kind, of which each costs `cost`."""
        return max(1, round(math.sqrt(2 * (number + 1) * self.wait_price * seconds / cost)))

    def overlaps(
        self, price: float, spent: float, block: int, before: int, clock: SearchClock
    ) -> bool:
        """Whether to generate candidates for `price` during a block, after `before` verifications.

        With a price of waiting: whether the seconds saved, if the block fails, are worth more than
        the candidates, which are wasted if it passes.
        """
        if self.wait_price and clock.generate:
            return self.overlap and self.wait_price * clock.generate * (before + 1) >= price * block
        return self.overlap and price <= SHARE * spent


class SearchClock:
    """The seconds since a search began, and the mean duration of a round of each kind.

    If there are several searches for one problem, all their rounds take time. The mean is that of
    the own rounds; until there is one, that of the others.
    """

    def __init__(self, given: Latency | None) -> None:
        self.elapsed = 0.0
        self._ready = False  # whether candidates have just arrived
        self._is_measured = given is None
        # By kind of round: generation, verification, second scores.
        self._mean = [0.0, 0.0, 0.0]
        if given is not None:
            self._mean = [given.generate, given.verify, given.rescore]
        # What was measured: own rounds by kind, then those of other searches.
        self._rounds = [0] * 6
        self._seconds = [0.0] * 6

    def see(self, event: Event, *, own: bool = True) -> None:
        """Count one round; what was not measured takes as long as was given.

        If it is not an own round, another search for the same problem was told the event.
        """
        kind = 0 if isinstance(event, Generated) else 2 if isinstance(event, Rescored) else 1
        overlapped = isinstance(event, Verified) and event.meanwhile is not None
        seconds = event.seconds
        if seconds is None:
            seconds = max(self._mean[1], self._mean[0]) if overlapped else self._mean[kind]
        elif self._is_measured:
            self._measure(kind, seconds, own=own)
        self.elapsed += seconds
        if own:
            self._ready = kind == 0 or overlapped

    def _measure(self, kind: int, seconds: float, *, own: bool) -> None:
        index = kind if own else kind + 3
        self._rounds[index] += 1
        self._seconds[index] += seconds
        index = kind if self._rounds[kind] else kind + 3
        self._mean[kind] = self._seconds[index] / self._rounds[index]

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
        return self._mean[0]

    @property
    def verify(self) -> float:
        """The seconds of a round of verification; 0 if unknown."""
        return self._mean[1]

    @property
    def round(self) -> float:
        """The seconds of a round of generation and one of verification; 0 if unknown."""
        return self._mean[0] + self._mean[1]
