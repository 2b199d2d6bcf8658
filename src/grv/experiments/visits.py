"""What a comparison does with a part of its problems: all rows at all price lists.

Parts are independent of each other, so that processes can share them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.values import Cascade, Costs, Measured
from ..logs.log import LoggedProblem
from ..policies import Adaptive, Fixed
from ..replay.hindsight import hindsight_trials, least_checks_of, paid_checks_of
from ..replay.kernels.dispatch import Conditions, many_trials, trials
from ..replay.kernels.paths import Stage, failing_course
from ..replay.orders import OrderBatch, Orders
from ..replay.trials import Trials, in_flight, rounds_of, stacked
from ..theory.exact import success_probability
from ..theory.grouping import Difficulty
from ..theory.hindsight import Pair
from .assigned_pairs import AssignedPairs
from .rows import DifficultyRow, HindsightRow, PolicyRow, RowKind, UniformRow
from .settings import Settings

Ints = NDArray[np.integer]


@dataclass(frozen=True)
class ExactPair:
    """A pair whose success over all orders is wanted.

    If `capped`, the pair takes all candidates of a problem that has fewer than m.
    """

    pair: Pair
    capped: bool


@dataclass(frozen=True, eq=False)
class Visited:
    """The results of a part of the problems.

    Attributes:
        trials: by price list and row, arrays `[problems, orders]`.
        reference: for each price list, those of adaptive, if a row must match its cost.
        checks: least and paid verifications, arrays `[trials, candidates]`, for all pairs.
        difficulties: one per problem, if they are grouped.
        exact: the chance of success over all orders, one per problem.
    """

    trials: dict[tuple[int, int], Trials] = field(default_factory=dict)
    reference: list[Trials] = field(default_factory=list)
    checks: list[tuple[Ints, Ints]] = field(default_factory=list)
    difficulties: list[Difficulty] = field(default_factory=list)
    exact: dict[ExactPair, list[float]] = field(default_factory=dict)


class Visits:
    """Visits problems with all rows of a comparison."""

    def __init__(
        self,
        orders: Orders,
        rows: Mapping[int, tuple[str, RowKind]],
        prices: Sequence[Costs],
        settings: Settings,
        cascade: Cascade | None,
    ) -> None:
        self.orders, self.rows, self.prices = orders, rows, prices
        self.settings, self.cascade = settings, cascade
        kinds = [kind for _, kind in rows.values()]
        self.matched = any(isinstance(kind, UniformRow) for kind in kinds)
        self.grouped = any(isinstance(kind, DifficultyRow) for kind in kinds)
        self.hindsight = any(isinstance(kind, HindsightRow) for kind in kinds)

    def policies(self, start: int, stop: int, exact: Iterable[ExactPair]) -> Visited:
        """Run the rows that need only one problem, and collect the data for the other rows."""
        batches = list(self.orders.batches(start, stop))
        found = Visited(exact=self._exact(start, stop, exact))
        least: list[NDArray[np.int32]] = []
        if self.hindsight or self.matched or self.grouped:
            least = [least_checks_of(batch) for batch in batches]
        for at, costs in enumerate(self.prices):
            self._try_all(found, batches, least, at, costs)
        if self.matched or self.grouped:
            width, pace = self.settings.width, self.settings.pace
            both = zip(batches, least, strict=True)
            paid = [paid_checks_of(*each, width=width, pace=pace) for each in both]
            if self.matched:
                found.checks.extend(_by_length(least, paid))
            if self.grouped:
                found.difficulties.extend(map(Difficulty.of, least, paid))
        return found

    def _try_all(
        self,
        found: Visited,
        batches: Sequence[OrderBatch],
        least: Sequence[NDArray[np.int32]],
        at: int,
        costs: Costs,
    ) -> None:
        width, value, cascade = self.settings.width, self.settings.value, self.cascade
        tried: dict[tuple[Any, ...], Trials] = {}
        how: dict[str, Any] = {"value": value, "cascade": cascade, "pace": self.settings.pace}
        how["answers"] = self.settings.answers
        for number, (_, kind) in self.rows.items():
            match kind:
                case PolicyRow(policy, whole):
                    at_once = None if whole else width
                    name = (type(policy), repr(policy), at_once)  # the repr has all parameters
                    if name not in tried:
                        tried[name] = stacked(
                            many_trials(policy, batches, costs, width=at_once, **how)
                        )
                    found.trials[at, number] = tried[name]
                case HindsightRow():
                    both = zip(batches, least, strict=True)
                    best = (hindsight_trials(*each, costs, width=width) for each in both)
                    found.trials[at, number] = stacked([e.worth(value, costs) for e in best])
        if self.matched:
            known = tried.get((Adaptive, repr(Adaptive()), width))
            found.reference.append(
                known or stacked(many_trials(Adaptive(), batches, costs, width=width, **how))
            )

    def pairs(
        self,
        start: int,
        stop: int,
        pairs: Sequence[Mapping[int, AssignedPairs]],
        exact: Iterable[ExactPair],
    ) -> Visited:
        """Run the rows of pairs, which were chosen for each price list."""
        batches = list(self.orders.batches(start, stop))
        found = Visited(exact=self._exact(start, stop, exact))
        for at, costs in enumerate(self.prices):
            for number, assigned in pairs[at].items():
                found.trials[at, number] = stacked(
                    [self._try_pair(assigned.by_problem[b.problem.id], b, costs) for b in batches]
                )
        return found

    def _try_pair(self, pair: Pair, batch: OrderBatch, costs: Costs) -> Trials:
        how = Conditions(self.settings.width, pace=self.settings.pace)
        if pair.m <= len(batch.problem):
            return trials(Fixed(*pair), batch, costs, width=how.width, pace=how.pace)
        drawn, checks = (np.full(batch.size, count, dtype=np.int32) for count in pair)
        if how.ahead is None:
            rounds = rounds_of(1, in_flight(checks, how.width))
        else:
            course = failing_course((Stage(*pair),), costs, how.ahead, pair.m)
            rounds = np.tile(rounds_of(1, np.array(course.counts[3:4])), (batch.size, 1))
        found = Trials(np.zeros(batch.size, dtype=np.bool_), drawn, checks, rounds)
        if isinstance(costs, Measured):  # candidates that are not in the log have no measured cost
            return dataclasses.replace(found, paid=found.costs(costs))
        return found

    def _exact(
        self, start: int, stop: int, wanted: Iterable[ExactPair]
    ) -> dict[ExactPair, list[float]]:
        problems = self.orders.problems[start:stop]
        return {each: [_solved_in_all_orders(p, each) for p in problems] for each in wanted}


def _solved_in_all_orders(problem: LoggedProblem, wanted: ExactPair) -> float:
    """The share of all orders in which the pair solves a problem."""
    m = min(wanted.pair.m, len(problem)) if wanted.capped else wanted.pair.m
    if not problem.solvable or m > len(problem):
        return 0.0
    return success_probability(problem.scores, problem.passed, m, min(wanted.pair.k, m))


def _by_length(
    least: Sequence[NDArray[np.int32]], paid: Sequence[NDArray[np.int32]]
) -> list[tuple[Ints, Ints]]:
    """The trials of problems with the same number of candidates, together and in small types."""
    places: dict[int, list[int]] = {}
    for at, each in enumerate(least):
        places.setdefault(each.shape[1], []).append(at)
    return [
        (_joined([least[at] for at in same], length), _joined([paid[at] for at in same], length))
        for length, same in places.items()
    ]


def _joined(arrays: Sequence[NDArray[np.int32]], length: int) -> Ints:
    joined = np.concatenate(arrays)
    return joined.astype(np.int16) if length < np.iinfo(np.int16).max else joined
