"""Scores on a common scale: piecewise linear between the knots of a scale, flat outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def on_scale(values: Sequence[float], normals: Sequence[float], scores: Numbers) -> Numbers:
    """Scores on the scale whose `values` lie at `normals`; missing ones, -inf, at its lower end.

    `numpy.interp` rounds differently from `Scale.normal`, which this must equal to the last bit.
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
