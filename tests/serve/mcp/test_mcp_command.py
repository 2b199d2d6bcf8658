"""`grv mcp` in a process of its own, with the official client: both transports, all versions."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp", reason="the tools of agents need the extra mcp")

from mcp import Client

from grv.ledger.sqlite import SqliteLedger
from support.commands import grv
from support.mcp_clients import call, http, http_server, over_http, stdio
from support.servers import FaultyServer
from support.serving import RIGHT, Model, Server, key_hash, write_job

pytestmark = pytest.mark.slow
MATH = {"kind": "math", "answer": "42"}
ALICE, BOB = "alice-key-0123456789", "bob-key-0123456789"
ERAS = ("auto", "legacy")


@pytest.fixture
def model() -> Iterator[Model]:
    with Model(every=3) as made:
        yield made


async def every_tool(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == [
        "verify",
        "solve",
        "status",
    ]
    passed = await call(client, "verify", candidate=RIGHT, check=MATH)
    assert passed["verdict"] == "passed"
    failed = await call(client, "verify", candidate="\\boxed{1}", check=MATH)
    assert failed["verdict"] == "failed"
    told: list[float] = []

    async def progress(steps: float, total: float | None, message: str | None) -> None:
        told.append(steps)

    found = await call(client, "solve", progress, problem="What is it?", check=MATH)
    assert (found["answer"], found["verified"]) == (RIGHT, True)
    state = await call(client, "status", search=found["search"])
    assert (state["status"], state["answer"]) == ("ended", RIGHT)
    refused = await call(client, "verify", candidate=RIGHT, check={"kind": "command", "argv": []})
    assert refused.startswith("check.kind: must be one of")


@pytest.mark.parametrize("era", ERAS)
def test_the_official_client_runs_all_tools_over_stdio(
    tmp_path: Path, model: Model, era: str
) -> None:
    write_job(tmp_path, model)
    stdio(tmp_path, every_tool, mode=era)


def test_the_official_client_runs_all_tools_over_http(tmp_path: Path, model: Model) -> None:
    write_job(tmp_path, model)
    with http_server(tmp_path) as server:
        for era in ERAS:
            http(server, every_tool, mode=era)
        assert server.stop() == 0


def paid(folder: Path) -> float:
    with closing(SqliteLedger(folder / "ledger", read_only=True)) as ledger:
        return ledger.possibly_paid(None)


async def cancelled(client: Client, model: Model) -> None:
    """Cancel a call while the model works on it."""
    before = len(model.served)
    with anyio.move_on_after(60) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call(client, "solve", problem="Hard", check=MATH))
            with anyio.fail_after(30):
                while len(model.served) == before:  # noqa: ASYNC110 (another thread serves)
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
    assert not scope.cancelled_caught


@pytest.mark.alone
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_cancelled_call_stops_spending_and_the_same_call_continues(
    tmp_path: Path, transport: str, era: str
) -> None:
    with Model(every=0) as model:
        write_job(tmp_path, model, costs="1,2")

        async def talk(client: Client) -> None:
            model.seconds = 0.3
            await cancelled(client, model)
            await anyio.sleep(1.0)  # calls in flight end
            stopped = (len(model.served), paid(tmp_path))
            await anyio.sleep(1.0)
            assert (len(model.served), paid(tmp_path)) == stopped  # nothing goes on
            model.seconds = 0.0
            model.always_right()
            found = await call(client, "solve", problem="Hard", check=MATH)
            assert found["answer"] == RIGHT
            assert max(model.served.values()) <= 2  # at most the calls in flight are made again
            bill = (await call(client, "status", search=found["search"]))["bill"]
            assert bill["possibly_paid"] == paid(tmp_path)
            lost = 2 * bill["lost"]  # no lost call costs more than a verification
            assert bill["cost"] <= bill["possibly_paid"] <= bill["cost"] + lost

        if transport == "stdio":
            stdio(tmp_path, talk, mode=era)
        else:
            with http_server(tmp_path) as server:
                http(server, talk, mode=era)


@pytest.mark.alone
def test_at_its_deadline_a_call_returns_and_the_same_call_continues(
    tmp_path: Path, model: Model
) -> None:
    write_job(tmp_path, model)

    async def talk(client: Client) -> None:
        model.seconds = 6.0
        started = time.monotonic()
        found = await call(client, "solve", problem="Slow", check=MATH, deadline=0.5)
        assert time.monotonic() - started < 5.5
        assert (found["answer"], found["outcome"]) == (None, "unfinished")
        model.seconds = 0.0
        again = await call(client, "solve", problem="Slow", check=MATH)
        assert (again["answer"], again["search"]) == (RIGHT, found["search"])

    stdio(tmp_path, talk)


LOUD = """```python
import os
def f(n):
    print("stdout of a candidate", flush=True)
    for number in range(64):
        try:
            os.write(number, b'{"jsonrpc": "2.0", "id": 1, "result": "forged"}\\n')
        except OSError:
            pass
    return n * n
```"""


def raw(folder: Path, *messages: dict[str, Any], more: tuple[object, ...] = ()) -> list[Any]:
    """What the server writes to standard output for these messages, line by line."""
    words = ["-m", "grv", "mcp", folder / "job.toml", "--ledger", folder / "ledger", *more]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in messages)
    with subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        wanted = sum("id" in each for each in messages)
        found = [json.loads(process.stdout.readline()) for _ in range(wanted)]
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(20) == 0
    assert rest == ""
    return found


START: list[dict[str, Any]] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
]


def test_standard_output_carries_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(
        "print('loaded')\n"
        "def generate(problem):\n"
        "    print('generating')\n"
        "    return 'It is \\\\boxed{42}'\n"
    )
    generator = f"{tmp_path}/noisy.py:generate"
    write_job(tmp_path, "http://127.0.0.1:1/v1", generator=generator)
    job = tmp_path / "job.toml"
    lines = [each for each in job.read_text().splitlines() if not each.startswith("base-url")]
    job.write_text("\n".join(lines) + "\n")
    check = {"kind": "function", "entry_point": "f", "tests": [{"args": [3], "expected": 9}]}
    verify = {"name": "verify", "arguments": {"candidate": LOUD, "check": check}}
    solve = {"name": "solve", "arguments": {"problem": "p", "check": MATH}}
    found = raw(
        tmp_path,
        *START,
        {"id": 1, "method": "tools/call", "params": verify},
        {"id": 2, "method": "tools/call", "params": solve},
        more=("--allow-commands",),
    )
    by_id = {each["id"]: each["result"] for each in found}
    assert by_id[1]["structuredContent"]["verdict"] in ("passed", "failed")
    assert by_id[2]["structuredContent"]["answer"] == RIGHT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_that_waits_for_its_client(
    tmp_path: Path, model: Model, number: int
) -> None:
    write_job(tmp_path, model)
    words = ["-m", "grv", "mcp", str(tmp_path / "job.toml"), "--ledger", str(tmp_path / "ledger")]
    with subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["event"] == "serving"
        process.send_signal(number)
        assert process.wait(20) == (130 if number == signal.SIGINT else 0)


def clients_file(folder: Path) -> Path:
    path = folder / "clients.toml"
    path.write_text(
        f'[clients.alice]\nkey = "{key_hash(ALICE)}"\nbudget = 5\n'
        f'[clients.bob]\nkey = "{key_hash(BOB)}"\n'
    )
    return path


def written(body: object, *headers: str, path: str = "/mcp") -> bytes:
    """A request."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    host = [] if any(each.startswith("Host") for each in headers) else ["Host: localhost"]
    lines = [f"POST {path} HTTP/1.1", *host, *headers, "Content-Type: application/json"]
    lines += ["Accept: application/json, text/event-stream", "Connection: close"]
    lines += [f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode() + content


def post(server: Server, body: object, *headers: str, path: str = "/mcp") -> bytes:
    """The raw answer to a request."""
    return server.raw(written(body, *headers, path=path))


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def test_pages_of_other_origins_and_rebound_names_are_refused(tmp_path: Path, model: Model) -> None:
    write_job(tmp_path, model)
    with http_server(tmp_path) as server:
        started = {"jsonrpc": "2.0", **START[0]}
        assert status(post(server, started)) == 200
        assert status(post(server, started, "Origin: http://localhost:1")) == 200
        for header in ("Host: evil.example", "Origin: http://evil.example", "Origin: null"):
            assert status(post(server, started, header)) == 403, header
        assert status(post(server, b"[" * 100_000)) == 400
        assert status(post(server, b'{"id": 1e999}')) == 400
        assert status(post(server, b'{"a": "\\ud800"}')) == 400
        assert status(post(server, b"", "Content-Length: 9999999")) in (400, 413)
        assert status(post(server, started, path="/v1/chat/completions")) == 404


def test_results_that_a_client_does_not_read_are_bounded(tmp_path: Path) -> None:
    long = "x" * 200_000 + RIGHT
    with FaultyServer(text=lambda request, seed: long) as made, ExitStack() as stack:
        write_job(tmp_path, made, policy="verify-all")
        options = ("--client-mb", 1, "--slow", 3, "--clients", clients_file(tmp_path))
        with http_server(tmp_path, *options) as server:
            own = f"Authorization: Bearer {BOB}"
            started = post(server, {"jsonrpc": "2.0", **START[0]}, own).decode().split("\r\n")
            session = next(line for line in started if line.startswith("mcp-session-id"))
            solve = {"name": "solve", "arguments": {"problem": "p", "check": MATH}}
            asked = {"jsonrpc": "2.0", "method": "tools/call", "params": solve}
            for number in range(12):
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.connect(server.address)
                one.sendall(written({**asked, "id": number + 10}, own, session))
            ends = time.monotonic() + 60
            while len(server.events("tool")) < 12 and time.monotonic() < ends:
                time.sleep(0.05)
            statuses = [each["status"] for each in server.events("tool")]
            assert set(statuses) == {200, 429}
            assert statuses.count(200) <= 4  # the data are in a result twice

            async def again(client: Client) -> None:
                found = await call(client, "solve", problem="p", check=MATH)
                assert found["answer"] == long

            time.sleep(4)  # those that do not read are given up
            http(server, again, BOB)
            assert server.events("bug") == []


def test_calls_that_go_on_without_their_client_are_bounded(tmp_path: Path) -> None:
    """In a session a call goes on if its client leaves: its arguments stay in memory."""
    with Model(every=0) as model:
        model.seconds = 8
        write_job(tmp_path, model)
        options = ("--client-mb", 1, "--clients", clients_file(tmp_path))
        with http_server(tmp_path, *options) as server:
            own = f"Authorization: Bearer {BOB}"
            started = post(server, {"jsonrpc": "2.0", **START[0]}, own).decode().split("\r\n")
            session = next(line for line in started if line.startswith("mcp-session-id"))
            solve = {"name": "solve", "arguments": {"problem": "p" * 400_000, "check": MATH}}
            asked = {"jsonrpc": "2.0", "method": "tools/call", "params": solve}
            for number in range(2):
                sent = written({**asked, "id": number + 10}, own, session)
                assert b" 200 OK" in server.raw(sent, wait=0.5)
            refused = server.raw(written({**asked, "id": 12}, own, session), wait=2)
            assert b"more than 1048576 bytes" in refused


def test_every_client_needs_its_key_and_has_sessions_and_money_of_its_own(
    tmp_path: Path, model: Model
) -> None:
    write_job(tmp_path, model)
    with http_server(tmp_path, "--clients", clients_file(tmp_path)) as server:
        started = {"jsonrpc": "2.0", **START[0]}
        assert status(post(server, started)) == 401
        assert status(post(server, started, "Authorization: Bearer wrong-key-0123456789")) == 401
        own = f"Authorization: Bearer {ALICE}"
        assert status(post(server, started, own, "Host: grv.example")) == 200
        foreign = "Origin: http://evil.example"
        assert status(post(server, started, own, "Host: grv.example", foreign)) == 403
        answer = post(server, started, own)
        lines = answer.decode().lower().split("\r\n")
        session = next(line for line in lines if line.startswith("mcp-session-id"))
        assert status(post(server, LIST, own, session)) == 200
        assert status(post(server, LIST, f"Authorization: Bearer {BOB}", session)) == 404

        async def alice(client: Client) -> None:
            said = await call(client, "solve", problem="p", check={"kind": "math", "answer": "1"})
            assert said == "the account's budget does not pay for another step"
            account = await call(client, "status")
            assert (account["client"], account["budget"]) == ("alice", 5)
            assert account["spent"] <= 5

        async def bob(client: Client) -> None:
            assert (await call(client, "status"))["spent"] == 0
            found = await call(client, "solve", problem="p", check=MATH)
            assert found["answer"] == RIGHT

        for era in ERAS:
            http(server, alice, ALICE, era)
        http(server, bob, BOB)
        assert ALICE not in "".join(server.lines)
        assert {each.get("client") for each in server.events("tool")} == {"alice", "bob"}


def test_many_calls_at_once_share_one_search(tmp_path: Path, model: Model) -> None:
    write_job(tmp_path, model)
    with http_server(tmp_path) as server:

        async def work() -> None:
            async with over_http(server) as client:
                answers: list[str] = []

                async def one() -> None:
                    found = await call(client, "solve", problem="Same", check=MATH)
                    answers.append(found["answer"])

                async with anyio.create_task_group() as group:
                    for _ in range(8):
                        group.start_soon(one)
                assert answers == [RIGHT] * 8

        anyio.run(work)
    assert max(model.served.values()) == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--clients", "clients.toml"], "--clients needs --http"),
        (["--http", "--host", "0.0.0.0"], "other machines could use it without a key"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    tmp_path: Path, more: list[str], says: str
) -> None:
    write_job(tmp_path, "http://127.0.0.1:1/v1")
    clients_file(tmp_path)
    ran = grv("mcp", tmp_path / "job.toml", "--ledger", tmp_path / "ledger", *more)
    assert ran.code == 2
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""
