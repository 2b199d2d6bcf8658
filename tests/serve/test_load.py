"""Many streams at once: no errors, every answer verified, flat memory."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

import openai
import pytest

from support.serving import RIGHT, Model, Server, check, serving, write_job


def memory(server: Server) -> float:
    """Resident megabytes of the server's process."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the process is gone")


async def streams(server: Server, count: int, seconds: float) -> int:
    """Keep streams open for some seconds; return how many were answered. Errors are raised."""
    numbers, answered = itertools.count(), 0
    ends = time.monotonic() + seconds
    limits: Any = {"max_retries": 0, "timeout": 120}

    async with openai.AsyncOpenAI(base_url=server.url, api_key="x", **limits) as client:

        async def loop() -> None:
            nonlocal answered
            while time.monotonic() < ends:
                chunks = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": f"number {next(numbers)}"}],
                    stream=True,
                    extra_body={"grv": check()},
                )
                texts = [each.choices[0].delta.content async for each in chunks if each.choices]
                assert texts == [RIGHT, None]
                answered += 1

        await asyncio.gather(*(loop() for _ in range(count)))
    return answered


def under_load(tmp_path: Path, count: int, seconds: float) -> tuple[Server, int, float, float]:
    with Model(every=4, seconds=0.05) as model:
        write_job(tmp_path, model, concurrency=64)
        with serving(tmp_path, "--searches", 256, "--queue", 512) as server:
            asyncio.run(streams(server, count, seconds / 10))
            before = memory(server)
            answered = asyncio.run(streams(server, count, seconds))
            after = memory(server)
            return server, answered, before, after


def test_thirty_two_streams_for_five_seconds(tmp_path: Path) -> None:
    server, answered, _, _ = under_load(tmp_path, 32, 5)
    assert answered >= 32
    assert {each["status"] for each in server.events("request")} == {200}
    assert server.events("bug") == []


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_hundred_and_fifty_six_streams_for_a_minute(tmp_path: Path) -> None:
    server, answered, before, after = under_load(tmp_path, 256, 60)
    print(f"\n{answered} answers; {before:.0f} MB before, {after:.0f} MB after")
    assert answered >= 256
    assert {each["status"] for each in server.events("request")} == {200}
    assert after < 1.3 * before + 20
