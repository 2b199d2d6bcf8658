"""Connections that nothing uses are closed; those in use are not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest

from grv.backends.http import client_pool
from grv.backends.http.endpoint import Endpoint
from grv.backends.http.json_client import JsonClient
from grv.core.errors import GeneratorError, ScorerError
from support.servers import FaultyServer

pytestmark = pytest.mark.anyio
BODY = {"model": "m", "prompt": "p"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_pool, "IDLE", 0.3)
    monkeypatch.setattr(client_pool, "_LOOK", 0.05)


def connected(server: FaultyServer) -> int:
    """The number of connections of this process to a server."""
    port = int(server.url.split(":")[2].split("/")[0])
    sockets = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            sockets.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue  # it was closed meanwhile
    with open("/proc/net/tcp", encoding="ascii") as lines:
        rows = [line.split() for line in lines][1:]
    return sum(
        int(row[2].partition(":")[2], 16) == port and f"socket:[{row[9]}]" in sockets
        for row in rows
    )


async def none_left(server: FaultyServer, within: float = 10) -> bool:
    """Whether all connections to a server are closed soon, without any further request."""
    ends = asyncio.get_running_loop().time() + within
    while connected(server):
        if asyncio.get_running_loop().time() > ends:
            return False
        await asyncio.sleep(0.05)
    return True


def endpoint(
    server: FaultyServer,
) -> tuple[Callable[[int], Awaitable[object]], Endpoint[GeneratorError]]:
    made = Endpoint(server.url, backend="test", error=GeneratorError)
    return lambda seed: made.ask("/completions", {**BODY, "seed": seed}, "p"), made


def json_client(
    server: FaultyServer,
) -> tuple[Callable[[int], Awaitable[object]], JsonClient[ScorerError]]:
    url = f"{server.url}/completions"
    made = JsonClient(url, None, key_name="KEY", backend="test", error=ScorerError)
    return lambda seed: made.post({**BODY, "seed": seed}, "p"), made


@pytest.mark.slow
@pytest.mark.parametrize("kind", [endpoint, json_client])
async def test_idle_connections_are_closed_without_a_further_request(
    kind: Callable[
        [FaultyServer], tuple[Callable[[int], Awaitable[object]], JsonClient[ScorerError]]
    ],
) -> None:
    with FaultyServer(seconds=0.2) as server:
        ask, made = kind(server)
        await asyncio.gather(*(ask(seed) for seed in range(20)))
        assert connected(server) >= 5
        assert await none_left(server)
        await ask(20)  # it gets a new connection
        assert connected(server) == 1
        await made.aclose()
        assert connected(server) == 0


@pytest.mark.slow
async def test_a_request_that_takes_long_keeps_its_connection() -> None:
    with FaultyServer(seconds=1.5) as server:
        ask, made = endpoint(server)
        assert await ask(0)
        assert len(server.received) == 1
        await made.aclose()


@pytest.mark.slow
async def test_a_connection_in_use_is_kept_and_the_others_are_closed() -> None:
    with FaultyServer(seconds=0.1) as server:
        ask, made = endpoint(server)
        await asyncio.gather(*(ask(seed) for seed in range(20)))
        for seed in range(20, 30):
            await ask(seed)
        assert 1 <= connected(server) <= 4  # those of one client
        await made.aclose()


async def test_the_end_closes_connections_that_are_about_to_expire() -> None:
    with FaultyServer() as server:
        ask, made = endpoint(server)
        await ask(0)
        await asyncio.sleep(client_pool.IDLE)  # it is about to be closed
        await made.aclose()
        assert connected(server) == 0
