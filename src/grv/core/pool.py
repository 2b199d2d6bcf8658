"""The candidates seen so far. This is the only place where candidates are ranked.

The rule: the higher score first; between equal scores, the older candidate first. A cascade gives
some candidates a second score. These come before all others, the higher second score first.
If one candidate of a key fails, the others are taken to fail: the key is *refuted*. A pass is not
shared, but further candidates of the key would not be new answers. So at most one candidate per key
is on offer, the best by its first score, and none after the key is *closed*: refuted, or passed.
The key `REFUTED` is refuted from the start: its candidates certainly fail. `DROPPED` is closed from
the start too: its candidates have no text.

The data structure: `_ranked` is a heap with the best candidate on top. Only the *leader* of each
key, its best open candidate, is on offer there. The others wait in `_followers`; the best of them
becomes the leader if the leader's verdict is broken. Entries that are no longer on offer are
dropped when they reach the top.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from .values import DROPPED, REFUTED, CandidateId, Costs, Generated, Rescored, Verdict, Verified

_Ranked = tuple[float, CandidateId]  # (-score, id): the smallest is the best


class Pool:
    """All candidates of a search and their verdicts. Policies read it; only `Search` changes it.

    A candidate is *open* if it has neither a verdict nor a closed key.

    Attributes:
        costs: the current estimate of what a candidate and a failed verification cost. It is the
            price list of the search, unless events report what was really paid. It changes only
            between two steps of a plan.

    Examples:
        >>> import grv
        >>> search = grv.Search(grv.policies.Fixed(3, 1), grv.Costs())
        >>> _ = search.ask()
        >>> search.tell(grv.Generated((0.2, 0.9, 0.5)))
        >>> search.pool.best(2), search.pool.scores
        ((1, 2), [0.2, 0.9, 0.5])
    """

    def __init__(self, costs: Costs = Costs()) -> None:  # noqa: B008 (a frozen value)
        self.costs = costs
        self._scores: list[float] = []
        self._alike: list[float] = []
        self._keys: dict[CandidateId, str] = {}  # only of candidates with a key
        self._verdicts: dict[CandidateId, Verdict] = {}
        self._second: dict[CandidateId, float] = {}  # second scores of open candidates
        self._closed = {REFUTED, DROPPED}
        self._ranked: list[_Ranked] = []
        self._leader: dict[str, _Ranked] = {}
        self._followers: dict[str, list[_Ranked]] = {}
        self._open: dict[str, int] = {}  # the number of open candidates per key
        self._waiting = 0
        self._hopeless = 0
        self._shared = 0
        self._exhausted = False

    def __len__(self) -> int:
        """The number of candidates."""
        return len(self._scores)

    @property
    def scores(self) -> Sequence[float]:
        """One score per candidate, in order of arrival."""
        return self._scores

    @property
    def alike(self) -> Sequence[float]:
        """One number per candidate; equal numbers suggest equal verdicts. By default the score."""
        return self._alike

    @property
    def verdicts(self) -> Mapping[CandidateId, Verdict]:
        """The verdicts of the candidates that were verified."""
        return self._verdicts

    @property
    def shared(self) -> int:
        """The number of verdicts that cost nothing because they were known."""
        return self._shared

    @property
    def exhausted(self) -> bool:
        """Whether the generator has no more candidates."""
        return self._exhausted

    @property
    def waiting(self) -> int:
        """The number of open candidates."""
        return self._waiting

    @property
    def refuted(self) -> int:
        """The number of candidates with the key `REFUTED`."""
        return self._hopeless

    @property
    def keyed(self) -> bool:
        """Whether any candidate has a key."""
        return bool(self._keys)

    def key(self, id: CandidateId) -> str | None:
        """The candidate's key (its equivalence class), or None."""
        return self._keys.get(id)

    def leader(self, key: str) -> CandidateId | None:
        """The best open candidate with this key, or None."""
        leader = self._leader.get(key)
        return None if leader is None else leader[1]

    def is_open(self, id: CandidateId) -> bool:
        """Whether the candidate has neither a verdict nor a closed key."""
        return id not in self._verdicts and self._keys.get(id) not in self._closed

    def rescored(self, id: CandidateId) -> bool:
        """Whether an open candidate has a second score."""
        return id in self._second

    def best(self, k: int) -> tuple[CandidateId, ...]:
        """The `k` best open candidates, at most one per key, ranked by the rule above."""
        first = self.shortlist(k)
        if not self._second:
            return first
        known = [id for id in self._second if self._is_offered((-self._scores[id], id))]
        known = sorted(known, key=lambda id: (-self._second[id], id))[:k]
        return (*known, *(id for id in first if id not in known))[:k]

    def shortlist(self, k: int) -> tuple[CandidateId, ...]:
        """The `k` best open candidates by their first score, at most one per key."""
        taken: list[_Ranked] = []
        while self._ranked and len(taken) < k:
            item = heapq.heappop(self._ranked)
            # A candidate that leads its key for the second time is in the heap twice in a row.
            if self._is_offered(item) and item not in taken[-1:]:
                taken.append(item)
        for item in taken:
            heapq.heappush(self._ranked, item)
        return tuple(id for _, id in taken)

    def _is_offered(self, item: _Ranked) -> bool:
        key = self._keys.get(item[1])
        return item[1] not in self._verdicts if key is None else self._leader.get(key) == item

    def _add_generated(self, event: Generated, *, exhausted: bool) -> None:
        self._alike.extend(event.alike or event.scores)
        for i, score in enumerate(event.scores):
            id = CandidateId(len(self._scores))
            self._scores.append(score)
            key = event.keys[i] if event.keys else None
            if key is None:
                self._waiting += 1
                heapq.heappush(self._ranked, (-score, id))
            else:
                self._keys[id] = key
                self._hopeless += key == REFUTED
                if key not in self._closed:
                    self._waiting += 1
                    self._join((-score, id), key)
        self._exhausted |= exhausted

    def _join(self, item: _Ranked, key: str) -> None:
        """Add an open candidate to its key, as the leader or as a follower."""
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
        self._shared += len(event.shared)
        for id, verdict in event.verdicts.items():
            key = self._keys.get(id)
            self._verdicts[id] = verdict
            self._second.pop(id, None)
            if key is None:
                self._waiting -= 1
            elif verdict is not Verdict.BROKEN:
                self._close(key)
            else:
                self._waiting -= 1
                self._open[key] -= 1
                self._replace_leader(key)

    def _add_rescored(self, event: Rescored) -> None:
        self._second.update(event.scores)

    def _close(self, key: str) -> None:
        """Withdraw all candidates with this key. No verification is billed for them."""
        self._closed.add(key)
        self._waiting -= self._open.pop(key, 0)
        self._leader.pop(key, None)
        self._followers.pop(key, None)

    def _replace_leader(self, key: str) -> None:
        """Make the best open follower the leader, if the leader has a verdict."""
        followers = self._followers.get(key, [])
        while self._leader[key][1] in self._verdicts:
            if not followers:
                del self._leader[key]
                return
            self._leader[key] = heapq.heappop(followers)
            heapq.heappush(self._ranked, self._leader[key])
