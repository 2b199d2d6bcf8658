"""What a search believes of its prompt, after the failures it has seen.

The *merit* of a candidate is what its verification would save on average, in verifications: the
mean over prompts of its chance of passing times what a search of such a prompt costs at best.
Where the prompt is known, a merit of 1 is the break-even of Theorem 3.2.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import mul

from ...core.values import Costs
from ...theory.optimum import Law, optimum
from .prior import Prior


class Belief:
    """The weights of the prior's prompts, given failures."""

    def __init__(self, prior: Prior, ratio: float) -> None:
        self._tables = tables_of(prior, ratio)
        self._logs = list(self._tables.weights)
        self.merits = self._merits()

    def restart(self, failures: list[float]) -> None:
        """Take so many failures in each bin for all there were."""
        self._logs = list(self._tables.weights)
        for bin, count in enumerate(failures):
            if count:
                self._add(bin, count)
        self.merits = self._merits()

    def fail(self, bin: int, count: float = 1.0) -> None:
        """Take in a failure, or a part of one."""
        self._add(bin, count)
        self.merits = self._merits()

    def _add(self, bin: int, count: float) -> None:
        failing = self._tables.failing[bin]
        self._logs = [log + count * each for log, each in zip(self._logs, failing, strict=True)]

    def _merits(self) -> tuple[float, ...]:
        """One a bin."""
        top = max(self._logs)
        weights = [math.exp(log - top) for log in self._logs]
        total = sum(weights)
        return tuple(sum(map(mul, weights, worth)) / total for worth in self._tables.worth)


class Tables:
    """What does not change during a search; inner sequences have one number a prompt."""

    def __init__(self, prior: Prior, ratio: float) -> None:
        chances = prior.chances
        total = sum(prior.weights)
        self.weights = [math.log(weight / total) for weight in prior.weights]
        bins = range(len(prior.shares))
        # log(1 - h); h is above 0, and below 1 but for rounding
        self.failing = [[math.log1p(-min(each[b], 1 - 1e-12)) for each in chances] for b in bins]
        atoms, costs = tuple(range(len(prior.shares))), Costs(1, ratio)
        best = [optimum(Law(atoms, prior.shares, each), costs).cost / ratio for each in chances]
        self.worth = [[h[b] * cost for h, cost in zip(chances, best, strict=True)] for b in bins]


@lru_cache(maxsize=64)
def tables_of(prior: Prior, ratio: float) -> Tables:
    """The tables of a prior at a ratio of costs, computed once."""
    return Tables(prior, ratio)
