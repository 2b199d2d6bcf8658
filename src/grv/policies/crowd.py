"""The candidates of a prompt as a prior sees them: in bins, and tied ones together.

Bins are relative to the mean of the prompt's candidates, which is not known at first. So all are
placed anew whenever there are twice as many, up to `_SETTLED`; from then on the mean stays.
"""

from __future__ import annotations

import bisect
import heapq
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ..core.pool import Pool
from ..core.values import CandidateId, Verdict
from .belief import Belief
from .prior import Prior

_SETTLED = 512
_MOST_FAILED = 6  # at one score; more make no difference


class Chosen(NamedTuple):
    """A candidate, and what its verification is worth."""

    id: CandidateId
    merit: float


class _Group:
    """The candidates at one score; those no longer open are dropped when they come first."""

    __slots__ = ("bin", "failed", "ids", "listed", "normal")

    def __init__(self, normal: float) -> None:
        self.normal = normal
        self.ids: deque[CandidateId] = deque()
        self.bin = 0
        self.failed = 0
        self.listed = False


class Crowd:
    """What is known of the candidates, kept up with the pool."""

    def __init__(self, pool: Pool, prior: Prior, belief: Belief) -> None:
        self._pool, self._prior, self._belief = pool, prior, belief
        self._groups: dict[float, _Group] = {}
        self._heaps: dict[tuple[int, int], list[float]] = {}  # by bin and failures: -score
        self._failures: list[tuple[float, float]] = []  # where on the scale, and what it counts
        self._powers = [prior.tie**failed for failed in range(_MOST_FAILED + 1)]
        self._seen = self._told = 0
        self._sum = prior.anchor * prior.centre
        self._mean = prior.centre
        self._replace_at = 1

    def take_in(self, asked: Sequence[CandidateId]) -> None:
        """Look at the candidates that have arrived, and at the verdicts of those asked about."""
        for number in range(self._seen, len(self._pool)):
            self._add(CandidateId(number))
        self._seen = len(self._pool)
        for id in asked[self._told :]:
            if self._pool.verdicts.get(id) is Verdict.FAILED:
                self._fail(id)
        self._told = len(asked)
        if self._seen >= self._replace_at and self._replace_at <= _SETTLED:
            self._replace()

    def best(self) -> Chosen | None:
        """The open candidate of the greatest merit; the higher score, then the older."""
        found: tuple[float, float] | None = None
        for place in list(self._heaps):
            heap = self._heaps[place]
            while heap and not self._is_there(-heap[0], place):
                heapq.heappop(heap)
            if not heap:
                del self._heaps[place]
                continue
            merit = self._belief.merits[place[0]] * self._powers[place[1]]
            found = max(found or (merit, -heap[0]), (merit, -heap[0]))
        return None if found is None else Chosen(self._groups[found[1]].ids[0], found[0])

    def _add(self, id: CandidateId) -> None:
        score = self._pool.scores[id]
        group = self._groups.get(score)
        if group is None:
            group = self._groups[score] = _Group(self._prior.scale.normal(score))
            group.bin = self._bin(group.normal)
        self._sum += group.normal
        group.ids.append(id)
        if not group.listed:
            self._list(score, group)

    def _fail(self, id: CandidateId) -> None:
        score = self._pool.scores[id]
        group = self._groups[score]
        counts = self._powers[group.failed]
        self._failures.append((group.normal, counts))
        self._belief.fail(group.bin, counts)
        if group.failed < _MOST_FAILED and self._prior.tie < 1:
            group.failed += 1
            self._list(score, group)

    def _replace(self) -> None:
        self._replace_at = 2 * self._seen
        self._mean = self._sum / (self._seen + self._prior.anchor)
        self._heaps.clear()
        for score, group in self._groups.items():
            group.bin = self._bin(group.normal)
            self._list(score, group)
        failures = [0.0] * len(self._prior.shares)
        for normal, counts in self._failures:
            failures[self._bin(normal)] += counts
        self._belief.restart(failures)

    def _bin(self, normal: float) -> int:
        return bisect.bisect_right(self._prior.edges, normal - self._mean)

    def _list(self, score: float, group: _Group) -> None:
        group.listed = True
        heapq.heappush(self._heaps.setdefault((group.bin, group.failed), []), -score)

    def _is_there(self, score: float, place: tuple[int, int]) -> bool:
        """Whether the score is listed where it belongs, and has an open candidate."""
        group = self._groups[score]
        if (group.bin, group.failed) != place:
            return False
        while group.ids and not self._pool.is_open(group.ids[0]):
            group.ids.popleft()
        group.listed = bool(group.ids)
        return group.listed
