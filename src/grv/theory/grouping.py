"""Difficulty groups: the best partition of problems by pass rate, with one pair per group (DAP_k).

Problems are sorted by difficulty; a group is a run of consecutive problems. The pair of a group has
the highest success rate, and the lowest cost among equals. The partition maximises success, then
minimises cost. It is computed exactly, by dynamic programming.

Why vectors suffice: for a given m, all solvable trials are solved if and only if k is at least the
maximum of their least sufficient k. So a group is described by that maximum, the mean number of
verifications, and the last first pass. All three can be updated one problem at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from .hindsight import Pair


@dataclass(frozen=True, eq=False)
class Difficulty:
    """The data of one problem that grouping needs, over its trials.

    Attributes:
        least: `[n]`, the maximum of the least sufficient k over the trials that can be solved with
            the first m candidates; 0 if none can.
        paid: `[n]`, the sum of the verifications over those trials, with early stopping.
        first: `[trials]`, the position of each trial's first pass, from 1; n + 1 if there is none.
    """

    least: NDArray[np.int32]
    paid: NDArray[np.int64]
    first: NDArray[np.int32]

    @classmethod
    def of(cls, least: NDArray[np.int32], paid: NDArray[np.int32]) -> Difficulty:
        """From two arrays `[trials, n]`: the least sufficient k, the number of verifications."""
        n = least.shape[1]
        solving = least <= n
        return cls(
            np.where(solving, least, 0).max(axis=0).astype(np.int32),
            np.where(solving, paid, 0).sum(axis=0),
            np.where(solving.any(axis=1), solving.argmax(axis=1) + 1, n + 1).astype(np.int32),
        )

    @cached_property
    def _solved(self) -> tuple[int, int]:
        return self._first_passes(len(self.least))

    def within(self, n: int) -> tuple[int, int]:
        """How many trials n candidates can solve, and the position of the last first pass."""
        return self._solved if n >= len(self.least) else self._first_passes(n)

    def _first_passes(self, n: int) -> tuple[int, int]:
        places = self.first[self.first <= n]
        return len(places), int(places.max(initial=1))


@dataclass(frozen=True, slots=True)
class Group:
    """Problems `start` to `stop` (excluded) in order of difficulty, and their pair."""

    start: int
    stop: int
    pair: Pair


class Runs:
    """The problems, sorted by difficulty, with the data of every run of consecutive problems.

    Everything that does not depend on costs is computed once, for all price lists.
    """

    def __init__(self, problems: Sequence[Difficulty]) -> None:
        size = len(problems)
        longest = max(len(problem.least) for problem in problems)
        # Entries beyond a problem's last candidate are never read.
        self.least = np.zeros((size, longest), dtype=np.int32)
        self.paid = np.zeros((size, longest), dtype=np.int64)
        for at, problem in enumerate(problems):
            self.least[at, : len(problem.least)] = problem.least
            self.paid[at, : len(problem.paid)] = problem.paid
        self.reach = [_reach(problems[left:]) for left in range(size)]

    def best_groups(
        self, counts: Sequence[int], costs: Costs, *, whole: bool
    ) -> dict[int, tuple[Group, ...]]:
        """The best partition for each number of groups.

        Args:
            counts: the numbers of groups; at most one group per problem is made.
            costs: the price list.
            whole: whether a pair pays for all its k verifications. If not, it pays up to the end of
                the batch in which a candidate passes; the last batch is priced as a full one.
        """
        table = _Intervals(self, costs, whole=whole)
        wanted = {count: min(count, len(self.least)) for count in counts}
        found = dict(_partitions(table, max(wanted.values(), default=0)))
        return {count: found[limit] for count, limit in wanted.items()}


def best_groups(
    problems: Sequence[Difficulty], counts: Sequence[int], costs: Costs, *, whole: bool
) -> dict[int, tuple[Group, ...]]:
    """The best partitions of problems that are sorted by difficulty; see `Runs.best_groups`."""
    return Runs(problems).best_groups(counts, costs, whole=whole)


def _reach(problems: Sequence[Difficulty]) -> NDArray[np.int64]:
    """The data of the runs that start at the first problem, as an array `[4, runs]`.

    Its rows: the number of solvable trials, of all trials, the smallest m and the largest m. The
    largest m is the number of candidates of the shortest problem. All trials that it can solve must
    be solved, so the smallest m is the last of their first passes.
    """
    n, solved, last, trials = len(problems[0].least), 0, 1, 0
    reach = []
    for at, problem in enumerate(problems):
        if len(problem.least) < n:  # trials that need more candidates are no longer solvable
            n = len(problem.least)
            found = [each.within(n) for each in problems[:at]]
            solved, last = sum(count for count, _ in found), max(place for _, place in found)
        count, place = problem.within(n)
        solved, last, trials = solved + count, max(last, place), trials + len(problem.first)
        reach.append((solved, trials, last, n))
    return np.array(reach, dtype=np.int64).T


class _Intervals:
    """For each run of consecutive problems `[l, r]`: solved trials, total cost, and the pair."""

    def __init__(self, runs: Runs, costs: Costs, *, whole: bool) -> None:
        size = len(runs.least)
        self.solved = np.zeros((size, size), dtype=np.int64)
        self.cost = np.full((size, size), np.inf)
        self.pairs = np.zeros((size, size, 2), dtype=np.int32)
        for left in range(size):
            self._fill(left, runs, costs, whole=whole)

    def _fill(self, left: int, runs: Runs, costs: Costs, *, whole: bool) -> None:
        """All runs that start at `left`: rows are the last problem of a run, columns are m."""
        solved, trials, first, last = runs.reach[left]
        low = int(first.min()) - 1  # every run needs more candidates than this
        m = np.arange(low + 1, runs.least.shape[1] + 1)
        k = np.maximum(np.maximum.accumulate(runs.least[left:, low:], axis=0), 1)
        if whole:
            checks = k.astype(np.float64)
        else:
            paid = np.cumsum(runs.paid[left:, low:], axis=0)
            checks = (paid + (trials - solved)[:, None] * k) / trials[:, None]
        prices = m * costs.candidate + checks * costs.verify
        prices[(m < first[:, None]) | (m > last[:, None])] = np.inf
        best = prices.argmin(axis=1)
        rows = np.arange(len(best))
        self.solved[left, left:] = solved
        self.cost[left, left:] = prices[rows, best] * (rows + 1)
        self.pairs[left, left:] = np.stack([m[best], k[rows, best]], axis=1)

    def group(self, left: int, right: int) -> Group:
        m, k = self.pairs[left, right]
        return Group(left, right + 1, Pair(int(m), int(k)))


def _partitions(table: _Intervals, most: int) -> Iterator[tuple[int, tuple[Group, ...]]]:
    """The best partition into 1, 2, ... `most` groups, each with its number of groups."""
    size = len(table.solved)
    solved = [0, *table.solved[0]]  # indexed by the number of problems covered
    cost = [0.0, *table.cost[0]]
    splits: list[list[int]] = [[0] * (size + 1)]
    for count in range(1, most + 1):
        if count > 1:
            solved, cost, split = _one_more(table, solved, cost, count)
            splits.append(split)
        groups: list[Group] = []
        stop = size
        for level in reversed(splits):
            start = level[stop]
            groups.append(table.group(start, stop - 1))
            stop = start
        yield count, tuple(reversed(groups))


def _one_more(
    table: _Intervals, solved: list[int], cost: list[float], count: int
) -> tuple[list[int], list[float], list[int]]:
    """From the best `count - 1` groups of each prefix to the best `count`; on ties, first split."""
    size = len(table.solved)
    had, paid = np.array(solved), np.array(cost)
    new_solved, new_cost, split = [0] * (size + 1), [np.inf] * (size + 1), [0] * (size + 1)
    for stop in range(count, size + 1):
        starts = np.arange(count - 1, stop)
        solves = had[starts] + table.solved[starts, stop - 1]
        prices = paid[starts] + table.cost[starts, stop - 1]
        best = int(np.argmin(np.where(solves == solves.max(), prices, np.inf)))
        new_solved[stop], new_cost[stop] = int(solves[best]), float(prices[best])
        split[stop] = int(starts[best])
    return new_solved, new_cost, split
