"""The recorded results of one search. New ones are durable before they are used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio

from ..conditions import Conditions
from ..core.errors import LedgerError
from ..core.values import DROPPED, REFUTED, Event, Verified
from ..ledger.entries import (
    Call,
    Ended,
    Entry,
    Found,
    Made,
    Scored,
    ScoredAgain,
    Settled,
    Started,
    Told,
)
from ..ledger.ledger import NO_CAPS, Caps
from ..ledger.view import SearchView
from .ledger_writer import LedgerWriter, in_ledger_thread
from .prices import Meter


class ReadOnly(Exception):
    """The search has to continue, and its record can only be read."""


class SearchRecord(SearchView):
    """The view of a search that is run: new entries are written, then added.

    Entries that charge nothing, and that a search which goes on makes again, are only *noted*: they
    are added at once, and written before the next entries, in the same transaction. These are the
    start, attempts that cost nothing, scores that follow from the drafts alone, and what the search
    was told. If the process dies before that, nothing is lost that was paid for.

    Without a writer it can only be read: `write` and `note` raise ReadOnly.

    Attributes:
        releases: whether the claim on the search may be given up with its end.
        released: whether it was.
    """

    releases = False
    released = False

    def __init__(
        self,
        writer: LedgerWriter | None,
        search: str,
        entries: Sequence[Entry] = (),
        conditions: Conditions | None = None,
    ) -> None:
        super().__init__(entries, conditions)
        self.search = search
        self._writer = writer
        self._noted: list[Entry] = []
        self._told_again = 0
        self._forget_corrected()
        mentioned = self.scored.keys() | self.scored_again.keys() | self.found.keys()
        if unmade := mentioned - self.made.keys():
            raise LedgerError(
                f"search {search}: the ledger has a score or a verdict for candidate {min(unmade)}"
                " but no draft; it is damaged: run grv runs check"
            )

    def write_to(self, writer: LedgerWriter) -> None:
        """Continue the search, which is claimed now. Nothing was recorded since it was read."""
        self._writer = writer

    @classmethod
    async def open(
        cls, writer: LedgerWriter, search: str, conditions: Callable[[], Conditions | None]
    ) -> SearchRecord:
        """The record of a search, read from the ledger, for verdicts under these conditions.

        A thread reads it and finds the conditions: checks are parsed, files read.
        """
        return await in_ledger_thread(
            lambda: cls(writer, search, writer.ledger.read(search), conditions())
        )

    def paid(self, meter: Meter, calls: Sequence[Call], ids: Iterable[int] | None = None) -> float:
        """The measured cost of recorded calls of these kinds, for these candidates or for all."""
        total = 0.0
        for call in calls:
            entries = self._by_call[call]
            chosen = [id for id in (entries if ids is None else ids) if id in entries]
            if call == "verify":
                chosen = [id for id in chosen if not self.found[id].shared]
            total += sum(meter.cost(call, entries[id].usage) for id in chosen)
        return total

    def cost_of_generating(self, meter: Meter, id: int) -> float | None:
        """The measured cost of generating and scoring a candidate; None if it is unknown."""
        results: dict[Call, Made | Scored | None] = {
            "generate": self.made.get(id),
            "score": self.scored.get(id),
        }
        prices = [meter.price(call, e.usage) for call, e in results.items() if e]
        known = [price for price in prices if price is not None]
        return sum(known, 0.0) if len(known) == len(prices) else None

    def costs_of_verifying(self, meter: Meter) -> dict[int, float | None]:
        """For each candidate with a verdict, the measured cost of the verification that gave it."""
        verified = {id: id for id in self.found} | self.verdicts_from()
        return {id: self.cost_of_verifying(meter, other) for id, other in verified.items()}

    def cost_of_verifying(self, meter: Meter, id: int) -> float | None:
        """The measured cost of a candidate's own verification; None if it is unknown."""
        found = self.found.get(id)
        if found is None or found.shared:
            return 0.0
        return meter.price("verify", found.usage)

    @property
    def _by_call(self) -> Mapping[Call, Mapping[int, Made | Scored | ScoredAgain | Found]]:
        return {
            "generate": self.made,
            "score": self.scored,
            "rescore": self.scored_again,
            "verify": self.found,
        }

    @property
    def scorer(self) -> str:
        """The model of a trained score with which the search started; empty if there is none."""
        return "" if self.started is None else self.started.scorer

    @property
    def shares(self) -> str:
        """The shares of right candidates with which the search started, as text; empty if none."""
        return "" if self.started is None else self.started.shares

    @property
    def is_settled(self) -> bool:
        """Whether each candidate has a verdict, is refuted, or has no text."""
        closed = (REFUTED, DROPPED)
        return all(
            id in self.found or (id in self.scored and self.scored[id].key in closed)
            for id in self.made
        )

    def begin(
        self, started: Started, unused: Callable[[Call, int], float] = lambda call, id: 0.0
    ) -> None:
        """Start, or restart with other settings. Resuming with equal settings adds no entry.

        `unused` is the part of an attempt's reserve that was not paid if its process died.
        """
        self._told_again = 0
        dead = self._dead_attempts(unused)
        if started != self.started:
            self.note(*dead, started)
        elif dead and self._writer is not None:
            self.note(*dead)

    def _dead_attempts(self, unused: Callable[[Call, int], float]) -> list[Entry]:
        """The end of attempts that were in flight when the process of the search died."""
        reason = "the process died before there was a result"
        dead = self.tally.in_flight - self.tally.in_batch
        return [Settled(call, (id,), unused(call, id), reason) for call, id in sorted(dead)]

    @property
    def place(self) -> str:
        """Where the ledger is, as commands name it; LEDGER if it has no place."""
        ledger = None if self._writer is None else self._writer.ledger
        return getattr(ledger, "path", "LEDGER")

    def note(self, *entries: Entry) -> None:
        """Add entries that charge nothing; they are written before the next ones."""
        if self._writer is None:
            raise ReadOnly
        self._noted += entries
        for entry in entries:
            self.add(entry)

    async def flush(self) -> None:
        """Write what was noted."""
        if self._noted:
            await self.write()

    async def write(self, *entries: Entry, caps: Caps = NO_CAPS, releases: bool = False) -> None:
        """Write what was noted and these entries, and use them once they are durable.

        Raises:
            OverBudget: a cap does not cover them; nothing is written, and what was noted still is.
        """
        if self._writer is None:
            raise ReadOnly
        noted = self._noted
        self._noted = []
        try:
            every = (*noted, *entries)
            released = await self._writer.write(self.search, every, caps, releases=releases)
        except BaseException:
            self._noted = noted + self._noted
            raise
        self.released = self.released or released
        for entry in entries:
            self.add(entry)

    async def arrival(self, candidate: int) -> Found:
        """Wait for a verdict that another process appends to this search."""
        if self._writer is None:
            raise ReadOnly
        loop = asyncio.get_running_loop()
        arrived = anyio.Event()

        def listener(search: str, entries: Sequence[Entry]) -> None:
            if search == self.search and self._verdict_in(entries, candidate) is not None:
                loop.call_soon_threadsafe(arrived.set)

        ledger = self._writer.ledger
        stop = await in_ledger_thread(ledger.listen, listener)
        try:
            while True:
                entries = await in_ledger_thread(ledger.read, self.search)
                verdict = self._verdict_in(entries, candidate)
                if verdict is not None:
                    self.add(verdict)
                    return verdict
                await arrived.wait()
                arrived = anyio.Event()
        finally:
            stop()

    def _verdict_in(self, entries: Sequence[Entry], candidate: int) -> Found | None:
        """The latest verdict on a candidate that answers, if there is one."""
        return SearchView(entries, self.conditions).latest(candidate)

    @property
    def upcoming(self) -> Event | None:
        """The recorded result of the next action, if the search is resumed."""
        index = self._told_again
        return self.told[index].event if index < len(self.told) else None

    def tell(self, told: Told, *then: Entry) -> None:
        """Note a result and what follows. After a resume, skip what is already recorded."""
        is_recorded = self._told_again < len(self.told) and self.told[self._told_again] == told
        if not is_recorded:
            self.note(told, *then)
        self._told_again += 1

    async def end(self, ended: Ended) -> None:
        """Record the end of the search, unless it is recorded."""
        if self.ended != ended:
            self.note(ended)
        if self._noted:
            await self.write(releases=self.releases)

    def _forget_corrected(self) -> None:
        """Forget results that rest on a verdict which was corrected before they were recorded."""
        told = [each.event.verdicts for each in self.told if isinstance(each.event, Verified)]
        wrong = {
            id
            for verdicts in told
            for id, verdict in verdicts.items()
            if id in self.found and self.found[id].verdict is not verdict
        }
        self._forget_from(wrong)
