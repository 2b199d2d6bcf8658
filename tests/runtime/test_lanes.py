"""Calls in lanes: as many at once as a server takes, and what held them back."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import grv
from grv.backends.generators import dialect_named
from grv.backends.generators.dialect import DialectGenerator
from grv.core.errors import BackendError, GeneratorError, UsageError
from grv.ledger.entries import Intended, Settled
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.calls import Caller
from grv.runtime.lanes import OWN_CALLS
from grv.runtime.options import Calls
from grv.testing.limits import ServerLimits
from grv.testing.servers import FakeAnthropic, FakeGemini, FakeOpenai, FakeServer

pytestmark = pytest.mark.anyio

DIALECTS: dict[type[FakeServer], str] = {
    FakeOpenai: "openai",
    FakeAnthropic: "anthropic",
    FakeGemini: "gemini",
}


def solved(
    limits: ServerLimits,
    problems: int,
    each: int = 4,
    *,
    fake: type[FakeServer] = FakeOpenai,
    concurrency: int | str = "auto",
    ledger: Any = None,
) -> Caller:
    """Solve problems of some candidates each on a fake server; return what made the calls."""
    made: dict[str, int] = {}

    def text(prompt: str, index: int) -> str:
        made[prompt] = made.get(prompt, 0) + 1
        return "right" if made[prompt] == each else f"wrong {made[prompt]}"

    caller = Caller(Calls(concurrency=concurrency, patience=20.0))  # type: ignore[arg-type]
    with fake(text, limits=limits) as server:
        dialect = dialect_named(DIALECTS[fake])
        generator = DialectGenerator(
            dialect, "fake", base_url=server.url, logprobs=False, batch=1, max_tokens=8
        )
        found = grv.solve_many_now(
            [f"problem {i}" for i in range(problems)],
            generator=generator,
            scorer=lambda problem, text: 0.0,
            verifier=lambda problem, text: text == "right",
            policy="verify-all",
            budget=10**6,
            calls=caller,
            ledger=ledger,
        )
        solutions = list(found)
    assert [solution.verified for solution in solutions] == [True] * problems
    assert limits.answered == problems * each
    return caller


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("fake", [FakeOpenai, FakeAnthropic, FakeGemini])
def test_a_hidden_limit_of_7_is_found(fake: type[FakeServer]) -> None:
    limits = ServerLimits(at_once=7, seconds=0.05)
    caller = solved(limits, 60, fake=fake)
    assert limits.busiest == 7
    assert limits.refused <= 12  # of 240: a busy machine has a few more than 3
    (line,) = caller.lanes.summary()
    refused = re.search(r"held back by the server's limit \(refused at (\d+) at once\)", line)
    assert refused is not None, line
    assert 7 <= int(refused[1]) <= 10  # 8, but for calls on their way


@pytest.mark.alone
@pytest.mark.slow
def test_a_hidden_limit_that_changes_is_followed() -> None:
    durations = random.Random(0)
    limits = ServerLimits(
        at_once=lambda answered: 7 if answered < 150 else 20,
        # Long enough that the server's limit decides, not the processor.
        seconds=lambda number: durations.uniform(0.2, 0.3),
    )
    solved(limits, 200)
    assert limits.busiest == 20
    assert limits.refused <= 40  # of 800, on a busy machine


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("of", ["requests", "tokens"])
def test_limits_per_minute_are_kept_without_refusals(of: str) -> None:
    size = {"requests": 100.0, "tokens": 2500.0}[of]
    limits = ServerLimits(**{of: size}, minute=4.0, seconds=0.02)  # type: ignore[arg-type]
    caller = solved(limits, 50)
    assert limits.refused <= 4  # of 200
    assert f"held back by {of} per minute" in caller.lanes.summary()[0]


@pytest.mark.alone
@pytest.mark.slow
def test_without_headers_the_pause_that_a_refusal_names_is_for_all() -> None:
    limits = ServerLimits(requests=60, minute=3.0, seconds=0.02)
    caller = solved(limits, 25, fake=FakeGemini)
    assert limits.refused <= 100  # about 60 for 100 answers; 170 if each call pauses for itself
    assert "held back by" in caller.lanes.summary()[0]


@pytest.mark.slow
def test_refused_calls_are_neither_paid_nor_lost(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger")
    limits = ServerLimits(at_once=2, seconds=0.02)
    solved(limits, 6, ledger=ledger)
    entries = [entry for each in ledger.searches() for entry in ledger.read(each.id)]
    drawn = [e for e in entries if isinstance(e, Intended) and e.call == "generate"]
    missed = [e for e in entries if isinstance(e, Settled) and e.reason]
    assert limits.refused > 0
    assert len(drawn) == limits.answered + limits.refused
    assert [e.returned for e in missed] == [1.0] * limits.refused
    assert ledger.possibly_paid(None) == 24 * 1 + 24 * 10
    ledger.close()


@pytest.mark.slow
def test_a_fixed_number_stays() -> None:
    limits = ServerLimits(seconds=0.02)
    caller = solved(limits, 12, concurrency=3)
    assert limits.busiest == 3
    assert "held back by your --concurrency 3" in caller.lanes.summary()[0]


def test_too_little_work_holds_nothing_back() -> None:
    caller = solved(ServerLimits(seconds=0.02), 2)
    assert "held back by nothing: there was not enough work" in caller.lanes.summary()[0]


class Server:
    """A backend that calls a server."""

    server = "a server"


class Pool:
    """A verifier with workers of its own."""

    workers = 20


class Own:
    """A function of a user."""


async def most_at_once(backend: object, calls: int, caller: Caller) -> int:
    at_once = most = 0

    async def call() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.01)
        at_once -= 1

    async with anyio.create_task_group() as group:
        for _ in range(calls):
            group.start_soon(caller.make, call, None, backend)
    return most


async def test_verifiers_with_workers_are_not_held_back_by_a_server() -> None:
    caller = Caller()
    assert await most_at_once(Pool(), 100, caller) == 40
    assert await most_at_once(Own(), 100, caller) == OWN_CALLS


async def test_servers_have_lanes_of_their_own() -> None:
    caller = Caller()
    refusal = GeneratorError("no", fault="wait", unpaid=True, limit="calls")
    other = type("Other", (), {"server": "another server"})()

    async def refuse() -> None:
        raise refusal

    calls = Calls(attempts=1, patience=0)
    stubborn = Caller(calls)
    for _ in range(3):
        with pytest.raises(BackendError):
            await stubborn.make(refuse, None, Server())
    assert stubborn.lanes.of(Server()).limit.limit == 1
    assert stubborn.lanes.of(other).limit.limit > 1
    (line,) = stubborn.lanes.summary()
    assert line.endswith("held back by the server: it has answered no call")
    assert caller.lanes.of(Server()) is caller.lanes.of(Server())


async def test_a_cancelled_call_gives_its_place_to_the_next() -> None:
    caller = Caller(Calls(concurrency=1))
    order: list[int] = []

    async def call(number: int) -> None:
        await anyio.sleep(0.01)
        order.append(number)

    async def cancelled(scope: anyio.CancelScope) -> None:
        with scope:
            await caller.make(lambda: call(1), None, Server())

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(caller.make, lambda: call(0), None, Server())
        await anyio.lowlevel.checkpoint()
        group.start_soon(cancelled, scope)
        group.start_soon(caller.make, lambda: call(2), None, Server())
        await anyio.lowlevel.checkpoint()
        scope.cancel()
    assert order == [0, 2]
    assert caller.lanes.of(Server()).limit.in_flight == 0


async def test_a_pause_that_a_server_asks_for_is_for_the_whole_lane() -> None:
    caller = Caller(Calls(patience=10))
    times: list[float] = []

    async def call() -> None:
        times.append(time.monotonic())
        if len(times) == 1:
            raise GeneratorError("no", fault="wait", unpaid=True, limit="tokens", retry_after=0.3)

    await caller.make(call, None, Server())
    async with anyio.create_task_group() as group:
        times.clear()
        started = time.monotonic()
        group.start_soon(caller.make, call, None, Server())
        await anyio.sleep(0.05)
        group.start_soon(caller.make, call, None, Server())
    assert len(times) == 3
    assert min(times[1:]) - started >= 0.29


@pytest.mark.parametrize("given", ["auto", None])
def test_auto_is_the_default(given: str | None) -> None:
    assert Calls(concurrency=given).concurrency is None  # type: ignore[arg-type]
    assert Calls() == Calls(concurrency=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["many", "1.5", 0, 10_001, "-3"])
def test_other_numbers_of_calls_are_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="--concurrency"):
        Calls(concurrency=given)


@pytest.mark.slow
def test_the_functions_of_users_are_called_as_often_at_once_as_before() -> None:
    in_flight = most = 0

    async def generate(problem: grv.Problem) -> str:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await anyio.sleep(0.01)
        in_flight -= 1
        return "right"

    check: Callable[[grv.Problem, str], bool] = lambda problem, text: True  # noqa: E731
    options: dict[str, Any] = {"scorer": lambda p, t: 0.0, "verifier": check, "budget": 100}
    found = grv.solve_many_now([f"p{i}" for i in range(60)], generator=generate, **options)
    assert all(solution.verified for solution in found)
    assert most == OWN_CALLS
