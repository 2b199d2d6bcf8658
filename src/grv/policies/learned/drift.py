"""Whether a prompt's scores look like those of the history.

Two looks: how far they are from the pooled scores (Kolmogorov's distance), and how many lie outside
the range of the history. Both are compared with the extremes of the history itself, allowing for
chance by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart, which covers both. So a prompt
that is no stranger than the strangest of the history is refused with a chance of at most
`FALSE_ALARM`, all looks together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .prior import Prior, Scale

FALSE_ALARM = 0.001
SIZES = (8, 16, 32, 64, 128, 256, 512)  # how many candidates there are at the looks


def distance(scale: Scale, scores: Sequence[float]) -> float:
    """The largest difference between two distribution functions, at the scores; ties at half."""
    ordered = sorted(scores)
    largest, at = 0.0, 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end] == ordered[at]:
            end += 1
        pooled = math.erfc(-scale.normal(ordered[at]) / math.sqrt(2)) / 2
        largest = max(largest, abs((at + end) / 2 / len(ordered) - pooled))
        at = end
    return largest


def outside(scale: Scale, scores: Sequence[float]) -> float:
    """The share of scores outside the range of a scale."""
    low, high = scale.values[0], scale.values[-1]
    return sum(not low <= score <= high for score in scores) / len(scores)


class Likeness:
    """The looks of one search."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._next = SIZES[0]
        self._risk = FALSE_ALARM / 2  # of both looks at the next size; half as much each time

    def complaint(self, scores: Sequence[float]) -> str | None:
        """What is strange about the scores seen so far; None while nothing is."""
        if len(scores) < self._next or self._next > SIZES[-1]:
            return None
        self._next = 2 * len(scores)
        chance = math.sqrt(math.log(4 / self._risk) / (2 * len(scores)))
        self._risk /= 2
        scored = [score for score in scores if score > -math.inf]
        if not scored:
            return None
        looks, scale = self._prior.looks, self._prior.scale
        if (share := outside(scale, scored)) > looks.outside + chance:
            return f"{share:.0%} of {len(scored)} scores are outside the range of the history"
        if (far := distance(scale, scored)) > looks.distance + chance:
            return f"{len(scored)} scores are {far:.2f} from the history's, as distributions"
        return None
