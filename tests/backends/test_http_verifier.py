"""An HTTP endpoint as a verifier, against a real server on this machine."""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("httpx2")

import httpx2

from grv.backends.protocols import Draft, Finding, Problem, Verifier
from grv.backends.verifiers.http import HttpVerifier, foreign_errors
from grv.core.errors import UsageError, VerifierError
from grv.core.values import Verdict

PROBLEM = Problem("p7", "What is 6 times 7?", {"kind": "custom", "answer": "42"})
Reply = tuple[int, dict[str, str], bytes]


class Server:
    """A server that answers with what `reply` makes of a request's body."""

    def __init__(self) -> None:
        self.reply: Callable[[dict[str, Any]], Reply] = lambda body: said("passed")
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.connections = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.requests.append((headers, body))
                status, extra, content = outer.reply(body)
                self.send_response(status)
                for name, value in extra.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/verify"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def said(verdict: Any, **more: Any) -> Reply:
    return 200, {}, json.dumps({"verdict": verdict, **more}).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def ask(url: str, text: str = "42", **options: Any) -> Finding:
    verifier: Verifier = HttpVerifier(url, **options)
    return asyncio.run(verifier.verify(PROBLEM, Draft(text)))


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_endpoint_says_the_verdict(server: Server, verdict: Verdict) -> None:
    server.reply = lambda body: said(verdict.value, reason="why", evidence={"a": [1]})
    finding = ask(server.url)
    assert (finding.verdict, finding.reason) == (verdict, "why")
    assert finding.evidence == {"a": [1]}
    assert finding.usage.seconds > 0


def test_reason_and_evidence_may_be_left_out(server: Server) -> None:
    assert ask(server.url).reason == ""


def test_the_endpoint_is_sent_the_problem_and_the_candidate(server: Server) -> None:
    ask(server.url, "it is 42 \ud800", headers={"authorization": "Bearer k"})
    headers, body = server.requests[0]
    assert body == {
        "problem": "p7",
        "prompt": "What is 6 times 7?",
        "candidate": "it is 42 \ud800",
        "check": {"kind": "custom", "answer": "42"},
    }
    assert headers["authorization"] == "Bearer k"
    assert headers["content-type"] == "application/json"


BAD_ANSWERS: list[Reply] = [
    (200, {}, b""),
    (200, {}, b"passed"),
    (200, {}, b'["passed"]'),
    (200, {}, b"{}"),
    (200, {}, b"\xff\xfe"),
    (200, {}, b"[" * 100_000),
    said("PASSED"),
    said(True),
    said(["passed"]),
    said("passed", reason=3),
    said("passed", evidence=[1]),
    (200, {}, b" " * (1 << 20) + b'{"verdict": "passed"}'),
    (200, {"content-encoding": "gzip"}, b'{"verdict": "passed"}'),
    (204, {}, b""),
    (302, {"location": "/elsewhere"}, b'{"verdict": "passed"}'),
    (400, {}, b'{"verdict": "passed"}'),
    (500, {}, b'{"verdict": "passed"}'),
]


@pytest.mark.parametrize("answer", BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_any_other_answer_is_the_verifiers_error(server: Server, answer: Reply) -> None:
    server.reply = lambda body: answer
    with pytest.raises(VerifierError) as caught:
        ask(server.url)
    assert caught.value.problem_id == "p7"
    assert caught.value.backend == "http verifier"
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), ("nan", None), ("inf", None)],
)
def test_the_time_to_wait_is_passed_on(server: Server, header: str, seconds: float | None) -> None:
    server.reply = lambda body: (429, {"retry-after": header}, b"")
    with pytest.raises(VerifierError) as caught:
        ask(server.url)
    assert caught.value.retry_after == seconds


def test_the_time_to_wait_may_be_a_date(server: Server) -> None:
    server.reply = lambda body: (503, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"")
    with pytest.raises(VerifierError) as caught:
        ask(server.url)
    assert caught.value.retry_after == 0.0


def test_a_server_that_is_not_there_is_the_verifiers_error() -> None:
    with socket.socket() as unused:  # bound, and not listening
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(VerifierError):
            ask(f"http://127.0.0.1:{unused.getsockname()[1]}/")


def test_a_server_that_is_too_slow_is_the_verifiers_error(server: Server) -> None:
    release = threading.Event()

    def slow(body: dict[str, Any]) -> Reply:
        release.wait(30)
        return said("passed")

    server.reply = slow
    started = time.monotonic()
    with pytest.raises(VerifierError):
        ask(server.url, timeout_seconds=0.3)
    assert time.monotonic() - started < 10
    release.set()


def test_connections_are_kept_inside_the_context(server: Server) -> None:
    async def several() -> None:
        async with HttpVerifier(server.url) as verifier:
            for _ in range(4):
                await verifier.verify(PROBLEM, Draft("42"))

    asyncio.run(several())
    assert server.connections == 1
    ask(server.url)
    ask(server.url)
    assert server.connections == 3


EXCEPTIONS = sorted(
    (x for x in vars(httpx2).values() if isinstance(x, type) and issubclass(x, BaseException)),
    key=lambda x: x.__name__,
)


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_no_exception_of_the_library_leaks(kind: type[Exception]) -> None:
    assert issubclass(kind, foreign_errors())

    class Failing(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            exception = kind.__new__(kind)
            Exception.__init__(exception, "what happened")
            raise exception

    with pytest.raises(VerifierError) as caught:
        ask("http://127.0.0.1:9/", transport=Failing())
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("url", ["", "verify", "ftp://host/", "http://", "http://[::bad", "\0"])
def test_what_is_no_address_is_the_callers_mistake(url: str) -> None:
    with pytest.raises(UsageError):
        HttpVerifier(url)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_senseless_time_limit_is_the_callers_mistake(seconds: float) -> None:
    with pytest.raises(UsageError):
        HttpVerifier("http://127.0.0.1/", timeout_seconds=seconds)


def test_a_check_that_is_not_json_is_the_callers_mistake() -> None:
    verifier = HttpVerifier("http://127.0.0.1:9/")
    with pytest.raises(UsageError):
        asyncio.run(verifier.verify(Problem("p", check={"f": print}), Draft("42")))
