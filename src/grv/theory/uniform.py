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

    def add(self, least: NDArray[np.int32], paid: NDArray[np.int32]) -> None:
        """Add the trials of one problem: two arrays `[trials, candidates]`."""
        trials, n = least.shape
        _count(self._least, np.where(least > n, self.size + 1, least))
        _count(self._paid, paid)
        self._least[n:, self.size + 1] += trials
        self._paid[n:, self.size + 1] += trials
        self.trials += trials

    def solved(self) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the share of trials that each pair solves; 0 if k > m."""
        rates = np.cumsum(self._least, axis=1)[:, 1 : self.size + 1] / max(self.trials, 1)
        return np.tril(rates)

    def prices(self, costs: Costs) -> NDArray[np.float64]:
        """`[m - 1, k - 1]`: the mean cost of each pair."""
        more = self.trials - np.cumsum(self._paid, axis=1)  # [m - 1, j]: trials with over j checks
        verified = np.cumsum(more[:, : self.size], axis=1) / max(self.trials, 1)
        m = np.arange(1, self.size + 1)[:, None]
        return m * costs.candidate + verified * costs.verify

    def best_within(self, budget: float, costs: Costs) -> Pair | None:
        """The pair with the most success and a mean cost within budget; then least m, least k."""
        rates = np.where(np.tril(self.prices(costs) <= budget), self.solved(), -1.0)
        best = rates.max(initial=-1.0)
        if best < 0:
            return None
        m, k = divmod(int(np.argmax(rates >= best - _EPSILON)), self.size)
        return Pair(m + 1, k + 1)

    def cheapest_reaching(self, rate: float, costs: Costs) -> Pair | None:
        """The cheapest pair that solves at least this share of trials; then least m, least k."""
        reaches = np.tril(self.solved() >= rate - _EPSILON)
        if not reaches.any():
            return None
        m, k = divmod(int(np.argmin(np.where(reaches, self.prices(costs), np.inf))), self.size)
        return Pair(m + 1, k + 1)


def _count(counts: NDArray[np.int32], values: NDArray[np.int32]) -> None:
    """Add one to `counts[column, value]` for each value of each column."""
    columns = np.arange(values.shape[1]) * counts.shape[1]
    np.add.at(counts.reshape(-1), (values + columns).ravel(), np.int32(1))
