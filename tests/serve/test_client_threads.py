"""Threads that clients share."""

from __future__ import annotations

import time

import anyio
import pytest

from grv.serve.threads import ClientThreads


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_work_of_one_client_waits_behind_its_own_only() -> None:
    threads = ClientThreads(4, known=True)
    ended: list[str] = []

    async def work(client: str) -> None:
        await threads.run(client, lambda: time.sleep(0.01))
        ended.append(client)

    async with anyio.create_task_group() as group:
        for _ in range(60):
            group.start_soon(work, "many")
        await anyio.sleep(0.005)
        for _ in range(2):
            group.start_soon(work, "few")
    assert max(at for at, client in enumerate(ended) if client == "few") < 20
    assert len(ended) == 62
