"""The application of `grv dashboard`: the pages alone, without an API for models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Router
from starlette.types import Message, Receive, Scope, Send

from ...core.errors import LedgerError
from ..door import Door, in_parts
from ..errors import ApiError
from ..events import Events, place_of
from .answers import HEADERS, as_json
from .follower import Follower


class PagesApplication:
    """Answers requests. It is an ASGI application, and the work that a server waits for."""

    def __init__(
        self, routes: Sequence[BaseRoute], door: Door, events: Events, follower: Follower
    ) -> None:
        self._router = Router(routes, redirect_slashes=False)
        self._door = door
        self._events = events
        self._follower = follower
        self.lost: LedgerError | None = None  # a read that fails is the error of one request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; every error is JSON."""
        if scope["type"] != "http":
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            with self._door.admit(scope):
                await self._router(scope, receive, in_parts(watched))
            return
        except ApiError as error:
            failure = error
        except HTTPException as error:
            failure = ApiError(error.status_code, error.detail, code="not_found")
        except Exception as error:  # a mistake in one request must not end the connection of others
            self._events("bug", error=type(error).__name__, place=place_of(error))
            failure = ApiError(500, "this is a bug in grv", code="bug")
        if not begun:
            headers = {**HEADERS, **failure.headers}
            response = Response(
                as_json(failure.body), failure.status, headers, media_type="application/json"
            )
            await response(scope, receive, send)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Nothing runs beside the requests."""
        self.ledger_lost = anyio.Event()
        yield

    async def close(self, grace: float) -> None:
        """End all streams."""
        self.stop()

    def stop(self) -> None:
        """End all streams."""
        self._follower.close()
