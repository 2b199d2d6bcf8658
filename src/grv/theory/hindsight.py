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
    n = len(levels)
    least = np.full(n, n + 1, dtype=np.int32)
    records = np.flatnonzero(passed)
    if not len(records):
        return least
    records = records[_is_record(levels[records])]
    for start, end in zip(records, [*records[1:], n], strict=True):
        level = levels[start]
        if keys is None:
            before = np.count_nonzero(levels[:start] <= level)
            least[start:end] = 1 + before + np.cumsum(levels[start:end] < level)
        else:
            ahead = np.concatenate([levels[:start] <= level, levels[start:end] < level])
            least[start:end] = 1 + np.cumsum(_first_of_class(ahead, keys[:end]))[start:]
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
    enough = np.flatnonzero(least <= np.arange(1, len(least) + 1))
    if not len(enough):
        return None
    prices = (enough + 1) * costs.candidate + least[enough] * costs.failure
    at = int(enough[np.argmin(prices)])
    return Pair(at + 1, int(least[at]))


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
