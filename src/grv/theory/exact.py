"""Exact success probabilities over all orders of a log, without simulation.

The letters: n candidates are logged. In a uniformly random order, the first m are generated and the
best k of them are verified. w_t is the number of failing candidates among the t best of the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import UsageError

_Counts = NDArray[np.intp]
_Logs = NDArray[np.float64]


def success_probability(scores: ArrayLike, passed: ArrayLike, m: int, k: int) -> float:
    """The chance that one of the best k of m candidates passes, over all orders of the log.

    Without ties, all k fail if the k-th best of the m is at some failing position t of the ranked
    log, the other k - 1 are among the w_t - 1 failing candidates before it, and m - k are after it.
    The chance of failure is the sum over failing t of
    `C(w_t - 1, k - 1) C(n - t, m - k) / C(n, m)`. Candidates with equal scores are verified in
    order of arrival, so each order within a tie is equally likely, and the sum is an expectation
    over these orders.

    Every term is positive and is computed from logarithms, so nothing overflows. The absolute error
    is below 1e-9 for up to 5,000 candidates. The running time is O(n min(k, f)) after sorting,
    where f is the largest number of failing candidates within one tie.

    Args:
        scores: `[n]`, -inf ranks last.
        passed: `[n]`, whether each candidate passes.
        m: the number of candidates generated.
        k: the number of candidates verified.
    """
    return success_probabilities(scores, passed, [(m, k)])[0]


def success_probabilities(
    scores: ArrayLike, passed: ArrayLike, pairs: Sequence[tuple[int, int]]
) -> list[float]:
    """`success_probability` of several pairs (m, k); the log is ranked once."""
    score_of, passes = _checked(scores, passed)
    for m, k in pairs:
        if not 1 <= k <= m <= len(score_of):
            needs = f"1 <= k <= m <= {len(score_of)} candidates"
            raise UsageError(f"needs {needs}, not m={m}, k={k}")
    if not passes.any():
        return [0.0] * len(pairs)
    places = _places(score_of, passes)
    most = int(places.failing.max())
    failures = [math.fsum(_failure(places, m, k, c) for c in range(min(k, most))) for m, k in pairs]
    return [min(max(1.0 - failure, 0.0), 1.0) for failure in failures]


class _Places(NamedTuple):
    """Counts for each position of the ranked log, `[n]`."""

    size: _Counts  # candidates in the tie of this position
    failing: _Counts  # failing candidates in that tie
    earlier: _Counts  # positions of the tie before this one
    failing_before: _Counts  # failing candidates in all better ties
    after: _Counts  # positions after this one


def _checked(scores: ArrayLike, passed: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    score_of = np.asarray(scores, dtype=np.float64)
    passes = np.asarray(passed, dtype=np.bool_)
    if score_of.ndim != 1 or score_of.shape != passes.shape:
        raise UsageError(f"scores of shape {score_of.shape}, verdicts of shape {passes.shape}")
    if np.isnan(score_of).any():
        raise UsageError("a score is NaN; use -inf or leave the candidate out")
    return score_of, passes


def _places(scores: NDArray[np.float64], passed: NDArray[np.bool_]) -> _Places:
    order = np.argsort(-scores)
    ranked = scores[order]
    fails = ~passed[order]
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    size = np.diff(starts, append=len(ranked))
    failing = np.add.reduceat(fails.astype(np.intp), starts)
    at = np.arange(len(ranked))
    return _Places(
        np.repeat(size, size),
        np.repeat(failing, size),
        at - np.repeat(starts, size),
        np.repeat(np.cumsum(failing) - failing, size),
        len(ranked) - 1 - at,
    )


def _failure(places: _Places, m: int, k: int, c: int) -> float:
    """The chance that all k fail and that the last of them ties with exactly c of the others.

    The candidate at a position fails with probability failing / size. Given that, c others of its
    tie all fail with probability `C(failing - 1, c) / C(size - 1, c)`. These c are at earlier
    positions of the tie, k - 1 - c are failing candidates of better ties, and m - k come after.
    """
    n = len(places.size)
    possible = places.failing > c
    possible &= places.earlier >= c
    possible &= places.failing_before >= k - 1 - c
    possible &= places.after >= m - k
    size, failing, earlier, before, after = (each[possible] for each in places)
    logs = _log_factorials(n)
    terms = (
        np.log(failing / size)
        + _log_choose(logs, failing - 1, c)
        - _log_choose(logs, size - 1, c)
        + _log_choose(logs, earlier, c)
        + _log_choose(logs, before, k - 1 - c)
        + _log_choose(logs, after, m - k)
        - (logs[n] - logs[m] - logs[n - m])
    )
    return float(np.exp(terms).sum())


def _log_choose(logs: _Logs, n: _Counts, k: int) -> _Logs:
    """The logarithm of C(n, k), for n >= k."""
    chosen: _Logs = logs[n] - logs[k] - logs[n - k]
    return chosen


@lru_cache(maxsize=8)
def _log_factorials(n: int) -> _Logs:
    """The logarithms of i! for i = 0 ... n."""
    logs = np.array([math.lgamma(i + 1) for i in range(n + 1)])
    logs.flags.writeable = False
    return logs
