"""Writes entries to a ledger for many searches at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import anyio.to_thread

from ..ledger.entries import Entry
from ..ledger.ledger import NO_CAPS, Append, Caps, Ledger

JOIN_SECONDS = 0.25  # between two attempts to claim a search


class LedgerWriter:
    """Writes for many searches at once: what arrives during one write goes into the next.

    A durable write takes as long for a hundred entries as for one, so a fast run does not wait for
    its ledger.

    Args:
        ledger: the ledger.
        written: is told all entries of this writer once they are durable.

    Attributes:
        charged: what the entries of this writer have charged.
        shared: what the searches of this writer share, by name.
    """

    def __init__(
        self, ledger: Ledger, written: Callable[[str, Sequence[Entry]], None] | None = None
    ) -> None:
        self.ledger = ledger
        self._written = written
        self.charged = 0.0
        self.shared: dict[object, Any] = {}  # what the searches of this writer share, by name
        self._next = _Write()
        self._busy = False

    async def write(self, search: str, entries: Sequence[Entry], caps: Caps = NO_CAPS) -> None:
        """Append entries; they are durable when this returns, also if it is cancelled meanwhile.

        Raises:
            OverBudget: a cap does not cover them; nothing is written.
        """
        mine = self._next
        index = len(mine.groups)
        group = Append(search, entries, caps)
        mine.groups.append(group)
        with anyio.CancelScope(shield=True):
            if self._busy:
                await mine.done.wait()
            else:
                await self._write_all()
        if (error := mine.errors[index]) is not None:
            raise error
        self.charged += group.charge
        if self._written is not None:
            self._written(search, entries)

    async def _write_all(self) -> None:
        self._busy = True
        try:
            while self._next.groups:
                batch = self._next
                self._next = _Write()
                try:
                    batch.errors = await anyio.to_thread.run_sync(
                        self.ledger.append_all, batch.groups
                    )
                except Exception as failure:
                    batch.errors = [failure] * len(batch.groups)
                batch.done.set()
        finally:
            self._busy = False


class _Write:
    """What is written together."""

    def __init__(self) -> None:
        self.groups: list[Append] = []
        self.errors: Sequence[Exception | None] = ()
        self.done = anyio.Event()


async def claim(ledger: Ledger, search: str) -> bool:
    """Claim a search. A caller that is cancelled meanwhile still learns the result."""
    with anyio.CancelScope(shield=True):
        claimed = await anyio.to_thread.run_sync(ledger.claim, search)
    return claimed


async def claim_when_free(ledger: Ledger, search: str) -> None:
    """Claim a search as soon as no other caller has it.

    The others may be processes, which cannot wake this one, so it looks again and again.
    """
    while not await claim(ledger, search):  # noqa: ASYNC110
        await anyio.sleep(JOIN_SECONDS)
