"""`Varied` in one order of candidates, without keys and without a state machine.

Candidates are known by their place in the final ranking, as in `paths.py`. Which one comes first by
the failures of its score is asked for now and then only; what has arrived is put in order then.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.values import Costs
from ...policies.varied import ONE_IN, Varied
from ...policies.variety import ENOUGH, ties_tell
from ...theory.decimals import exact_ratio
from ...theory.slots import Draws, alternate_draws
from ...theory.variety import period
from ..orders import Batch
from ..trials import Trials
from .paths import Run, summed


class Scored(NamedTuple):
    """One order of a problem's candidates, with their scores.

    Attributes:
        places: of each candidate in the ranking of all, in order of arrival; 0 is the best.
        passed: by place.
        levels: by place: equal for equal scores.
        scores: by level.
    """

    places: Sequence[int]
    passed: Sequence[bool]
    levels: Sequence[int]
    scores: Sequence[float]


def run_varied(order: Scored, draws: Draws, limit: int) -> Run:
    """Follow the policy to the first pass, or until nothing is left.

    Args:
        order: of arrival.
        draws: how many candidates a round chooses from.
        limit: how many best slots in a row one score may have.
    """
    search = _Search(order)
    size, level, length = draws.first, -1, 0
    while search.generate(1):
        if search.verify(search.places[search.drawn - 1]):
            return search.run(solved=True)
        search.generate(size)
        size = draws.later
        best = search.best()
        if best is None:
            continue
        if order.levels[best] != level:
            level, length = order.levels[best], 0
        is_over = length == limit
        length = 0 if is_over else length + 1
        other = search.first() if is_over else best
        if search.verify(other if search.tell else best):
            return search.run(solved=True)
    return search.run(solved=search.finish())


class _Search:
    """What has been generated and verified so far."""

    def __init__(self, order: Scored) -> None:
        self.places, self.passed, self.levels, self.scores = order
        self.tell = False  # whether ties tell, when it was last looked at
        self.drawn = self.verified = self.generating = 0
        self.exhausted = False  # that there are no more is known when more were asked for
        self._open = [False] * len(self.places)
        self._best: list[int] = []
        self._first: list[tuple[int, int]] = []  # failures that count, place
        self._sorted = 0  # how many arrivals are among those
        self._looked = 0  # how many arrivals there were at the last look
        self._failures: dict[int, int] = {}

    def generate(self, n: int) -> int:
        """How many of so many more there are."""
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
        """Whether it passes."""
        self.verified += 1
        self._open[place] = False
        level = self.levels[place]
        self._failures[level] = self._failures.get(level, 0) + 1
        return self.passed[place]

    def best(self) -> int | None:
        """The best that is open."""
        while self._best and not self._open[self._best[0]]:
            heapq.heappop(self._best)
        return self._best[0] if self._best else None

    def look(self) -> None:
        """See whether ties tell."""
        if self._looked >= ENOUGH:
            return
        self._looked = self.drawn
        seen = self.places[: min(self.drawn, ENOUGH)]
        arrived = (self.scores[self.levels[place]] for place in seen)
        before, self.tell = self.tell, ties_tell(arrived)
        if self.tell is not before:
            self._first, self._sorted = [], 0

    def first(self) -> int:
        """Of what is open, which there must be, the best; where ties tell, the least failed."""
        if self.drawn >= 2 * self._looked:
            self.look()
        for place in self.places[self._sorted : self.drawn]:
            heapq.heappush(self._first, (self._failed(place), place))
        self._sorted = self.drawn
        return self._top(self._first, range(len(self.places)))

    def finish(self) -> bool:
        """Whether what is left holds a pass, which is looked for one by one."""
        self.look()
        ages = [(self._failed(place), age) for age, place in enumerate(self.places[: self.drawn])]
        heapq.heapify(ages)
        turn = 0
        while self.verified < self.drawn:
            turn += 1
            by_age = turn % ONE_IN == 0
            if self.verify(self._top(ages, self.places) if by_age else self.first()):
                return True
        return False

    def _failed(self, place: int) -> int:
        return self._failures.get(self.levels[place], 0) if self.tell else 0

    def _top(self, heap: list[tuple[int, int]], places: Sequence[int]) -> int:
        """The first open place of a heap of failures and numbers; `places` has those numbers'."""
        while True:
            counted, number = heap[0]
            place = places[number]
            now = self._failed(place)
            if not self._open[place]:
                heapq.heappop(heap)
            elif counted == now:
                return place
            else:
                heapq.heapreplace(heap, (now, number))

    def run(self, *, solved: bool) -> Run:
        """How it went."""
        return Run(solved, self.drawn, self.verified, (self.generating, self.verified))


def varied(policy: Varied, batch: Batch, costs: Costs, width: int | None) -> Trials | None:
    """One verification at a time, so the width makes no difference."""
    if batch.keys is not None:
        return None
    draws = alternate_draws(exact_ratio(costs))
    limit = period(draws.later) - 1
    scores = (-np.unique(-batch.problem.scores)).tolist()
    orders = (Scored(*order, scores) for order in batch.by_place)
    return summed([run_varied(order, draws, limit) for order in orders])
