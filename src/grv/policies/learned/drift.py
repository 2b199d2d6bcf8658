"""Detects problems whose scores differ from the history.

There are two tests: the Kolmogorov distance of the scores from the pooled scores of the history,
and the share of scores outside the range of the history. Each limit is the most extreme problem of
the history plus a margin for chance, by the Dvoretzky-Kiefer-Wolfowitz-Massart inequality. So a
problem that is no more extreme than those of the history is flagged with a probability of at most
`FALSE_ALARM`, over all tests of a search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .prior import Prior, Scale

FALSE_ALARM = 0.001
SIZES = (8, 16, 32, 64, 128, 256, 512)  # the numbers of candidates at which the tests are made


def distance(scale: Scale, scores: Sequence[float]) -> float:
    """The largest difference between the two distribution functions at the scores, ties halved."""
    ordered = sorted(scores)
    largest = 0.0
    at = 0
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
    low = scale.values[0]
    high = scale.values[-1]
    return sum(not low <= score <= high for score in scores) / len(scores)


class Drift:
    """The tests of one search."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._next = SIZES[0]
        self._risk = FALSE_ALARM / 2  # of both tests at the next size; halved each time

    def complaint(self, scores: Sequence[float]) -> str | None:
        """How the scores so far differ from the history; None if they do not."""
        if len(scores) < self._next or self._next > SIZES[-1]:
            return None
        self._next = 2 * len(scores)
        chance = math.sqrt(math.log(4 / self._risk) / (2 * len(scores)))
        self._risk /= 2
        scored = [score for score in scores if score > -math.inf]
        if not scored:
            return None
        looks = self._prior.looks
        scale = self._prior.scale
        if (share := outside(scale, scored)) > looks.outside + chance:
            return f"{share:.0%} of {len(scored)} scores are outside the range of the history"
        if (far := distance(scale, scored)) > looks.distance + chance:
            return f"the distribution of {len(scored)} scores is {far:.2f} from the history's"
        return None
