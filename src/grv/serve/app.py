"""The HTTP application: completions in every dialect, the state of searches, and metrics."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..core.errors import GrvError
from ..ledger.tables import TableLedger
from .buffers import Buffer, Buffers
from .clients import Client, Clients
from .completions.answers import answered
from .completions.dialect import Answered, EventWriter, ServerDialect, as_json
from .completions.dialects import DIALECTS
from .completions.requests import CompletionRequest, parse_request
from .completions.streaming import EventStream, progress, until_left
from .door import Door, OpenRequests, parse_body, read_body
from .errors import ApiError
from .events import Events
from .guard import ClientLeft, RequestGuard, client_of
from .metrics import Metrics
from .profiles import Profile, without_owner
from .searches import RunningSearch, Searches
from .states import state_of
from .threads import ClientThreads

# Seconds. A search that ends sooner answers a stream with its own status. Until then, nobody looks
# whether the client has left: most recorded answers are there sooner.
_SOON = 0.25
_PARSERS = 4  # threads that parse requests; searches have threads of their own
_READERS = 4  # threads that read the ledger for clients


@dataclass(frozen=True)
class ServerTimes:
    """Times, in seconds.

    Attributes:
        heartbeat: the longest silence of a stream.
        slow: how long a client may take to send a request, or to read a part of a response.
    """

    heartbeat: float = 5.0
    slow: float = 30.0


class Application:
    """Answers requests. It is an ASGI application."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        clients: Clients,
        searches: Searches,
        metrics: Metrics,
        door: Door,
        events: Events,
        pace: ServerTimes,
        pages: Sequence[Route] = (),
        reader: TableLedger | None = None,
    ) -> None:
        self._profiles = profiles
        self._clients = clients
        self._searches = searches
        self._metrics = metrics
        self._door = door
        self._events = events
        self._pace = pace
        self._started = int(time.time())
        self._parsers = ClientThreads(_PARSERS, known=clients.known)
        self._readers = ClientThreads(_READERS, known=clients.known)
        self._reader = reader or searches.ledger  # what clients read holds up no search
        self._buffers = Buffers(door.bounds.client)
        self._open = OpenRequests(door.bounds.requests // 2 if clients.known else math.inf)
        routes = [
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/models/{name:path}", self._model, methods=["GET"]),
            *(Route(each.path, self._endpoint(each), methods=["POST"]) for each in DIALECTS),
            Route("/grv/searches/{search}", self._search, methods=["GET"]),
            Route("/metrics", self._show_metrics, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            *pages,
        ]
        forms = {each.path: each.error for each in DIALECTS}
        self._guard = RequestGuard(routes, door, events, searches.failure, forms)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["app"] = self
        await self._guard(scope, receive, send)

    def _client(self, http: HttpRequest) -> Client:
        """The client of a request, which counts as one of its requests until it is answered."""
        client = client_of(http, self._clients)
        http.scope["held"].enter_context(self._open.one_more(client.name))
        return client

    def _allowed(self, client: Client) -> dict[str, Profile]:
        """The profiles that a client may use."""
        every = self._profiles.items()
        allowed = client.profiles
        return {name: each for name, each in every if allowed is None or name in allowed}

    async def _health(self, http: HttpRequest) -> Response:
        return _json({"status": "ok"})

    async def _models(self, http: HttpRequest) -> Response:
        names = self._allowed(self._client(http))
        models = [self._shown(name) for name in names]
        ends = {"first_id": next(iter(names), None), "last_id": next(reversed(names), None)}
        return _json({"object": "list", "data": models, "has_more": False, **ends})

    async def _model(self, http: HttpRequest) -> Response:
        allowed = self._allowed(self._client(http))
        name = without_owner(http.path_params["name"], allowed)
        if name not in allowed:
            raise ApiError(404, "there is no such model", code="model_not_found", param="model")
        return _json(self._shown(name))

    def _shown(self, name: str) -> dict[str, Any]:
        """A model as OpenAI's clients read it, and as Anthropic's do."""
        made = datetime.datetime.fromtimestamp(self._started, datetime.UTC)
        return {
            "id": name,
            "object": "model",
            "created": self._started,
            "owned_by": "grv",
            "type": "model",
            "display_name": name,
            "created_at": made.isoformat().replace("+00:00", "Z"),
        }

    def _buffer(self, http: HttpRequest, client: Client) -> Buffer:
        """Counts the bytes of a request and its response, until it is answered."""
        held: ExitStack = http.scope["held"]
        return held.enter_context(self._buffers.of(client.name))

    async def _search(self, http: HttpRequest) -> Response:
        client = self._client(http)
        search = http.path_params["search"]
        buffer = self._buffer(http, client)
        running = self._searches.is_running(search)

        def read() -> dict[str, Any]:
            return state_of(self._reader, search, client, running=running)

        return _json(await self._readers.run(client.name, read), buffer)

    async def _show_metrics(self, http: HttpRequest) -> Response:
        client = self._client(http)
        if not client.metrics:
            raise ApiError(403, "this client may not read the metrics", code="forbidden")
        metrics = partial(self._metrics.text, self._searches.running)
        text = await self._readers.run(client.name, metrics)
        return Response(text, media_type="text/plain; version=0.0.4")

    def _endpoint(self, dialect: ServerDialect) -> Callable[[HttpRequest], Awaitable[Response]]:
        async def complete(http: HttpRequest) -> Response:
            return await self._complete(http, dialect)

        return complete

    async def _complete(self, http: HttpRequest, dialect: ServerDialect) -> Response:
        arrived = time.monotonic()
        client = self._client(http)
        buffer = self._buffer(http, client)
        content = await read_body(http, self._door.bounds.body, self._pace.slow, buffer.add)

        def parse() -> CompletionRequest:
            return parse_request(
                parse_body(content), self._allowed(client), dialect, client=client.name
            )

        request = await self._parsers.run(client.name, parse)
        http.scope["grv"] |= {"model": request.profile.name, "search": request.search}
        until = arrived + (math.inf if request.deadline is None else request.deadline)
        with ExitStack() as stack:
            running = stack.enter_context(self._searches.hold(request, client))
            await _wait(running, min(until, time.monotonic() + _SOON))
            if not request.stream:
                if not running.done.is_set():
                    await self._wait_for_both(http, running, until, buffer)
                answer = await self._answer(request, running, client, until)
                return _json(dialect.body(request, answer), buffer)
            if running.done.is_set():
                await self._answer(request, running, client, until)
            holding = stack.pop_all()
            events = self._stream(request, running, client, until, buffer, holding)
            return EventStream(events, holding)

    async def _wait_for_both(
        self, http: HttpRequest, running: RunningSearch, until: float, buffer: Buffer
    ) -> None:
        """Wait for the search as long as its client is there; ClientLeft if it leaves."""
        async with until_left(http.receive) as left:
            await _wait(running, until)
        if left.is_set():
            running.go_on(buffer)
            raise ClientLeft

    async def _answer(
        self, request: CompletionRequest, running: RunningSearch, client: Client, until: float
    ) -> Answered:
        """What a request is answered with at the end of its search, or when time is over."""
        await _wait(running, until)
        if running.error is not None:
            raise running.error
        solution = running.solution or await self._searches.so_far(running, client)
        return answered(request, solution, detailed=not self._clients.known)

    async def _stream(
        self,
        request: CompletionRequest,
        running: RunningSearch,
        client: Client,
        until: float,
        buffer: Buffer,
        holding: ExitStack,
    ) -> AsyncGenerator[bytes]:
        write = EventWriter(request.dialect)
        if opening := write(request.dialect.opening(request)):
            yield opening
        told = progress(request, running, write, self._pace.heartbeat, until)
        async with aclosing(told) as waiting:
            async for each in waiting:
                yield each
        last = await self._last_events(request, running, client, until, buffer, write)
        holding.close()  # neither the search nor its candidates are kept while the client reads
        del running, told, waiting
        yield last

    async def _last_events(
        self,
        request: CompletionRequest,
        running: RunningSearch,
        client: Client,
        until: float,
        buffer: Buffer,
        write: EventWriter,
    ) -> bytes:
        dialect = request.dialect
        try:
            answer = await self._answer(request, running, client, until)
            last = write(dialect.closing(request, answer))
            buffer.add(len(last))
        except ApiError as error:
            last = write(dialect.failure(request, error))
        except GrvError as error:
            last = write(dialect.failure(request, self._searches.failure(error)))
        return last + dialect.end


async def _wait(running: RunningSearch, until: float) -> None:
    """Wait until the search ends or `until` passes."""
    if running.done.is_set():
        return
    seconds = until - time.monotonic()
    with anyio.move_on_after(None if math.isinf(seconds) else max(0.0, seconds)):
        await running.done.wait()


def _json(data: Mapping[str, Any], buffer: Buffer | None = None) -> Response:
    content = as_json(data)
    if buffer is not None:
        buffer.add(len(content))
    return Response(content, media_type="application/json")
