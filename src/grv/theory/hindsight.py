"""Hindsight: the smallest sufficient number of verifications for every number of candidates.

The paper's SampleAware picks, for one order of candidates, the cheapest pair (N_rew, N_ver) such
that one of the N_ver best of the first N_rew passes. A vector describes all pairs: the least
sufficient N_ver for each N_rew.

Candidates are given in order of arrival by their *level*: 0 for the best score, 1 for the next
distinct score, and so on. On ties the older candidate comes first, as in `core.pool`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.values import REFUTED_CODE, Costs

Levels = NDArray[np.integer]


class Pair(NamedTuple):
    """Generate `m`, verify the best `k`."""

    m: int
    k: int


def least_checks(
    levels: Levels, passed: NDArray[np.bool_], keys: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """`[n]`: the fewest verifications that find a pass among the first 1, 2, ... n candidates.

    The value is n + 1 if none of them passes. With `keys` (a number per key, -1 for none) one
    verification refutes all candidates with the same key; their labels must be equal. Candidates
    with `REFUTED_CODE` need no verification.
    """
    if keys is None:
        found: NDArray[np.int32] = least_checks_of_all(levels[None, :], passed[None, :])[0]
        return found
    n = len(levels)
    least = np.full(n, n + 1, dtype=np.int32)
    records = np.flatnonzero(passed)
    if not len(records):
        return least
    records = records[_is_record(levels[records])]
    for start, end in zip(records, [*records[1:], n], strict=True):
        level = levels[start]
        ahead = np.concatenate([levels[:start] <= level, levels[start:end] < level])
        least[start:end] = 1 + np.cumsum(_first_of_class(ahead, keys[:end]))[start:]
    return least


def least_checks_of_all(levels: Levels, passed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """`least_checks` of many orders without keys: all arrays are `[orders, n]`.

    A pass that is better than all earlier ones is a record. From there to the next record it is the
    first to be found: after the better candidates, and after the older ones that are as good.
    """
    n = levels.shape[1]
    place = np.arange(n)
    least = np.full(levels.shape, n + 1, dtype=np.int32)
    worst = np.iinfo(levels.dtype).max
    best = np.minimum.accumulate(np.where(passed, levels, worst), axis=1)
    record = passed.copy()
    record[:, 1:] &= best[:, 1:] < best[:, :-1]
    number = np.cumsum(record, axis=1, dtype=np.int32)
    rows = np.arange(len(levels))
    for count in range(1, int(number.max(initial=0)) + 1):
        rows = rows[number[rows, -1] >= count]
        start = (record[rows] & (number[rows] == count)).argmax(axis=1)[:, None]
        level = levels[rows[:, None], start]
        own = levels[rows]
        ahead = (own < level) | ((own == level) & (place < start))
        needed = 1 + np.cumsum(ahead, axis=1, dtype=np.int32)
        least[rows] = np.where(place >= start, needed, least[rows])
    return least


def available(n: int, keys: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """`[n]`: how many of the first 1, 2, ... n candidates can be verified, one per key."""
    if keys is None:
        return np.arange(1, n + 1, dtype=np.int32)
    everyone = np.ones(n, dtype=np.bool_)
    return np.cumsum(_first_of_class(everyone, keys)).astype(np.int32)


def cheapest_pair(least: NDArray[np.int32], costs: Costs) -> Pair | None:
    """The paper's SampleAware: the cheapest sufficient pair; on ties, the smaller `m`.

    One verification of a pair passes, the others fail. So the failure's price decides.
    """
    (m,), (k,) = cheapest_pairs(least[None, :], costs)
    return Pair(int(m), int(k)) if m else None


def cheapest_pairs(
    least: NDArray[np.int32], costs: Costs
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """`cheapest_pair` of many orders, `[orders, n]`: their m and k, both 0 if there is none."""
    m = np.arange(1, least.shape[1] + 1)
    enough = least <= m
    prices = np.where(enough, m * costs.candidate + least * costs.failure, np.inf)
    best = prices.argmin(axis=1)
    rows = np.arange(len(least))
    there = enough[rows, best]
    k = np.where(there, least[rows, best], 0)
    return np.where(there, best + 1, 0).astype(np.int32), k.astype(np.int32)


def _is_record(values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which values are smaller than all earlier ones."""
    record = np.ones(len(values), dtype=np.bool_)
    record[1:] = values[1:] < np.minimum.accumulate(values)[:-1]
    return record


def _first_of_class(chosen: NDArray[np.bool_], keys: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the chosen candidates are the first to arrive with their key; no refuted one is."""
    at = np.flatnonzero(chosen & (keys[: len(chosen)] != REFUTED_CODE))
    apart = np.where(keys[at] >= 0, keys[at], -1 - at)  # without a key: a class of its own
    _, first = np.unique(apart, return_index=True)
    flags = np.zeros(len(chosen), dtype=np.bool_)
    flags[at[first]] = True
    return flags
