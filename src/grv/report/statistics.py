"""The statistics that tables rest on, each defined once and told apart from where it is used."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Z_95 = 1.959963984540054  # the normal quantile of a 95 % interval


def auc(scores: Floats, passed: Flags) -> float | None:
    """The chance that a candidate that passes outscores one that fails, ties counting half.

    None without both kinds.
    """
    passes, fails = int(passed.sum()), int((~passed).sum())
    if not passes or not fails:
        return None
    _, level = np.unique(scores, return_inverse=True)
    size = int(level.max()) + 1
    good = np.bincount(level, weights=passed, minlength=size)
    bad = np.bincount(level, weights=~passed, minlength=size)
    below = np.cumsum(bad) - bad
    return float((good * (below + bad / 2)).sum() / (passes * fails))


def wilson(passed: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    if trials < 1:
        return 0.0, 1.0
    rate, square = passed / trials, z * z / trials
    middle = (rate + square / 2) / (1 + square)
    reach = z / (1 + square) * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials))
    low = 0.0 if passed == 0 else max(middle - reach, 0.0)
    return low, 1.0 if passed == trials else min(middle + reach, 1.0)


def isotonic(values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """The closest curve that never falls, by least squares: pooling adjacent violators."""
    given = np.asarray(values, dtype=np.float64)
    heavy = np.ones_like(given) if weights is None else np.asarray(weights, dtype=np.float64)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many values
    for value, weight in zip(given.tolist(), heavy.tolist(), strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, other, count = blocks.pop()
            total = other + block[1]
            block = ((mean * other + block[0] * block[1]) / total, total, count + block[2])
        blocks.append(block)
    return np.repeat([b[0] for b in blocks], [b[2] for b in blocks])


def largest_fall(rates: Floats) -> Floats:
    """How much the rates fall at most from one place to a later one: `[...]` from `[..., bins]`."""
    if rates.shape[-1] < 2:
        return np.zeros(rates.shape[:-1])
    highest = np.maximum.accumulate(rates, axis=-1)
    falls: Floats = (highest - rates).max(axis=-1)
    return falls


def where_it_falls(rates: Floats) -> tuple[int, int]:
    """From which place to which the largest fall is, of rates `[bins]`."""
    end = int(np.argmax(np.maximum.accumulate(rates) - rates))
    return int(np.argmax(rates[: end + 1])), end


def expected_passes(scores: Floats, passed: Flags) -> Floats:
    """`[n]`: how often the candidate at each rank passes, best first, ties in random order."""
    _, level = np.unique(-scores, return_inverse=True)
    size = np.bincount(level)
    rate = np.bincount(level, weights=passed) / size
    return np.repeat(rate, size)


def binned_rates(scores: Floats, passed: Flags, bins: int) -> Floats:
    """`[bins]`: the pass rate in parts of equal size of the ranking, worst first."""
    rates = expected_passes(scores, passed)[::-1]
    total = np.concatenate([[0.0], np.cumsum(rates)])
    edges = np.linspace(0, len(rates), bins + 1)
    passes: Floats = np.diff(np.interp(edges, np.arange(len(total)), total))
    return passes * (bins / len(rates))


def none_among(draws: NDArray[np.intp], failing: int, size: int) -> Floats:
    """The chance that so many draws without replacement all fail: hypergeometric.

    Args:
        draws: how many are drawn, each from 0 to `size`.
        failing: how many of the `size` fail.
        size: how many there are.
    """
    # The product over i < draws of (failing - i) / (size - i).
    steps = np.arange(size)
    factors = np.clip((failing - steps) / np.maximum(size - steps, 1), 0.0, 1.0)
    chances = np.concatenate([[1.0], np.cumprod(factors)])
    return np.asarray(chances[np.minimum(draws, size)])


def covered_at_random(passed: Flags, ks: NDArray[np.intp]) -> Floats:
    """The chance that k candidates drawn at random hold a pass; all of them where k is more."""
    return 1 - none_among(ks, int((~passed).sum()), len(passed))


def covered_by_score(scores: Floats, passed: Flags, ks: NDArray[np.intp]) -> Floats:
    """The chance that the k best candidates hold a pass, in expectation over ties."""
    if not passed.any():
        return np.zeros(len(ks))
    best = scores[passed].max()
    tied = scores == best
    drawn = np.maximum(ks - int((scores > best).sum()), 0)
    return 1 - none_among(drawn, int((tied & ~passed).sum()), int(tied.sum()))


def rolling_mean(values: Floats, weights: Floats, window: int) -> Floats:
    """Means over `window` neighbours (an odd number), fewer towards the ends."""
    reach = window // 2
    at = np.arange(len(values))
    low, high = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(values))

    def sums(of: Floats) -> Floats:
        total = np.concatenate([[0.0], np.cumsum(of)])
        return np.asarray(total[high] - total[low])

    return sums(values * weights) / np.maximum(sums(weights), 1e-300)


def interval(resampled: Floats) -> tuple[float, float]:
    """The middle 95 % of what resampling gave."""
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)
