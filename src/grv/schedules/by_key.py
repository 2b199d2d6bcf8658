"""The rules that go by a key: of the searches that wait, the one with the smallest key is next.

The key of a search depends on its *level*: what it will have spent at its next verdict, divided by
the weight of its problem. A heap has the keys, so a choice costs O(log n) for n open searches.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Protocol

from ..core.errors import UsageError
from .schedule import checked_expected, checked_weight

# How much a prediction counts, by the correlation of the logarithms of predicted and true costs.
# Found with simulated predictions; docs/research/batch.md says what they bring on two logs.
PREDICTION_WEIGHTS = {0.0: 0.0, 0.3: 0.3, 0.5: 0.5, 0.7: 1.0, 0.9: 3.0}


class Key(Protocol):
    """The key of a search."""

    def key(self, level: float, expected: float) -> float:
        """The key of a search at this level, with this prediction (0 without predictions)."""
        ...


class ByKey:
    """The schedule of a rule that has keys. Equal keys: the first problem in the file."""

    def __init__(self, rule: Key) -> None:
        self._rule = rule
        self._waiting: list[tuple[float, int]] = []
        self._out: set[int] = set()
        self._weights: dict[int, float] = {}  # those that are not 1
        self._expected: dict[int, float] = {}
        self._sum_expected = 0.0

    def add(
        self,
        problem: int,
        *,
        weight: float = 1.0,
        expected: float | None = None,
        spent: float = 0.0,
        next_cost: float = 0.0,
        ended: bool = False,
    ) -> None:
        """Add a problem, which waits."""
        if checked_weight(weight) != 1.0:
            self._weights[problem] = weight
        if checked_expected(expected) is not None:
            assert expected is not None
            self._expected[problem] = expected
            self._sum_expected += expected
        if ended:
            self._forget(problem)
        else:
            self._push(problem, spent + next_cost)

    def ask(self) -> int | None:
        """The problem with the smallest key of those that wait."""
        if not self._waiting:
            return None
        _, problem = heapq.heappop(self._waiting)
        self._out.add(problem)
        return problem

    def tell(
        self,
        problem: int,
        *,
        spent: float,
        next_cost: float = 0.0,
        ended: bool = False,
        expected: float | None = None,
    ) -> bool:
        """Report the step of a search that is out; it may always be asked for again."""
        if problem not in self._out:
            raise ValueError(f"problem {problem} is not out")
        if checked_expected(expected) is not None:
            assert expected is not None
            self._sum_expected += expected - self._expected.get(problem, expected)
            self._expected[problem] = expected
        self._out.remove(problem)
        if ended:
            self._forget(problem)
        else:
            self._push(problem, spent + next_cost)
        return not ended

    def _push(self, problem: int, total: float) -> None:
        weight = self._weights.get(problem, 1.0)
        expected = self._expected.get(problem)
        if expected is None:
            known = len(self._expected)
            expected = self._sum_expected / known if known else 0.0
        heapq.heappush(self._waiting, (self._rule.key(total / weight, expected / weight), problem))

    def _forget(self, problem: int) -> None:
        self._weights.pop(problem, None)


@dataclass(frozen=True)
class LeastSpent:
    """The problem whose search has cost least goes first: no problem uses up the money.

    The key is what the search will have spent at its next verdict, divided by the weight. It needs
    no knowledge of the problems. If a search is less likely to succeed with the next unit of money
    the more it has spent, and nothing tells the problems apart, then no rule solves more problems
    on average, whatever the budget. Choose it for every batch; it is the default.

    Examples:
        >>> import grv
        >>> schedule = grv.schedules.LeastSpent().begin()
        >>> schedule.add(0, spent=20, next_cost=11)
        >>> schedule.add(1, spent=5, next_cost=11)
        >>> schedule.ask()
        1
    """

    def key(self, level: float, expected: float) -> float:
        """The level."""
        return level

    def begin(self, *, budget: float = math.inf, problems: int | None = None) -> ByKey:
        """The schedule of a run."""
        return ByKey(self)


@dataclass(frozen=True)
class InOrder:
    """One problem after the other, in the order of the file, until the money is gone.

    Choose it if the first problems matter most, or to have answers in the order of the file.

    Examples:
        >>> import grv
        >>> schedule = grv.schedules.InOrder().begin()
        >>> schedule.add(0, spent=20, next_cost=11)
        >>> schedule.add(1, spent=5, next_cost=11)
        >>> schedule.ask()
        0
    """

    def key(self, level: float, expected: float) -> float:
        """The same for all."""
        return 0.0

    def begin(self, *, budget: float = math.inf, problems: int | None = None) -> ByKey:
        """The schedule of a run."""
        return ByKey(self)


@dataclass(frozen=True)
class Doubling:
    """Every problem up to a level, in order of the file; then the level doubles.

    The levels are the powers of two. A search that continues keeps its prompt in the model's cache
    longer than with `least-spent`, and to solve the same problems the budget need not be more than
    twice as large. Choose it if it is expensive to go from one problem to another.

    Examples:
        >>> import grv
        >>> schedule = grv.schedules.Doubling().begin()
        >>> schedule.add(0, spent=20, next_cost=11)  # up to 32
        >>> schedule.add(1, spent=5, next_cost=12)  # up to 32
        >>> schedule.ask()
        0
    """

    def key(self, level: float, expected: float) -> float:
        """The smallest power of two that is at least the level."""
        fraction, exponent = math.frexp(level)
        if fraction == 0.5:
            exponent -= 1
        return math.ldexp(1.0, exponent) if level > 0 else 0.0

    def begin(self, *, budget: float = math.inf, problems: int | None = None) -> ByKey:
        """The schedule of a run."""
        return ByKey(self)


@dataclass(frozen=True)
class CheapestPredicted:
    """As least-spent, but problems that are predicted to be cheap go first.

    The key is k times the predicted cost plus the level. A problem without a prediction takes the
    mean of the others'. Choose it if something is known about the problems before the search.

    Attributes:
        k: how much the prediction counts. 0 is `least-spent`. The default suits a correlation of
            .5 between the logarithms of predicted and true costs; `prediction_weight` has others.

    Examples:
        >>> import grv
        >>> schedule = grv.schedules.CheapestPredicted(k=1).begin()
        >>> schedule.add(0, expected=400, next_cost=11)
        >>> schedule.add(1, expected=20, spent=40, next_cost=11)
        >>> schedule.ask()
        1
    """

    k: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.k < math.inf:
            raise UsageError(f"cheapest-predicted: k must be finite and not negative, not {self.k}")

    def key(self, level: float, expected: float) -> float:
        """The level plus k times the prediction."""
        return self.k * expected + level

    def begin(self, *, budget: float = math.inf, problems: int | None = None) -> ByKey:
        """The schedule of a run."""
        return ByKey(self)


def prediction_weight(correlation: float) -> float:
    """The k of `CheapestPredicted` for a correlation of logarithms; a table, interpolated.

    >>> prediction_weight(0.7)
    1.0
    """
    known = list(PREDICTION_WEIGHTS)
    place = bisect_left(known, correlation)
    if place == 0:
        return 0.0
    if place == len(known):
        return PREDICTION_WEIGHTS[known[-1]]
    low = known[place - 1]
    high = known[place]
    share = (correlation - low) / (high - low)
    return PREDICTION_WEIGHTS[low] * (1 - share) + PREDICTION_WEIGHTS[high] * share
