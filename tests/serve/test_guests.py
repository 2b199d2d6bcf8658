"""What guests of a server may do: name policies, wait for a person, read slowly, send headers."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import openai
import pytest

from grv.ledger.entries import Entry, Started
from grv.ledger.sqlite import SqliteLedger
from grv.serve.buffers import Buffers
from grv.serve.clients import Client
from grv.serve.errors import ApiError
from grv.serve.states import state_of
from support.pages import Dashboard, parked
from support.servers import FaultyServer
from support.serving import RIGHT, Model, Server, check, key_hash, serving, write_job

ALICE, BOB, RITA = (f"{name}-key-0123456789" for name in ("alice", "bob", "rita"))
ASK = '[checks.ask]\nkind = "human"\nquestion = "Is it right?"'


def clients_file(folder: Path) -> Path:
    path = folder / "clients.toml"
    path.write_text(
        f'[clients.alice]\nkey = "{key_hash(ALICE)}"\n'
        f'[clients.bob]\nkey = "{key_hash(BOB)}"\n'
        f'[clients.rita]\nkey = "{key_hash(RITA)}"\nprofiles = []\nreview = true\n'
    )
    return path


def ask(server: Server, text: str, key: str = "x", **grv: Any) -> Any:
    with openai.OpenAI(base_url=server.url, api_key=key, max_retries=0) as client:
        return client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": text}],
            extra_body={"grv": {**check(), **grv}},
        )


def request(text: str, key: str = "x", *, stream: bool = False, **grv: Any) -> bytes:
    said = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": stream}
    body = json.dumps({**said, "grv": {**check(), **grv}}).encode()
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {key}",
    ]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def until(true: Any, seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.mark.slow
def test_no_policy_of_a_request_makes_the_server_connect_or_open_a_file(tmp_path: Path) -> None:
    accepted = []
    with socket.create_server(("127.0.0.1", 0)) as trap, Model(every=2) as model:

        def accept() -> None:
            while True:
                try:
                    accepted.append(trap.accept()[0])  # and never answer
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        write_job(tmp_path, model)
        with serving(tmp_path, env={"PGPASSWORD": "the-secret"}) as server:
            place = f"postgresql://evil@127.0.0.1:{trap.getsockname()[1]}/db"
            for policy in (f"learning('{place}')", "learning('ledger')", f"learning(('{place}',))"):
                with pytest.raises(openai.BadRequestError) as caught:
                    ask(server, "hello", policy=policy)
                assert caught.value.param == "grv.policy"
            many = [
                threading.Thread(
                    target=server.raw, args=(request(f"{n}", policy=f"learning('{place}')"),)
                )
                for n in range(60)
            ]
            for each in many:
                each.start()
            assert ask(server, "hello").choices[0].message.content == RIGHT
            assert accepted == []
            server.stop()
            for each in many:
                each.join(30)
        assert accepted == []
        trap.shutdown(socket.SHUT_RDWR)


def policies(folder: Path) -> dict[str, list[str]]:
    """The policies of the searches by client, in the order of their starts."""
    found: dict[str, list[str]] = {}
    with closing(SqliteLedger(folder / "ledger", read_only=True)) as ledger:
        for each in ledger.searches():
            started = ledger.read(each.id)[0]
            assert isinstance(started, Started)
            found.setdefault(started.account, []).append(str(started.about["policy"]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("joined", [False, True])
def test_what_one_client_asks_changes_no_bill_of_another_unless_histories_are_joined(
    tmp_path: Path, joined: bool
) -> None:
    with Model(every=3) as model:
        write_job(
            tmp_path, model, 'policy = "learning"', **({"join_histories": True} if joined else {})
        )
        with serving(tmp_path, "--clients", clients_file(tmp_path)) as server:
            for number in range(7):
                ask(server, f"request {number}", ALICE)
            ask(server, "mine", BOB)
    found = policies(tmp_path)
    assert found["alice"][:6] == ["varied(factor=5.0)"] * 6
    assert found["alice"][6].startswith("learned")
    assert found["bob"][0].startswith("learned" if joined else "varied")


def signed_in(server: Server, key: str) -> dict[str, str]:
    """The headers of a reviewer."""
    pages = Dashboard(server.process, f"{server.root}/")
    origin = {"origin": server.root}
    body = json.dumps({"key": key}).encode()
    head = (
        f"POST /api/session HTTP/1.1\r\nHost: {server.root.removeprefix('http://')}\r\n"
        f"Origin: {server.root}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    answer = server.raw(head.encode() + body)
    cookie = answer.decode().partition("set-cookie: ")[2].partition(";")[0]
    token = pages.get("/api/session", cookie=cookie)["token"]
    return {**origin, "cookie": cookie, "x_grv_token": token}


@pytest.mark.slow
def test_a_reviewer_gives_verdicts_only_on_what_the_queue_gave_them(tmp_path: Path) -> None:
    with Model(every=2) as model:
        write_job(tmp_path, model, ASK, policy="verify-all", width=1)
        with serving(tmp_path, "--clients", clients_file(tmp_path)) as server, ExitStack() as stack:
            pages, rita = Dashboard(server.process, f"{server.root}/"), signed_in(server, RITA)

            def give(item: str, lease: str = "") -> int:
                said = {"item": item, "lease": lease, "verdict": "pass", "seconds": 1}
                return pages.status("/api/review/verdict", said, **rita)

            with pytest.raises(openai.UnprocessableEntityError) as caught:
                ask(server, "no answer", ALICE, check={"kind": "math", "answer": "7"}, budget=20)
            body: Any = caught.value.body
            search = body["grv"]["search"]
            for item in (f"{search}:0", f"{search}:99", f"{'0' * 24}:0", "nothing:0"):
                assert give(item) == 409
                assert pages.status("/api/review/open", {"item": item}, **rita) in (404, 409)
            with pytest.raises(openai.UnprocessableEntityError):
                ask(server, "no answer", ALICE, check={"kind": "math", "answer": "7"}, budget=20)

            waiting = stack.enter_context(socket.create_connection(server.address))
            waiting.sendall(request("for a person", ALICE, check="ask"))
            until(lambda: parked(tmp_path / "ledger"))
            ((human, candidate),) = parked(tmp_path / "ledger")
            assert give(f"{human}:{candidate}") == 409
            given = pages.get_posted("/api/review/next", {}, **rita)
            assert given["item"]["id"] == f"{human}:{candidate}"
            assert give(f"{human}:{candidate}", given["lease"] + "x") == 409
            assert give(f"{human}:{candidate}", given["lease"]) == 200
            assert give(f"{human}:{candidate}", given["lease"]) == 409
            assert b"200 OK" in waiting.recv(100)
        with closing(SqliteLedger(tmp_path / "ledger", read_only=True)) as ledger:
            assert ledger.check() == []


@pytest.mark.slow
@pytest.mark.parametrize("stays", [False, True])
def test_searches_that_wait_for_a_person_hold_no_places(tmp_path: Path, stays: bool) -> None:
    with Model(every=2) as model, ExitStack() as stack:
        write_job(tmp_path, model, ASK, policy="verify-all", width=1)
        bounds = ("--searches", 2, "--queue", 1, "--connections", 32, "--grace", 0)
        with serving(tmp_path, *bounds) as server:
            for number in range(8):
                one = socket.create_connection(server.address)
                one.sendall(request(f"number {number}", stream=bool(number % 2), check="ask"))
                until(lambda number=number: len(parked(tmp_path / "ledger")) > number)
                if stays:
                    stack.enter_context(one)
                else:
                    one.close()
            assert ask(server, "hello").choices[0].message.content == RIGHT
            if not stays:
                until(lambda: len(server.events("search")) == 9)  # they wait in the ledger only


@pytest.mark.slow
def test_a_search_goes_on_if_its_client_leaves_without_a_stream(tmp_path: Path) -> None:
    with Model(every=3, seconds=0.3) as model:
        write_job(tmp_path, model, policy="verify-all")
        with serving(tmp_path) as server:
            with socket.create_connection(server.address) as one:
                one.sendall(request("left"))
                until(lambda: model.received)
            until(lambda: server.events("search"))
            (ended,) = server.events("search")
            assert ended["outcome"] == "solved"
            assert server.events("bug") == []
            made = model.served.total()
            ask(server, "left")
            assert model.served.total() == made


@pytest.mark.slow
def test_clients_that_do_not_read_are_given_up_and_others_are_served(tmp_path: Path) -> None:
    long = "x" * 400_000 + RIGHT
    with FaultyServer(text=lambda request, seed: long) as model, ExitStack() as stack:
        write_job(tmp_path, model, policy="verify-all")
        options = ("--client-mb", 1, "--slow", 2, "--clients", clients_file(tmp_path))
        with serving(tmp_path, *options) as server:
            for number in range(12):
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.connect(server.address)
                one.sendall(request(f"number {number}", ALICE, stream=bool(number % 2)))
            assert ask(server, "mine", BOB).choices[0].message.content == long
            until(
                lambda: (
                    len([e for e in server.events("request") if e.get("client") == "alice"]) == 12
                )
            )
            assert server.events("bug") == []
            assert ask(server, "again", ALICE).choices[0].message.content == long


@pytest.mark.slow
def test_a_request_whose_client_has_left_counts_until_its_search_ends(tmp_path: Path) -> None:
    with Model(every=0, seconds=0.2) as model:  # no answer is right until the test says so
        write_job(tmp_path, model, policy="verify-all", budget=100_000)
        options = ("--client-mb", 1, "--clients", clients_file(tmp_path))
        with serving(tmp_path, *options) as server:
            with socket.create_connection(server.address) as one:
                one.sendall(request("left " * 150_000, ALICE))
                until(lambda: model.received)
            until(lambda: any(each["status"] == 499 for each in server.events("request")))
            with pytest.raises(openai.RateLimitError, match="searches that go on"):
                ask(server, "other " * 100_000, ALICE, deadline=5)
            model.always_right()
            until(lambda: server.events("search"))
            assert ask(server, "other " * 100_000, ALICE).choices[0].message.content == RIGHT


@pytest.mark.parametrize(
    "grv",
    [
        {"policy": "hedged(0.5, 1000000, 1000000)"},
        {"check": {"kind": "stdin", "tests": [], "limits": {"seconds": 10**400}}},
    ],
)
def test_what_a_request_asks_too_much_of_is_refused(local: Server, grv: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError):
        ask(local, "too much", **grv)


def test_the_bytes_of_a_client_are_bounded_and_given_back() -> None:
    buffers = Buffers(100)
    with buffers.of("alice") as one, buffers.of("alice") as other, buffers.of("bob") as bobs:
        one.add(1000)  # one request always has room
        bobs.add(90)
        with pytest.raises(ApiError, match="read them first"):
            other.add(1)
    with buffers.of("alice") as one, buffers.of("alice") as other:
        one.add(60)
        other.add(40)
        with pytest.raises(ApiError):
            other.add(1)
    with buffers.of("alice") as gone:
        gone.add(60)
    gone.add(100)  # a call that ends after its client has left
    with buffers.of("alice") as one, buffers.of("alice") as other:
        one.add(60)
        other.add(40)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without a file of clients."""
    folder = tmp_path_factory.mktemp("local")
    with Model(every=2) as model:
        write_job(folder, model)
        with serving(folder) as up:
            yield up
            assert up.events("bug") == []


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (["Host: localhost"], 200),
        (["Host: LOCALHOST:80"], 200),
        (["Host: [::1]:80"], 200),
        (["Host: evil.com@localhost"], 403),
        (["Host: evil.com:80@localhost"], 403),
        (["Host: localhost/x"], 403),
        (["Host: localhost#evil.com"], 403),
        (["Host: localhost?x"], 403),
        (["Host: ["], 403),
        (["Host: "], 403),
        (["Host: localhost", "Origin: http://["], 403),
        (["Host: localhost", "Origin: http://evil.com@localhost"], 403),
        (["Host: localhost", "Origin: localhost"], 403),
        (["Host: localhost", "Origin: file://localhost"], 403),
        (["Host: localhost", "Origin: "], 403),
        (["Host: localhost", "Origin: http://localhost", "Origin: http://evil.com"], 400),
        (["Host: localhost", f"X: {'y' * 70_000}"], 431),
        (["Host: localhost", *(f"X-{n}: {'y' * 1000}" for n in range(33))], 431),
    ],
)
def test_headers_are_read_strictly(local: Server, headers: list[str], expected: int) -> None:
    lines = ["GET /v1/models HTTP/1.1", *headers, "Connection: close", "", ""]
    answer = local.raw("\r\n".join(lines).encode())
    assert status(answer) == expected or (expected == 431 and status(answer) == 400)


