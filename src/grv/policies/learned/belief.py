"""The posterior over problems, given the failures of a search.

The *merit* of a candidate is the expected saving by its verification, in verifications: the mean
over the prior's problems of the chance of passing times the optimal cost J* of such a problem. If
the problem is known, a merit of 1 is the break-even point of Theorem 3.2.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import mul

from ...core.values import Costs
from ...theory.optimum import Law, optimum
from .prior import Prior


class Belief:
    """The weights of the prior's problems, given the failures, and the merit of each bin."""

    def __init__(self, prior: Prior, ratio: float) -> None:
        self._tables = tables_of(prior, ratio)
        self._logs = list(self._tables.weights)
        self.merits = self._merits()

    def restart(self, failures: list[float]) -> None:
        """Replace all failures by these numbers, one per bin."""
        self._logs = list(self._tables.weights)
        for bin, count in enumerate(failures):
            if count:
                self._add(bin, count)
        self.merits = self._merits()

    def fail(self, bin: int, count: float = 1.0) -> None:
        """Add a failure, or a fraction of one."""
        self._add(bin, count)
        self.merits = self._merits()

    @property
    def optimum(self) -> float:
        """The optimal cost J* of the problem, in verifications: the geometric mean of the belief.

        The arithmetic mean would be that of the few problems that are hardly ever solved.
        """
        top = max(self._logs)
        weights = [math.exp(log - top) for log in self._logs]
        logs = map(math.log, self._tables.optima)
        return math.exp(sum(map(mul, weights, logs)) / sum(weights))

    def _add(self, bin: int, count: float) -> None:
        failing = self._tables.failing[bin]
        self._logs = [log + count * each for log, each in zip(self._logs, failing, strict=True)]

    def _merits(self) -> tuple[float, ...]:
        """The merits, one per bin."""
        top = max(self._logs)
        weights = [math.exp(log - top) for log in self._logs]
        total = sum(weights)
        return tuple(sum(map(mul, weights, worth)) / total for worth in self._tables.worth)


class Tables:
    """The constants of a search; inner sequences have one number per problem."""

    def __init__(self, prior: Prior, ratio: float) -> None:
        chances = prior.chances
        total = sum(prior.weights)
        self.weights = [math.log(weight / total) for weight in prior.weights]
        bins = range(len(prior.shares))
        # log(1 - h); h is between 0 and 1, and may be rounded to 1
        self.failing = [[math.log1p(-min(each[b], 1 - 1e-12)) for each in chances] for b in bins]
        atoms = tuple(range(len(prior.shares)))
        costs = Costs(1, ratio)
        laws = [Law(atoms, prior.shares, each) for each in chances]
        self.optima = [optimum(law, costs).cost / ratio for law in laws]  # J*, in verifications
        both = list(zip(chances, self.optima, strict=True))
        self.worth = [[h[b] * cost for h, cost in both] for b in bins]


@lru_cache(maxsize=64)
def tables_of(prior: Prior, ratio: float) -> Tables:
    """The tables of a prior at a ratio of costs, computed once."""
    return Tables(prior, ratio)
