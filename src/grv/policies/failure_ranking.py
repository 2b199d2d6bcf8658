"""A second ranking, which prefers candidates that differ from those that have failed.

Two candidates with exactly the same score are often the same answer, or two programs with the same
behaviour. So after a failure, other candidates with this score are less likely to pass. And a key
with many candidates is more likely to be right than a key with one. If a pool has values of their
own for this (`Pool.alike`), these count instead of scores.

But scores can also be equal because they were rounded, or because a judge gives marks from 1 to 5.
Then a failure says nothing about others with the same score. `ties_are_evidence` decides which case
it is.

The rule: if ties are evidence, the score with the fewest failures first; then the key with the most
candidates; then the higher score; then the older candidate. A key is represented by its candidate
with the best score.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections import Counter, deque
from collections.abc import Iterable

from ..core.pool import Pool
from ..core.values import CandidateId, Verdict

_Place = tuple[int, int, float, CandidateId]  # failures, -votes, -score, id: the smallest is first
ENOUGH = 512  # the number of candidates that `ties_are_evidence` needs at most
_SAME_STEP = 1.5  # gaps up to this many times the smallest count as one step: floats are inexact


def ties_are_evidence(scores: Iterable[float]) -> bool:
    """Whether candidates with equal scores are likely to be alike, judged by the scores of a pool.

    False if all neighbouring scores are one step apart, as on a scale of marks. Otherwise compare
    the number of pairs with equal scores to the number of pairs one step apart, where a step is the
    smallest gap between two scores. Rounding makes about half as many of the first kind as of the
    second; repeated answers make only pairs of the first kind. So True if the first are more.

    >>> ties_are_evidence([0.137, 0.137, 0.252, 0.9, 0.9, 0.9])
    True
    >>> ties_are_evidence([5, 4, 4, 3, 3, 3, 2, 1])
    False
    >>> ties_are_evidence([0.11, 0.12, 0.12, 0.13, 0.19, 0.25])
    False
    """
    counts = Counter(filter(math.isfinite, scores))
    equal = sum(count * (count - 1) // 2 for count in counts.values() if count > 1)
    levels = sorted(counts)
    gaps = list(map(operator.sub, levels[1:], levels))
    step = _SAME_STEP * min(gaps, default=0.0)
    if not equal or max(gaps, default=0.0) <= step:
        return False
    one_step = itertools.compress(itertools.pairwise(levels), (gap <= step for gap in gaps))
    return equal > sum(counts[low] * counts[high] for low, high in one_step)


class FailureRanking:
    """Ranks the open candidates of a pool. Call it after every arrival and every verdict.

    The data structure: a heap in which every key, and every open candidate without a key, has an
    entry at its correct place or ahead of it. A new vote adds an entry. Failures, or a new leader
    of the key, are noticed when the entry reaches the top.

    Attributes:
        ties_count: whether equal scores count as evidence. False at first; rechecked by `first`
            whenever the pool has doubled, up to `ENOUGH` candidates.
    """

    def __init__(self, pool: Pool) -> None:
        self.ties_count = False
        self._pool = pool
        self._asked = 0  # the verifications that were recorded
        self._seen = 0
        self._checked = 0  # the size of the pool at the last check of the ties
        self._heap: list[_Place] = []
        self._failures: dict[float, int] = {}
        self._votes: dict[str, int] = {}
        # By value of `alike`: 1 over its worth, minus the value, the same before failures, its ids.
        self._rest: list[tuple[int, float, int, deque[CandidateId]]] | None = None

    def add_new(self) -> None:
        """Rank the new candidates. Call it after every draw, to spread the work."""
        for number in range(self._seen, len(self._pool)):
            id = CandidateId(number)
            key = self._pool.key(id)
            if key is not None:
                self._votes[key] = self._votes.get(key, 0) + 1
            place = self._place(id)
            if place is not None:
                heapq.heappush(self._heap, place)
        self._seen = len(self._pool)

    def record_verdict(self, id: CandidateId) -> None:
        """Count the candidate's verdict if it failed."""
        self._asked += 1
        if self._pool.verdicts.get(id) is Verdict.FAILED:
            value = self._pool.alike[id]
            self._failures[value] = self._failures.get(value, 0) + 1

    @property
    def is_joined(self) -> bool:
        """Whether candidates were verified that were not recorded here: by a guard."""
        return len(self._pool.verdicts) > self._asked

    def recheck_ties(self) -> None:
        """Decide again whether equal scores count as evidence."""
        if self._checked >= ENOUGH:
            return  # the first `ENOUGH` scores have not changed
        self._checked = len(self._pool)
        before = self.ties_count
        self.ties_count = ties_are_evidence(self._pool.alike[:ENOUGH])
        if self.ties_count is not before:
            places = {self._place(CandidateId(number)) for number in range(self._seen)}
            self._heap = [place for place in places if place is not None]
            heapq.heapify(self._heap)

    def first(self) -> CandidateId | None:
        """The first open candidate in this ranking; None if there is none."""
        if len(self._pool) >= 2 * self._checked:
            self.recheck_ties()
        while self._heap:
            now = self._place(self._heap[0][3])
            if now is None:
                heapq.heappop(self._heap)
            elif now == self._heap[0]:
                return now[3]
            else:
                heapq.heapreplace(self._heap, now)
        return None

    def worthiest(self) -> CandidateId | None:
        """The open candidate of the worthiest score, in a pool without keys and without new draws.

        The worth of a score is 1 over the number of candidates with a better score, plus one. Each
        failure at this score halves it. So scores that have failed are not exhausted first, but
        lower scores do not all come before them either. Values of `alike` are weighed in the same
        way, each by the best of its candidates.
        """
        if self._rest is None:
            self._rest = self._by_value()
        while self._rest:
            price, negative, first, waiting = self._rest[0]
            now = first << self._failures.get(-negative, 0)
            while waiting and not self._pool.is_open(waiting[0]):
                waiting.popleft()
            if not waiting:
                heapq.heappop(self._rest)
            elif price != now:
                heapq.heapreplace(self._rest, (now, negative, first, waiting))
            else:
                return waiting[0]
        return None

    def _by_value(self) -> list[tuple[int, float, int, deque[CandidateId]]]:
        """A heap of the candidates by their value of `alike`, the best candidate first."""
        scores = self._pool.scores
        found = dict[float, tuple[int, deque[CandidateId]]]()
        ranked = sorted(range(len(scores)), key=lambda number: -scores[number])
        for place, number in enumerate(ranked):
            _, ids = found.setdefault(self._pool.alike[number], (1 + place, deque()))
            ids.append(CandidateId(number))
        # Prices increase, so this is a heap.
        return [(first, -value, first, ids) for value, (first, ids) in found.items()]

    def _place(self, id: CandidateId) -> _Place | None:
        """The place of the candidate, or of the leader of its key; None if neither is open."""
        pool = self._pool
        key = self._pool.key(id)
        votes = 1
        if key is not None:
            leader = pool.leader(key)
            votes = self._votes[key]
            if leader is None:
                return None
            id = leader
        elif not pool.is_open(id):
            return None
        return self._failed(id), -votes, -pool.scores[id], id

    def _failed(self, id: CandidateId) -> int:
        """The number of failures that count against the candidate's score."""
        return self._failures.get(self._pool.alike[id], 0) if self.ties_count else 0
