"""Many streams at once: no errors, every answer verified, flat memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest

from support.servers import FaultyServer, Received
from support.serving import RIGHT, Model, Server, check, serving, write_job

pytestmark = pytest.mark.slow

IDLE_THREADS = 11  # seconds: anyio ends a thread that was idle for 10 s when it needs one next
IDLE = 4  # seconds: memory is given back when there was no request for 2 s
# Megabytes. 4 of findings and 2 of parsed checks; pages of SQLite; stacks of threads that wait; and
# what the first of many connections, threads and streams load or keep for the next.
KEPT = 14
POOLS = 8  # threads of pools that start at their first use, and stay: 4 or 5 before, 10 after
KEPT_BY_MANY = 100  # the same for 400 clients at once: what was in use together lies scattered


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


@pytest.mark.alone
def test_thirty_two_streams_for_five_seconds(tmp_path: Path) -> None:
    server, answered, _, _ = under_load(tmp_path, 32, 5)
    assert answered >= 32
    assert {each["status"] for each in server.events("request")} == {200}
    assert server.events("bug") == []


@pytest.mark.alone
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_hundred_and_fifty_six_streams_for_a_minute(tmp_path: Path) -> None:
    server, answered, before, after = under_load(tmp_path, 256, 60)
    print(f"\n{answered} answers; {before:.0f} MB before, {after:.0f} MB after")
    assert answered >= 256
    assert {each["status"] for each in server.events("request")} == {200}
    assert after < 1.3 * before + 20


@dataclass(frozen=True)
class Used:
    """What the process of a server uses."""

    megabytes: float
    descriptors: int
    threads: int

    @classmethod
    def by(cls, server: Server) -> Used:
        folder = Path(f"/proc/{server.process.pid}")
        threads = len(list((folder / "task").iterdir()))
        return cls(round(memory(server), 1), len(list((folder / "fd").iterdir())), threads)


@dataclass(frozen=True)
class Load:
    """A server under load, and what was wrong with its answers.

    Attributes:
        before: what it used before the load.
        after: what it used when its clients had left.
    """

    server: Server
    problems: Counter[str]
    before: Used
    after: Used


def numbered(request: Received, seed: int) -> str:
    """The answer to "number N" is N: an answer to another question is wrong."""
    found = re.search(r"number (\d+)", request.prompt)
    number = int(found[1]) if found else -1
    return f"It is \\boxed{{{number if seed % 2 else number + 1}}}"


async def ask_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    number: int,
    *,
    stream: bool,
    padding: int = 0,
) -> str:
    """What is wrong with the answer to one request on an open connection; "" if nothing is."""
    said = {
        "model": "m",
        "messages": [{"role": "user", "content": f"number {number} {'x' * padding}"}],
        "stream": stream,
        "grv": check(number),
    }
    body = json.dumps(said).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if line)
    content = b""
    if "content-length" in headers:
        content = await reader.readexactly(int(headers["content-length"]))
    else:
        while size := int(await reader.readline(), 16):
            content += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    if not lines[0].startswith("http/1.1 200"):
        return f"{lines[0]} {content[:80]!r}"
    right = f"boxed{{{number}}}" in content.decode().replace("\\\\", "\\")
    return "" if right else "wrong answer"


async def ask_all(
    server: Server,
    clients: int,
    numbers: Iterator[int],
    told: Callable[[str], None],
    padding: int = 0,
) -> None:
    """Ask all questions from some clients at once, each on a connection of its own."""

    async def loop() -> None:
        reader, writer = await asyncio.open_connection(*server.address)
        for number in numbers:
            stream = number % 3 == 0
            told(await ask_on(reader, writer, number, stream=stream, padding=padding))
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(loop() for _ in range(clients)))


def many_clients(
    folder: Path,
    clients: int,
    requests: int,
    *,
    seconds: float = 0.0,
    padding: int = 0,
    told: Callable[[str], None] = lambda problem: None,
) -> Load:
    """Ask all questions, with so many more characters. The model takes some seconds each time."""
    problems: Counter[str] = Counter()

    def tell(problem: str) -> None:
        problems[problem] += 1
        told(problem)

    with FaultyServer((), text=numbered, seconds=seconds) as model:
        write_job(folder, model, concurrency=64, policy="verify-all")
        with serving(folder, "--searches", 64, "--queue", 512) as server:
            before = after_a_question(server, 10**9)
            asyncio.run(ask_all(server, clients, iter(range(requests)), tell, padding))
            for number in range(1, 4):  # on a busy machine a thread may be idle for less time
                time.sleep(IDLE_THREADS)
                after = after_a_question(server, 10**9 + number)
                if after.threads <= before.threads + POOLS:
                    break
            return Load(server, problems, before, after)


def after_a_question(server: Server, number: int) -> Used:
    """What the server uses after one more question, which nobody has asked before.

    It goes through all of the server up to the model, and ends idle threads.
    """
    asyncio.run(ask_all(server, 1, iter([number]), lambda problem: None))
    time.sleep(IDLE)
    return Used.by(server)


def check_load(load: Load, kept: float = KEPT) -> None:
    assert [*load.problems] == [""]
    assert load.server.events("bug") == []
    assert load.after.descriptors <= load.before.descriptors + 5
    assert load.after.threads <= load.before.threads + POOLS
    assert load.after.megabytes < load.before.megabytes + kept


def test_forty_clients_with_four_hundred_requests(tmp_path: Path) -> None:
    load = many_clients(tmp_path, 40, 400, seconds=0.2)
    assert load.problems.total() == 400
    check_load(load)


def test_memory_returns_after_long_requests(tmp_path: Path) -> None:
    load = many_clients(tmp_path, 40, 120, seconds=0.2, padding=200_000)
    assert load.problems.total() == 120
    check_load(load)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_four_hundred_clients_with_thirty_thousand_requests(tmp_path: Path) -> None:
    load = many_clients(tmp_path, 400, 30_000)
    print(f"\n{load.problems.total()} answers; {load.before}, {load.after}")
    assert load.problems.total() == 30_000
    check_load(load, KEPT_BY_MANY)
