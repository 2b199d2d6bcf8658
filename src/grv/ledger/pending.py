"""What the entries of a search add up to: results, calls without a result, and the money.

This is the one count of what a search has bought. Its bill, the pages, `grv runs` and the export of
a log agree because they all follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..conditions import Conditions, answers
from ..core.values import REFUTED, Verified
from .entries import (
    Call,
    Charged,
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
    Staged,
    Started,
    Told,
    wanted_conditions,
)

_Place = tuple[Call, int]  # a call for a candidate


@dataclass(frozen=True)
class _Attempt:
    """An attempt of a call, and what it reserved for each of its candidates."""

    candidates: tuple[int, ...]
    each: float


@dataclass
class Tally:
    """What a search has bought so far. Each amount that was possibly paid is in one place only.

    Attributes:
        conditions: those under which verdicts are wanted. Verifications under others that do not
            answer for them are set aside.
        made: the candidates that arrived.
        refuted: those that were refuted without verification.
        verified: the verifications that gave a verdict, broken ones too.
        shared: the verdicts that were known, so that nothing was run or paid for them.
        rescored: the second scores that arrived.
        cancelled: verifications that a pass made needless. They are billed.
        cancelled_drafts: candidates requested ahead that a pass made needless. They are billed.
        paid: everything that was possibly paid.
        charged: the part of it that no call explains, of format 1 or of a damaged ledger.
        aside: the part of it for verifications that are set aside. No bill or budget counts it.
    """

    conditions: Conditions | None = None
    made: set[int] = field(default_factory=set)
    refuted: set[int] = field(default_factory=set)
    verified: int = 0
    shared: int = 0
    rescored: int = 0
    cancelled: int = 0
    cancelled_drafts: int = 0
    paid: float = 0.0
    charged: float = 0.0
    aside: float = 0.0
    _answers: bool = True  # whether the verdicts of the current start are wanted
    _lost: Counter[Call] = field(default_factory=Counter)
    _lost_paid: float = 0.0
    _parked: dict[_Place, float] = field(default_factory=dict)
    _waiting: dict[_Place, _Attempt] = field(default_factory=dict)
    _in_batch: set[_Place] = field(default_factory=set)  # of what waits, or has ended waiting
    _ended: dict[_Place, _Attempt] = field(default_factory=dict)  # counted as lost; may be found

    @property
    def verifications(self) -> int:
        """The verifications that are billed."""
        return self.verified + self.cancelled

    @property
    def lost(self) -> Counter[Call]:
        """Candidates per call whose attempt may have been paid for and has no result.

        It failed, its process died, or a limit ended the search meanwhile.
        """
        return +(self._lost + Counter(call for call, _ in self._waiting))

    @property
    def lost_paid(self) -> float:
        """What was possibly paid for lost calls."""
        return self._lost_paid + sum(attempt.each for attempt in self._waiting.values())

    @property
    def in_flight(self) -> set[_Place]:
        """Candidates per call whose attempt has no result yet."""
        return set(self._waiting)

    def reserved(self, call: Call, candidate: int) -> float | None:
        """What an attempt without a result has reserved; None if there is none."""
        attempt = self._waiting.get((call, candidate))
        return None if attempt is None else attempt.each

    @property
    def in_batch(self) -> set[_Place]:
        """Those of them whose result is in a batch, where it can be found."""
        return self._waiting.keys() & self._in_batch

    @property
    def parked(self) -> set[_Place]:
        """Candidates per call whose result comes from outside."""
        return set(self._parked)

    @property
    def billed(self) -> float:
        """What the results have cost: what was paid, but not for what is lost or parked."""
        parked = sum(self._parked.values())
        return self.paid - self.lost_paid - parked - self.charged - self.aside

    def add(self, entry: Entry) -> None:
        """Count the next entry."""
        if self._ended:
            self._find_again(entry)
        if not self._answers and self._set_aside(entry):
            return
        match entry:  # the most frequent ones first
            case Made(candidate):
                self.made.add(candidate)
                self._answered("generate", candidate)
            case Scored(candidate, _, key, judge=judge):
                # Another judge may read it otherwise.
                is_stale = self.conditions is not None and judge != self.conditions.judge
                self.refuted.discard(candidate)
                if key == REFUTED and not is_stale:
                    self.refuted.add(candidate)
                self._answered("score", candidate)
            case Intended(call, candidates, reserved):
                self.paid += reserved
                places = [(call, each) for each in candidates]
                if not self._waiting.keys().isdisjoint(places):
                    self._lose([place for place in places if place in self._waiting])
                if self._in_batch:
                    self._in_batch.difference_update(places)
                attempt = _Attempt(candidates, reserved / max(1, len(candidates)))
                self._waiting.update(dict.fromkeys(places, attempt))
            case Found(candidate, shared=True):
                self.shared += 1
                self._answered("verify", candidate)
            case Found(candidate, reviewer=reviewer):
                # A person may change a verdict later: that is no verification.
                asked = self._answered("verify", candidate)
                self.verified += asked or not reviewer
            case Told(event):  # the calls of its step are over
                if self._waiting and isinstance(event, Verified):
                    calls = Counter(call for call, _ in self._waiting)
                    self.cancelled += calls["verify"]
                    self.cancelled_drafts += calls["generate"]
                self._waiting.clear()
            case Started(conditions=given):
                self._answers = answers(given, self.conditions)
            case Settled(call, candidates, returned, reason, unpaid):
                self.paid -= returned
                places = [(call, each) for each in candidates if (call, each) in self._waiting]
                if reason and not unpaid:
                    self._lose(places)
                    self._lost_paid -= returned
                for place in places:
                    self._waiting.pop(place, None)
            case Charged(amount):
                self.paid += amount
                self.charged += amount
            case Parked("generate", candidates):  # it stays in flight: its process may have died
                self._in_batch |= {("generate", each) for each in candidates}
            case Parked(call, candidates):
                for id in candidates:
                    waiting = self._waiting.pop((call, id), None)
                    self._parked[call, id] = 0.0 if waiting is None else waiting.each
            case ScoredAgain(candidate, score):
                asked = self._answered("rescore", candidate)
                self.rescored += asked or score is not None
            case Failed() | Ended():
                self._ended |= {each: self._waiting[each] for each in self.in_batch}
                self._lose([*self._waiting])

    def _find_again(self, entry: Entry) -> None:
        """Drafts of a batch that were lost when the search ended are not, if it asks for them."""
        match entry:
            case Made(candidate):
                places: list[_Place] = [("generate", candidate)]
            case Settled("generate", candidates) | Parked("generate", candidates):
                places = [("generate", each) for each in candidates]
            case _:
                return
        for place in places:
            attempt = self._ended.get(place)
            if attempt is None:
                continue
            for each in attempt.candidates:
                if self._ended.pop(("generate", each), None) is not None:
                    self._lost["generate"] -= 1
                    self._lost_paid -= attempt.each
                    self._waiting["generate", each] = attempt

    def _set_aside(self, entry: Entry) -> bool:
        """Set a verification of a start aside whose verdicts are not wanted; whether it is one."""
        match entry:
            case Intended("verify", _, reserved):
                self.paid += reserved
                self.aside += reserved
            case Settled("verify", _, returned):
                self.paid -= returned
                self.aside -= returned
            case Parked("verify") | Found():
                pass
            case _:
                return False
        return True

    def _lose(self, places: Iterable[_Place]) -> None:
        """These attempts have no result, and may be paid for."""
        for place in places:
            self._lost[place[0]] += 1
            self._lost_paid += self._waiting.pop(place).each

    def _answered(self, call: Call, candidate: int) -> bool:
        """A result arrived; return whether it was asked for."""
        place = (call, candidate)
        was_parked = bool(self._parked) and self._parked.pop(place, None) is not None
        attempt = self._waiting.pop(place, None)
        if attempt is not None and call == "generate":
            # A short result: the rest is requested by a new attempt.
            for other in attempt.candidates:
                self._waiting.pop((call, other), None)
        return was_parked or attempt is not None


def pending_calls(
    entries: Sequence[Entry],
    of: Callable[[int], bool] = lambda candidate: True,
    conditions: Conditions | None = None,
) -> Tally:
    """What the entries of a search add up to; only those of some candidates, if `of` says so.

    The verdicts that count are those under `conditions`, by default those of the last start.
    """
    tally = Tally(wanted_conditions(entries) if conditions is None else conditions)
    for entry in entries:
        if is_about(entry, of):
            tally.add(entry)
    return tally


def is_about(entry: Entry, of: Callable[[int], bool]) -> bool:
    """Whether an entry is about the whole search, or about a candidate that `of` accepts."""
    match entry:
        case Intended(_, candidates) | Settled(_, candidates) | Parked(_, candidates):
            return any(map(of, candidates))
        case Made(candidate) | Scored(candidate) | ScoredAgain(candidate) | Found(candidate):
            return of(candidate)
        case Staged(candidate):
            return of(candidate)
        case _:
            return True
