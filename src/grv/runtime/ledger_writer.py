"""Writes the entries of many searches to one ledger."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.to_thread

from ..ledger.entries import Entry
from ..ledger.ledger import Ledger


class LedgerWriter:
    """Writes in batches: entries that arrive during one write go into the next.

    A durable write takes as long for one entry as for a hundred. Batches keep the ledger from
    slowing down a fast run.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._next = _Write()
        self._busy = False

    async def write(self, search: str, entries: Sequence[Entry]) -> None:
        """Append entries. They are durable when this returns, even if it is cancelled."""
        mine = self._next
        mine.groups.append((search, entries))
        with anyio.CancelScope(shield=True):
            if self._busy:
                await mine.done.wait()
            else:
                await self._write_all()
        if mine.error is not None:
            raise mine.error

    async def _write_all(self) -> None:
        self._busy = True
        try:
            while self._next.groups:
                batch, self._next = self._next, _Write()
                try:
                    await anyio.to_thread.run_sync(self._append, batch.groups)
                except Exception as failure:
                    batch.error = failure
                batch.done.set()
        finally:
            self._busy = False

    def _append(self, groups: Sequence[tuple[str, Sequence[Entry]]]) -> None:
        together = getattr(self.ledger, "append_all", None)
        if together is not None:
            together(groups)
            return
        for search, entries in groups:
            self.ledger.append(search, entries)


class _Write:
    """The entries of one write."""

    def __init__(self) -> None:
        self.groups: list[tuple[str, Sequence[Entry]]] = []
        self.done = anyio.Event()
        self.error: Exception | None = None
