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

from ..core.limits import Limits
from ..core.values import Costs, Measured
from ..logs.log import LoggedProblem
from ..policies import Adaptive, Fixed
from ..replay.hindsight import least_checks_of, many_hindsight, paid_checks_of
from ..replay.kernels.dispatch import stacked_trials
from ..replay.kernels.paths import PathStage, failing_course
from ..replay.orders import OrderBatch, Orders
from ..replay.trials import Trials, in_flight, joined, rounds_of, stacked
from ..theory.exact import success_probabilities
from ..theory.grouping import Difficulty
from ..theory.hindsight import Pair
from .assigned_pairs import AssignedPairs
from .rows import DifficultyRow, HindsightRow, PolicyRow, RowKind, UniformRow

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
        limits: Limits,
    ) -> None:
        self.orders = orders
        self.rows = rows
        self.prices = prices
        self.limits = limits
        kinds = [kind for _, kind in rows.values()]
        self.matched = any(isinstance(kind, UniformRow) for kind in kinds)
        self.grouped = any(isinstance(kind, DifficultyRow) for kind in kinds)
        self.hindsight = any(isinstance(kind, HindsightRow) for kind in kinds)

    @property
    def _whole(self) -> Limits:
        """The limits of rows that pay for whole steps."""
        return dataclasses.replace(self.limits, width=None)

    def policies(self, start: int, stop: int, exact: Iterable[ExactPair]) -> Visited:
        """Run the rows that need only one problem, and collect the data for the other rows."""
        batches = list(self.orders.batches(start, stop))
        visited = Visited(exact=self._exact(start, stop, exact))
        least: list[NDArray[np.int32]] = []
        if self.hindsight or self.matched or self.grouped:
            least = [least_checks_of(batch) for batch in batches]
        for index, costs in enumerate(self.prices):
            self._try_all(visited, batches, least, index, costs)
        if self.matched or self.grouped:
            both = zip(batches, least, strict=True)
            paid = [paid_checks_of(*each, self.limits) for each in both]
            if self.matched:
                visited.checks.extend(_by_length(least, paid))
            if self.grouped:
                visited.difficulties.extend(map(Difficulty.of, least, paid))
        return visited

    def _try_all(
        self,
        found: Visited,
        batches: Sequence[OrderBatch],
        least: Sequence[NDArray[np.int32]],
        at: int,
        costs: Costs,
    ) -> None:
        tried: dict[tuple[Any, ...], Trials] = {}
        for number, (_, kind) in self.rows.items():
            match kind:
                case PolicyRow(policy, whole):
                    limits = self._whole if whole else self.limits
                    name = (type(policy), repr(policy), limits.width)  # the repr has all parameters
                    if name not in tried:
                        tried[name] = stacked_trials(policy, batches, costs, limits)
                    found.trials[at, number] = tried[name]
                case HindsightRow():
                    best = many_hindsight(batches, least, costs, self.limits)
                    found.trials[at, number] = best.worth(self.limits.value, costs)
        if self.matched:
            adaptive = tried.get((Adaptive, repr(Adaptive()), self.limits.width))
            found.reference.append(
                adaptive or stacked_trials(Adaptive(), batches, costs, self.limits)
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
        visited = Visited(exact=self._exact(start, stop, exact))
        for index, costs in enumerate(self.prices):
            for number, assigned in pairs[index].items():
                visited.trials[index, number] = self._try_pairs(assigned, batches, costs)
        return visited

    def _try_pairs(
        self, assigned: AssignedPairs, batches: Sequence[OrderBatch], costs: Costs
    ) -> Trials:
        """The trials of each problem with its pair, `[problems, orders]`."""
        limits = Limits(width=self.limits.width, pace=self.limits.pace)
        places: dict[tuple[Pair, bool], list[int]] = {}
        for place, batch in enumerate(batches):
            pair = assigned.by_problem[batch.problem.id]
            places.setdefault((pair, pair.m <= batch.candidates), []).append(place)
        found = []
        for (pair, is_logged), own in places.items():
            same = [batches[place] for place in own]
            if is_logged:
                found.append(stacked_trials(Fixed(*pair), same, costs, limits))
            else:
                found.append(stacked([self._too_few(pair, batch, costs) for batch in same]))
        return joined(found, [place for own in places.values() for place in own])

    def _too_few(self, pair: Pair, batch: OrderBatch, costs: Costs) -> Trials:
        """The trials of a pair with more candidates than the log has: paid for and not solved."""
        limits = Limits(width=self.limits.width, pace=self.limits.pace).of(batch.problem.id)
        drawn, checks = (np.full(batch.size, count, dtype=np.int32) for count in pair)
        if not limits.looks_ahead:
            rounds = rounds_of(1, in_flight(checks, limits.width))
        else:
            course = failing_course((PathStage(*pair),), costs.planning, limits, pair.m)
            rounds = np.tile(rounds_of(1, np.array(course.counts[3:4])), (batch.size, 1))
        none = np.zeros(batch.size, dtype=np.int32)
        result = Trials(none > 0, drawn, checks, rounds, none)
        if isinstance(costs, Measured):  # candidates that are not in the log have no measured cost
            return dataclasses.replace(result, paid=result.costs(costs))
        return result

    def _exact(
        self, start: int, stop: int, wanted: Iterable[ExactPair]
    ) -> dict[ExactPair, list[float]]:
        pairs = list(wanted)
        shares = [_solved_in_all_orders(p, pairs) for p in self.orders.problems[start:stop]]
        return {pair: [each[at] for each in shares] for at, pair in enumerate(pairs)}


def _solved_in_all_orders(problem: LoggedProblem, wanted: Sequence[ExactPair]) -> list[float]:
    """The share of all orders in which each pair solves a problem."""
    shares = [0.0] * len(wanted)
    if not problem.solvable:
        return shares
    pairs = {}
    for at, each in enumerate(wanted):
        m = min(each.pair.m, len(problem)) if each.capped else each.pair.m
        if m <= len(problem):
            pairs[at] = (m, min(each.pair.k, m))
    found = success_probabilities(problem.scores, problem.passed, list(pairs.values()))
    for at, share in zip(pairs, found, strict=True):
        shares[at] = share
    return shares


def _by_length(
    least: Sequence[NDArray[np.int32]], paid: Sequence[NDArray[np.int32]]
) -> list[tuple[Ints, Ints]]:
    """The trials of problems with the same number of candidates, together and in small types."""
    places: dict[int, list[int]] = {}
    for index, counts in enumerate(least):
        places.setdefault(counts.shape[1], []).append(index)
    return [
        (_joined([least[at] for at in same], length), _joined([paid[at] for at in same], length))
        for length, same in places.items()
    ]


def _joined(arrays: Sequence[NDArray[np.int32]], length: int) -> Ints:
    joined = np.concatenate(arrays)
    return joined.astype(np.int16) if length < np.iinfo(np.int16).max else joined
