"""What the entries of one search say: its steps, its candidates, and what was paid for them.

This is the one reading of a search. The pages, `grv runs show`, review, exports, learning from a
ledger and the resuming of a search all start from a `SearchView`.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import repeat
from typing import Literal

from ..conditions import Conditions, answers
from ..core.values import (
    DROPPED,
    REFUTED,
    CandidateId,
    Event,
    Generated,
    Rescored,
    Verdict,
    Verified,
    arrivals,
)
from ..usage import Usage
from .entries import (
    Call,
    Charged,
    Data,
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
from .labels import OWN_KEYS, class_of, verdicts_from
from .pending import Tally, pending_calls

MOST_BROKEN = 3  # this many broken verdicts in a row end a search

StepKind = Literal[
    "started",
    "continued",  # started again with other settings
    "generated",
    "rescored",
    "verified",
    "second score",
    "verdict",
    "reviewed",  # a verdict of a person
    "attempt failed",
    "parked",
    "charged",
    "ended",
    "failed",
]


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One thing that happened in a search.

    Attributes:
        kind: what happened.
        entry: the entry that says so.
        spent: what was possibly paid until then.
        at: when, in seconds since 1970; None if the entries have no times.
        ids: the candidates that it is about.
        why: the reason, as recorded.
        generator: the name of the generator that acted, if there are several.
        verdicts: the verdicts that the search was told, by candidate.
        shared: those of them that were known, so that nothing was run for them.
        meanwhile: candidates that arrived during a verification.
    """

    kind: StepKind
    entry: Entry
    spent: float
    at: float | None = None
    ids: tuple[int, ...] = ()
    why: str = ""
    generator: str = ""
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    shared: tuple[int, ...] = ()
    meanwhile: tuple[int, ...] = ()

    @property
    def reason(self) -> str:
        """The reason for people: with the name of the generator, if there are several."""
        return f"{self.generator}: {self.why}" if self.generator else self.why


@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """A verdict on a candidate, and when it was given; None if the entries have no times."""

    found: Found
    at: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedCandidate:
    """One candidate of a search.

    Attributes:
        id: its number in the ledger.
        made: the draft.
        scored: its score and key; None before it is scored.
        scored_again: its second score, if it has one.
        verdicts: the verdicts that answer under the conditions of the search, oldest first.
        verdict: the one that counts, if there is one.
        refuted: whether it was refuted without verification.
        label_from: the candidate whose conclusive verdict is also its own: itself, or an equivalent
            one. None if there is no such verdict.
        passed: what that verdict says; False if it was refuted; None if nothing is known.
        waiting: whether it waits for a verdict from outside.
    """

    id: int
    made: Made
    scored: Scored | None = None
    scored_again: ScoredAgain | None = None
    verdicts: tuple[GivenVerdict, ...] = ()
    verdict: Found | None = None
    refuted: bool = False
    label_from: int | None = None
    passed: bool | None = None
    waiting: bool = False

    @property
    def text(self) -> str:
        """The text, as it was generated."""
        return self.made.text

    @property
    def generator(self) -> str:
        """The name of its generator; empty if there is only one."""
        return self.made.generator

    @property
    def usage(self) -> Usage:
        """What generating it has used."""
        return self.made.usage

    @property
    def score(self) -> float | None:
        """Its score; None if it has none."""
        return None if self.scored is None else self.scored.score

    @property
    def score_reason(self) -> str:
        """Why it has no score, or why it was refuted or dropped."""
        return "" if self.scored is None else self.scored.reason

    @property
    def key(self) -> str | None:
        """Its key; None if it has none."""
        key = None if self.scored is None else self.scored.key
        return None if key in (REFUTED, DROPPED) else key

    @property
    def dropped(self) -> bool:
        """Whether it is broken: it has no text, and never a verdict."""
        return bool(self.made.broken)

    @property
    def second_score(self) -> float | None:
        """Its second score; None if it has none."""
        return None if self.scored_again is None else self.scored_again.score


@dataclass(frozen=True, slots=True)
class DraftsInBatch:
    """Drafts that wait in a batch: their candidates, where they are, and what is reserved."""

    candidates: tuple[int, ...]
    batch: Data
    reserved: float


# An entry, when it was written, what was possibly paid until then, and who arrives by it.
_Moment = tuple[Entry, float | None, float, tuple[int, ...]]


