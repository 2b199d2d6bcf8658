"""Maps scores to a common scale: piecewise linear between the knots, constant outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def on_scale(values: Sequence[float], normals: Sequence[float], scores: Numbers) -> Numbers:
    """Map each of `values` to the same entry of `normals`; -inf, a missing score, to the lowest.

    `numpy.interp` is not used: its rounding differs from `Scale.normal`, and the two must be equal.
    """
    knots, places = np.array(values), np.array(normals)
    inside = np.clip(scores, knots[0], knots[-1])
    if len(knots) == 1:
        return np.full(inside.shape, places[0])
    high = np.clip(np.searchsorted(knots, inside, side="right"), 1, len(knots) - 1)
    low = high - 1
    share = (inside - knots[low]) / (knots[high] - knots[low])
    found: Numbers = places[low] + (places[high] - places[low]) * share
    return found
