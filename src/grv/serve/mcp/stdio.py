"""The protocol over standard input and output. Nothing else may read or write there."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import anyio
from anyio.abc import TaskStatus
from mcp.server.stdio import stdio_server

from ..clients import ANYONE
from ..events import Events
from ..searches import Searches
from .protocol import protocol_server
from .tools import Tools


@contextmanager
def protocol_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Standard input and output, for the protocol alone.

    Until the end of the context, what anything else prints goes to standard error, and what reads
    standard input finds its end. Programs that are started inherit that.
    """
    sys.stdout.flush()
    reading = os.dup(0)
    writing = os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(empty, 0)
        os.dup2(2, 1)
        yield (
            os.fdopen(reading, "rb", closefd=False),  # a thread may still wait for a line
            os.fdopen(writing, "wb", closefd=False),
        )
    finally:
        sys.stdout.flush()
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(empty)
        os.close(writing)


async def serve_stdio(
    tools: Tools, searches: Searches, events: Events, streams: tuple[BinaryIO, BinaryIO]
) -> int:
    """Serve the program that started this one, until it closes standard input or a signal arrives.

    Returns:
        the number of the signal; 0 if standard input was closed.
    """
    reading, writing = streams
    server = protocol_server(tools, events, lambda context: ANYONE)
    first = 0

    async def watch(
        scope: anyio.CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        nonlocal first
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                first = int(number)
                scope.cancel()

    async def give_up(scope: anyio.CancelScope) -> None:
        await searches.ledger_lost.wait()
        scope.cancel()

    async with searches.open(), anyio.create_task_group() as group:
        await group.start(watch, group.cancel_scope)
        group.start_soon(give_up, group.cancel_scope)
        events("serving", profiles=[*tools.profiles], ledger=str(searches.ledger.path))
        lines = cast("anyio.AsyncFile[str]", _Lines(reading))
        out = anyio.wrap_file(io.TextIOWrapper(writing, encoding="utf-8", write_through=True))
        async with stdio_server(lines, out) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
            # The reader of the protocol's streams waits for a line that never comes.
            group.cancel_scope.cancel()
    events("closed")
    if searches.lost is not None:
        raise searches.lost
    return first


class _Lines:
    """The lines of a stream, read by a thread that ends with the process.

    A line that is read in a thread of the event loop would hold up the end until the next one.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = io.TextIOWrapper(stream, encoding="utf-8", errors="replace")

    async def __aiter__(self) -> AsyncIterator[str]:
        send, receive = anyio.create_memory_object_stream[str](0)
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                for line in self._stream:
                    asyncio.run_coroutine_threadsafe(send.send(line), loop).result()
            except (RuntimeError, OSError, ValueError, anyio.BrokenResourceError):
                return  # nobody reads any more
            finally:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(send.close)

        threading.Thread(target=read, daemon=True, name="protocol").start()
        async with receive:
            async for line in receive:
                yield line