class SearchView:
    """The entries of one search, read once.

    Verdicts that do not answer under the conditions are left out: they were given under other
    limits, at a weaker isolation, by an older judge or by an earlier version of a check.

    Args:
        entries: in the order of the ledger.
        conditions: those under which verdicts are wanted; by default those of the last start.
        times: when the entries were written.

    Attributes:
        entries: all of them.
        made: drafts by candidate.
        scored: scores by candidate.
        scored_again: second scores by candidate, if there is a cascade.
        found: by candidate, the verdict that a search uses. Broken verdicts that ended the search
            are not among them: they are requested again.
        staged: by candidate without a verdict, the stages that it has passed and that were paid.
        started: the last start, if there is one.
        told: the results that the search was told since then. A verdict that was replaced ends
            this list: the search continues from there.
        ended: the entry that ended the search; None if it has to continue.
        last_end: the last entry that ended the search, even if it has continued since.
        failed: the entry that says why the search could not continue, if it could not.
        tally: what all entries add up to.
        asked: the candidates whose verification was parked at any time.
        closed: candidates and calls that were parked before the search ended. Reviewers do not see
            them.
        unsettled: what is reserved for verifications that were parked, by candidate.
        in_batches: drafts that wait in a batch, by candidate.
        settled: the verdicts from outside that were charged, by candidate. A correction is later.
        is_corrected: whether a verdict was changed since the search was told a result or ended.
    """

    def __init__(
        self,
        entries: Sequence[Entry] = (),
        conditions: Conditions | None = None,
        times: Iterable[float] | None = None,
    ) -> None:
        self.conditions = wanted_conditions(entries) if conditions is None else conditions
        self.entries: list[Entry] = []
        self.made: dict[int, Made] = {}
        self.scored: dict[int, Scored] = {}
        self.scored_again: dict[int, ScoredAgain] = {}
        self.found: dict[int, Found] = {}
        self.staged: dict[int, list[Staged]] = defaultdict(list)
        self.started: Started | None = None
        self.told: list[Told] = []
        self.ended: Ended | None = None
        self.last_end: Ended | None = None
        self.failed: Failed | None = None
        self.tally = Tally(self.conditions)
        self.asked: set[int] = set()
        self.closed: set[tuple[Call, int]] = set()
        self.unsettled: dict[int, float] = {}
        self.in_batches: dict[int, DraftsInBatch] = {}
        self.settled: dict[int, Found] = {}
        self.is_corrected = False
        self._reserved_drafts = 0.0  # by the last attempt to generate
        self._reserved: dict[int, float] = {}  # for the last verification of each candidate
        self._numbers: dict[str, list[int]] = defaultdict(list)  # candidates by generator, in order
        self._arrived: Counter[str] = Counter()  # candidates in `told`, by generator
        self._judged: set[CandidateId] = set()  # candidates with a verdict in `told`
        self._verdicts: dict[int, list[GivenVerdict]] = defaultdict(list)
        self._latest: dict[int, Verdict] = {}  # under whatever conditions
        self._moments: list[_Moment] = []  # of entries that may be steps
        moments: Iterable[float | None] = repeat(None) if times is None else times
        for entry, moment in zip(entries, moments, strict=False):
            self.add(entry, moment, is_new=False)

    @property
    def about(self) -> Data:
        """The settings of the last start."""
        return {} if self.started is None else self.started.about

    @property
    def paid_at_start(self) -> float:
        """What was possibly paid before the last start."""
        moments = reversed(self._moments)
        return next((spent for entry, _, spent, _ in moments if isinstance(entry, Started)), 0.0)

    @property
    def prompt(self) -> str:
        """The prompt of the problem."""
        return "" if self.started is None else self.started.prompt

    @property
    def waiting(self) -> set[int]:
        """The candidates that wait for a verdict from outside."""
        return {id for call, id in self.tally.parked if call == "verify"}

    @property
    def open_to_review(self) -> set[int]:
        """Those of them that wait since the search went on last. Reviewers see these."""
        return {id for id in self.waiting if ("verify", id) not in self.closed}

    def latest(self, id: int) -> Found | None:
        """The latest verdict on a candidate that answers, if there is one."""
        verdicts = self._verdicts.get(id)
        return verdicts[-1].found if verdicts else None

    def class_of(self, id: int) -> str | int:
        """The candidate's class: its key, or its id if it has no key."""
        return class_of(self.scored, id)

    def refuted(self, id: int) -> bool:
        """Whether the candidate was refuted without verification."""
        return id in self.tally.refuted

    def dropped(self, id: int) -> bool:
        """Whether the candidate is broken: it has no text, and never a verdict."""
        return id in self.made and bool(self.made[id].broken)

    def verdicts_from(self) -> dict[int, int]:
        """For each candidate with a conclusive verdict, the candidate whose verification gave it.

        See `ledger.labels`.
        """
        own_keys = bool(self.about.get(OWN_KEYS))
        findings = {id: found for id, found in self.found.items() if id in self.made}
        return verdicts_from(self.made, self.scored, findings, own_keys=own_keys)

    def tally_of(self, place: int, generators: int) -> Tally:
        """What the entries of one of several generators add up to: they number in turns."""
        if generators == 1:
            return self.tally
        return pending_calls(self.entries, lambda id: id % generators == place, self.conditions)

    @property
    def steps(self) -> list[RecordedStep]:
        """What happened, in order."""
        steps = []
        has_arrived = False  # whether a candidate has arrived since the last start
        for entry, moment, spent, arriving in self._moments:
            step = _step(entry, moment, spent, arriving)
            if isinstance(entry, Started):
                step = RecordedStep("continued" if has_arrived else "started", entry, spent, moment)
                has_arrived = False
            has_arrived = has_arrived or bool(arriving)
            if step is not None:
                steps.append(step)
        return steps

    @property
    def candidates(self) -> list[RecordedCandidate]:
        """All candidates, by number."""
        labels = self.verdicts_from()
        waiting = self.waiting
        return [self._candidate(id, labels.get(id), waiting) for id in sorted(self.made)]

    def _candidate(self, id: int, label_from: int | None, waiting: Set[int]) -> RecordedCandidate:
        passed = None
        if label_from is not None:
            passed = self.found[label_from].verdict is Verdict.PASSED
        elif self.refuted(id):
            passed = False
        return RecordedCandidate(
            id,
            self.made[id],
            self.scored.get(id),
            self.scored_again.get(id),
            tuple(self._verdicts.get(id, ())),
            self.found.get(id, self.latest(id)),
            self.refuted(id),
            label_from,
            passed,
            id in waiting,
        )

    def add(self, entry: Entry, at: float | None = None, *, is_new: bool = True) -> None:
        """Add the next entry, which is written now or was recorded before."""
        self.entries.append(entry)
        self.tally.add(entry)
        arriving: tuple[int, ...] = ()
        match entry:
            # These three are most entries, and no steps.
            case Made(candidate, generator=generator):
                if candidate not in self.made:
                    insort(self._numbers[generator], candidate)
                self.made[candidate] = entry
                if self.in_batches:
                    self.in_batches.pop(candidate, None)
                return
            case Scored(candidate):
                self.scored[candidate] = entry
                return
            case Intended(call, candidates, reserved):
                if call == "verify":
                    self._reserved |= {each: reserved / len(candidates) for each in candidates}
                elif call == "generate":
                    self._reserved_drafts = reserved
                    self._leave_batches(candidates)
                return
            case Staged(candidate):
                if is_new or answers(entry.conditions, self.conditions):
                    self.staged[candidate].append(entry)
                return
            case Found(candidate):
                self.staged.pop(candidate, None)
                self._add_verdict(entry, at, is_new=is_new)
            case Told(event, _, generator):
                self.is_corrected = False
                # A candidate is verified once. Told again, the search was resumed before it.
                judged = _judged(event)
                self._forget_from(judged)
                # The candidates of one generator arrive by number.
                first = self._arrived[generator]
                end = first + _arriving(event)
                arriving = tuple(self._numbers[generator][first:end])
                self.told.append(entry)
                self._arrived[generator] = end
                self._judged |= judged
            case ScoredAgain(candidate):
                self.scored_again[candidate] = entry
            case Settled("generate", candidates):
                self._leave_batches(candidates)
            case Parked("generate", candidates, batch=batch):
                earlier_batch = self.in_batches.get(candidates[0])
                reserved = self._reserved_drafts
                if earlier_batch is not None:
                    reserved = earlier_batch.reserved
                drafts = DraftsInBatch(candidates, batch, reserved)
                self.in_batches |= dict.fromkeys(candidates, drafts)
            case Settled("verify", candidates):
                for id in candidates:
                    parked = self.unsettled.pop(id, None) is not None
                    if (parked or id in self.settled) and id in self.found:
                        self.settled[id] = self.found[id]
            case Parked(call, candidates):
                self.closed -= {(call, each) for each in candidates}
                if call == "verify":
                    self.asked |= set(candidates)
                    self.unsettled |= {each: self._reserved.get(each, 0.0) for each in candidates}
            case Started():
                self.is_corrected = False
                self.started = entry
                self.told = []
                self._arrived.clear()
                self._judged.clear()
                self.ended = None
                self.failed = None
            case Ended():
                self.is_corrected = False
                self.ended = entry
                self.last_end = entry
                self.closed = self.tally.parked
            case Failed():
                self.failed = entry
                self.closed = self.tally.parked
                if not is_new:
                    self._forget_broken()
        self._moments.append((entry, at, self.tally.paid, arriving))

    def _add_verdict(self, found: Found, at: float | None, *, is_new: bool) -> None:
        """Add a verdict. One that arrives now always holds; a recorded one may not."""
        candidate = found.candidate
        is_change = self._latest.get(candidate, found.verdict) is not found.verdict
        self.is_corrected = self.is_corrected or is_change
        self._latest[candidate] = found.verdict
        if not is_new and not answers(found.conditions, self.conditions):
            return
        self._verdicts[candidate].append(GivenVerdict(found, at))
        earlier = self.found.get(candidate)
        if not is_new and earlier is not None and self._is_better(earlier, found):
            return
        if earlier is not None and earlier.verdict is not found.verdict:
            self._forget_from({CandidateId(candidate)})
        self.found[candidate] = found

    def _is_better(self, earlier: Found, found: Found) -> bool:
        """Whether an earlier verdict answers better than a recorded one.

        That is one under exactly these conditions, if the other was given at a stricter isolation.
        """
        return earlier.conditions == self.conditions and found.conditions != self.conditions

    def _leave_batches(self, candidates: Iterable[int]) -> None:
        if self.in_batches:
            for id in candidates:
                self.in_batches.pop(id, None)

    def _forget_broken(self) -> None:
        """Forget the broken verdicts that ended a search, so that they are requested again."""
        ids = broken_in_a_row(told.event for told in reversed(self.told))
        if len(ids) < MOST_BROKEN:
            return
        for id in ids:
            self.found.pop(id, None)
        self._forget_from(ids)

    def _forget_from(self, ids: Set[CandidateId]) -> None:
        """Forget results from the first verdict on these candidates on: it was replaced.

        The search then continues from there, also if it had ended.
        """
        if self._judged.isdisjoint(ids):
            return
        events = [told.event for told in self.told]
        first = next(place for place, event in enumerate(events) if _judged(event) & ids)
        for told in self.told[first:]:
            self._arrived[told.generator] -= _arriving(told.event)
            self._judged -= _judged(told.event)
        del self.told[first:]
        self.ended = None


