"""The best partition of sorted problems into runs of neighbours, each with one pair (m, k).

There are two ways. `splits_of_runs` prices every run: quadratic in the problems. `splits_of_sums`
needs a price that is a sum over the problems of a run, for each m. That is so if pairs stop at the
first pass and every trial can be solved within the candidates of the shortest problem. Then one
running minimum per m replaces the runs, and the time is linear in the candidates. Both find the
same groups; a test proves it. (If more than `_EQUALS` starts of a group are equally good, rounding
may make them choose different ones; the cost is the same.)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]

_CELLS = 1 << 21  # cells of a block of runs that are priced at once
FEW = 256  # problems, up to which all runs are priced
_EQUALS = 64  # the number of equally good starts that are compared in full, first ones first
_ROUNDING = 64 * np.finfo(np.float64).eps


class RunTable:
    """The vectors of the problems, in arrays `[problems, m - 1]`; see `grouping.Difficulty`."""

    def __init__(
        self,
        least: Sequence[NDArray[np.int32]],
        paid: Sequence[NDArray[np.int64]],
        first: Sequence[NDArray[np.int32]],
    ) -> None:
        self.size = len(least)
        self.lengths = np.array([len(each) for each in least])
        longest = int(self.lengths.max())
        # Entries beyond a problem's last candidate are never read.
        self.least = np.zeros((self.size, longest), dtype=np.int32)
        self.paid = np.zeros((self.size, longest), dtype=np.int32)
        self.trials = np.array([len(each) for each in first])
        self.first = np.full((self.size, int(self.trials.max())), np.iinfo(np.int32).max)
        for at in range(self.size):
            self.least[at, : len(least[at])] = least[at]
            self.paid[at, : len(paid[at])] = paid[at]
            self.first[at, : len(first[at])] = first[at]
        self.within = lru_cache(maxsize=64)(self._within)

    def _within(self, n: int) -> tuple[Counts, Counts]:
        """For each problem: how many trials n candidates solve, and the last first pass of these.

        The numbers of trials are running sums, from 0.
        """
        there = self.first <= n
        last = np.where(there, self.first, 1).max(axis=1)
        return np.concatenate([[0], np.cumsum(there.sum(axis=1))]), last

    @property
    def is_sum(self) -> bool:
        """Whether every trial is solved within the candidates of the shortest problem."""
        return bool((self.last_first <= self.lengths.min()).all())

    @cached_property
    def last_first(self) -> Counts:
        """The last first pass of each problem's trials."""
        there = np.arange(self.first.shape[1]) < self.trials[:, None]
        last: Counts = np.where(there, self.first, 1).max(axis=1)
        return last

    def reach(self, left: int) -> Counts:
        """The data of the runs that start at `left`, as an array `[4, runs]`.

        Its rows: the number of solvable trials, of all trials, the smallest m and the largest m.
        The largest m is the number of candidates of the shortest problem. All trials that it can
        solve must be solved, so the smallest m is the last of their first passes.
        """
        n = np.minimum.accumulate(self.lengths[left:])
        reach = np.stack([n, np.cumsum(self.trials[left:]), n, n]).astype(np.int64)
        edges = np.flatnonzero(np.diff(n, prepend=n[0] + 1, append=n[-1] - 1))
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            solved, last = self.within(int(n[start]))
            reach[0, start:stop] = solved[left + start + 1 : left + stop + 1] - solved[left]
            reach[2, start:stop] = np.maximum.accumulate(last[left : left + stop])[start:]
        return reach

    def run_costs(self, left: int, costs: Costs, *, whole: bool) -> tuple[Counts, Numbers]:
        """The solved trials and the total cost of all runs that start at `left`."""
        reach = self.reach(left)
        low = int(reach[2].min()) - 1  # every run needs more candidates than this
        width = self.least.shape[1] - low
        total = np.empty(reach.shape[1])
        k = np.ones(width, dtype=np.int32)
        paid = np.zeros(width, dtype=np.int64)
        block = max(1, _CELLS // width)
        for start in range(0, len(total), block):
            rows = slice(left + start, left + min(start + block, len(total)))
            ks = np.maximum(np.maximum.accumulate(self.least[rows, low:], axis=0), k)
            k = ks[-1]
            sums = None
            if not whole:
                sums = np.cumsum(self.paid[rows, low:], axis=0, dtype=np.int64) + paid
                paid = sums[-1]
            part = reach[:, start : start + len(ks)]
            prices = _prices(part, low, ks, sums, costs)
            total[start : start + len(ks)] = prices.min(axis=1) * (start + 1 + np.arange(len(ks)))
        return reach[0], total

    def pair(self, start: int, stop: int, costs: Costs, *, whole: bool) -> tuple[int, int]:
        """The cheapest pair of one run."""
        part = self.reach(start)[:, stop - start - 1 : stop - start]
        k = np.maximum(self.least[start:stop].max(axis=0), 1)[None, :]
        paid = None if whole else self.paid[start:stop].sum(axis=0, dtype=np.int64)[None, :]
        best = int(_prices(part, 0, k, paid, costs).argmin())
        return best + 1, int(k[0, best])


def _prices(
    reach: Counts, low: int, k: NDArray[np.int32], paid: Counts | None, costs: Costs
) -> Numbers:
    """`[runs, m - 1 - low]`: the mean cost of each run with each m; infinite if m is not allowed.

    Args:
        reach: see `RunTable.reach`.
        low: the columns start at m = low + 1.
        k: the verifications that solve all solvable trials of the run.
        paid: the verifications of these trials; None if each pays for all k.
        costs: the price list.
    """
    solved, trials, first, last = reach[:, :, None]
    m = np.arange(low + 1, low + k.shape[1] + 1)
    checks: Any = k if paid is None else (paid + (trials - solved) * k) / trials
    prices: Numbers = checks * float(costs.verify)
    prices += m * costs.candidate
    prices[(m < first) | (m > last)] = np.inf
    return prices


def best_splits(table: RunTable, costs: Costs, most: int, *, whole: bool) -> NDArray[np.intp]:
    """`[groups, stop]`: where the last group starts in the best partition of the first problems.

    A partition solves the most trials, then costs the least; on ties, the first start.
    """
    if table.size > FEW and not whole and table.is_sum:
        return splits_of_sums(table, costs, most)
    return splits_of_runs(table, costs, most, whole=whole)


def splits_of_runs(table: RunTable, costs: Costs, most: int, *, whole: bool) -> NDArray[np.intp]:
    """See `best_splits`. Every run is priced once, and none is kept."""
    shape = (most + 1, table.size + 1)
    solved = np.full(shape, -1, dtype=np.int64)
    cost = np.full(shape, np.inf)
    splits = np.zeros(shape, dtype=np.intp)
    solved[0, 0] = 0
    cost[0, 0] = 0.0
    for left in range(table.size):
        there = np.flatnonzero(solved[:-1, left] >= 0)
        if not len(there):
            continue
        own_solved, own_cost = table.run_costs(left, costs, whole=whole)
        solves = solved[there, left][:, None] + own_solved
        prices = cost[there, left][:, None] + own_cost
        levels = slice(there[0] + 1, there[-1] + 2)
        best = solved[levels, left + 1 :]
        least = cost[levels, left + 1 :]
        better = (solves > best) | ((solves == best) & (prices < least))
        best[better] = solves[better]
        least[better] = prices[better]
        splits[levels, left + 1 :][better] = left
    return splits


def splits_of_sums(table: RunTable, costs: Costs, most: int) -> NDArray[np.intp]:
    """See `best_splits`; `table.is_sum` must hold."""
    search = _Sums(table, costs, most)
    for left in range(table.size):
        search.add_start(left)
        search.add_problem(left)
        search.end_at(left + 1)
    return search.splits


class _Sums:
    """Running minima over the starts of the last group, `[groups before it, m - 1]`.

    The cost of a run with a given m is `after - before`, where both are sums over all problems up
    to its end and up to its start. So the best start of a run with this m minimises the cost of the
    earlier groups minus `before`, whatever the end. Rounding must not decide between starts: those
    that are equally good are kept, and priced as `RunTable.run_costs` does.
    """

    def __init__(self, table: RunTable, costs: Costs, most: int) -> None:
        longest = table.least.shape[1]
        self.table = table
        self.costs = costs
        self.m = np.arange(1, longest + 1)
        self.trials = np.concatenate([[0], np.cumsum(table.trials)])
        self.paid = np.zeros((table.size + 1, longest), dtype=np.int64)
        np.cumsum(table.paid, axis=0, out=self.paid[1:])
        self.cost = np.full((most + 1, table.size + 1), np.inf)
        self.cost[0, 0] = 0.0
        self.splits = np.zeros((most + 1, table.size + 1), dtype=np.intp)
        self.best = np.full((most, longest), np.inf)
        self.starts = np.zeros((_EQUALS, most, longest), dtype=np.int32)
        self.kept = np.zeros((most, longest), dtype=np.intp)
        self.close = _ROUNDING * float(self._sums(table.size).max())

    def _sums(self, at: int) -> Numbers:
        """The cost of the first problems, for each m."""
        per_trial = at / max(self.trials[at], 1)
        sums = self.m * (at * self.costs.candidate)
        return np.asarray(sums + self.paid[at] * (per_trial * self.costs.verify))

    def add_start(self, at: int) -> None:
        """From now on, the last group may start at this problem."""
        values = self.cost[:-1, at][:, None] - self._sums(at)
        less = values < self.best - self.close
        self.kept[less] = 0
        groups, columns = np.nonzero(less | (values <= self.best + self.close))
        np.minimum(self.best, values, out=self.best)
        kept = self.kept[groups, columns]
        room = np.isfinite(values[groups, columns]) & (kept < _EQUALS)
        groups = groups[room]
        columns = columns[room]
        kept = kept[room]
        self.starts[kept, groups, columns] = at
        self.kept[groups, columns] += 1

    def add_problem(self, at: int) -> None:
        """The last group has this problem: some m are too small or too large for it."""
        for out in (slice(0, self.table.last_first[at] - 1), slice(self.table.lengths[at], None)):
            self.best[:, out] = np.inf
            self.kept[:, out] = 0

    def end_at(self, stop: int) -> None:
        """The best partitions of the problems before `stop`."""
        values = self.best + self._sums(stop)
        limit = values.min(axis=1, keepdims=True) + self.close
        groups, columns = np.nonzero((values <= limit) & np.isfinite(limit))
        kept = self.kept[groups, columns]
        which = np.repeat(np.arange(len(kept)), kept)
        number = np.arange(len(which)) - np.repeat(np.cumsum(kept) - kept, kept)
        groups = groups[which]
        columns = columns[which]
        starts = self.starts[number, groups, columns]
        trials = self.trials[stop] - self.trials[starts]
        checks = (self.paid[stop, columns] - self.paid[starts, columns]) / trials
        prices = self.m[columns] * self.costs.candidate + checks * self.costs.verify
        totals = self.cost[groups, starts] + prices * (stop - starts)
        order = np.lexsort((starts, totals, groups))
        found, at = np.unique(groups[order], return_index=True)
        self.cost[found + 1, stop] = totals[order[at]]
        self.splits[found + 1, stop] = starts[order[at]]
