"""The official MCP client before a real `grv mcp`, over stdio and over HTTP."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from .serving import Server, serving_command

Talk = Callable[[Client], Awaitable[None]]


@asynccontextmanager
async def over_stdio(
    folder: Path, *more: object, mode: str = "auto", errors: Any = None
) -> AsyncIterator[Client]:
    """A client that has started `grv mcp` with the job file of the folder."""
    words = ["-m", "grv", "mcp", folder / "job.toml", "--ledger", folder / "ledger", *more]
    parameters = StdioServerParameters(command=sys.executable, args=[str(word) for word in words])
    transport = stdio_client(parameters, errors or sys.stderr)
    async with Client(transport, mode=mode) as client:
        yield client


@contextmanager
def http_server(folder: Path, *more: object) -> Iterator[Server]:
    """A `grv mcp --http` with the job file of the folder; its url ends in /mcp."""
    with serving_command("mcp", " offers ", folder, "--http", *more) as server:
        yield server


@asynccontextmanager
async def over_http(
    server: Server, key: str = "", mode: str = "auto", headers: dict[str, str] | None = None
) -> AsyncIterator[Client]:
    """A client of a running server."""
    own = {**({"authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
    async with httpx2.AsyncClient(headers=own, timeout=60) as http:
        transport = streamable_http_client(server.url, http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def stdio(folder: Path, talk: Talk, *more: object, mode: str = "auto", errors: Any = None) -> None:
    """Talk with a server that is started for it."""

    async def work() -> None:
        with anyio.fail_after(120):
            async with over_stdio(folder, *more, mode=mode, errors=errors) as client:
                await talk(client)

    anyio.run(work)


def http(server: Server, talk: Talk, key: str = "", mode: str = "auto") -> None:
    """Talk with a running server."""

    async def work() -> None:
        with anyio.fail_after(120):
            async with over_http(server, key, mode) as client:
                await talk(client)

    anyio.run(work)


async def call(client: Client, tool: str, progress: Any = None, /, **arguments: Any) -> Any:
    """The data that a tool returns; its error as text."""
    result = await client.call_tool(tool, arguments, progress_callback=progress)
    if result.is_error:
        return result.content[0].text  # type: ignore[union-attr]
    return result.structured_content
