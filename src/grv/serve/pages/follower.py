"""Tells open pages what has changed in a ledger, by server-sent events."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread

from ...core.errors import LedgerError
from .store import Store

_INTERVAL = 0.4  # seconds between two looks at the ledger
_HEARTBEAT = 10.0  # the longest silence of a stream
_NAMED = 200  # the newest entries whose searches are named


class Follower:
    """Looks at a ledger while there are pages to tell."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._closed = False
        self._looked = 0.0
        self._version = (0, 0)

    def close(self) -> None:
        """End all streams."""
        self._closed = True

    async def stream(self) -> AsyncIterator[bytes]:
        """Events: one for the start, and one for each change. Comments keep the stream open."""
        version = await self._current()
        yield b"retry: 1500\n" + _event({"position": version[1], "searches": []})
        said = time.monotonic()
        while not self._closed:
            await anyio.sleep(_INTERVAL)
            now = await self._current()
            if now != version:
                changed = await anyio.to_thread.run_sync(
                    self._store.changed_since, version[1], _NAMED
                )
                version, said = now, time.monotonic()
                yield _event({"position": version[1], "searches": changed})
            elif time.monotonic() - said > _HEARTBEAT:
                said = time.monotonic()
                yield b": here\n\n"

    async def _current(self) -> tuple[int, int]:
        """The version of the ledger; all streams share one look at it."""
        if time.monotonic() - self._looked >= _INTERVAL * 0.9:
            self._looked = time.monotonic()
            with contextlib.suppress(LedgerError):  # a busy file: the next look may succeed
                self._version = await anyio.to_thread.run_sync(self._store.version)
        return self._version


def _event(data: dict[str, object]) -> bytes:
    return b"event: change\ndata: " + json.dumps(data).encode("ascii") + b"\n\n"
