"""Streams: progress while the search runs, the text once it has passed, usage at the end."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager
from typing import Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...runtime.solution import Solution
from ..errors import ApiError
from ..searches import RunningSearch
from .requests import CompletionRequest
from .responses import choices, chunk, found_of, text_of, usage_of

_HEARTBEAT = b": heartbeat\n\n"
_DONE = b"data: [DONE]\n\n"
_LEAST_PAUSE = 0.2  # seconds between two reports of progress


def as_json(data: Mapping[str, Any]) -> bytes:
    """JSON in ASCII: texts may contain what UTF-8 cannot express."""
    return json.dumps(data).encode("ascii")


def event(data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + as_json(data) + b"\n\n"


async def progress(
    request: CompletionRequest, running: RunningSearch, heartbeat: float, until: float
) -> AsyncGenerator[bytes]:
    """Progress and heartbeats, until the search ends or time is over.

    Progress is a chunk without choices; a heartbeat is a comment, which clients skip.
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
            yield event(chunk(request, [], grv=new))
        elif now >= sent + heartbeat:
            sent = now
            yield _HEARTBEAT
        wake = min(until, sent + heartbeat)
        if new != told:
            wake = min(wake, reported + _LEAST_PAUSE)
        with anyio.move_on_after(max(0.0, wake - time.monotonic())):
            await changed.wait()


def answer(request: CompletionRequest, solution: Solution, *, detailed: bool) -> list[bytes]:
    """The last events of a stream."""
    try:
        text = text_of(request, solution, detailed=detailed)
    except ApiError as error:
        return [event(error.body), _DONE]
    found = found_of(request, solution)
    events = [
        event(chunk(request, choices(request, text))),
        event(chunk(request, choices(request, None), grv=found)),
    ]
    if request.include_usage:
        events.append(event(chunk(request, [], usage=usage_of(solution))))
    return [*events, _DONE]


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
