"""All uniform pairs: how often each one solves, what it costs, and which one is best.

A pair (m, k), the paper's (N_rew, N_ver), generates m candidates and verifies the best k. A pair
that needs more candidates than were logged counts as not solving and pays in full, because the log
does not show what it would have found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from .hindsight import Pair

_EPSILON = 1e-12  # rates closer than this are equal
_CELLS = 1 << 19  # pairs that are evaluated at once


@dataclass(frozen=True, eq=False)
class PairRows:
    """All pairs of a few numbers of candidates, from `start` + 1 up.

    Attributes:
        start: one less than the first number of candidates.
        solved: `[m - 1 - start, k - 1]`: the share of trials that each pair solves; 0 if k > m.
        verified: the mean number of verifications, in the same form.
    """

    start: int
    solved: NDArray[np.float64]
    verified: NDArray[np.float64]

    def prices(self, costs: Costs) -> NDArray[np.float64]:
        """The mean cost of each pair, in the form of `solved`; without meaning if k > m.

        If failures have a price of their own, one verification of a solved trial has passed, and
        others that were paid for with it count as failed.
        """
        m = self.start + 1 + np.arange(len(self.solved))[:, None]
        prices = m * costs.candidate + self.verified * costs.failure
        if not costs.has_failure:
            return np.asarray(prices)
        return np.asarray(prices + (costs.verify - costs.failure) * self.solved)

    def solved_within(self, budget: float, costs: Costs) -> NDArray[np.float64]:
        """The share of trials that each pair solves; -1 if it is too expensive, or if k > m."""
        cheap = np.tril(self.prices(costs) <= budget, self.start)
        return np.where(cheap, self.solved, -1.0)

    def pair(self, place: int) -> Pair:
        """The pair at this place, if the pairs are numbered row by row."""
        m, k = divmod(place, self.solved.shape[1])
        return Pair(self.start + m + 1, k + 1)


class PairTable:
    """Counts over many trials, from which every pair of up to `size` candidates is evaluated.

    Two vectors describe a trial: for each m, the least k that solves it, and the number of
    verifications if k is large enough (fewer than m with early stopping or with keys). With any k,
    `min(k, paid)` verifications are paid for, whatever the width.

    All pairs of long problems take much memory. So they are evaluated a few rows at a time, and
    trials are counted only when they are many; until then they are kept as they are.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.trials = 0
        self._least = _Counts(size)
        self._paid = _Counts(size)
        self._last: tuple[int, PairRows] | None = None  # made last: up to which candidates

    def add(self, least: NDArray[np.integer], paid: NDArray[np.integer]) -> None:
        """Add trials of problems of one size: two arrays `[trials, candidates]`."""
        self._least.add(least)
        self._paid.add(paid)
        self.trials += len(least)
        self._last = None

    def blocks(self) -> Iterator[PairRows]:
        """All pairs, a few rows at a time."""
        rows = max(1, _CELLS // max(self.size, 1))
        for start in range(0, self.size, rows):
            yield self.rows(start, min(start + rows, self.size))

    def rows(self, start: int, stop: int) -> PairRows:
        """The pairs that generate `start` + 1 to `stop` candidates."""
        if self._last is None or (self._last[1].start, self._last[0]) != (start, stop):
            self._last = (stop, self._rows(start, stop))
        return self._last[1]

    def _rows(self, start: int, stop: int) -> PairRows:
        trials = max(self.trials, 1)
        solved = np.cumsum(self._least.rows(start, stop), axis=1)[:, 1:] / trials
        # [m - 1, j]: the trials with over j checks
        more = self.trials - np.cumsum(self._paid.rows(start, stop), axis=1)[:, :-1]
        return PairRows(start, np.tril(solved, start), np.cumsum(more, axis=1) / trials)

    def solved(self) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the share of trials that each pair solves; 0 if k > m."""
        return self.rows(0, self.size).solved

    def prices(self, costs: Costs) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the mean cost of each pair; without meaning if k > m."""
        return self.rows(0, self.size).prices(costs)

    def best_within(self, budget: float, costs: Costs) -> Pair | None:
        """The pair with the most success and a mean cost within budget; then least m, least k."""
        found = [
            (float(block.solved_within(budget, costs).max()), block.start, len(block.solved))
            for block in self.blocks()
        ]
        best = max((rate for rate, _, _ in found), default=-1.0)
        if best < 0:
            return None
        start, length = next((at, n) for rate, at, n in found if rate >= best - _EPSILON)
        block = self.rows(start, start + length)
        rates = block.solved_within(budget, costs)
        return block.pair(int(np.argmax(rates >= best - _EPSILON)))

    def cheapest_reaching(self, rate: float, costs: Costs) -> Pair | None:
        """The cheapest pair that solves at least this share of trials; then least m, least k."""
        best: tuple[float, Pair] | None = None
        for block in self.blocks():
            reaches = np.tril(block.solved >= rate - _EPSILON, block.start)
            prices = np.where(reaches, block.prices(costs), np.inf).ravel()
            place = int(np.argmin(prices))
            if reaches.ravel()[place] and (best is None or prices[place] < best[0]):
                best = float(prices[place]), block.pair(place)
        return best and best[1]


class _Counts:
    """For each m, how many trials have the number k: for each k from 0 to m, and for all above.

    Args:
        size: the largest m.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._starts = np.concatenate([[0], np.cumsum(np.arange(1, size + 1) + 2)])  # of each m
        self._counts: NDArray[np.int32] | None = None  # of all m, one after the other
        self._waiting: list[NDArray[np.unsignedinteger]] = []
        self._waits = 0  # the numbers in `_waiting`

    def add(self, values: NDArray[np.integer]) -> None:
        """Add trials of problems of one size: `[trials, m - 1]`. A larger m has them above."""
        kind = np.uint16 if self._size < np.iinfo(np.uint16).max else np.uint32
        above = np.arange(values.shape[1]) + 2
        self._waiting.append(np.minimum(values, above).astype(kind))
        self._waits += values.size
        if 2 * self._waits > self._size * self._size:
            if self._counts is None:
                self._counts = np.zeros(int(self._starts[-1]), dtype=np.int32)
            self._count(self._counts, 0, self._size)
            self._waiting = []
            self._waits = 0

    def rows(self, start: int, stop: int) -> NDArray[np.int32]:
        """`[m - 1 - start, k]`: the counts for k up to `stop`; without meaning if k > m."""
        result = np.zeros((stop - start, stop + 2), dtype=np.int32)
        above = np.arange(start, stop)[:, None] + 2
        result[np.arange(stop + 2) <= above] = self._counted(start, stop)
        return result[:, :-1]

    def _counted(self, start: int, stop: int) -> NDArray[np.int32]:
        """The counts of some m, one after the other."""
        first = int(self._starts[start])
        last = int(self._starts[stop])
        if self._counts is None:
            counts = np.zeros(last - first, dtype=np.int32)
        else:
            counts = self._counts[first:last].copy()
        self._count(counts, start, stop)
        return counts

    def _count(self, counts: NDArray[np.int32], start: int, stop: int) -> None:
        """Add what waits to the counts of some m."""
        for values in self._waiting:
            own = values[:, start:stop]
            places = own + (self._starts[start : start + own.shape[1]] - self._starts[start])
            np.add.at(counts, places.ravel(), np.int32(1))