def test_an_address_that_is_too_long_is_refused(local: Server) -> None:
    answer = local.raw(
        f"GET /v1/models?{'x' * 40_000} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    )
    assert status(answer) in (400, 431)


@pytest.mark.slow
def test_wrong_keys_of_the_api_are_bounded_too(tmp_path: Path) -> None:
    with Model(every=2) as model:
        write_job(tmp_path, model)
        with serving(tmp_path, "--clients", clients_file(tmp_path)) as server:

            def models(key: str) -> int:
                head = f"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
                return status(server.raw(f"{head}Connection: close\r\n\r\n".encode()))

            assert models(ALICE) == 200
            found = [models(f"guess-{number}") for number in range(200)]
            assert found[:100] == [401] * 100
            assert 429 in found
            assert models(ALICE) == 200


class Counting(SqliteLedger):
    """Counts the entries that are read."""

    reads = 0

    def read(self, search: str) -> list[Entry]:
        self.reads += 1
        return [*super().read(search)]


@pytest.mark.slow
def test_a_search_of_another_client_takes_as_much_work_as_none(tmp_path: Path) -> None:
    with closing(Counting(tmp_path / "ledger")) as ledger:
        ledger.append("a" * 24, [Started("p", {}, account="alice")])
        for search in ("a" * 24, "b" * 24, "x"):
            with pytest.raises(ApiError, match="no such search"):
                state_of(ledger, search, Client("bob"), running=False)
        assert ledger.reads == 0
        assert state_of(ledger, "a" * 24, Client("alice"), running=False)["id"] == "a" * 24
