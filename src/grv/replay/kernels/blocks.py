"""Counts what a search that looks ahead requests, along its course with width 1.

A kernel runs the course and reports each generation and each verification. A full block is sent
when the course goes on, so that the candidates to generate meanwhile are known; see
`core.look_ahead`. The course therefore runs beyond the first pass, to the end of its block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.pace import Clock, Pace
from ...core.values import Costs
from ..trials import Trials, rounds_of


class Solved(Exception):
    """A block with a pass was sent; the search has ended."""


class Blocks:
    """The requests of one search.

    Attributes:
        used: the candidates that the course has taken.
        exhausted: whether it wanted more than there are.
        made: the candidates generated.
        verified: the verifications sent.
    """

    def __init__(self, costs: Costs, width: int, pace: Pace, candidates: int) -> None:
        self.used = self.made = self.verified = 0
        self.exhausted = self._passed = False
        self._costs, self._width, self._pace = costs, width, pace
        self._candidates, self._ended = candidates, False
        self._generating = self._verifying = self._overlapped = self._open = 0
        self._clock = Clock(pace.latency)
        self._size = pace.block(width, 0, costs.of(1, 1), self._clock, 0.0)

    def generate(self, n: int, ahead: Callable[[int], int]) -> int:
        """Take at most `n` candidates; return how many there were."""
        if self.exhausted:
            return 0
        missing = self.used + n - self.made
        if self._open == self._size:
            self._send(missing, ahead)
            missing = self.used + n - self.made
        if missing > 0 and not self._ended:
            self._generating += 1
            slots = self._size - self._open
            self._request(missing + (ahead(slots) if slots > 1 else 0))
        self.exhausted = self.used + n > self.made
        taken = min(n, self.made - self.used)
        self.used += taken
        return taken

    def verify(self, passes: bool) -> None:
        """Verify one candidate."""
        if self._open == self._size:
            self._send()
        self._open += 1
        self._passed |= passes

    def finish(self) -> None:
        """Send the last block."""
        if self._open:
            self._send()

    def _request(self, n: int) -> None:
        self._ended = self.made + n > self._candidates
        self.made = min(self._candidates, self.made + n)

    def _send(self, missing: int = 0, ahead: Callable[[int], int] | None = None) -> None:
        before, size = self.verified, self._open
        self.verified += size
        self._verifying += 1
        spent = self._costs.of(self.made, self.verified)
        cost = spent / self.verified
        self._size = self._pace.block(self._width, self.verified, cost, self._clock, 0.0)
        if missing > 0 and ahead is not None and not self._ended:
            n = missing + (ahead(self._size) if self._size > 1 else 0)
            price = self._costs.of(n, 0)
            if self._pace.overlaps(price, spent, size, before, self._clock):
                self._overlapped += 1
                self._request(n)
        self._open = 0
        if self._passed:
            raise Solved

    @property
    def counts(self) -> tuple[int, ...]:
        """Generated, verified, and the rounds of generation, of verification, of both."""
        rounds = (self._generating, self._verifying, self._overlapped)
        return (self.made, self.verified, *rounds)


def counted(found: list[tuple[bool, Blocks]]) -> Trials:
    """The trials of searches, of which each is solved or not."""
    counts = np.array([blocks.counts for _, blocks in found], dtype=np.int32).reshape(-1, 5)
    solved = np.array([solved for solved, _ in found], dtype=np.bool_)
    return Trials(solved, counts[:, 0], counts[:, 1], rounds_of(*counts[:, 2:].T))
