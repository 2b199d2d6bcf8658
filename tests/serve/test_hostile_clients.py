"""Attacks on the server, each a test: what is refused costs nothing and stops nothing."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from support.serving import RIGHT, Model, Server, check, key_hash, serving, write_job

ALICE, BOB, WATCH = "alice-key-0123456789", "bob-key-0123456789", "watch-key-0123456789"
SLOW = 1.0
HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(every=2) as up:
        yield up


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two profiles; alice may use both, bob only one of them."""
    folder = tmp_path_factory.mktemp("attacked")
    write_job(folder, model, "[profiles.small]", "[profiles.large]", "budget = 100")
    (folder / "clients.toml").write_text(
        f'[clients.alice]\nkey = "{key_hash(ALICE)}"\nbudget = 1000\n'
        '[clients.bob]\nkey-env = "BOB"\nprofiles = ["small"]\nbudget = 9\n'
        f'[clients.watch]\nkey = "{key_hash(WATCH)}"\nprofiles = []\nmetrics = true\n'
    )
    options = ("--clients", folder / "clients.toml", "--slow", SLOW, "--request-mb", 0.1)
    with serving(folder, *options, env={"BOB": BOB}) as up:
        yield up
        assert up.process.poll() is None
    for secret in (ALICE, BOB, WATCH):
        assert not any(secret in line or key_hash(secret)[7:] in line for line in up.lines)
        for path in folder.iterdir():
            if path.is_file() and path.name.startswith("ledger"):
                assert secret.encode() not in path.read_bytes()


def client(server: Server, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key=key, max_retries=0)


def ask(server: Server, key: str, model: str = "small", text: str = "hello", **grv: Any) -> Any:
    with client(server, key) as made:
        return made.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": text}],
            extra_body={"grv": {**check(), **grv}},
        )


