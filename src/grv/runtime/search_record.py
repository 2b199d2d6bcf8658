"""The recorded results of one search. New ones are durable before they are used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set

import anyio
import anyio.to_thread

from ..backends.protocols import Usage
from ..core.errors import LedgerError
from ..core.values import REFUTED, CandidateId, Event, Verdict, Verified
from ..ledger.entries import (
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
    Started,
    Told,
)
from ..ledger.ledger import NO_CAPS, Caps
from ..ledger.pending import pending_calls
from .ledger_writer import LedgerWriter
from .prices import Meter

MOST_BROKEN = 3  # this many broken verdicts in a row end a search
OWN_KEYS = "own_keys"  # in `Started.about`: the user's key promises equal verdicts both ways


class ReadOnly(Exception):
    """The search has to continue, and its record can only be read."""


class SearchRecord:
    """The ledger entries of one search, indexed for the executor.

    Without a writer it can only be read: `write` raises ReadOnly.

    Attributes:
        made: drafts by candidate.
        scored: scores by candidate.
        scored_again: second scores by candidate, if there is a cascade.
        found: verdicts by candidate.
        ended: the entry that ended the search, if any.
        lost: candidates per call whose attempt may have been paid for and has no result: it
            failed, or its process died.
        parked: candidates and calls whose result comes from outside.
        unsettled: what is reserved for verifications that were parked, by candidate.
    """

    def __init__(
        self, writer: LedgerWriter | None, search: str, entries: Sequence[Entry] = ()
    ) -> None:
        self.search = search
        self._writer = writer
        self.made: dict[int, Made] = {}
        self.scored: dict[int, Scored] = {}
        self.scored_again: dict[int, ScoredAgain] = {}
        self.found: dict[int, Found] = {}
        self.unsettled: dict[int, float] = {}
        self._reserved: dict[int, float] = {}  # for the last verification of each candidate
        self.ended: Ended | None = None
        self.failed: Failed | None = None
        self._started: Started | None = None
        self._told: list[Told] = []  # since the last `Started`
        self._told_again = 0
        pending = pending_calls(entries)
        self.lost, self.parked = pending.lost, pending.parked
        for entry in entries:
            self._take(entry)
            if isinstance(entry, Failed):
                self._forget_broken()
        known = self.scored.keys() | self.scored_again.keys() | self.found.keys()
        if unmade := known - self.made.keys():
            raise LedgerError(
                f"search {search}: the ledger has a score or a verdict for candidate {min(unmade)}"
                " but no draft; it is damaged: run grv runs check"
            )

    @classmethod
    async def open(cls, writer: LedgerWriter, search: str) -> SearchRecord:
        """The record of a search, read from the ledger."""
        return cls(writer, search, await anyio.to_thread.run_sync(writer.ledger.read, search))

    def paid(self, meter: Meter, calls: Sequence[Call], ids: Iterable[int] | None = None) -> float:
        """The measured cost of recorded calls of these kinds, for these candidates or for all."""
        total = 0.0
        for call in calls:
            entries = self._by_call[call]
            chosen = entries if ids is None else [id for id in ids if id in entries]
            total += sum(meter.cost(call, Usage.of(entries[id].usage)) for id in chosen)
        return total

    def cost_of_generating(self, meter: Meter, id: int) -> float:
        """The measured cost of generating and scoring a candidate."""
        return self.paid(meter, ("generate", "score"), (id,))

    def costs_of_verifying(self, meter: Meter) -> dict[int, float]:
        """For each candidate with a verdict, the measured cost of the verification that gave it."""
        verified = {id: id for id in self.found} | self.verdicts_from()
        return {id: self.paid(meter, ("verify",), (other,)) for id, other in verified.items()}

    def class_of(self, id: int) -> str | int:
        """The candidate's class: its key, or its id if it has no key."""
        scored = self.scored.get(id)
        return id if scored is None or scored.key is None else scored.key

    def refuted(self, id: int) -> bool:
        """Whether the candidate was refuted without verification."""
        return id in self.scored and self.scored[id].key == REFUTED

    def verdicts_from(self) -> dict[int, int]:
        """For each candidate with a conclusive verdict, the candidate whose verification gave it.

        That is the candidate itself, if it was verified, or else one of its class: one with the
        same text, or one that failed. If the user's own key defines the classes, it may also be one
        that passed.
        """
        decided = [id for id in sorted(self.found) if self.found[id].verdict is not Verdict.BROKEN]
        passed = [id for id in reversed(decided) if self.found[id].verdict is Verdict.PASSED]
        failed = [id for id in reversed(decided) if self.found[id].verdict is Verdict.FAILED]
        by_text = {(self.class_of(id), self.made[id].text): id for id in reversed(decided)}
        by_class = {self.class_of(id): id for id in failed}
        if self.about.get(OWN_KEYS):
            by_class = {self.class_of(id): id for id in passed} | by_class
        found = {id: id for id in decided}
        for id, made in self.made.items():
            name = self.class_of(id)
            other = by_text.get((name, made.text), by_class.get(name))
            if other is not None:
                found.setdefault(id, other)
        return found

    @property
    def _by_call(self) -> Mapping[Call, Mapping[int, Made | Scored | ScoredAgain | Found]]:
        return {
            "generate": self.made,
            "score": self.scored,
            "rescore": self.scored_again,
            "verify": self.found,
        }

    @property
    def started(self) -> Started | None:
        """The last start, if there is one."""
        return self._started

    @property
    def about(self) -> Mapping[str, object]:
        """The settings of the last start."""
        return {} if self._started is None else self._started.about

    @property
    def scorer(self) -> str:
        """The model of a trained score with which the search started; empty if there is none."""
        return "" if self._started is None else self._started.scorer

    @property
    def prompt(self) -> str:
        """The prompt of the problem."""
        return "" if self._started is None else self._started.prompt

    async def begin(self, started: Started) -> None:
        """Start, or restart with other settings. Resuming with equal settings writes no entry."""
        self._told_again = 0
        if started != self._started:
            await self.write(started)

    async def write(self, *entries: Entry, caps: Caps = NO_CAPS) -> None:
        """Write entries, and use them once they are durable."""
        if self._writer is None:
            raise ReadOnly
        await self._writer.write(self.search, entries, caps)
        for entry in entries:
            self._take(entry)
            if isinstance(entry, Settled) and entry.reason and not entry.unpaid:
                self.lost[entry.call] += len(entry.candidates)

    async def arrival(self, candidate: int) -> Found:
        """Wait for a verdict that another process appends to this search."""
        if self._writer is None:
            raise ReadOnly
        loop, arrived = asyncio.get_running_loop(), anyio.Event()

        def listener(search: str, entries: Sequence[Entry]) -> None:
            if search == self.search and _verdict_of(candidate, entries) is not None:
                loop.call_soon_threadsafe(arrived.set)

        ledger = self._writer.ledger
        stop = await anyio.to_thread.run_sync(ledger.listen, listener)
        try:
            while True:
                entries = await anyio.to_thread.run_sync(ledger.read, self.search)
                found = _verdict_of(candidate, entries)
                if found is not None:
                    self._take(found)
                    return found
                await arrived.wait()
                arrived = anyio.Event()
        finally:
            stop()

    @property
    def upcoming(self) -> Event | None:
        """The recorded result of the next action, if the search is resumed."""
        at = self._told_again
        return self._told[at].event if at < len(self._told) else None

    async def tell(self, told: Told, *then: Entry) -> None:
        """Record a result. After a resume, skip results that are already recorded."""
        known = self._told_again < len(self._told) and self._told[self._told_again] == told
        if not known or then:
            await self.write(*([] if known else [told]), *then)
        self._told_again += 1

    def _forget_broken(self) -> None:
        """Forget the broken verdicts that ended a search, so that they are requested again."""
        ids = broken_in_a_row(told.event for told in reversed(self._told))
        if len(ids) < MOST_BROKEN:
            return
        for id in ids:
            self.found.pop(id, None)
        self._forget_from(ids)

    def _forget_from(self, ids: Set[CandidateId]) -> None:
        """Forget results from the first verdict on these candidates on: it was replaced.

        The search then continues from there, also if it had ended.
        """
        for at, told in enumerate(self._told):
            if isinstance(told.event, Verified) and not ids.isdisjoint(told.event.verdicts):
                del self._told[at:]
                self.ended = None
                return

    def _take(self, entry: Entry) -> None:
        match entry:
            case Made(candidate):
                self.made[candidate] = entry
            case Scored(candidate):
                self.scored[candidate] = entry
            case ScoredAgain(candidate):
                self.scored_again[candidate] = entry
            case Found(candidate, verdict):
                earlier = self.found.get(candidate)
                if earlier is not None and earlier.verdict is not verdict:
                    self._forget_from({CandidateId(candidate)})
                self.found[candidate] = entry
                self.parked.discard(("verify", candidate))
            case Intended("verify", candidates, reserved):
                self._reserved |= {each: reserved / len(candidates) for each in candidates}
            case Settled("verify", candidates):
                for each in candidates:
                    self.unsettled.pop(each, None)
            case Parked(call, candidates):
                self.parked |= {(call, each) for each in candidates}
                if call == "verify":
                    self.unsettled |= {each: self._reserved.get(each, 0.0) for each in candidates}
            case Started():
                self._started, self._told, self.ended, self.failed = entry, [], None, None
            case Told():
                self._told.append(entry)
            case Ended():
                self.ended = entry
            case Failed():
                self.failed = entry


def _verdict_of(candidate: int, entries: Sequence[Entry]) -> Found | None:
    """The last verdict on a candidate, if there is one."""
    found = [each for each in entries if isinstance(each, Found) and each.candidate == candidate]
    return found[-1] if found else None


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