def _step(
    entry: Entry, at: float | None, spent: float, arriving: tuple[int, ...]
) -> RecordedStep | None:
    """What happened by an entry; None if it is only a part of a step."""
    match entry:
        case Told(Generated(), why, name):
            return RecordedStep("generated", entry, spent, at, arriving, why, name)
        case Told(Rescored(scores), why, name):
            return RecordedStep("rescored", entry, spent, at, tuple(scores), why, name)
        case Told(Verified(verdicts, shared=shared), why, name):
            return RecordedStep(
                "verified",
                entry,
                spent,
                at,
                tuple(verdicts),
                why,
                name,
                {int(id): verdict for id, verdict in verdicts.items()},
                tuple(sorted(shared)),
                arriving,
            )
        case ScoredAgain(candidate, _, reason):
            return RecordedStep("second score", entry, spent, at, (candidate,), reason)
        case Found(candidate, verdict, reason, reviewer=reviewer, note=note):
            by_id = {candidate: verdict}
            kind: StepKind = "reviewed" if reviewer else "verdict"
            why = note if reviewer else reason
            return RecordedStep(kind, entry, spent, at, (candidate,), why, verdicts=by_id)
        case Settled(_, candidates, _, reason) if reason:
            return RecordedStep("attempt failed", entry, spent, at, candidates, reason)
        case Parked(_, candidates, note):
            return RecordedStep("parked", entry, spent, at, candidates, note)
        case Charged(_, reason):
            return RecordedStep("charged", entry, spent, at, (), reason)
        case Ended(_, answer, why=why):
            chosen = () if answer is None else (answer,)
            return RecordedStep("ended", entry, spent, at, chosen, why)
        case Failed(message):
            return RecordedStep("failed", entry, spent, at, (), message)
        case _:
            return None


def _judged(event: Event) -> Set[CandidateId]:
    """The candidates with a verdict in an event."""
    return event.verdicts.keys() if isinstance(event, Verified) else frozenset()


def _arriving(event: Event) -> int:
    """How many candidates an event brings."""
    return sum([len(batch.scores) for batch in arrivals(event)])


def broken_in_a_row(newest_first: Iterable[Event]) -> set[CandidateId]:
    """The candidates of the latest verdicts, back to the last one that is not broken."""
    ids: set[CandidateId] = set()
    for event in newest_first:
        if isinstance(event, Verified):
            for id, verdict in reversed(list(event.verdicts.items())):
                if verdict is not Verdict.BROKEN:
                    return ids
                ids.add(id)
    return ids
