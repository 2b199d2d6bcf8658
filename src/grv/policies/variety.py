"""A second ranking: where the best score has failed, something else than more of the same.

Two candidates of exactly one score are often one answer written twice, or two programs that behave
alike; so a score that has failed is worth less the next time, whatever its rank. And a class of
candidates (a key) that comes up often is more likely to be right than one that came up once.

But scores are also equal because they were rounded, or because a judge gives marks from 1 to 5, and
then a failure says nothing of the others with its mark. `ties_tell` tells the two apart.

The rule: where ties tell, the score that failed least often first; of these, or of all, the key
with the most candidates; then the higher score; ties to the older. Of a key, the candidate with the
best score speaks.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterable

from ..core.pool import Pool
from ..core.values import CandidateId, Verdict

_Place = tuple[int, int, float, CandidateId]  # failures, -votes, -score, id: the smallest is first
ENOUGH = 512  # candidates that tell what a tie is
_SAME_STEP = 1.5  # gaps up to this many times the smallest are one step, as differences are inexact


def ties_tell(scores: Iterable[float]) -> bool:
    """Whether candidates of equal score are likely to be alike, by the scores of a pool.

    Not on a scale whose marks are one step apart, all of them in use. Elsewhere, if more pairs of
    candidates have equal scores than scores that are one step apart, the smallest gap between any
    two: rounding brings about half as many of the first as of the second, the same answer twice
    only the first.

    >>> ties_tell([0.137, 0.137, 0.252, 0.9, 0.9, 0.9])
    True
    >>> ties_tell([5, 4, 4, 3, 3, 3, 2, 1]), ties_tell([0.11, 0.12, 0.12, 0.13, 0.19, 0.25])
    (False, False)
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


class Variety:
    """Ranks the open candidates of a pool. It is told when there are arrivals or a verdict.

    How it is kept: a heap in which every key, and every open candidate without one, has an entry at
    its place or ahead of it. More votes bring a new entry; failures, and another leader of the key,
    are seen when the entry comes to the top.

    Attributes:
        tell: whether ties tell, as they stood at the last look; until then they do not. One looks
            when a candidate is asked for and the pool has doubled, up to `ENOUGH`.
    """

    def __init__(self, pool: Pool) -> None:
        self.tell = False
        self._pool = pool
        self._seen = 0
        self._looked = 0
        self._heap: list[_Place] = []
        self._failures: dict[float, int] = {}
        self._votes: dict[str, int] = {}
        self._ages: list[tuple[int, CandidateId]] | None = None

    def take_in(self) -> None:
        """Rank what has arrived. Best done after every draw, so that no decision has it all."""
        for number in range(self._seen, len(self._pool)):
            id = CandidateId(number)
            key = self._pool.key(id)
            if key is not None:
                self._votes[key] = self._votes.get(key, 0) + 1
            place = self._place(id)
            if place is not None:
                heapq.heappush(self._heap, place)
        self._seen = len(self._pool)
        self._ages = None

    def told(self, id: CandidateId) -> None:
        """Take note of the candidate's verdict."""
        if self._pool.verdicts.get(id) is Verdict.FAILED:
            score = self._pool.scores[id]
            self._failures[score] = self._failures.get(score, 0) + 1

    def look(self) -> None:
        """See anew whether ties tell."""
        if self._looked >= ENOUGH:
            return  # what is looked at has not changed
        self._looked = len(self._pool)
        before, self.tell = self.tell, ties_tell(self._pool.scores[:ENOUGH])
        if self.tell is not before:
            places = {self._place(CandidateId(number)) for number in range(self._seen)}
            self._heap = [place for place in places if place is not None]
            heapq.heapify(self._heap)
            self._ages = None

    def first(self) -> CandidateId | None:
        """The first open candidate of those taken in; None where there is none."""
        if len(self._pool) >= 2 * self._looked:
            self.look()
        while self._heap:
            now = self._place(self._heap[0][3])
            if now is None:
                heapq.heappop(self._heap)
            elif now == self._heap[0]:
                return now[3]
            else:
                heapq.heapreplace(self._heap, now)
        return None

    def oldest(self) -> CandidateId | None:
        """The oldest open candidate; where ties tell, of those whose score failed least often."""
        if self._ages is None:
            everyone = map(CandidateId, range(self._seen))
            self._ages = [(self._failed(id), id) for id in everyone if self._pool.is_open(id)]
            heapq.heapify(self._ages)
        while self._ages:
            failed, id = self._ages[0]
            if not self._pool.is_open(id):
                heapq.heappop(self._ages)
            elif failed == self._failed(id):
                return id
            else:
                heapq.heapreplace(self._ages, (self._failed(id), id))
        return None

    def _place(self, id: CandidateId) -> _Place | None:
        """Where the candidate stands, or who speaks for its key; None where nobody is open."""
        pool, key, votes = self._pool, self._pool.key(id), 1
        if key is not None:
            leader, votes = pool.leader(key), self._votes[key]
            if leader is None:
                return None
            id = leader
        elif not pool.is_open(id):
            return None
        return self._failed(id), -votes, -pool.scores[id], id

    def _failed(self, id: CandidateId) -> int:
        """How many failures of its score count against the candidate."""
        return self._failures.get(self._pool.scores[id], 0) if self.tell else 0
