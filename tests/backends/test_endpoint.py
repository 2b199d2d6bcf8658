"""Many requests at once on one endpoint: all answered, all connections closed."""

from __future__ import annotations

import asyncio

import pytest

from grv.backends.http.endpoint import Endpoint
from grv.core.errors import GeneratorError
from support.servers import Drop, FaultyServer

pytestmark = pytest.mark.anyio
BODY = {"model": "m", "prompt": "p"}


def endpoint(url: str) -> Endpoint[GeneratorError]:
    return Endpoint(url, backend="test", error=GeneratorError)


async def test_more_requests_than_a_client_has_room_for_are_in_flight_together() -> None:
    with FaultyServer(seconds=0.5) as server:
        asked = endpoint(server.url)
        loop = asyncio.get_running_loop()
        started = loop.time()
        answers = await asyncio.gather(
            *(asked.ask("/completions", {**BODY, "seed": at}, "p") for at in range(20))
        )
        took = loop.time() - started
        await asked.aclose()

    assert len(answers) == len(server.received) == 20
    assert took < 20 * 0.5 / 2  # one after the other would take ten seconds


async def test_a_failure_gives_its_room_back() -> None:
    with FaultyServer([Drop()] * 12) as server:
        asked = endpoint(server.url)
        for _ in range(12):
            with pytest.raises(GeneratorError, match="no connection"):
                await asked.ask("/completions", BODY, "p")
        answer = await asked.ask("/completions", BODY, "p")
        await asked.aclose()
        await asked.aclose()  # once more does no harm

    assert answer["choices"]
