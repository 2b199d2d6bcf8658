"""Calls without a result: lost, cancelled, or parked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..core.values import Verified
from .entries import (
    Call,
    Ended,
    Entry,
    Failed,
    Found,
    Intended,
    Made,
    Parked,
    Scored,
    ScoredAgain,
    Settled,
    Told,
)


@dataclass
class Pending:
    """The calls of a search that have no result.

    Attributes:
        lost: candidates per call whose attempt may have been paid for and has no result: it failed,
            or its process died.
        cancelled: verifications that a pass made needless. They are billed.
        parked: candidates per call whose result comes from outside.
    """

    lost: Counter[Call] = field(default_factory=Counter)
    cancelled: int = 0
    parked: set[tuple[Call, int]] = field(default_factory=set)


def pending_calls(entries: Iterable[Entry]) -> Pending:
    """What the entries of a search leave without a result."""
    found = Pending()
    waiting: dict[tuple[Call, int], tuple[int, ...]] = {}  # candidate -> its attempt

    def answered(call: Call, candidate: int) -> None:
        found.parked.discard((call, candidate))
        attempt = waiting.pop((call, candidate), ())
        if call == "generate":  # a short result: the rest is requested by a new attempt
            for other in attempt:
                waiting.pop((call, other), None)

    for entry in entries:
        match entry:
            case Intended(call, candidates):
                again = [each for each in candidates if (call, each) in waiting]
                found.lost[call] += len(again)
                waiting |= {(call, each): candidates for each in candidates}
            case Settled(call, candidates, _, reason, unpaid):
                there = [each for each in candidates if waiting.pop((call, each), None) is not None]
                found.lost[call] += len(there) if reason and not unpaid else 0
            case Parked(call, candidates):
                for each in candidates:
                    waiting.pop((call, each), None)
                    found.parked.add((call, each))
            case Made(candidate):
                answered("generate", candidate)
            case Scored(candidate):
                answered("score", candidate)
            case ScoredAgain(candidate):
                answered("rescore", candidate)
            case Found(candidate):
                answered("verify", candidate)
            case Told(event):  # the calls of its step are over
                if isinstance(event, Verified):
                    found.cancelled += sum(call == "verify" for call, _ in waiting)
                waiting.clear()
            case Failed() | Ended():
                found.lost.update(call for call, _ in waiting)
                waiting.clear()
    found.lost.update(call for call, _ in waiting)
    found.lost = +found.lost
    return found
