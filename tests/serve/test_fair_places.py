"""Clients share the places of a server: the one that has spent least goes first."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import openai
import pytest

from grv.serve.searches import Places
from support.serving import Model, check, key_hash, serving, write_job


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Server:
    """Searches of some turns each, over places; every turn costs 11."""

    def __init__(self, places: int) -> None:
        self.places = Places(places)
        self.turns: list[str] = []  # the client of each
        self.running = 0
        self.most = 0

    async def search(self, client: str, turns: int) -> None:
        async with self.places.one(client):
            for turn in range(turns):
                self.running += 1
                self.most = max(self.most, self.running)
                self.places.charge(client, 11.0)
                await anyio.lowlevel.checkpoint()
                self.turns.append(client)
                self.running -= 1
                if turn < turns - 1:
                    await self.places.give_way(client, 11.0 * (turn + 1))


@pytest.mark.slow
@pytest.mark.anyio
async def test_ten_requests_are_not_delayed_by_a_thousand_beyond_their_share() -> None:
    server = Server(8)
    async with anyio.create_task_group() as group:
        for _ in range(1000):
            group.start_soon(server.search, "rich", 5)
        while len(server.turns) < 700:
            await anyio.lowlevel.checkpoint()
        before = len(server.turns)
        async with anyio.create_task_group() as few:
            for _ in range(10):
                few.start_soon(server.search, "poor", 5)
        meanwhile = Counter(server.turns[before:])
    # Half of the places are theirs: their 50 turns take as long as 50 turns of the others, and the
    # turns that run when they arrive and when they end.
    assert meanwhile["poor"] == 50
    assert meanwhile["rich"] <= 50 + 4 * 8
    assert Counter(server.turns) == {"rich": 5000, "poor": 50}
    assert server.most == 8


@pytest.mark.anyio
async def test_searches_that_cost_nothing_keep_no_other_client_waiting() -> None:
    places = Places(2)
    ended: list[str] = []

    async def search(client: str) -> None:
        async with places.one(client):
            await anyio.lowlevel.checkpoint()
            ended.append(client)

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(search, "rich")
        for _ in range(5):
            group.start_soon(search, "poor")
    assert [at for at, client in enumerate(ended) if client == "poor"][-1] < 20


@pytest.mark.anyio
async def test_what_a_client_spent_before_does_not_keep_it_out() -> None:
    server = Server(1)
    server.places.charge("old", 1e9)
    async with anyio.create_task_group() as group:
        for client in ("new", "new", "old"):
            group.start_soon(server.search, client, 20)
    # `new` was here first, alone; once `old` has waited, it is not behind for ever
    assert Counter(server.turns) == {"new": 40, "old": 20}


@pytest.mark.anyio
async def test_a_client_that_was_away_has_no_right_to_all_places() -> None:
    server = Server(1)
    async with anyio.create_task_group() as group:
        group.start_soon(server.search, "busy", 60)
        group.start_soon(server.search, "busy", 60)
        while len(server.turns) < 80:
            await anyio.lowlevel.checkpoint()
        group.start_soon(server.search, "late", 20)
    late = [place for place, client in enumerate(server.turns) if client == "late"]
    assert late[-1] - late[0] >= 30  # in turns with the other, not 20 at once


@pytest.mark.anyio
async def test_of_one_client_the_search_that_has_spent_least_goes_first() -> None:
    server = Server(1)
    ends: list[str] = []

    async def search(name: str, turns: int) -> None:
        await server.search("c", turns)
        ends.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(search, "long", 10)
        await anyio.lowlevel.checkpoint()
        for number in range(5):
            group.start_soon(search, f"short {number}", 1)
    assert ends[-1] == "long"


@pytest.mark.anyio
async def test_a_place_survives_a_search_that_is_cancelled_while_it_waits() -> None:
    server = Server(1)
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as inner:
                inner.start_soon(server.search, "a", 1000)
                inner.start_soon(server.search, "a", 1000)
                while len(server.turns) < 9:
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        server.running = 0
        with anyio.fail_after(10):
            async with anyio.create_task_group() as later:
                for _ in range(3):
                    later.start_soon(server.search, "b", 2)
        group.cancel_scope.cancel()
    assert Counter(server.turns)["b"] == 6
    assert server.most == 1


@pytest.mark.parametrize(
    ("rich", "poor", "searches"),
    [
        pytest.param(40, 4, 2, marks=pytest.mark.slow),
        pytest.param(1000, 10, 8, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
def test_a_server_lets_a_client_with_few_requests_pass_one_with_many(
    tmp_path: Path, rich: int, poor: int, searches: int
) -> None:
    keys = {name: f"{name}-{'x' * 20}" for name in ("rich", "poor")}
    clients = [f'[clients.{name}]\nkey = "{key_hash(key)}"\n' for name, key in keys.items()]
    (tmp_path / "clients.toml").write_text("\n".join(clients))
    with Model(every=0, seconds=0.02) as model:
        write_job(tmp_path, model, budget=12, policy="verify-all")  # four turns each
        bounds = ("--searches", searches, "--queue", rich, "--connections", 4 * (rich + poor))
        with serving(tmp_path, *bounds, "--clients", tmp_path / "clients.toml") as server:

            def ask(name: str, number: int) -> None:
                with (
                    openai.OpenAI(base_url=server.url, api_key=keys[name], max_retries=0) as made,
                    suppress(openai.UnprocessableEntityError),  # no candidate is right
                ):
                    made.chat.completions.create(
                        model="m",
                        messages=[{"role": "user", "content": f"{name} {number}"}],
                        extra_body={"grv": check()},
                        timeout=600,
                    )

            with ThreadPoolExecutor(rich + poor) as pool:
                asked = [pool.submit(ask, "rich", number) for number in range(rich)]
                until = time.monotonic() + 60
                while len(model.served) < rich // 4 and time.monotonic() < until:
                    time.sleep(0.01)
                asked += [pool.submit(ask, "poor", number) for number in range(poor)]
                for each in asked:
                    each.result(timeout=600)
            ends = [event["client"] for event in server.events("search")]
    assert Counter(ends) == {"rich": rich, "poor": poor}
    last = max(place for place, name in enumerate(ends) if name == "poor")
    print(f"of {rich + poor} searches, {last + 1} had ended when the last of the {poor} had")
    # With equal shares. In order of arrival it would be after all others.
    assert last < rich // 16 + 3 * poor + searches
