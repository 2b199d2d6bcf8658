"""Difficulty groups: the best partition of problems by pass rate, with one pair per group (DAP_k).

Problems are sorted by difficulty; a group is a run of consecutive problems. The pair of a group has
the highest success rate, and the lowest cost among equals. The partition maximises success, then
minimises cost. It is computed exactly, by dynamic programming (`partitions.py`).

Why vectors suffice: for a given m, all solvable trials are solved if and only if k is at least the
maximum of their least sufficient k. So a group is described by that maximum, the mean number of
verifications, and the last first pass. All three can be updated one problem at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs
from .hindsight import Pair
from .partitions import RunTable, best_splits


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
        self._table = RunTable(
            [problem.least for problem in problems],
            [problem.paid for problem in problems],
            [problem.first for problem in problems],
        )

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
        size = self._table.size
        wanted = {count: min(count, size) for count in counts}
        splits = best_splits(self._table, costs, max(wanted.values(), default=0), whole=whole)
        found: dict[int, tuple[Group, ...]] = {}
        for limit in set(wanted.values()):
            groups: list[Group] = []
            stop = size
            for level in range(limit, 0, -1):
                start = int(splits[level, stop])
                pair = Pair(*self._table.pair(start, stop, costs, whole=whole))
                groups.append(Group(start, stop, pair))
                stop = start
            found[limit] = tuple(reversed(groups))
        return {count: found[limit] for count, limit in wanted.items()}


def best_groups(
    problems: Sequence[Difficulty], counts: Sequence[int], costs: Costs, *, whole: bool
) -> dict[int, tuple[Group, ...]]:
    """The best partitions of problems that are sorted by difficulty; see `Runs.best_groups`."""
    return Runs(problems).best_groups(counts, costs, whole=whole)
