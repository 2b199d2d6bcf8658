"""A second ranking: where the best score has failed, something else than more of the same.

Two candidates of exactly one score are often one answer written twice, or two programs that behave
alike; so a score that has failed is worth less the next time, whatever its rank. And a class of
candidates (a key) that comes up often is more likely to be right than one that came up once.

The rule: the score that failed least often first; of these the key with the most candidates; then
the higher score; ties to the older. Of a key, the candidate with the best score speaks.
"""

from __future__ import annotations

import heapq

from ..core.pool import Pool
from ..core.values import CandidateId, Verdict

_Place = tuple[int, int, float, CandidateId]  # failures, -votes, -score, id: the smallest is first


class Variety:
    """Ranks the open candidates of a pool. It is told when there are arrivals or a verdict.

    How it is kept: a heap in which every key, and every open candidate without one, has an entry at
    its place or ahead of it. More votes bring a new entry; failures, and another leader of the key,
    are seen when the entry comes to the top.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._seen = 0
        self._heap: list[_Place] = []
        self._failures: dict[float, int] = {}
        self._votes: dict[str, int] = {}

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

    def told(self, id: CandidateId) -> None:
        """Take note of the candidate's verdict."""
        if self._pool.verdicts.get(id) is Verdict.FAILED:
            score = self._pool.scores[id]
            self._failures[score] = self._failures.get(score, 0) + 1

    def first(self) -> CandidateId | None:
        """The first open candidate of those taken in; None where there is none."""
        while self._heap:
            now = self._place(self._heap[0][3])
            if now is None:
                heapq.heappop(self._heap)
            elif now == self._heap[0]:
                return now[3]
            else:
                heapq.heapreplace(self._heap, now)
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
        return self._failures.get(pool.scores[id], 0), -votes, -pool.scores[id], id
