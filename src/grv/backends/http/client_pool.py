"""HTTP clients that close their connections when nothing uses them.

A client of httpx2 closes connections that have expired only when it sends its next request. Without
one they would stay open, and with them their descriptors. So a client that has had no request for
some seconds is closed, and the next request gets a new one.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

IDLE = 5.0  # seconds without a request; as long as httpx2 keeps a connection
_LOOK = 1.0  # seconds between two looks for idle clients


@dataclass(slots=True, eq=False)
class _PooledClient:
    """A client, how many requests it has in flight, and when the last one ended."""

    client: httpx2.AsyncClient
    in_flight: int = 0
    used: float = 0.0


@dataclass(slots=True)
class _LoopClients:
    """The clients of one event loop.

    Attributes:
        clients: those that can be used.
        is_watched: whether a timer looks for idle ones.
        closing: tasks that close idle ones.
    """

    clients: list[_PooledClient] = field(default_factory=list)
    is_watched: bool = False
    closing: set[asyncio.Task[None]] = field(default_factory=set)


class ClientPool:
    """The clients of one server, for each event loop that uses it.

    Args:
        make: makes a client.
        room: the number of requests in flight per client.
    """

    def __init__(self, make: Callable[[], httpx2.AsyncClient], room: float = math.inf) -> None:
        self._make = make
        self._room = room
        # A connection works only in the event loop that opened it.
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClients] = (
            weakref.WeakKeyDictionary()
        )

    @contextmanager
    def client(self) -> Iterator[httpx2.AsyncClient]:
        """A client for one request."""
        loop = asyncio.get_running_loop()
        known = self._loops.setdefault(loop, _LoopClients())
        pooled = self._with_room(known.clients)
        pooled.in_flight += 1
        try:
            yield pooled.client
        finally:
            pooled.in_flight -= 1
            pooled.used = loop.time()
            if not known.is_watched:
                known.is_watched = True
                loop.call_later(_LOOK, self._close_idle, loop)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        known = self._loops.pop(asyncio.get_running_loop(), _LoopClients())
        for pooled in known.clients:
            await pooled.client.aclose()
        if known.closing:
            await asyncio.wait(known.closing)

    def _with_room(self, clients: list[_PooledClient]) -> _PooledClient:
        """The first client with room for a request; a new one if all are full."""
        for pooled in clients:
            if pooled.in_flight < self._room:
                return pooled
        clients.append(_PooledClient(self._make()))
        return clients[-1]

    def _close_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the clients that are idle for long; look again later while there are others."""
        known = self._loops.get(loop)
        if known is None:
            return
        latest = loop.time() - IDLE
        idle = [each for each in known.clients if not each.in_flight and each.used <= latest]
        for pooled in idle:
            known.clients.remove(pooled)
            task = loop.create_task(pooled.client.aclose())
            known.closing.add(task)
            task.add_done_callback(known.closing.discard)
        known.is_watched = bool(known.clients)
        if known.is_watched:
            loop.call_later(_LOOK, self._close_idle, loop)
