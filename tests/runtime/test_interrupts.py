"""A run on an event loop: what the loop prints, and what it does not."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anyio
import pytest

from grv.runtime.calls import Caller
from grv.runtime.interrupts import until_interrupted


class Broken(asyncio.Protocol):
    """A protocol whose connection breaks inside the loop, as for lack of memory."""

    def data_received(self, data: bytes) -> None:
        raise MemoryError


def test_a_connection_that_breaks_inside_the_loop_prints_no_traceback(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        closed = asyncio.Event()

        async def serve(reader: Any, writer: asyncio.StreamWriter) -> None:
            writer.write(b"x")
            await reader.read()
            closed.set()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        await loop.create_connection(Broken, "127.0.0.1", port)
        await closed.wait()
        server.close()

    async def run() -> None:
        assert await until_interrupted(work, Caller(), lambda line: None) is False

    logger = logging.getLogger("asyncio")
    monkeypatch.setattr(logger, "level", logger.level)
    anyio.run(run)
    assert [each for each in caplog.records if each.name == "asyncio"] == []
