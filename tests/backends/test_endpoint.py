"""Many requests at once on one endpoint: all answered, all connections closed."""

from __future__ import annotations

import asyncio
import http.server
import threading
from typing import ClassVar

import pytest

from grv.backends.http.endpoint import Endpoint
from grv.core.errors import GeneratorError
from support.servers import Drop, FaultyServer

pytestmark = pytest.mark.anyio
BODY = {"model": "m", "prompt": "p"}


def endpoint(url: str) -> Endpoint[GeneratorError]:
    return Endpoint(url, backend="test", error=GeneratorError)


async def test_more_requests_than_a_client_has_room_for_are_in_flight_together() -> None:
    with FaultyServer(seconds=0.5) as server:
        asked = endpoint(server.url)
        loop = asyncio.get_running_loop()
        started = loop.time()
        answers = await asyncio.gather(
            *(asked.ask("/completions", {**BODY, "seed": at}, "p") for at in range(20))
        )
        took = loop.time() - started
        await asked.aclose()

    assert len(answers) == len(server.received) == 20
    assert took < 20 * 0.5 / 2  # one after the other would take ten seconds


async def test_a_failure_gives_its_room_back() -> None:
    with FaultyServer([Drop()] * 12) as server:
        asked = endpoint(server.url)
        for _ in range(12):
            with pytest.raises(GeneratorError, match="no connection"):
                await asked.ask("/completions", BODY, "p")
        answer = await asked.ask("/completions", BODY, "p")
        await asked.aclose()
        await asked.aclose()  # once more does no harm

    assert answer["choices"]


class _Redirecting(http.server.BaseHTTPRequestHandler):
    """Redirects to where `to` says, and remembers the headers of all requests."""

    to = ""
    seen: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        here = self.path == "/v1/completions"
        body = b"{}" if here else b'{"choices": [{"index": 0, "text": "there"}]}'
        self.send_response(307 if here else 200)
        if here:
            self.send_header("Location", self.to)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        return


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_a_redirect_to_another_server_is_not_followed(
    elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-the-first-server-only")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-api-key: also-for-the-first-only")
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting) as server,
        FaultyServer() as other,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(_Redirecting, "seen", [])
        place = f"{other.url}/completions" if elsewhere else "/v1/moved"
        monkeypatch.setattr(_Redirecting, "to", place)
        asked = endpoint(f"http://127.0.0.1:{server.server_port}/v1")
        if elsewhere:
            with pytest.raises(GeneratorError, match="redirects to another server") as caught:
                await asked.ask("/completions", BODY, "p")
            assert caught.value.fault == "stop"
            assert caught.value.unpaid
            assert other.url.removesuffix("/v1") in str(caught.value)
        else:
            answer = await asked.ask("/completions", BODY, "p")
            assert answer["choices"][0]["text"] == "there"
        await asked.aclose()
        server.shutdown()
    assert other.received == []
    assert _Redirecting.seen[0]["x-api-key"] == "also-for-the-first-only"
