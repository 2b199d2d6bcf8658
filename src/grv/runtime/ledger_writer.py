"""Writes entries to a ledger for many searches at once, in a thread."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.lowlevel

from ..ledger.entries import Entry
from ..ledger.ledger import NO_CAPS, Append, Caps, Ledger

JOIN_SECONDS = 0.25  # between two attempts to claim a search
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


async def in_ledger_thread(
    function: Callable[_Arguments, _Result],
    *arguments: _Arguments.args,
    **options: _Arguments.kwargs,
) -> _Result:
    """The result of a function that uses the ledger, from a thread.

    Once it has begun, it runs to its end, also if the caller is cancelled meanwhile: who claims a
    search must know it.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    result = loop.run_in_executor(None, partial(function, *arguments, **options))
    result.add_done_callback(lambda _: ended.set())
    try:
        await _outlast(ended)
    except asyncio.CancelledError:
        result.cancel()  # it does not begin, unless it has
        raise
    return result.result()


async def _outlast(event: asyncio.Event) -> None:
    """Wait for an event, also if a scope of the caller is cancelled before or meanwhile.

    A shielded scope around the wait does the same. It is entered only when it is needed: to enter
    and to leave it costs more than the wait itself.
    """
    try:
        await event.wait()
    except asyncio.CancelledError:
        if anyio.current_effective_deadline() > -math.inf:
            raise  # the task was cancelled, and no scope: a shield does not hold that off
        with anyio.CancelScope(shield=True):
            await event.wait()


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
        self._next = _Batch()
        self._is_busy = False

    async def write(
        self,
        search: str,
        entries: Sequence[Entry],
        caps: Caps = NO_CAPS,
        *,
        releases: bool = False,
    ) -> bool:
        """Append entries; they are durable when this returns, also if it is cancelled meanwhile.

        If it `releases`, the claim on the search may be given up with them; returns whether it was.

        Raises:
            OverBudget: a cap does not cover them; nothing is written.
        """
        batch = self._next
        index = len(batch.groups)
        group = Append(search, entries, caps, releases)
        batch.groups.append(group)
        if not self._is_busy:
            self._begin()
        await _outlast(batch.done)
        if (error := batch.errors[index]) is not None:
            raise error
        self.charged += group.charge
        if self._written is not None:
            self._written(search, entries)
        return group.released

    def _begin(self) -> None:
        """Write the next batch in a thread, and then what has arrived meanwhile."""
        self._is_busy = True
        batch = self._next
        self._next = _Batch()

        def end(written: asyncio.Future[Sequence[Exception | None]]) -> None:
            failure = written.exception()
            self._end(batch, [failure] * len(batch.groups) if failure else written.result())

        loop = asyncio.get_running_loop()
        try:
            writing = loop.run_in_executor(None, self.ledger.append_all, batch.groups)
        except (RuntimeError, MemoryError) as error:  # no thread can be started
            self._end(batch, [error] * len(batch.groups))
        else:
            writing.add_done_callback(end)

    def _end(self, batch: _Batch, errors: Sequence[BaseException | None]) -> None:
        """Wake those who wait for a batch, and write what has arrived meanwhile."""
        batch.errors = errors
        batch.done.set()
        self._is_busy = False
        if self._next.groups:
            self._begin()


class _Batch:
    """What is written together."""

    def __init__(self) -> None:
        self.groups: list[Append] = []
        self.errors: Sequence[BaseException | None] = ()
        self.done = asyncio.Event()


async def claim_when_free(ledger: Ledger, search: str) -> None:
    """Claim a search as soon as no other caller has it.

    The others may be processes, which cannot wake this one, so it looks again and again.
    """
    while not await in_ledger_thread(ledger.claim, search):  # noqa: ASYNC110
        await anyio.sleep(JOIN_SECONDS)
