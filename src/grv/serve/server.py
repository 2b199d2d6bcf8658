"""Runs the application on a socket until a signal arrives."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Protocol as Interface

import anyio
import uvicorn
from starlette.types import ASGIApp

from ..core.errors import LedgerError, UsageError
from .connections import Connections, Protocol
from .door import HEADERS
from .events import Events, Handler
from .idle import give_back_when_idle

_IDLE = 75  # seconds that a connection may wait for its next request
_CLOSING = 5  # seconds that responses have after the last search has ended
_BACKLOG = 2048  # connections that wait to be accepted
_ACCEPTED = 16  # connections accepted in a row: between them, others are answered


class BackgroundWork(Interface):
    """What runs beside the requests, inside the context `open`."""

    @property
    def lost(self) -> LedgerError | None:
        """Why the ledger can be used no more; None if it can."""

    @property
    def ledger_lost(self) -> anyio.Event:
        """Set if `lost` is."""

    def open(self) -> AbstractAsyncContextManager[None]:
        """Run until the end of the context."""

    async def close(self, grace: float) -> None:
        """Start nothing new, and end within some seconds."""

    def stop(self) -> None:
        """End at once."""


class _Server(uvicorn.Server):
    """A server that leaves signals to us, and accepts a few connections at a time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen. Connections that are not accepted yet wait in the kernel."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int) -> socket.socket:
    """The socket to listen on; a UsageError if there is none to have."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot listen on {host} port {port}: {reason}; choose another --port or --host"
        ) from error


def _config(app: ASGIApp, events: Events, slow: float, connections: Connections) -> uvicorn.Config:
    library = logging.getLogger("uvicorn")
    library.handlers = [Handler(events)]
    library.propagate = False
    library.setLevel(logging.WARNING)
    protocol = type("_Protocol", (Protocol,), {"slow": slow, "others": connections})
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_ACCEPTED,
        h11_max_incomplete_event_size=HEADERS,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_CLOSING,
    )


async def run(
    app: ASGIApp,
    searches: BackgroundWork,
    listening: socket.socket,
    events: Events,
    *,
    slow: float,
    grace: float,
    connections: Connections,
    rest: Callable[[], None] = lambda: None,
) -> int:
    """Serve until a signal arrives, and return its number.

    The first signal lets searches end, and parks the rest; a second one stops at once. `rest` frees
    memory when there was no request for some seconds.

    Raises:
        LedgerError: the ledger is lost, as when its database ends.
    """
    server = _Server(_config(app, events, slow, connections))
    first = 0

    async def watch() -> None:
        nonlocal first
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                if first:
                    searches.stop()
                    server.force_exit = server.should_exit = True
                    return
                first = int(number)
                group.start_soon(leave)

    async def give_up() -> None:
        await searches.ledger_lost.wait()
        searches.stop()
        server.should_exit = True

    async def leave() -> None:
        events("closing", seconds=grace)
        await searches.close(grace)
        server.should_exit = True

    async with searches.open(), anyio.create_task_group() as group:
        group.start_soon(watch)
        group.start_soon(give_up)
        state = server.server_state
        group.start_soon(
            give_back_when_idle, lambda: state.total_requests, lambda: bool(state.tasks), rest
        )
        await server.serve(sockets=[listening])
        group.cancel_scope.cancel()
    events("closed")
    if searches.lost is not None:
        raise searches.lost
    return first
