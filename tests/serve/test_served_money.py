"""What is paid for is on record and paid once, whatever happens to the server."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import signal
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from grv.ledger.entries import Entry, Found, Made
from grv.ledger.opening import open_ledger
from grv.ledger.pending import pending_calls
from support.servers import Status
from support.serving import RIGHT, Model, Server, check, key_hash, serving, write_job

pytestmark = pytest.mark.slow


def http_error() -> type[Exception]:
    """The error of the HTTP library of this client: httpx, or httpx2 from version 3 on."""
    library = openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]
    error: type[Exception] = importlib.import_module(library).HTTPError
    return error


def asked(text: str) -> Any:
    return [{"role": "user", "content": text}]


def until(what: Callable[[], bool], within: float = 20) -> None:
    ends = time.monotonic() + within
    while not what():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)


def entries_of(ledger: Path) -> list[Entry]:
    with closing(open_ledger(ledger)) as opened:
        assert opened.check() == []
        return [entry for search in opened.searches() for entry in opened.read(search.id)]


def paid(ledger: Path, account: str | None = None) -> float:
    with closing(open_ledger(ledger, read_only=True)) as opened:
        return opened.possibly_paid(account)


def slow_check(folder: Path, seconds: float) -> list[str]:
    """A named check that writes down what it verifies, takes a while, and never passes."""
    script = f"cat >> {folder}/seen; echo >> {folder}/seen; sleep {seconds}; exit 1"
    argv = json.dumps(["sh", "-c", script])
    return ["allow-commands = true", "[checks.slow]", 'kind = "command"', f"argv = {argv}"]


def seen(folder: Path) -> int:
    path = folder / "seen"
    return len(path.read_text().splitlines()) if path.exists() else 0


def stream(server: Server, text: str, grv: dict[str, Any], **more: Any) -> Any:
    client = openai.OpenAI(base_url=server.url, api_key="x", max_retries=0)
    return client.chat.completions.create(
        model="m", messages=asked(text), stream=True, extra_body={"grv": grv}, **more
    )


def kill_and_continue(tmp_path: Path, kills: int) -> None:
    with Model(every=0) as model:
        budget = 12 + 12 * kills
        write_job(tmp_path, model, *slow_check(tmp_path, 0.1), budget=budget, policy="verify-all")
        grv = {"check": "slow"}
        for _ in range(kills):
            with serving(tmp_path) as server:
                chunks = stream(server, "kill", grv)
                first = next(iter(chunks))
                before = seen(tmp_path)
                until(lambda before=before: seen(tmp_path) >= before + 2)  # type: ignore[misc]
                until(lambda: model.in_flight == 0)
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
                with contextlib.suppress(openai.APIError, http_error()):
                    list(chunks)
        with serving(tmp_path) as server:
            search = first.model_extra["grv"]["search"]
            with urllib.request.urlopen(f"{server.root}/grv/searches/{search}") as response:
                state = json.load(response)
            assert (state["status"], state["verified"]) == ("unfinished", False)
            with pytest.raises(openai.APIError) as caught:
                list(stream(server, "kill", grv))
            bill = caught.value.body["grv"]["bill"]  # type: ignore[index]
    assert set(model.served.values()) == {1}, "a candidate was generated twice"
    assert model.served.total() == bill["generated"]
    found = entries_of(tmp_path / "ledger")
    assert sum(isinstance(each, Made) for each in found) == model.served.total()
    verdicts = sum(isinstance(each, Found) for each in found)
    assert verdicts == bill["verified"]
    assert seen(tmp_path) == verdicts + pending_calls(found).lost["verify"]


def test_after_a_kill_the_same_request_continues(tmp_path: Path) -> None:
    kill_and_continue(tmp_path, kills=1)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_after_twenty_kills_the_same_request_continues(tmp_path: Path) -> None:
    kill_and_continue(tmp_path, kills=20)


def test_fifty_equal_requests_are_paid_for_once(tmp_path: Path) -> None:
    async def ask_all(server: Server) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="x", max_retries=0) as client:

            async def whole() -> Any:
                made = await client.chat.completions.create(
                    model="m", messages=asked("same"), extra_body={"grv": check()}
                )
                assert made.choices[0].message.content == RIGHT
                return made.model_extra["grv"]  # type: ignore[index]

            async def streamed() -> Any:
                chunks = await client.chat.completions.create(
                    model="m", messages=asked("same"), stream=True, extra_body={"grv": check()}
                )
                found = [each async for each in chunks]
                return next(
                    each.model_extra["grv"]  # type: ignore[index]
                    for each in found
                    if each.choices and each.choices[0].finish_reason
                )

            return await asyncio.gather(
                *(whole() for _ in range(25)), *(streamed() for _ in range(25))
            )

    with Model(every=7, seconds=0.05) as model:
        write_job(tmp_path, model)
        with serving(tmp_path) as server:
            found = asyncio.run(ask_all(server))
    assert all(each == found[0] for each in found)
    assert set(model.served.values()) == {1}
    assert model.served.total() == found[0]["bill"]["generated"]
    assert paid(tmp_path / "ledger") == found[0]["bill"]["cost"]


def test_eight_clients_never_exceed_one_total_budget(tmp_path: Path) -> None:
    total, each = 150.0, 40.0
    keys = [f"the-key-of-client-{n}" for n in range(8)]
    (tmp_path / "clients.toml").write_text(
        "".join(
            f'[clients.c{n}]\nkey = "{key_hash(key)}"\nbudget = {each}\n'
            for n, key in enumerate(keys)
        )
    )

    async def spend(server: Server, key: str) -> list[int]:
        async with openai.AsyncOpenAI(base_url=server.url, api_key=key, max_retries=0) as client:

            async def one(n: int) -> int:
                try:
                    await client.chat.completions.create(
                        model="m", messages=asked(f"p{n}"), extra_body={"grv": check(7)}
                    )
                except openai.APIStatusError as error:
                    return error.status_code
                return 200

            return await asyncio.gather(*map(one, range(6)))

    async def spend_all(server: Server) -> set[int]:
        found = await asyncio.gather(*(spend(server, key) for key in keys))
        return {status for each in found for status in each}

    with Model(every=0, seconds=0.02) as model:
        write_job(tmp_path, model, budget=30)
        options = ("--clients", tmp_path / "clients.toml", "--total-budget", total)
        with serving(tmp_path, *options) as server:
            assert asyncio.run(spend_all(server)) <= {422, 429}
    ledger = tmp_path / "ledger"
    found = entries_of(ledger)
    verified = sum(isinstance(entry, Found) and not entry.shared for entry in found)
    assert model.served.total() + 2 * verified <= paid(ledger) <= total
    assert paid(ledger) > total - 30
    accounts = [paid(ledger, f"c{n}") for n in range(8)]
    assert max(accounts) <= each
    assert sum(accounts) == pytest.approx(paid(ledger))


def test_a_server_that_is_told_to_stop_parks_what_is_in_flight(tmp_path: Path) -> None:
    with Model(every=0, seconds=0.3) as model:
        write_job(tmp_path, model, budget=18, policy="verify-all")
        with serving(tmp_path, "--grace", 0.2) as server:
            chunks = stream(server, "park", check(7))
            next(iter(chunks))
            until(lambda: model.in_flight > 0)
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(openai.APIError, match="shutting down"):
                list(chunks)
            assert server.process.wait(20) == 0
            assert server.events("closed")
        found = entries_of(tmp_path / "ledger")
        assert pending_calls(found).lost.total() == 0, "a call in flight was not recorded"
        with (
            serving(tmp_path) as server,
            pytest.raises(openai.APIError) as caught,
        ):
            list(stream(server, "park", check(7)))
        bill = caught.value.body["grv"]["bill"]  # type: ignore[index]
    assert set(model.served.values()) == {1}
    assert model.served.total() == bill["generated"]


def test_a_search_that_ends_in_time_is_answered_before_the_server_stops(tmp_path: Path) -> None:
    with Model(every=2, seconds=0.3) as model:
        write_job(tmp_path, model)
        with serving(tmp_path) as server:
            chunks = stream(server, "finish", check())
            next(iter(chunks))
            server.process.send_signal(signal.SIGINT)
            texts = [each.choices[0].delta.content for each in chunks if each.choices]
            assert texts[0] == RIGHT
            assert server.process.wait(20) == 130


def test_a_model_that_fails_costs_a_502_and_no_second_payment(tmp_path: Path) -> None:
    faults = [Status(400, message="no such prompt")]
    with Model(every=2, script=lambda _: faults[0] if faults else None) as model:
        write_job(tmp_path, model)
        with serving(tmp_path) as server:
            client = openai.OpenAI(base_url=server.url, api_key="x", max_retries=0)
            with pytest.raises(openai.InternalServerError) as caught:
                client.chat.completions.create(
                    model="m", messages=asked("fails"), extra_body={"grv": check()}
                )
            assert caught.value.status_code == 502
            faults.clear()
            again = client.chat.completions.create(
                model="m", messages=asked("fails"), extra_body={"grv": check()}
            )
            assert again.choices[0].message.content == RIGHT
    assert set(model.served.values()) == {1}
