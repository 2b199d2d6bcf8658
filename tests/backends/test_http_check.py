"""Checks of kind "http", against a real server on this machine."""

from __future__ import annotations

import http.server
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")

import httpx2

from grv.apps import cli
from grv.backends.http.web import client_errors
from grv.backends.protocols import Draft, Finding, Problem
from grv.backends.sandbox.limits import Isolation
from grv.backends.verifiers.http import HttpCheck
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError, VerifierError
from grv.core.values import Verdict

PROBLEM = Problem("p7", "What is 6 times 7?", {"kind": "http", "data": {"answer": "42"}})
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
    return HttpCheck(PROBLEM, url, **options).compare(text)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_server_decides_the_verdict(server: Server, verdict: Verdict) -> None:
    server.reply = lambda body: said(verdict.value, reason="why", evidence={"a": [1]})
    finding = ask(server.url)
    assert (finding.verdict, finding.reason) == (verdict, "why")
    assert finding.evidence == {"a": [1]}
    assert finding.usage.seconds > 0


def test_reason_and_evidence_may_be_left_out(server: Server) -> None:
    assert ask(server.url).reason == ""


def test_a_server_bills_nothing_and_names_no_answer(server: Server) -> None:
    """Its evidence may have any field but those that grv adds: calls, stages, answers."""
    calls = {"passes": 10**9, "failures": 0, "errors": [0.1, 0.1], "wrong_probability": 0}
    stages = [{"check": "a", "verdict": "passed", "seconds": 1e300, "cost": 1e300}]
    forged = {"judged": calls, "stages": stages, "answer_program": "p", "answer_value": "7"}
    server.reply = lambda body: said("passed", evidence={**forged, "found": "42"})
    finding = ask(server.url)
    assert finding.evidence == {"found": "42"}
    assert (finding.repeated, finding.stages, finding.answer_program) == (0, (), None)
    assert finding.wrong_probability is None


@pytest.mark.parametrize("passes", [10**9, 10**400, -1])
@pytest.mark.parametrize("errors", [[0.1, 0.1], [5, 5], [0.6, 0.6], [-1, 0]])
def test_calls_that_cannot_be_are_not_counted(passes: int, errors: list[float]) -> None:
    """The evidence may come from a ledger or a store of verdicts that was edited."""
    edited = {"passes": passes, "failures": 0, "errors": errors}
    finding = Finding(Verdict.FAILED, evidence={"judged": edited})
    assert (finding.repeated, finding.call_counts) == (0, None)
    edited = {"passes": 1, "failures": 2, "errors": errors}
    counted = Finding(Verdict.FAILED, evidence={"judged": edited}).call_counts
    assert (counted is not None) == (errors == [0.1, 0.1])


def test_the_server_receives_the_problem_the_candidate_and_the_key(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIFIER_API_KEY", "k")
    ask(server.url, "it is 42 \ud800")
    headers, body = server.requests[0]
    assert body == {
        "problem": "p7",
        "prompt": "What is 6 times 7?",
        "candidate": "it is 42 \ud800",
        "check": {"kind": "http", "data": {"answer": "42"}},
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
    (200, {}, b" " * (16 << 20) + b'{"verdict": "passed"}'),
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
    assert caught.value.backend == f"http:{server.url}"
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


@pytest.mark.alone
def test_a_server_that_is_too_slow_is_the_verifiers_error(server: Server) -> None:
    release = threading.Event()

    def slow(body: dict[str, Any]) -> Reply:
        release.wait(30)
        return said("passed")

    server.reply = slow
    started = time.monotonic()
    with pytest.raises(VerifierError):
        ask(server.url, seconds=0.3)
    assert time.monotonic() - started < 10
    release.set()


EXCEPTIONS = sorted(
    (x for x in vars(httpx2).values() if isinstance(x, type) and issubclass(x, BaseException)),
    key=lambda x: x.__name__,
)


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_no_exception_of_the_library_leaks(kind: type[Exception]) -> None:
    assert issubclass(kind, client_errors())

    class Failing(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            exception = kind.__new__(kind)
            Exception.__init__(exception, "what happened")
            raise exception

    with pytest.raises(VerifierError) as caught:
        ask("http://127.0.0.1:9/", transport=Failing())
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("url", ["", "verify", "ftp://host/", "http://", "http://[::bad", None])
def test_an_invalid_address_is_the_callers_mistake(url: object) -> None:
    with CheckVerifier(workers=1, allow_commands=True) as verifier, pytest.raises(UsageError):
        verifier.prepare(Problem("p", check={"kind": "http", "url": url}))


def checked(url: str) -> Problem:
    return Problem("p", "?", {"kind": "http", "url": url, "limits": {"seconds": 9}})


def test_a_file_of_problems_contacts_no_server_unless_the_user_allows_it() -> None:
    problem = checked("http://me:pass@127.0.0.1:9/")
    with CheckVerifier(workers=1) as verifier:
        with pytest.raises(UsageError, match=r"sends candidates to http://127.*--allow") as e:
            verifier.prepare(problem)
        assert "pass" not in str(e.value)
    strict = CheckVerifier(workers=1, isolation=Isolation.STRICT, allow_commands=True)
    with strict, pytest.raises(UsageError, match="strict isolation forbids"):
        strict.prepare(problem)


@pytest.mark.anyio
async def test_in_a_search_the_runtime_learns_when_to_retry(server: Server) -> None:
    server.reply = lambda body: (429, {"retry-after": "7"}, b"")
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        with pytest.raises(VerifierError) as caught:
            await verifier.verify(checked(server.url), Draft("42"))
        assert (caught.value.retry_after, caught.value.fault) == (7.0, "wait")
        server.reply = lambda body: (401, {}, b"")
        with pytest.raises(VerifierError) as caught:
            await verifier.verify(checked(server.url), Draft("42"))
        assert (caught.value.fault, caught.value.unpaid) == ("stop", True)
        assert caught.value.hint == "check the key in VERIFIER_API_KEY"
        server.reply = lambda body: said("passed")
        assert (await verifier.verify(checked(server.url), Draft("42"))).verdict is Verdict.PASSED


def test_in_a_plain_loop_a_server_that_fails_is_a_broken_verdict(server: Server) -> None:
    server.reply = lambda body: (500, {}, b"full")
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        finding = verifier.find(checked(server.url), "42")
        assert (finding.verdict, finding.reason) == (Verdict.BROKEN, "status 500: full")
        server.reply = lambda body: said("failed", reason="wrong")
        assert verifier.find(checked(server.url), "42").reason == "wrong"


PAGE = Path(__file__).parents[2] / "docs" / "guide" / "http-verifier.md"


def test_the_server_on_the_page_verifies_for_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    names: dict[str, Any] = {"__name__": "page"}
    exec(example, names)
    monkeypatch.chdir(tmp_path)
    server = http.server.HTTPServer(("127.0.0.1", 0), names["Handler"])
    monkeypatch.setattr(names["Handler"], "log_message", lambda *_: None)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    check = {"kind": "http", "url": url, "data": {"answer": "42"}}
    record = {"problem": "p", "check": check, "candidates": ["It is 42.", "41"]}
    Path("candidates.jsonl").write_text(json.dumps(record) + "\n")
    try:
        given = ["verify", "candidates.jsonl", "--out", "labels.jsonl"]
        assert cli.run(given) == 2
        assert cli.run([*given, "--allow-commands"]) == 0
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert "1 passed, 1 failed, 0 broken" in capsys.readouterr().out
