"""What stands before every route of a server: admission, one event per request, errors as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Router
from starlette.types import Message, Receive, Scope, Send

from ..backends import tracing
from ..core.errors import GrvError
from .clients import Client, Clients
from .completions.dialect import as_json
from .door import Door, address_of, in_parts
from .errors import ApiError
from .events import Events, place_of

ErrorForm = Callable[[ApiError], dict[str, Any]]

_LEFT = 499  # the status in the log of a request whose client has left


class ClientLeft(Exception):
    """The client has closed the connection, so the response has no reader."""


class RequestGuard:
    """Admits requests and routes them. It is an ASGI application.

    Two fields are added to a request's scope: `grv`, what its event tells besides, and `held`, a
    stack that is closed when the request is answered.

    Args:
        routes: what answers.
        door: admits requests.
        events: is told of each request.
        failure: turns an error of a search into one for the client.
        forms: the bodies of errors, by path; others are as OpenAI's.
    """

    def __init__(
        self,
        routes: Sequence[BaseRoute],
        door: Door,
        events: Events,
        failure: Callable[[GrvError], ApiError],
        forms: Mapping[str, ErrorForm] | None = None,
    ) -> None:
        self._forms = forms or {}
        self._router = Router(routes, redirect_slashes=False)
        self._door = door
        self._events = events
        self._failure = failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; every error is JSON, and every request one event."""
        if scope["type"] != "http":
            return
        with tracing.answering(scope) as span:
            status = await self._answer(scope, receive, send)
            span.answered(scope, status)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer a request; the status."""
        started = time.monotonic()
        status = 0
        whole = not _has_body(scope)

        async def listened() -> Message:
            nonlocal whole
            message = await receive()
            whole = whole or not message.get("more_body", False)
            return message

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope["grv"] = {}
        try:
            with self._door.admit(scope), ExitStack() as scope["held"]:
                await self._router(scope, listened, in_parts(watched))
        except ClientLeft:
            status = _LEFT
        except (ApiError, HTTPException) as error:
            await self._respond(_api_error(error), scope, receive, watched, close=not whole)
        except GrvError as error:
            await self._respond(self._failure(error), scope, receive, watched)
        except Exception as error:  # a mistake in one request must not end the connection of others
            self._events("bug", error=type(error).__name__, place=place_of(error))
            if not status:
                bug = ApiError(500, "this is a bug in grv", code="bug")
                await self._respond(bug, scope, receive, watched)
        finally:
            seconds = round(time.monotonic() - started, 3)
            route = getattr(scope.get("route"), "path", None)
            about = {"method": scope["method"][:16], "route": route, **scope["grv"]}
            self._events("request", **about, status=status, seconds=seconds)
        return status

    async def _respond(
        self, error: ApiError, scope: Scope, receive: Receive, send: Send, *, close: bool = False
    ) -> None:
        """Send an error; close the connection if the rest of the request is not read."""
        error.close = error.close or close
        form = self._forms.get(scope["path"])
        response = Response(
            as_json(error.body if form is None else form(error)),
            error.status,
            headers=error.headers,
            media_type="application/json",
        )
        await response(scope, receive, send)


def client_of(http: HttpRequest, clients: Clients) -> Client:
    """The client that sent a request; an ApiError if there is none."""
    keys = [f"Bearer {key}" for key in http.headers.getlist("x-api-key")]
    client = clients.of([*http.headers.getlist("authorization"), *keys], address_of(http))
    http.scope["grv"]["client"] = client.name or None
    return client


def _api_error(error: ApiError | HTTPException) -> ApiError:
    if isinstance(error, ApiError):
        return error
    return ApiError(error.status_code, error.detail, code="not_found")


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
