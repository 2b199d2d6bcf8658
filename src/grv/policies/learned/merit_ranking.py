"""Ranks the open candidates of a problem by their merit.

Candidates that share a key form one *unit*; a candidate without a key forms a unit with those of
equal score and equal `alike`. A unit has the merit of its bin, reduced by failures at its value of
`alike` (by default its score) and raised by the number of candidates with its key. Units of equal
merit share a *place* and are kept in one heap.

Bins are relative to the mean score of the problem's candidates, which is unknown at first. So all
units are placed again whenever the number of candidates has doubled, up to `SETTLED`; after that
the mean does not change.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence
from typing import NamedTuple

from ...core.pool import Pool
from ...core.values import CandidateId, Verdict
from .belief import Belief
from .prior import Prior

SETTLED = 512
MOST_FAILED = 6  # failures at one score; more make no difference
MOST_DOUBLINGS = 7  # of the number of candidates with a key; more make no difference


class Chosen(NamedTuple):
    """A candidate and its merit."""

    id: CandidateId
    merit: float


class _Place(NamedTuple):
    """What determines a merit: bin, failures at its `alike`, size as a power of two."""

    bin: int
    failed: int
    doublings: int


class _Unit:
    """Candidates that are expected to have the same verdict, in a heap with the best on top."""

    __slots__ = ("heap", "place", "size")

    def __init__(self) -> None:
        self.heap: list[tuple[float, CandidateId]] = []  # (-score, id)
        self.place: _Place | None = None  # None if no candidate is open
        self.size = 0  # the number of candidates with its key


_Name = str | tuple[float, float]  # the name of a unit: its key, or its score and value of alike
_Entry = tuple[float, CandidateId, _Name]  # in a heap of units: the unit's best, and its name


class MeritRanking:
    """The candidates of a pool, ranked by merit. Call `update` after every step."""

    def __init__(self, pool: Pool, prior: Prior, belief: Belief) -> None:
        self._pool = pool
        self._prior = prior
        self._belief = belief
        self._units: dict[_Name, _Unit] = {}
        self._at_value: dict[float, set[_Name]] = {}  # the units whose best has this `alike`
        self._failed: dict[float, int] = {}  # by value of `alike`
        self._heaps: dict[_Place, list[_Entry]] = {}
        self._failures: list[tuple[float, float]] = []  # (place on the scale, weight)
        self._ties = [prior.tie**failed for failed in range(MOST_FAILED + 1)]
        self._votes = [2 ** (prior.votes * d) for d in range(MOST_DOUBLINGS + 1)]
        self._seen = self._told = 0
        self._sum = prior.anchor * prior.centre
        self._mean = prior.centre
        self._replace_at = 1
        self.keyed = False  # whether any candidate has a key

    def update(self, asked: Sequence[CandidateId]) -> None:
        """Add new candidates and verdicts; `asked` are all candidates verified so far, in order."""
        for number in range(self._seen, len(self._pool)):
            self._add(CandidateId(number))
        self._seen = len(self._pool)
        for id in asked[self._told :]:
            if self._pool.verdicts.get(id) is Verdict.FAILED:
                self._fail(id)
            name = self._name(id)
            self._put(name, self._units[name])
        self._told = len(asked)
        if self._seen >= self._replace_at and self._replace_at <= SETTLED:
            self._replace()

    def best(self) -> Chosen | None:
        """The open candidate with the highest merit; then the higher score, then the older."""
        found: tuple[float, float, int] | None = None
        for place in list(self._heaps):
            heap = self._heaps[place]
            while heap and not self._is_there(heap[0], place):
                heapq.heappop(heap)
            if not heap:
                del self._heaps[place]
                continue
            merit = self._belief.merits[place.bin] * self._ties[place.failed]
            item = (merit * self._votes[place.doublings], -heap[0][0], -heap[0][1])
            found = item if found is None else max(found, item)
        return None if found is None else Chosen(CandidateId(-found[2]), found[0])

    def _add(self, id: CandidateId) -> None:
        score = self._pool.scores[id]
        name = self._name(id)
        unit = self._units.get(name)
        if unit is None:
            unit = self._units[name] = _Unit()
        self._sum += self._prior.scale.normal(score)
        is_best = not unit.heap or -score < unit.heap[0][0]
        heapq.heappush(unit.heap, (-score, id))
        grown = False
        if isinstance(name, str):  # equal scores are not votes
            self.keyed = True
            unit.size += 1
            grown = unit.size & (unit.size - 1) == 0
        if is_best or grown:
            self._put(name, unit)

    def _name(self, id: CandidateId) -> _Name:
        key = self._pool.key(id)
        return (self._pool.scores[id], self._pool.alike[id]) if key is None else key

    def _fail(self, id: CandidateId) -> None:
        score = self._pool.scores[id]
        value = self._pool.alike[id]
        failed = self._failed.get(value, 0)
        normal = self._prior.scale.normal(score)
        counts = self._ties[failed]
        self._failures.append((normal, counts))
        self._belief.fail(self._bin(normal), counts)
        if failed < MOST_FAILED and self._prior.tie < 1:
            self._failed[value] = failed + 1
            for name in self._at_value.get(value, ()):
                self._put(name, self._units[name])

    def _replace(self) -> None:
        self._replace_at = 2 * self._seen
        self._mean = self._sum / (self._seen + self._prior.anchor)
        self._heaps.clear()
        for name, unit in self._units.items():
            self._put(name, unit)
        failures = [0.0] * len(self._prior.shares)
        for normal, counts in self._failures:
            failures[self._bin(normal)] += counts
        self._belief.restart(failures)

    def _bin(self, normal: float) -> int:
        return bisect.bisect_right(self._prior.edges, normal - self._mean)

    def _put(self, name: _Name, unit: _Unit) -> None:
        """Add the unit to the heap of its place if it is open; old entries are dropped later."""
        while unit.heap and not self._pool.is_open(unit.heap[0][1]):
            heapq.heappop(unit.heap)
        if not unit.heap:
            unit.place = None
            return
        score = -unit.heap[0][0]
        value = self._pool.alike[unit.heap[0][1]]
        self._at_value.setdefault(value, set()).add(name)
        doublings = min(max(unit.size, 1).bit_length() - 1, MOST_DOUBLINGS)
        bin = self._bin(self._prior.scale.normal(score))
        unit.place = _Place(bin, self._failed.get(value, 0), doublings)
        heapq.heappush(self._heaps.setdefault(unit.place, []), (*unit.heap[0], name))

    def _is_there(self, entry: _Entry, place: _Place) -> bool:
        """Whether an entry is in the heap of its unit's place, and open."""
        unit = self._units[entry[2]]
        here = unit.place == place and unit.heap[0][1] == entry[1]
        return here and self._pool.is_open(entry[1])
