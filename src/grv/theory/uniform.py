"""Every uniform pair at once: how often it solves, what it costs, and which one is best.

A pair (m, k), the paper's (N_rew, N_ver), generates m candidates and verifies the best k. A pair
that asks for more candidates than were logged is counted as not solving and as paying in full,
since the log cannot say what it would have found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from .hindsight import Pair

_EPSILON = 1e-12  # rates closer than this are equal


class PairTable:
    """Counts over many trials, enough to evaluate every pair up to `size` candidates.

    A trial is told by two vectors: for each m, the least k that solves, and how many verifications
    are paid for when k is large enough (fewer than m with early stopping, or where candidates fall
    into classes). The number paid for is then `min(k, paid)`, whatever the width.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.trials = 0
        self._least = np.zeros((size, size + 2), dtype=np.int32)  # [m - 1, least k]
        self._paid = np.zeros((size, size + 2), dtype=np.int32)  # [m - 1, verifications]

    def add(self, least: NDArray[np.int32], paid: NDArray[np.int32]) -> None:
        """Count trials of one problem: two arrays `[trials, candidates]`."""
        trials, n = least.shape
        _count(self._least, np.where(least > n, self.size + 1, least))
        _count(self._paid, paid)
        self._least[n:, self.size + 1] += trials
        self._paid[n:, self.size + 1] += trials
        self.trials += trials

    def solved(self) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the share of trials that each pair solves; 0 where k > m."""
        rates = np.cumsum(self._least, axis=1)[:, 1 : self.size + 1] / max(self.trials, 1)
        return np.tril(rates)

    def prices(self, costs: Costs) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the mean cost of each pair."""
        more = self.trials - np.cumsum(self._paid, axis=1)  # [m - 1, j]: trials that pay above j
        verified = np.cumsum(more[:, : self.size], axis=1) / max(self.trials, 1)
        m = np.arange(1, self.size + 1)[:, None]
        return m * costs.candidate + verified * costs.verify

    def best_within(self, budget: float, costs: Costs) -> Pair | None:
        """The pair of most success whose mean cost is within budget; then least m, then least k."""
        rates = np.where(np.tril(self.prices(costs) <= budget), self.solved(), -1.0)
        best = rates.max(initial=-1.0)
        if best < 0:
            return None
        m, k = divmod(int(np.argmax(rates >= best - _EPSILON)), self.size)
        return Pair(m + 1, k + 1)

    def cheapest_reaching(self, rate: float, costs: Costs) -> Pair | None:
        """The cheapest pair that solves at least this share; then least m, then least k."""
        reaches = np.tril(self.solved() >= rate - _EPSILON)
        if not reaches.any():
            return None
        m, k = divmod(int(np.argmin(np.where(reaches, self.prices(costs), np.inf))), self.size)
        return Pair(m + 1, k + 1)


def _count(counts: NDArray[np.int32], values: NDArray[np.int32]) -> None:
    """Add one to `counts[column, value]` for each value of each column."""
    columns = np.arange(values.shape[1]) * counts.shape[1]
    np.add.at(counts.reshape(-1), (values + columns).ravel(), np.int32(1))
