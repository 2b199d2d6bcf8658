"""The protocol over HTTP, behind the same door as `grv serve`."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ...core.errors import LedgerError
from ..buffers import Buffer, Buffers
from ..clients import Client, Clients
from ..door import Door, OpenRequests, host_of, netloc_of, parse_body, read_body
from ..errors import ApiError
from ..events import Events
from ..guard import RequestGuard, client_of
from ..searches import Searches
from ..threads import ClientThreads
from .protocol import Context, Count, protocol_server
from .tools import Tools

PATH = "/mcp"
_CLIENT = "grv.client"  # the field of a request's scope that has its client
_BUFFER = "grv.buffer"  # and the bytes that it counts
_PARSERS = 4  # threads that parse requests
_SESSIONS = 256  # of one client at once, in versions of the protocol that have sessions
_IDLE = 1800.0  # seconds without a request after which a session ends


class McpApplication:
    """Answers requests at `/mcp`. It is an ASGI application, and the work that a server waits for.

    Every client has sessions of its own, so no other client can use, end or fill them.

    Args:
        tools: what it offers.
        clients: who may use it.
        door: admits requests.
        events: is told of requests and calls.
        slow: seconds that a client may take to send a request.

    Attributes:
        lost: why the ledger can be used no more; None if it can.
        ledger_lost: set if `lost` is.
    """

    def __init__(
        self, tools: Tools, clients: Clients, door: Door, events: Events, slow: float
    ) -> None:
        self._searches: Searches = tools.searches
        self._clients = clients
        self._bounds = door.bounds
        self._slow = slow
        self._buffers = Buffers(door.bounds.client)
        most = door.bounds.requests
        self._open = OpenRequests(most // 2 if clients.known else math.inf)
        self._calls = OpenRequests(most // 2 if clients.known else most)
        self._parsers = ClientThreads(_PARSERS, known=clients.known)
        server = protocol_server(tools, events, _client, self._counted)
        names: Sequence[str] = clients.names
        self._sessions = {
            name: StreamableHTTPSessionManager(
                server,
                session_idle_timeout=_IDLE,
                max_request_body_size=door.bounds.body,
                max_sessions=_SESSIONS,
            )
            for name in names
        }
        routes = [
            Route("/health", self._health, methods=["GET"]),
            Route(PATH, self._answer, methods=["GET", "POST", "DELETE"]),
        ]
        self._guard = RequestGuard(routes, door, events, self._searches.failure)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guard(scope, receive, send)

    async def _health(self, http: HttpRequest) -> Response:
        return Response('{"status": "ok"}', media_type="application/json")

    async def _answer(self, http: HttpRequest) -> Response:
        client = client_of(http, self._clients)
        _check_origin(http)
        held: ExitStack = http.scope["held"]
        held.enter_context(self._open.one_more(client.name))
        content = None
        if http.method == "POST":
            buffer = http.scope[_BUFFER] = held.enter_context(self._buffers.of(client.name))
            content = await read_body(http, self._bounds.body, self._slow, buffer.add)
            await self._parsers.run(client.name, partial(parse_body, content))
        http.scope[_CLIENT] = client
        return _Handled(self._sessions[client.name], content)

    @contextmanager
    def _counted(self, context: Context) -> Iterator[Count]:
        """Count a call until its end: with a session, it goes on if its client leaves."""
        assert isinstance(context.request, HttpRequest)
        buffer: Buffer = context.request.scope[_BUFFER]
        if buffer.closed:
            raise ApiError(408, "the client has left", code="timeout")
        with self._calls.one_more(_client(context).name), ExitStack() as stack:
            own = buffer.move(stack)

            def count(size: int) -> None:
                buffer.take(own)  # if the client is there, until it has read the result
                buffer.add(size)

            yield count

    @property
    def lost(self) -> LedgerError | None:
        """Why the ledger can be used no more; None if it can."""
        return self._searches.lost

    @property
    def ledger_lost(self) -> anyio.Event:
        """Set if `lost` is."""
        return self._searches.ledger_lost

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run searches and sessions until the end of the context."""
        async with self._searches.open(), AsyncExitStack() as stack:
            for sessions in self._sessions.values():
                await stack.enter_async_context(sessions.run())
            yield

    async def close(self, grace: float) -> None:
        """Start no more searches; give those that run some seconds to end."""
        await self._searches.close(grace)

    def stop(self) -> None:
        """Stop all searches at once."""
        self._searches.stop()


class _Handled(Response):
    """What the protocol answers to a request whose body was read."""

    def __init__(self, sessions: StreamableHTTPSessionManager, content: bytes | None) -> None:
        super().__init__()
        self._sessions = sessions
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; `scope`, `receive` and `send` are those of ASGI."""

        async def again() -> Message:
            content = self._content
            if content is None:
                return await receive()
            self._content = None
            return {"type": "http.request", "body": content, "more_body": False}

        await self._sessions.handle_request(scope, again, send)


def _client(context: Context) -> Client:
    """The client of the request that carried a call."""
    assert isinstance(context.request, HttpRequest)
    client: Client = context.request.scope[_CLIENT]
    return client


def _check_origin(http: HttpRequest) -> None:
    """Refuse pages of other origins, also those that have a key: the protocol demands it."""
    origin = http.headers.get("origin")
    host = host_of(http.headers.get("host", ""))
    if origin is not None and (not host or host_of(netloc_of(origin)) != host):
        message = "requests from pages of another origin are refused"
        raise ApiError(403, message, code="forbidden", close=True)
