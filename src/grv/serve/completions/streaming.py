"""Streams: progress while the search runs, the text once it has passed, usage at the end."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager
from typing import Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..searches import RunningSearch
from .dialect import EventWriter
from .requests import CompletionRequest

_HEARTBEAT = b": heartbeat\n\n"
_LEAST_PAUSE = 0.2  # seconds between two reports of progress


async def progress(
    request: CompletionRequest,
    running: RunningSearch,
    write: EventWriter,
    heartbeat: float,
    until: float,
) -> AsyncGenerator[bytes]:
    """Progress and heartbeats, until the search ends or time is over.

    A heartbeat is a comment, which clients skip.
    """
    told: Mapping[str, Any] | None = None
    sent = reported = -math.inf
    while not running.done.is_set() and (now := time.monotonic()) < until:
        changed = running.changed
        new = running.progress
        if new != told and now >= reported + _LEAST_PAUSE:
            told = new
            sent = now
            reported = now
            yield write(request.dialect.progress(request, new))
        elif now >= sent + heartbeat:
            sent = now
            yield _HEARTBEAT
        wake = min(until, sent + heartbeat)
        if new != told:
            wake = min(wake, reported + _LEAST_PAUSE)
        with anyio.move_on_after(max(0.0, wake - time.monotonic())):
            await changed.wait()


class EventStream(Response):
    """Sends events until there are no more or the client leaves.

    `holding` is closed at the end.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes], holding: ExitStack) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events = events
        self._holding = holding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; `scope`, `receive` and `send` are those of ASGI."""
        with self._holding:
            async with until_left(receive), aclosing(self._events) as events:
                start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                await send(start)
                async for each in events:
                    await send({"type": "http.response.body", "body": each, "more_body": True})
                await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def until_left(receive: Receive) -> AsyncIterator[anyio.Event]:
    """End the context when the client leaves; the event says whether it has."""
    left = anyio.Event()
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            left.set()
            group.cancel_scope.cancel()

        group.start_soon(watch)
        yield left
        group.cancel_scope.cancel()
