"""Maps scores to a common scale: piecewise linear between the knots, constant outside."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def on_scale(values: Sequence[float], normals: Sequence[float], scores: Numbers) -> Numbers:
    """Map each of `values` to the same entry of `normals`; -inf, a missing score, to the lowest.

    `numpy.interp` is not used: its rounding differs from `Scale.normal`, and the two must be equal.
    """
    knots = np.array(values)
    places = np.array(normals)
    inside = np.clip(scores, knots[0], knots[-1])
    if len(knots) == 1:
        return np.full(inside.shape, places[0])
    high = np.clip(np.searchsorted(knots, inside, side="right"), 1, len(knots) - 1)
    low = high - 1
    share = (inside - knots[low]) / (knots[high] - knots[low])
    found: Numbers = places[low] + (places[high] - places[low]) * share
    return found


def pooled_shares(normals: Numbers) -> Numbers:
    """The share of the pooled scores below each place on the common scale."""
    return np.array([math.erfc(-each / math.sqrt(2)) / 2 for each in normals.tolist()])


def distances(scores: Numbers, pooled: Numbers) -> Numbers:
    """`[rows]`: as `policies.learned.drift.distance`, of scores `[rows, n]`.

    Args:
        scores: -inf is a missing score and does not count.
        pooled: the share of the pooled scores below each of them.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    places = np.arange(ordered.shape[1])
    n = ordered.shape[1]
    new = np.ones(ordered.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    last = np.ones_like(new)
    last[:, :-1] = new[:, 1:]
    end = np.minimum.accumulate(np.where(last, places + 1, n)[:, ::-1], axis=1)[:, ::-1]
    missing = (scores == -np.inf).sum(axis=1)[:, None]
    share = (start + end - 2 * missing) / 2 / np.maximum(n - missing, 1)
    far = np.abs(share - np.take_along_axis(pooled, order, axis=1))
    largest: Numbers = np.where(places < missing, 0.0, far).max(axis=1)
    return largest
