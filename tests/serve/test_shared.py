"""Servers that share a ledger, a server that is full, and a ledger that is lost."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import Isolation
from grv.backends.verifiers.pool import CheckVerifier
from grv.ledger.opening import open_ledger
from grv.runtime.executor import Backends
from grv.serve.completions.chat_dialect import CHAT
from grv.serve.completions.requests import CompletionRequest
from grv.testing.fakes import ScriptedGenerator, TableScorer
from grv.testing.worlds import needle
from support.live import one_generator
from support.postgres import PASSWORD
from support.postgres import Server as Database
from support.serving import RIGHT, Model, Server, check, serving, write_job


def asked(text: str) -> Any:
    return [{"role": "user", "content": text}]


def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="x", max_retries=0)


def both(*servers: Server) -> list[Any]:
    """The answers of servers to one request at once."""
    found: list[Any] = []

    def ask(server: Server) -> None:
        with client(server) as made:
            response = made.chat.completions.create(
                model="m", messages=asked("both"), extra_body={"grv": check()}
            )
            assert response.choices[0].message.content == RIGHT
            found.append(response.model_extra["grv"])  # type: ignore[index]

    threads = [threading.Thread(target=ask, args=(each,)) for each in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


@pytest.mark.slow
def test_two_servers_on_one_file_pay_once(tmp_path: Path) -> None:
    with Model(every=5, seconds=0.1) as model:
        write_job(tmp_path, model)
        with serving(tmp_path) as one, serving(tmp_path) as other:
            first, second = both(one, other)
    assert first == second
    assert set(model.served.values()) == {1}


def test_profiles_that_isolate_differently_share_drafts_but_no_running_search() -> None:
    problem = Problem("p", "?", {"kind": "stdin", "tests": [{"input": "", "output": "4"}]})
    requests = []
    for isolation in (Isolation.UNSAFE, Isolation.JAIL, Isolation.JAIL):
        with CheckVerifier(workers=1, isolation=isolation) as verifier:
            world = needle(1, at=0)
            backends = Backends(ScriptedGenerator(world), TableScorer(world), verifier)
            profile: Any = None
            made = CompletionRequest(CHAT, profile, problem, one_generator(backends))
            requests.append((made.search, made.key))
    (first, unsafe), (second, jail), (third, same) = requests
    assert first == second == third
    assert unsafe != jail == same


@pytest.mark.slow
def test_a_full_server_says_so(tmp_path: Path) -> None:
    with Model(every=0, seconds=5) as model:
        write_job(tmp_path, model)
        bounds = ("--searches", 1, "--queue", 1, "--grace", 0)
        with serving(tmp_path, *bounds) as server, client(server) as made:
            streams = [
                made.chat.completions.create(
                    model="m", messages=asked(f"{n}"), stream=True, extra_body={"grv": check()}
                )
                for n in range(2)
            ]
            with pytest.raises(openai.RateLimitError) as caught:
                made.chat.completions.create(
                    model="m", messages=asked("2"), extra_body={"grv": check()}
                )
            body: Any = caught.value.body
            assert body["code"] == "queue_full"
            assert caught.value.response.headers["x-should-retry"] == "true"
            for each in streams:
                each.close()


@pytest.mark.soak
@pytest.mark.xdist_group("postgres")
def test_servers_share_a_database_and_end_with_it(postgres: Database, tmp_path: Path) -> None:
    address = postgres.new_database()
    place = address.replace(f":{PASSWORD}", "")
    env = {"PGPASSWORD": PASSWORD}
    with Model(every=5, seconds=0.1) as model:
        write_job(tmp_path, model)
        more = ("--ledger", place, "--total-budget", 100)
        with serving(tmp_path, *more, env=env) as one, serving(tmp_path, *more, env=env) as other:
            first, second = both(one, other)
            assert first == second
            assert set(model.served.values()) == {1}
            with closing(open_ledger(address, read_only=True)) as ledger:
                assert ledger.possibly_paid() == first["bill"]["cost"]
            postgres.kill()
            try:
                with client(one) as made, pytest.raises(openai.APIError) as caught:
                    made.chat.completions.create(
                        model="m", messages=asked("lost"), extra_body={"grv": check()}
                    )
                assert getattr(caught.value, "status_code", 503) == 503
                assert one.process.wait(30) == 2
                until = time.monotonic() + 5
                while not one.lines[-1].startswith("grv: ") and time.monotonic() < until:
                    time.sleep(0.05)
                assert one.lines[-1].startswith("grv: postgresql://")
                assert PASSWORD not in "".join(one.lines)
            finally:
                postgres.start()
