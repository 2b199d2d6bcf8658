"""The candidates seen so far. The one place where candidates are ranked.

The rule: higher score first, ties to the older. Of those that have a second score, which a cascade
gives to some, the higher second score comes first, and all of them before the others. Candidates of
one key stand and fall together, so at most one of them, the best by its first score, is on offer,
and none once the key is refuted.

How it is kept: `_ranked` is a heap with the best on top. Of each key only the *leader*, its best
open candidate, belongs there; the others wait in `_followers`, and move up when the leader's
verdict was broken. Entries that are no longer on offer are dropped when they come to the top.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from .values import CandidateId, Costs, Generated, Rescored, Verdict, Verified

_Ranked = tuple[float, CandidateId]  # (-score, id): the smallest is the best


class Pool:
    """What a search has seen. Policies read it; only `Search` adds to it.

    Attributes:
        costs: what a candidate and a verification cost, as far as is known by now. It is the price
            list of the search unless events tell what was really paid; it changes between the steps
            of a plan, never within one.
    """

    def __init__(self, costs: Costs = Costs()) -> None:  # noqa: B008 (a frozen value)
        self.costs = costs
        self._scores: list[float] = []
        self._keys: dict[CandidateId, str] = {}  # those that have one
        self._verdicts: dict[CandidateId, Verdict] = {}
        self._second: dict[CandidateId, float] = {}  # of those that wait
        self._refuted: set[str] = set()
        self._ranked: list[_Ranked] = []
        self._leader: dict[str, _Ranked] = {}
        self._followers: dict[str, list[_Ranked]] = {}
        self._open: dict[str, int] = {}  # candidates of a key that wait
        self._waiting = 0
        self._exhausted = False

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self._scores)

    @property
    def scores(self) -> Sequence[float]:
        """One a candidate, in order of arrival."""
        return self._scores

    @property
    def verdicts(self) -> Mapping[CandidateId, Verdict]:
        """Of those candidates that were verified."""
        return self._verdicts

    @property
    def exhausted(self) -> bool:
        """Whether the generator has no more to give."""
        return self._exhausted

    @property
    def waiting(self) -> int:
        """How many candidates have neither a verdict nor a refuted key."""
        return self._waiting

    @property
    def keyed(self) -> bool:
        """Whether any candidate is in an equivalence class."""
        return bool(self._keys)

    def key(self, id: CandidateId) -> str | None:
        """The candidate's equivalence class, if it is in one."""
        return self._keys.get(id)

    def leader(self, key: str) -> CandidateId | None:
        """The best open candidate of a class; None where it has none."""
        leader = self._leader.get(key)
        return None if leader is None else leader[1]

    def is_open(self, id: CandidateId) -> bool:
        """Whether verifying the candidate could tell anything: no verdict, no refuted key."""
        return id not in self._verdicts and self._keys.get(id) not in self._refuted

    def rescored(self, id: CandidateId) -> bool:
        """Whether an open candidate has its second score."""
        return id in self._second

    def best(self, k: int) -> tuple[CandidateId, ...]:
        """The `k` best open candidates, one a key: higher score first, ties to the older."""
        first = self.shortlist(k)
        if not self._second:
            return first
        known = [id for id in self._second if self._is_offered((-self._scores[id], id))]
        known = sorted(known, key=lambda id: (-self._second[id], id))[:k]
        return (*known, *(id for id in first if id not in known))[:k]

    def shortlist(self, k: int) -> tuple[CandidateId, ...]:
        """The `k` best open candidates by their first score, whatever their second."""
        taken: list[_Ranked] = []
        while self._ranked and len(taken) < k:
            item = heapq.heappop(self._ranked)
            # Who led before and leads again is in the heap twice, one behind the other.
            if self._is_offered(item) and item not in taken[-1:]:
                taken.append(item)
        for item in taken:
            heapq.heappush(self._ranked, item)
        return tuple(id for _, id in taken)

    def _is_offered(self, item: _Ranked) -> bool:
        key = self._keys.get(item[1])
        return item[1] not in self._verdicts if key is None else self._leader.get(key) == item

    def _add_generated(self, event: Generated, *, exhausted: bool) -> None:
        for i, score in enumerate(event.scores):
            id = CandidateId(len(self._scores))
            self._scores.append(score)
            key = event.keys[i] if event.keys else None
            if key is None:
                self._waiting += 1
                heapq.heappush(self._ranked, (-score, id))
            else:
                self._keys[id] = key
                if key not in self._refuted:
                    self._waiting += 1
                    self._join((-score, id), key)
        self._exhausted |= exhausted

    def _join(self, item: _Ranked, key: str) -> None:
        """Put an open candidate into its class, as the leader or behind it."""
        self._open[key] = self._open.get(key, 0) + 1
        leader = self._leader.get(key)
        if leader is None or item < leader:
            self._leader[key] = item
            heapq.heappush(self._ranked, item)
            if leader is None:
                return
            item = leader
        heapq.heappush(self._followers.setdefault(key, []), item)

    def _add_verified(self, event: Verified) -> None:
        for id, verdict in event.verdicts.items():
            key = self._keys.get(id)
            self._verdicts[id] = verdict
            self._second.pop(id, None)
            if key is None:
                self._waiting -= 1
            elif verdict is Verdict.FAILED:
                self._refute(key)
            else:
                self._waiting -= 1
                self._open[key] -= 1
                self._replace_leader(key)

    def _add_rescored(self, event: Rescored) -> None:
        self._second.update(event.scores)

    def _refute(self, key: str) -> None:
        """Take the whole class out of the offer, for free."""
        self._refuted.add(key)
        self._waiting -= self._open.pop(key)
        self._leader.pop(key)
        self._followers.pop(key, None)

    def _replace_leader(self, key: str) -> None:
        """Let the best open follower lead, if the leader has got a verdict that proves nothing."""
        followers = self._followers.get(key, [])
        while self._leader[key][1] in self._verdicts:
            if not followers:
                del self._leader[key]
                return
            self._leader[key] = heapq.heappop(followers)
            heapq.heappush(self._ranked, self._leader[key])
