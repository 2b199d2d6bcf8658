"""All uniform pairs: how often each one solves, what it costs, and which one is best.

A pair (m, k), the paper's (N_rew, N_ver), generates m candidates and verifies the best k. A pair
that needs more candidates than were logged counts as not solving and pays in full, because the log
does not show what it would have found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from .hindsight import Pair

_EPSILON = 1e-12  # rates closer than this are equal
_ALL = slice(None)
_ROWS = 256  # numbers of candidates whose pairs are compared at once


class PairTable:
    """Counts over many trials, from which every pair of up to `size` candidates is evaluated.

    Two vectors describe a trial: for each m, the least k that solves it, and the number of
    verifications if k is large enough (fewer than m with early stopping or with keys). With any k,
    `min(k, paid)` verifications are paid for, whatever the width.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.trials = 0
        self._least = np.zeros((size, size + 2), dtype=np.int32)  # [m - 1, least k]
        self._paid = np.zeros((size, size + 2), dtype=np.int32)  # [m - 1, verifications]

    def add(self, least: NDArray[np.integer], paid: NDArray[np.integer]) -> None:
        """Add trials of problems of one size: two arrays `[trials, candidates]`."""
        trials, n = least.shape
        _count(self._least, np.where(least > n, self.size + 1, least))
        _count(self._paid, paid)
        self._least[n:, self.size + 1] += trials
        self._paid[n:, self.size + 1] += trials
        self.trials += trials

    def solved(self, rows: slice = _ALL) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the share of trials that each pair solves; 0 if k > m."""
        rates = np.cumsum(self._least[rows], axis=1)[:, 1 : self.size + 1] / max(self.trials, 1)
        return np.tril(rates, rows.start or 0)

    def prices(self, costs: Costs, rows: slice = _ALL) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the mean cost of each pair.

        If failures have a price of their own, one verification of a solved trial has passed, and
        others that were paid for with it count as failed.
        """
        # [m - 1, j]: the trials with over j checks
        more = self.trials - np.cumsum(self._paid[rows], axis=1)
        verified = np.cumsum(more[:, : self.size], axis=1) / max(self.trials, 1)
        m = np.arange(1, self.size + 1)[rows, None]
        prices = m * costs.candidate + verified * costs.failure
        if not costs.has_failure:
            return prices
        return np.asarray(prices + (costs.verify - costs.failure) * self.solved(rows))

    def best_within(self, budget: float, costs: Costs) -> Pair | None:
        """The pair with the most success and a mean cost within budget; then least m, least k."""
        found = []
        # A block of rows at a time, because all pairs of long problems take much memory.
        for start in range(0, self.size, _ROWS):
            rows = slice(start, min(start + _ROWS, self.size))
            found.append((float(self._within(budget, costs, rows).max()), rows))
        best = max((rate for rate, _ in found), default=-1.0)
        if best < 0:
            return None
        rows = next(rows for rate, rows in found if rate >= best - _EPSILON)
        rates = self._within(budget, costs, rows)
        m, k = divmod(int(np.argmax(rates >= best - _EPSILON)), self.size)
        return Pair(rows.start + m + 1, k + 1)

    def _within(self, budget: float, costs: Costs, rows: slice) -> NDArray[np.float64]:
        """The share of trials that each pair solves; -1 if it is too expensive, or if k > m."""
        cheap = np.tril(self.prices(costs, rows) <= budget, rows.start)
        return np.where(cheap, self.solved(rows), -1.0)

    def cheapest_reaching(self, rate: float, costs: Costs) -> Pair | None:
        """The cheapest pair that solves at least this share of trials; then least m, least k."""
        reaches = np.tril(self.solved() >= rate - _EPSILON)
        if not reaches.any():
            return None
        m, k = divmod(int(np.argmin(np.where(reaches, self.prices(costs), np.inf))), self.size)
        return Pair(m + 1, k + 1)


def _count(counts: NDArray[np.int32], values: NDArray[np.integer]) -> None:
    """Add one to `counts[column, value]` for each value of each column."""
    columns = np.arange(values.shape[1]) * counts.shape[1]
    np.add.at(counts.reshape(-1), (values + columns).ravel(), np.int32(1))
