"""Tells open pages what has changed in a ledger, by server-sent events."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

import anyio
from anyio.lowlevel import RunVar

from ...core.errors import LedgerError
from ..threads import ClientThreads
from .store import Store

_INTERVAL = 0.4  # seconds between two looks at the ledger
_HEARTBEAT = 10.0  # the longest silence of a stream
_NAMED = 200  # the newest entries whose searches are named
_THREADS = 4  # that read for pages
_threads: RunVar[ClientThreads] = RunVar("threads of the pages")
_Found = TypeVar("_Found")


async def in_thread(read: Callable[[], _Found], reader: str = "") -> _Found:
    """What a function reads, in one of the few threads of the pages. Searches have others.

    `reader` is the name of who is signed in. What one asks for does not keep the others waiting.
    """
    try:
        threads = _threads.get()
    except LookupError:
        threads = ClientThreads(_THREADS, known=True)
        _threads.set(threads)
    return await threads.run(reader, read)


class Follower:
    """Looks at a ledger while there are pages to tell."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._closed = False
        self._looked = 0.0
        self._version = (0, 0)
        self.streams: Counter[str] = Counter()  # that are open, by who reads them

    def close(self) -> None:
        """End all streams."""
        self._closed = True

    async def stream(
        self,
        reader: str = "",
        *,
        named: bool = True,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> AsyncIterator[bytes]:
        """Events: one for the start, and one for each change. Comments keep the stream open.

        Args:
            reader: the name of who is signed in.
            named: whether the searches that changed are named.
            may_go_on: whether the viewer may still see them; asked before each event.
        """
        self.streams[reader] += 1
        try:
            async for each in self._events(named=named):
                if not may_go_on():
                    return
                yield each
        finally:
            self.streams[reader] -= 1

    async def _events(self, *, named: bool) -> AsyncIterator[bytes]:
        version = await self._current()
        yield b"retry: 1500\n" + _event({"position": version[1], "searches": []})
        said = time.monotonic()
        while not self._closed:
            await anyio.sleep(_INTERVAL)
            now = await self._current()
            if now != version:
                since = partial(self._store.changed_since, version[1], _NAMED)
                changed = await in_thread(since) if named else []
                version = now
                said = time.monotonic()
                yield _event({"position": version[1], "searches": changed})
            elif time.monotonic() - said > _HEARTBEAT:
                said = time.monotonic()
                yield b": here\n\n"

    async def _current(self) -> tuple[int, int]:
        """The version of the ledger; all streams share one look at it."""
        if time.monotonic() - self._looked >= _INTERVAL * 0.9:
            self._looked = time.monotonic()
            with contextlib.suppress(LedgerError):  # a busy file: the next look may succeed
                self._version = await in_thread(self._store.version)
        return self._version


def _event(data: dict[str, object]) -> bytes:
    return b"event: change\ndata: " + json.dumps(data).encode("ascii") + b"\n\n"
