"""Results that a search has and its plan has not used yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .values import (
    REFUTED,
    CandidateId,
    Generated,
    Rescored,
    Turn,
    Verdict,
    Verified,
    arrivals,
)


class Stock:
    """Candidates that were generated ahead; after a broken verdict, all that is known.

    The plan gets candidates in the order in which they arrived, and verdicts when it asks for them.

    Attributes:
        ended: whether the generator has no more candidates.
        verdicts: known verdicts that the plan has not asked for.
        second: known second scores.
        refuted: the keys of which a candidate is known to have failed.
    """

    def __init__(self) -> None:
        self.ended = False
        self.verdicts: dict[CandidateId, Verdict] = {}
        self.second: dict[CandidateId, float] = {}
        self.refuted: set[str] = set()
        self._candidates: deque[tuple[float, str | None, float | None]] = deque()

    @classmethod
    def of(cls, trace: Iterable[Turn], *, ended: bool) -> Stock:
        """Everything that the events of a trace tell."""
        stock = cls()
        stock.ended = ended
        for turn in trace:
            for batch in arrivals(turn.event):
                stock.add(batch)
            match turn.event:
                case Verified(verdicts):
                    stock.verdicts.update(verdicts)
                case Rescored(scores):
                    stock.second.update(scores)
        for index, (_, key, _) in enumerate(stock._candidates):
            if key is not None and stock.verdicts.get(CandidateId(index)) is Verdict.FAILED:
                stock.refuted.add(key)
        return stock

    def __len__(self) -> int:
        """The number of candidates."""
        return len(self._candidates)

    @property
    def hopeless(self) -> int:
        """The number of candidates with the key `REFUTED`."""
        return sum(key == REFUTED for _, key, _ in self._candidates)

    def add(self, event: Generated) -> None:
        """Add candidates that arrived."""
        none = (None,) * len(event.scores)
        columns = (event.scores, event.keys or none, event.alike or none)
        self._candidates.extend(zip(*columns, strict=True))

    def take(self, n: int) -> Generated:
        """Remove the oldest `n` candidates, or all if there are fewer."""
        taken = [self._candidates.popleft() for _ in range(min(n, len(self)))]
        keys = tuple([key for _, key, _ in taken])
        scores = tuple([score for score, _, _ in taken])
        alike = tuple([value for _, _, value in taken if value is not None])
        is_keyed = keys.count(None) < len(keys)
        return Generated(scores, keys if is_keyed else (), alike=alike)
