"""Threads that clients share: one client does not keep the others waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

_Result = TypeVar("_Result")


class ClientThreads:
    """Some threads. What a client has done beyond its share waits behind its own work only.

    Args:
        most: the number of threads.
        known: whether clients are known apart; then one has at most half of the threads.
    """

    def __init__(self, most: int, *, known: bool) -> None:
        self._all = anyio.CapacityLimiter(most)
        self._share = max(1, most // 2) if known else 0
        self._own: dict[str, anyio.CapacityLimiter] = {}

    async def run(self, client: str, work: Callable[[], _Result]) -> _Result:
        """What a function returns, in a thread."""
        if not self._share:  # there is one client, which has all of them
            return await anyio.to_thread.run_sync(work, limiter=self._all)
        own = self._own.get(client)
        if own is None:
            own = self._own[client] = anyio.CapacityLimiter(self._share)
        async with own:
            return await anyio.to_thread.run_sync(work, limiter=self._all)
