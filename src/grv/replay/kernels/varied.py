"""Runs `Varied` in one order of candidates, without keys and without a state machine.

Candidates are represented by their rank, as in `paths.py`. That is the first ranking, by score. The
second ranking, by the failures of a score, is needed only sometimes; new candidates are added to it
only then.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...core.limits import Limits
from ...core.values import Costs
from ...policies.alternate import Alternate
from ...policies.failure_ranking import ENOUGH, ties_are_evidence
from ...policies.oldest_guard import ROUNDING
from ...policies.varied import Varied
from ...theory.constants import alternate_against_verify_all
from ...theory.decimals import exact_ratio
from ...theory.guard import oldest_limit
from ...theory.slots import alternate_draws
from ...theory.varied_bound import period
from ..orders import OrderBatch
from ..trials import Trials
from .paths import NARROW, PathRun, slot_stages, staged_ahead, summed


class ScoredOrder(NamedTuple):
    """One order of a problem's candidates, with their scores and values of `alike`.

    Attributes:
        places: the rank of each candidate, in order of arrival; 0 is the best.
        passed: whether it passes, by rank.
        heights: by rank; equal scores have equal heights, and higher scores lower ones.
        levels: by rank; equal values of `alike` have equal levels.
        values: of `alike`, by level.
    """

    places: Sequence[int]
    passed: Sequence[bool]
    heights: Sequence[int]
    levels: Sequence[int]
    values: Sequence[float]


def run_varied(order: ScoredOrder, rho: Fraction) -> PathRun:
    """Follow the policy to the first pass or to the last candidate.

    Args:
        order: the candidates in order of arrival.
        rho: the cost of a verification, in candidates.
    """
    draws = alternate_draws(rho)
    limit = period(draws.later) - 1  # how many best slots in a row the same score may have
    search = _PoolState(order)
    size = draws.first
    height = -1
    level = -1
    length = 0
    while search.generate(1):
        search.blind.add(search.drawn - 1)
        if search.verify(search.places[search.drawn - 1]):
            return search.run(solved=True)
        search.generate(size)
        size = draws.later
        best = search.best()
        if best is None:
            continue
        if search.levels[best] != level or search.heights[best] < height:
            height = search.heights[best]
            level = search.levels[best]
            length = 0
        is_over = length == limit
        length = 0 if is_over else length + 1
        other = search.first() if is_over else best
        if search.verify(other if search.ties_count else best):
            return search.run(solved=True)
    return search.run(solved=search.finish(rho))


class _PoolState:
    """The candidates generated and verified so far."""

    def __init__(self, order: ScoredOrder) -> None:
        self.places, self.passed, self.heights, self.levels, self.values = order
        self.ties_count = False  # see `FailureRanking.ties_count`
        self.drawn = self.verified = self.generating = 0
        self.blind: set[int] = set()  # the arrivals that blind slots have drawn
        self.exhausted = False  # becomes True when more candidates are requested than there are
        self._open = [False] * len(self.places)
        self._best: list[int] = []
        self._first: list[tuple[int, int]] = []  # (failures that count, rank)
        self._sorted = 0  # the number of arrivals in `_first`
        self._checked = 0  # the number of arrivals at the last check of the ties
        self._failures: dict[int, int] = {}
        self._rest: list[tuple[int, int, int, deque[int]]] | None = None

    def generate(self, n: int) -> int:
        """Generate at most `n` candidates; return how many came."""
        if self.exhausted:
            return 0
        self.generating += 1
        arrived = self.places[self.drawn : self.drawn + n]
        self.exhausted = len(arrived) < n
        self.drawn += len(arrived)
        for place in arrived:
            self._open[place] = True
            heapq.heappush(self._best, place)
        return len(arrived)

    def verify(self, place: int) -> bool:
        """Verify a candidate; return whether it passes."""
        self.verified += 1
        self._open[place] = False
        level = self.levels[place]
        self._failures[level] = self._failures.get(level, 0) + 1
        return self.passed[place]

    def best(self) -> int | None:
        """The best open candidate."""
        while self._best and not self._open[self._best[0]]:
            heapq.heappop(self._best)
        return self._best[0] if self._best else None

    def recheck_ties(self) -> None:
        """Decide again whether equal scores count as evidence."""
        if self._checked >= ENOUGH:
            return
        self._checked = self.drawn
        seen = self.places[: min(self.drawn, ENOUGH)]
        arrived = (self.values[self.levels[place]] for place in seen)
        before = self.ties_count
        self.ties_count = ties_are_evidence(arrived)
        if self.ties_count is not before:
            self._first = []
            self._sorted = 0

    def first(self) -> int:
        """The first open candidate in the second ranking; there must be an open candidate."""
        if self.drawn >= 2 * self._checked:
            self.recheck_ties()
        for place in self.places[self._sorted : self.drawn]:
            heapq.heappush(self._first, (self._failed(place), place))
        self._sorted = self.drawn
        while True:
            counted, place = self._first[0]
            now = self._failed(place)
            if not self._open[place]:
                heapq.heappop(self._first)
            elif counted == now:
                return place
            else:
                heapq.heapreplace(self._first, (now, place))

    def finish(self, rho: Fraction) -> bool:
        """Verify the rest one by one; return whether one passes. See `OldestGuard.due`."""
        self.recheck_ties()
        ranked = self._worthiest if self.ties_count else self.first
        bound = alternate_against_verify_all(rho)
        price = float(rho)
        before = self.verified
        oldest = 0
        settled = 0
        while self.verified < self.drawn:
            while not self._open[self.places[oldest]]:
                settled += oldest not in self.blind
                oldest += 1
            spent = price * (self.verified - before)
            room = oldest_limit(price, settled, bound) + ROUNDING - price - spent
            if self.verify(self.places[oldest] if price > room else ranked()):
                return True
        return False

    def _worthiest(self) -> int:
        """See `FailureRanking.worthiest`; there must be an open candidate."""
        if self._rest is None:
            levels: dict[int, deque[int]] = {}
            for place, level in enumerate(self.levels):
                levels.setdefault(level, deque()).append(place)
            self._rest = [(1 + each[0], level, 1 + each[0], each) for level, each in levels.items()]
            heapq.heapify(self._rest)
        while True:
            price, level, first, places = self._rest[0]
            now = first << self._failures.get(level, 0)
            while places and not self._open[places[0]]:
                places.popleft()
            if not places:
                heapq.heappop(self._rest)
            elif price != now:
                heapq.heapreplace(self._rest, (now, level, first, places))
            else:
                return places[0]

    def _failed(self, place: int) -> int:
        return self._failures.get(self.levels[place], 0) if self.ties_count else 0

    def run(self, *, solved: bool) -> PathRun:
        """The result."""
        rounds = (self.generating, self.verified)
        return PathRun(solved, self.drawn, self.verified, rounds, int(solved))


def _orders(batch: OrderBatch) -> Iterator[ScoredOrder]:
    problem = batch.problem
    by_rank = [levels for _, _, levels in batch.by_place]
    if problem.alike is not None:
        arrived = np.take_along_axis(batch.orders, batch.ranked, axis=1)
        by_rank = problem.alike_levels[arrived].tolist()
    alike = problem.scores if problem.alike is None else problem.alike
    values = np.empty(problem.alike_levels.max() + 1)
    values[problem.alike_levels] = alike
    by_level = values.tolist()
    for order, levels in zip(batch.by_place, by_rank, strict=True):
        yield ScoredOrder(*order, levels, by_level)


def varied(policy: Varied, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials | None:
    """The kernel of `varied`. It verifies one candidate at a time, so the width has no effect."""
    if batch.keys is not None or math.isfinite(policy.factor):
        return None
    rho = exact_ratio(costs)
    return summed([run_varied(order, rho) for order in _orders(batch)])


def varied_ahead(policy: Varied, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials | None:
    """The kernel of `varied` with searches that look ahead; it generates as `alternate` does."""
    if batch.keys is not None or math.isfinite(policy.factor):
        return None
    stages = slot_stages(Alternate(), costs, len(batch.problem), limits.width or 1)
    return staged_ahead(batch, stages, lambda: varied(policy, batch, costs, NARROW), costs, limits)
