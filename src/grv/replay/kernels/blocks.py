"""Counts what a search that looks ahead requests, along its course with width 1.

A kernel runs the course and reports each generation and each verification. A block is sent when the
course goes on, so that the candidates to generate meanwhile are known; see `core.search`. The
course therefore runs beyond the first pass, to the end of its block.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...core.limits import Limits
from ...core.pace import SearchClock
from ...core.values import Costs
from ..trials import Trials, rounds_of

Ahead = Callable[[int], int] | None  # see `Generate.ahead`


class Solved(Exception):
    """A block with a pass was sent; the search has ended."""


class Blocks:
    """The requests of one search.

    Attributes:
        used: the candidates that the course has taken.
        exhausted: whether it wanted more than there are.
        made: the candidates generated.
        verified: the verifications sent.
        keyed: whether a candidate that the course has taken has a key.
    """

    def __init__(self, costs: Costs, limits: Limits, candidates: int) -> None:
        self.used = self.made = self.verified = 0
        self.exhausted = self.keyed = self._passed = False
        self._costs = costs
        self._width = limits.width or 1
        self._pace = limits.pace
        self._candidates = candidates
        self._ended = False
        self._generating = self._verifying = self._overlapped = self._open = self._waited = 0
        self._clock = SearchClock(limits.pace.latency)
        self._size = self._pace.block(self._width, 0, costs.of(1, 1), self._clock, 0.0)
        self.sent: list[tuple[int, ...]] = []  # the counts after each block

    def generate(self, n: int, ahead: Ahead) -> int:
        """Take at most `n` candidates; return how many there were."""
        if self.exhausted:
            return 0
        missing = self.used + n - self.made
        again = self.keyed and self._waited > 0
        too_long = missing > self._room if ahead is None else again
        waits = self._open > 0 and missing > 0 and not self._ended
        if self._open == self._size or (waits and too_long):
            self._send(missing, ahead)
            missing = self.used + n - self.made
        if missing > 0 and not self._ended:
            self._generating += 1
            number = self._needed(missing, self._size - self._open, ahead)
            self._waited += number if self._open else 0
            self._request(number)
        self.exhausted = self.used + n > self.made
        taken = min(n, self.made - self.used)
        self.used += taken
        return taken

    def draw(self, n: int) -> None:
        """Take `n` candidates one at a time, for a plan that cannot say how many it needs."""
        while n > 0 and not self.exhausted:
            there = min(n, self.made - self.used) or 1
            self.generate(there, None)
            n -= there

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

    def _needed(self, missing: int, slots: int, ahead: Ahead) -> int:
        """The candidates of a step and of the verifications that follow, up to `slots` in all."""
        # for open verifications
        costs = self._costs
        waits = slots < self._size
        if ahead is not None:
            if waits and self.keyed:
                return max(missing, math.ceil(costs.verify * slots / costs.candidate))
            return missing + (ahead(slots) if slots > 1 else 0)
        size = self._pace.batch(self._width, self.made, costs.candidate, self._clock)
        return max(missing, min(size, self._room) if waits else size)

    @property
    def _room(self) -> int:
        """How many more candidates may be requested while verifications are open."""
        worth = int(self._costs.verify * self._open / self._costs.candidate)
        return self._open + worth - self._waited

    def _request(self, n: int) -> None:
        self._ended = self.made + n > self._candidates
        self.made = min(self._candidates, self.made + n)

    def _send(self, missing: int = 0, ahead: Ahead = None) -> None:
        before = self.verified
        size = self._open
        self.verified = before + size
        self._open = 0
        self._waited = 0
        self._verifying += 1
        spent = self._costs.of(self.made, self.verified)
        cost = spent / self.verified
        self._size = self._pace.block(self._width, self.verified, cost, self._clock, 0.0)
        if missing > 0 and not self._ended:
            n = self._needed(missing, self._size, ahead)
            price = self._costs.of(n, 0)
            if self._pace.overlaps(price, spent, size, before, self._clock):
                self._overlapped += 1
                self._request(n)
        self.sent.append(self.counts)
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
    return _trials(np.array([solved for solved, _ in found], dtype=np.bool_), counts)


def looked_up(one: Trials, course: Blocks) -> Trials:
    """The trials of searches that look ahead, from those with width 1.

    `course` is a search in which nothing passes. All searches of a fixed schedule make its requests
    in the same order, up to the block of their first pass.
    """
    counts = np.array([*course.sent, course.counts], dtype=np.int32)
    block = np.searchsorted(counts[:-1, 1], one.verified)
    return _trials(one.solved, counts[np.where(one.solved, block, len(counts) - 1)])


def _trials(solved: NDArray[np.bool_], counts: NDArray[np.int32]) -> Trials:
    return Trials(solved, counts[:, 0], counts[:, 1], rounds_of(*counts[:, 2:].T))
