"""Minimises a smooth convex function of many variables: L-BFGS with backtracking.

`scipy.optimize` has it too, but calls a BLAS with threads, which wait for each other where cores
are few: a fit then takes ten times as long. Vectors of this size need no threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Loss = Callable[[Numbers], tuple[float, Numbers]]  # the value and the slope at a point

_KEPT = 10  # steps from which the curvature is estimated
_ENOUGH = 1e-4  # the share of the decrease that the slope promises which a step must reach
_MOST_HALVINGS = 30


def minimise(loss: Loss, start: Numbers, *, steps: int = 200, precision: float = 1e-7) -> Numbers:
    """The point with the lowest value that was found.

    Args:
        loss: the function; it must be convex and bounded below.
        start: where to begin.
        steps: the maximum number of steps.
        precision: stop if a step lowers the value by a smaller share of it.
    """
    at, (value, slope) = start, loss(start)
    kept: deque[tuple[Numbers, Numbers]] = deque(maxlen=_KEPT)
    for _ in range(steps):
        step = -_times_inverse(kept, slope)
        promised = float(step @ slope)
        size = 1.0 if kept else 1 / max(float(np.sqrt(slope @ slope)), 1.0)
        for _ in range(_MOST_HALVINGS):
            new = at + size * step
            lower, new_slope = loss(new)
            if lower <= value + _ENOUGH * size * promised:
                break
            size /= 2
        else:
            return at
        moved = new - at
        turned = new_slope - slope
        if moved @ turned > 0:
            kept.append((moved, turned))
        gained = value - lower
        at = new
        value = lower
        slope = new_slope
        if gained <= precision * max(abs(value), 1.0):
            break
    return at


def _times_inverse(kept: deque[tuple[Numbers, Numbers]], slope: Numbers) -> Numbers:
    """The slope times the inverse of the curvature, as the kept steps show it."""
    found = slope.copy()
    shares = []
    for moved, turned in reversed(kept):
        share = (moved @ found) / (moved @ turned)
        shares.append(share)
        found -= share * turned
    if kept:
        moved, turned = kept[-1]
        found *= (moved @ turned) / (turned @ turned)
    for (moved, turned), share in zip(kept, reversed(shares), strict=True):
        found += (share - (turned @ found) / (moved @ turned)) * moved
    return found
