"""Clients that send slowly, in tiny pieces, or nothing: others are answered meanwhile."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.serving import RIGHT, Model, Server, check, serving, write_job

CHUNKED = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
HALF = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX: "
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
TINY = b"1\r\nx\r\n"


@contextmanager
def served(folder: Path, *options: object) -> Iterator[Server]:
    """A server without keys."""
    with Model(every=1) as model:
        write_job(folder, model)
        with serving(folder, *options) as up:
            yield up
            assert up.events("bug") == []
            assert up.process.poll() is None


def answered(server: Server, text: str) -> float:
    """The seconds until an honest client is answered."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "grv": check()}
    request = urllib.request.Request(
        f"{server.url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    started = time.monotonic()
    with urllib.request.urlopen(request, timeout=30) as response:
        said = json.load(response)
    assert said["choices"][0]["message"]["content"] == RIGHT
    return time.monotonic() - started


def connected(server: Server, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(server.address, timeout=10, source_address=(address, 0))


def check_health(connection: socket.socket) -> None:
    connection.sendall(HEALTH)
    found = b""
    while not found.endswith(b"}"):
        part = connection.recv(1000)
        assert part, found
        found += part
    assert found.startswith(b"HTTP/1.1 200")


def read_all(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(1 << 16):
            found += part
    except ConnectionError:
        pass
    return found


@pytest.mark.parametrize("first", [b"", HALF, CHUNKED, CHUNKED + TINY], ids=len)
@pytest.mark.slow
def test_hundreds_of_slow_sockets_do_not_keep_an_honest_client_waiting(
    tmp_path: Path, first: bytes
) -> None:
    with served(tmp_path, "--connections", 200) as server, ExitStack() as stack:
        for _ in range(500):
            one = stack.enter_context(connected(server))
            one.sendall(first)
        assert max(answered(server, f"number {number}") for number in range(5)) < 10


def test_tiny_chunks_are_refused_early_and_often(tmp_path: Path) -> None:
    """Clients that send bodies in chunks of one byte, as fast as they can."""
    stopped = threading.Event()

    def flood(server: Server) -> None:
        while not stopped.is_set():
            try:
                with connected(server) as one:
                    one.sendall(CHUNKED)
                    while not stopped.is_set():
                        one.sendall(TINY * 10_000)
            except OSError:
                time.sleep(0.05)

    with served(tmp_path) as server:
        threads = [threading.Thread(target=flood, args=(server,)) for _ in range(4)]
        for each in threads:
            each.start()
        try:
            assert max(answered(server, f"number {number}") for number in range(5)) < 10
        finally:
            stopped.set()
            for each in threads:
                each.join()
        answer = server.raw(CHUNKED + TINY * 300)
        assert answer.startswith(b"HTTP/1.1 400")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"] == (
            "the chunks of the body are too small; send 1 kB in each"
        )


@pytest.mark.slow
def test_chunks_of_an_ordinary_size_are_read(tmp_path: Path) -> None:
    text = "x" * 2_000_000
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "grv": check()}
    content = json.dumps(body).encode()
    parts = [content[start : start + 2000] for start in range(0, len(content), 2000)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    close = CHUNKED.replace(b"Host:", b"Connection: close\r\nHost:")
    with served(tmp_path) as server:
        assert server.raw(close + chunks + b"0\r\n\r\n", wait=30).startswith(b"HTTP/1.1 200")


def drip(connection: socket.socket, seconds: float) -> float:
    """Send one small chunk after another; the seconds until the server has had enough."""
    started = time.monotonic()
    connection.settimeout(0.1)
    while time.monotonic() - started < seconds:
        try:
            connection.sendall(TINY)
            while connection.recv(1 << 16):
                pass
            break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return time.monotonic() - started


@pytest.mark.parametrize(
    "head", [CHUNKED, CHUNKED.replace(b"POST /v1/chat/completions", b"GET /health")]
)
@pytest.mark.slow
def test_headers_and_body_have_one_deadline(tmp_path: Path, head: bytes) -> None:
    """Also if the response does not depend on the body."""
    with served(tmp_path, "--slow", 2) as server, connected(server) as one:
        one.sendall(head[:60])
        time.sleep(1)
        one.sendall(head[60:])
        assert drip(one, 10) < 4


def busy(server: Server, address: str, stack: ExitStack) -> socket.socket:
    """A connection with a request that is being answered for a long time."""
    one = stack.enter_context(connected(server, address))
    body = json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "long"}],
            "stream": True,
            "grv": check(),
        }
    ).encode()
    head = CHUNKED.replace(b"Transfer-Encoding: chunked", b"Content-Length: %d" % len(body))
    one.sendall(head + body)
    return one


@pytest.mark.slow
def test_connections_are_bounded_by_address_and_in_all(tmp_path: Path) -> None:
    with Model(every=1) as model, ExitStack() as stack:
        write_job(tmp_path, model)
        options = ("--connections", 6, "--address-connections", 4)
        with serving(tmp_path, *options) as server, model.taking(6):
            held = [busy(server, "127.0.0.1", stack) for _ in range(4)]
            time.sleep(1)
            with connected(server) as refused:
                answer = read_all(refused)
            assert answer.startswith(b"HTTP/1.1 429")
            assert b"this address has 4 connections here already; try again later" in answer
            assert b"retry-after: 2" in answer.lower()
            with connected(server, "127.0.0.2") as other:
                check_health(other)
            held += [busy(server, "127.0.0.2", stack) for _ in range(2)]
            time.sleep(1)
            with connected(server, "127.0.0.3") as refused:
                assert b"there are 6 connections already; try again later" in read_all(refused)
            for each in held:
                assert each.recv(100).startswith(b"HTTP/1.1 200")
        assert server.events("bug") == []


def test_a_connection_that_has_asked_before_outlives_those_that_have_not(tmp_path: Path) -> None:
    with served(tmp_path, "--connections", 8) as server, ExitStack() as stack:
        kept = stack.enter_context(connected(server))
        check_health(kept)
        for _ in range(20):
            stack.enter_context(connected(server))
        answered(server, "hello")
        check_health(kept)


def test_many_refusals_leave_no_descriptors(tmp_path: Path) -> None:
    def descriptors(server: Server) -> int:
        return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))

    def until(fits: Callable[[], bool]) -> None:
        ends = time.monotonic() + 10
        while not fits() and time.monotonic() < ends:
            time.sleep(0.1)
        assert fits()

    with served(tmp_path, "--connections", 2, "--address-connections", 1) as server:
        before = descriptors(server)
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(connected(server))
        until(lambda: descriptors(server) <= before + 2)
        answered(server, "hello")