def posted(
    body: bytes, *headers: str, path: str = "/v1/chat/completions", key: str = ALICE
) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {key}"]
    lines += ["Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def statuses(answer: bytes) -> list[int]:
    return [int(part.split(b" ", 1)[0]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def get(server: Server, path: str, key: str = "") -> tuple[int, bytes]:
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    answer = server.raw(
        f"GET {path} HTTP/1.1\r\nHost: x\r\n{authorization}Connection: close\r\n\r\n".encode()
    )
    return status(answer), answer.partition(b"\r\n\r\n")[2]


WHOLE = json.dumps(
    {"model": "small", "messages": [{"role": "user", "content": "raw"}], "grv": check()}
).encode()


def test_without_a_key_there_is_nothing(server: Server, model: Model) -> None:
    before = model.served.total()
    for key in ("wrong", ALICE[:-1], ALICE + "x", key_hash(ALICE), "", "é"):
        answer = server.raw(
            posted(WHOLE, f"Content-Length: {len(WHOLE)}", "Connection: close", key=key)
        )
        assert status(answer) == 401
        assert b"invalid_api_key" in answer
    for path in ("/v1/models", "/metrics", "/grv/searches/" + "0" * 24):
        assert get(server, path)[0] == 401
    twice = posted(
        WHOLE, f"Authorization: Bearer {BOB}", f"Content-Length: {len(WHOLE)}", "Connection: close"
    )
    assert status(server.raw(twice)) == 401
    assert get(server, "/health")[0] == 200
    assert model.served.total() == before


def test_a_client_sees_only_what_is_its_own(server: Server) -> None:
    mine = ask(server, ALICE, text="mine").model_extra["grv"]
    assert get(server, f"/grv/searches/{mine['search']}", ALICE)[0] == 200
    assert get(server, f"/grv/searches/{mine['search']}", BOB)[0] == 404
    assert get(server, "/metrics", ALICE)[0] == 403
    code, text = get(server, "/metrics", WATCH)
    assert code == 200
    assert b'grv_spent{account="alice"}' in text
    assert b"mine" not in text
    assert b"request " not in text


@pytest.mark.slow
def test_a_client_has_its_profiles_and_its_budget(server: Server, model: Model) -> None:
    with client(server, BOB) as bob, client(server, ALICE) as alice:
        assert [each.id for each in bob.models.list()] == ["small"]
        assert [each.id for each in alice.models.list()] == ["small", "large"]
    with pytest.raises(openai.NotFoundError):
        ask(server, BOB, "large")
    with pytest.raises(openai.RateLimitError) as caught:
        ask(server, BOB, text="unsolvable", check={"kind": "math", "answer": "7"})
    body: Any = caught.value.body
    assert body["code"] == "insufficient_quota"
    assert 0 < body["grv"]["bill"]["cost"] <= 9
    assert caught.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(openai.RateLimitError):
        ask(server, BOB, text="another")
    assert ask(server, ALICE, text="another").choices[0].message.content == RIGHT


@pytest.mark.parametrize(
    "framing",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5, 6",),
        ("Content-Length: +5",),
        ("Content-Length: -1",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding : chunked",),
        ("Content-Length : 5",),
        ("Content-Length: 5\r\n Transfer-Encoding: chunked",),
        ("X: a\rTransfer-Encoding: chunked",),
        ("X: a\nTransfer-Encoding: chunked", "Content-Length: 5"),
    ],
)
def test_a_request_is_not_smuggled(server: Server, model: Model, framing: tuple[str, ...]) -> None:
    """The bytes after an ambiguous request are never answered as a request of their own."""
    before = model.served.total()
    hidden = posted(WHOLE, f"Content-Length: {len(WHOLE)}")
    answer = server.raw(posted(b"0\r\n\r\n" + hidden, *framing), wait=3)
    assert len(statuses(answer)) <= 1
    assert all(400 <= each < 600 for each in statuses(answer))
    assert model.served.total() == before


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    one = posted(WHOLE, f"Content-Length: {len(WHOLE)}")
    last = posted(WHOLE, f"Content-Length: {len(WHOLE)}", "Connection: close", key="wrong")
    assert statuses(server.raw(one + last)) == [200, 401]


def test_huge_bodies_are_refused_before_they_are_read(server: Server) -> None:
    size = 100_000_000
    answer = server.raw(posted(b"x" * 1000, f"Content-Length: {size}"))
    assert status(answer) == 413
    assert b"request_too_large" in answer
    chunks = b"".join(b"4000\r\n" + b"x" * 0x4000 + b"\r\n" for _ in range(10))
    assert status(server.raw(posted(chunks, "Transfer-Encoding: chunked"))) == 413
    assert status(server.raw(posted(b"", f"Content-Length: {'9' * 4000}"), wait=3)) in (400, 413)


def test_huge_headers_and_deep_json_are_refused(server: Server) -> None:
    answer = server.raw(posted(b"", *(f"X-{n}: {'y' * 1000}" for n in range(200))))
    assert answer == b"" or status(answer) in (400, 431)
    for body in (b"[" * 50_000, b'{"model": ' * 5000, b"\xff\xfe", b"{", b"NaN"):
        answer = server.raw(posted(body, f"Content-Length: {len(body)}", "Connection: close"))
        assert status(answer) == 400
        assert b"Traceback" not in answer


def halved(place: str) -> dict[str, Any]:
    """A request with half a character in one place."""
    half = "\ud800"
    said: dict[str, Any] = json.loads(WHOLE)
    user = {"role": "user", "content": "x"}
    inner = {"name": "n", "schema": {"properties": {half: True}}}
    tests = [{"args": [half], "expected": 1}]
    function = {"kind": "function", "entry_point": "f", "tests": tests}
    changes: dict[str, dict[str, Any]] = {
        "content": {"messages": [{**user, "content": f"a{half}b"}]},
        "name": {"messages": [{**user, "name": half}]},
        "part": {"messages": [{**user, "content": [{"type": "text", "text": half}]}]},
        "model": {"model": half},
        "field": {half: 1},
        "stop": {"stop": [half]},
        "user": {"user": half},
        "format": {"response_format": {"type": "json_schema", "json_schema": inner}},
        "fresh": {"grv": {**check(), "fresh": half}},
        "answer": {"grv": {"check": {"kind": "math", "answer": half}}},
        "tests": {"grv": {"check": function}},
        "order": {"messages": [{**user, "content": "\udc00\ud800"}]},
    }
    return said | changes[place]


@pytest.mark.parametrize(
    "place",
    [
        "content",
        "name",
        "part",
        "model",
        "field",
        "stop",
        "user",
        "format",
        "fresh",
        "answer",
        "tests",
        "order",
    ],
)
def test_half_a_character_is_refused_before_any_work(
    server: Server, model: Model, place: str
) -> None:
    before = model.served.total()
    said = halved(place)
    escaped = json.dumps(said).encode()
    raw = json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for body in (escaped, raw):
        length = f"Content-Length: {len(body)}"
        answer = server.raw(posted(body, length, "Connection: close"))
        assert status(answer) == 400
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert error["code"] == "invalid_json"
        assert "\n" not in error["message"]
    assert model.served.total() == before


def test_whole_characters_are_read_however_they_are_written(server: Server) -> None:
    for text in ("\U0001f600", "\\ud800", "\ufeff"):
        said = json.loads(WHOLE) | {"messages": [{"role": "user", "content": text}]}
        body = json.dumps(said).encode()
        answer = server.raw(posted(body, f"Content-Length: {len(body)}", "Connection: close"))
        assert status(answer) == 200


@pytest.mark.alone
@pytest.mark.parametrize("part", [0, 40, -1])
def test_slow_clients_time_out(server: Server, part: int) -> None:
    """A client that sends nothing, half of its headers, or half of its body."""
    whole = posted(WHOLE, f"Content-Length: {len(WHOLE) + 10}")
    started = time.monotonic()
    answer = server.raw(whole[:part] if part >= 0 else whole, wait=SLOW + 8)
    assert SLOW / 2 < time.monotonic() - started < SLOW + 6
    assert answer == b"" or status(answer) == 408


@pytest.mark.alone
def test_a_client_that_drips_its_headers_times_out(server: Server) -> None:
    with socket.create_connection(server.address, timeout=0.1) as connection:
        started = time.monotonic()
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nX: ")
        while time.monotonic() - started < SLOW + 5:
            try:
                connection.sendall(b"x")
                if connection.recv(100) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    assert SLOW / 2 < time.monotonic() - started < SLOW + 4


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/v1/models/../../etc/passwd",
        "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/grv/searches/../../../etc/passwd",
        "/grv/searches/%2e%2e%2fledger",
        "/grv/searches/' OR 1=1 --".replace(" ", "%20"),
        "/grv/searches/%00",
        "//evil.invalid/v1/models",
        "/static/../job.toml",
    ],
)
def test_paths_lead_nowhere(server: Server, path: str) -> None:
    code, text = get(server, path, ALICE)
    assert code == 404
    assert b"root:" not in text
    assert json.loads(text)["error"]["code"] in ("not_found", "model_not_found")


def test_a_request_names_no_address_and_no_command(
    server: Server, model: Model, tmp_path: Path
) -> None:
    """Neither in the body nor in headers; and the server's key is sent nowhere else."""
    seen = tmp_path / "seen"
    with Model() as other:
        headers = {
            "X-Base-URL": other.url,
            "OpenAI-Base-URL": other.url,
            "X-Forwarded-Host": "evil.invalid",
            "X-Upstream": other.url,
        }
        with client(server, ALICE) as made:
            made.chat.completions.create(
                model="small", messages=HELLO, extra_headers=headers, extra_body={"grv": check()}
            )
            bad: list[dict[str, Any]] = [
                {"check": {"kind": "http", "url": other.root}},
                {"check": {"kind": "command", "argv": ["touch", str(seen)]}},
                {**check(), "base_url": other.url},
                {**check(), "isolation": "unsafe"},
                {**check(), "policy": f"learned('{tmp_path}')"},
            ]
            for grv in bad:
                with pytest.raises(openai.BadRequestError) as caught:
                    made.chat.completions.create(
                        model="small", messages=HELLO, extra_body={"grv": grv}
                    )
                assert str(caught.value.param).startswith("grv.")
        assert other.received == []
    assert not seen.exists()


def test_other_methods_and_types_are_refused(server: Server) -> None:
    assert get(server, "/v1/chat/completions", ALICE)[0] == 405
    plain = posted(WHOLE, f"Content-Length: {len(WHOLE)}").replace(
        b"application/json", b"text/plain"
    )
    assert status(server.raw(plain)) == 415
    assert (
        get(server, "/v1/models HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\nX:")[0]
        >= 400
    )


@pytest.mark.slow
def test_without_clients_only_this_machine_is_served(model: Model, tmp_path: Path) -> None:
    write_job(tmp_path, model)
    with serving(tmp_path) as up:
        for host, origin, expected in [
            ("localhost:1", None, 200),
            ("127.0.0.1", None, 200),
            ("[::1]:8000", "http://localhost:3000", 200),
            ("evil.invalid", None, 403),
            ("127.0.0.1.evil.invalid", None, 403),
            ("localhost", "https://evil.invalid", 403),
            ("localhost", "null", 403),
        ]:
            more = "" if origin is None else f"Origin: {origin}\r\n"
            head = f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n"
            assert status(up.raw(head.encode())) == expected, (host, origin)
        assert os.waitpid(up.process.pid, os.WNOHANG) == (0, 0)
