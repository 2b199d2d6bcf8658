"""The statistics behind the tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def auc(scores: Floats, passed: Flags, *, tie: float = 0.5) -> float | None:
    """The probability that a candidate that passes outscores one that fails.

    None without both passes and failures.

    Args:
        scores: one per candidate.
        passed: one per candidate.
        tie: what two equal scores count: one half, as usual, or 0 for the strict AUC.
    """
    passes = int(passed.sum())
    fails = int((~passed).sum())
    if not passes or not fails:
        return None
    _, level = np.unique(scores, return_inverse=True)
    size = int(level.max()) + 1
    good = np.bincount(level, weights=passed, minlength=size)
    bad = np.bincount(level, weights=~passed, minlength=size)
    below = np.cumsum(bad) - bad
    return float((good * (below + tie * bad)).sum() / (passes * fails))


def wilson(passed: int, trials: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share."""
    from scipy.stats import binomtest

    ends = binomtest(passed, trials).proportion_ci(method="wilson")
    return float(ends.low), float(ends.high)


def isotonic(values: Floats) -> Floats:
    """The closest curve that never falls, by least squares."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values).x)


def largest_fall(rates: Floats) -> Floats:
    """`[...]`: the largest fall from one rate to a later one, of rates `[..., bins]`."""
    if rates.shape[-1] < 2:
        return np.zeros(rates.shape[:-1])
    highest = np.maximum.accumulate(rates, axis=-1)
    falls: Floats = (highest - rates).max(axis=-1)
    return falls


def where_it_falls(rates: Floats) -> tuple[int, int]:
    """The places where the largest fall of rates `[bins]` starts and ends."""
    end = int(np.argmax(np.maximum.accumulate(rates) - rates))
    return int(np.argmax(rates[: end + 1])), end


def expected_passes(scores: Floats, passed: Flags) -> Floats:
    """`[n]`: the probability that the candidate at each rank passes, best first; random ties."""
    _, level = np.unique(-scores, return_inverse=True)
    size = np.bincount(level)
    rate = np.bincount(level, weights=passed) / size
    return np.repeat(rate, size)


def binned_rates(scores: Floats, passed: Flags, bins: int) -> Floats:
    """`[bins]`: the pass rate in equal parts of the ranking, worst first."""
    rates = expected_passes(scores, passed)[::-1]
    total = np.concatenate([[0.0], np.cumsum(rates)])
    edges = np.linspace(0, len(rates), bins + 1)
    passes: Floats = np.diff(np.interp(edges, np.arange(len(total)), total))
    return passes * (bins / len(rates))


def none_among(draws: NDArray[np.intp], failing: int, size: int) -> Floats:
    """The probability that all draws without replacement fail: hypergeometric.

    Args:
        draws: numbers of draws, each from 0 to `size`.
        failing: the number of items that fail.
        size: the number of items.
    """
    # The product over i < draws of (failing - i) / (size - i).
    steps = np.arange(size)
    factors = np.clip((failing - steps) / np.maximum(size - steps, 1), 0.0, 1.0)
    chances = np.concatenate([[1.0], np.cumprod(factors)])
    return np.asarray(chances[np.minimum(draws, size)])


def covered_at_random(passed: Flags, ks: NDArray[np.intp]) -> Floats:
    """The probability that k random candidates contain a pass; at most all are drawn."""
    return 1 - none_among(ks, int((~passed).sum()), len(passed))


def covered_by_score(scores: Floats, passed: Flags, ks: NDArray[np.intp]) -> Floats:
    """The probability that the k best candidates contain a pass; random ties."""
    if not passed.any():
        return np.zeros(len(ks))
    best = scores[passed].max()
    tied = scores == best
    drawn = np.maximum(ks - int((scores > best).sum()), 0)
    return 1 - none_among(drawn, int((tied & ~passed).sum()), int(tied.sum()))


def rolling_mean(values: Floats, weights: Floats, window: int) -> Floats:
    """Weighted means over `window` neighbours (an odd number), fewer at the ends."""
    reach = window // 2
    at = np.arange(len(values))
    low = np.maximum(at - reach, 0)
    high = np.minimum(at + reach + 1, len(values))

    def sums(of: Floats) -> Floats:
        total = np.concatenate([[0.0], np.cumsum(of)])
        return np.asarray(total[high] - total[low])

    return sums(values * weights) / np.maximum(sums(weights), 1e-300)


def interval(resampled: Floats) -> tuple[float, float]:
    """The middle 95 % of resampled values."""
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)
