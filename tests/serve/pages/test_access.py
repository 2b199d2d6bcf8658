"""Who may open the pages: keys, cookies, and requests of other sites."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, closing
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from grv.ledger.entries import Started
from grv.ledger.opening import open_ledger
from grv.serve.pages.follower import Follower
from grv.serve.pages.store import Store
from support.pages import Dashboard, dashboard, run
from support.serving import key_hash

WATCH, REVIEW, OTHER = (f"{name}-key-0123456789" for name in ("watch", "review", "other"))


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("access")
    run(folder / "ledger", ["one"])
    (folder / "clients.toml").write_text(
        f'[clients.watch]\nkey = "{key_hash(WATCH)}"\ndashboard = true\nprofiles = ["any"]\n'
        f'[clients.rita]\nkey = "{key_hash(REVIEW)}"\nreview = true\n'
        f'[clients.other]\nkey = "{key_hash(OTHER)}"\n'
    )
    with dashboard(
        folder / "ledger",
        "--review",
        "--clients",
        folder / "clients.toml",
        env={"GRV_REVIEWERS": "x:0123456789abcdef"},
    ) as shown:
        yield shown


def origin(up: Dashboard) -> str:
    return up.url.rstrip("/")


def signed_in(up: Dashboard, key: str) -> str:
    """The header Cookie of a client that has signed in."""
    request = urllib.request.Request(
        f"{origin(up)}/api/session",
        json.dumps({"key": key}).encode(),
        {"content-type": "application/json", "origin": origin(up)},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return str(response.headers["set-cookie"]).partition(";")[0]


@pytest.mark.parametrize(
    "path", ["/api/overview", "/api/searches", "/api/searches/x", "/api/events"]
)
def test_the_ledger_is_shown_only_to_those_who_may_see_it(up: Dashboard, path: str) -> None:
    assert up.status(path) == 401
    for name in ("grv_session", "grv_key"):
        assert up.status(path, cookie=f"{name}={WATCH}") == 401  # a key is no session
    assert up.status("/api/session", {"key": OTHER}, origin=origin(up)) == 401
    if path != "/api/events":
        assert up.status(path, cookie=signed_in(up, REVIEW)) == 403
        assert up.status(path, cookie=signed_in(up, WATCH)) in (200, 404)


def test_a_review_needs_a_reviewer_our_own_page_and_its_token(up: Dashboard) -> None:
    rita = signed_in(up, REVIEW)
    session = up.get("/api/session", cookie=rita)
    assert session["reviews"]
    ours = {"cookie": rita, "origin": origin(up), "x_grv_token": session["token"]}
    path, body = "/api/review/next", dict[str, str]()

    assert up.status(path, body, **ours) == 200
    assert up.status(path, body, **(ours | {"cookie": signed_in(up, WATCH)})) == 401
    assert up.status(path, body, **(ours | {"origin": "http://evil.example"})) == 403
    for wrong in ("null", "http://[", "http://", "//", origin(up) + "@evil", "http://a@b", "\xff"):
        assert up.status(path, body, **(ours | {"origin": wrong})) == 403
    assert up.status(path, body, **(ours | {"sec_fetch_site": "cross-site"})) == 403
    assert up.status(path, body, **(ours | {"x_grv_token": "0" * 64})) == 403
    assert up.status(path, body, **(ours | {"content_type": "text/plain"})) == 415
    without = {name: value for name, value in ours.items() if name != "origin"}
    assert up.status(path, body, **without) == 403
    assert up.status("/api/review/verdict", {"item": "x"}, **ours) == 400
    assert up.status("/api/review/verdict", {"item": "s:0", "verdict": "maybe"}, **ours) == 400
    assert up.status("/api/review/open", {"item": "s:0"}, **ours) == 404


def test_signing_in_sets_a_cookie_that_scripts_and_other_sites_cannot_use(up: Dashboard) -> None:
    address = f"{origin(up)}/api/session"
    request = urllib.request.Request(
        address,
        json.dumps({"key": REVIEW}).encode(),
        {"content-type": "application/json", "origin": origin(up)},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        set_cookie = response.headers["set-cookie"].lower()
    assert "httponly" in set_cookie
    assert "samesite=strict" in set_cookie
    assert up.status("/api/session", {"key": "wrong"}, origin=origin(up)) == 401
    assert up.status("/api/session", {"key": REVIEW}, origin="http://evil.example") == 403
    assert up.status("/api/session", {"key": 1}, origin=origin(up)) == 400


@pytest.mark.slow
def test_signing_out_ends_the_session_and_a_restart_does_not(tmp_path: Path) -> None:
    run(tmp_path / "ledger", ["one"])
    env = {"GRV_REVIEWERS": f"ann:{REVIEW}"}
    with dashboard(tmp_path / "ledger", "--review", env=env) as up:
        one, other = signed_in(up, REVIEW), signed_in(up, REVIEW)
        token = up.get("/api/session", cookie=one)["token"]
        assert up.status("/api/session", method="DELETE", cookie=one) == 403  # of another page
        assert up.status("/api/session", method="DELETE", cookie=one, origin=origin(up)) == 204
        assert not up.get("/api/session", cookie=one)["reviews"]
        ours = {"origin": origin(up), "x_grv_token": token, "cookie": one}
        assert up.status("/api/review/next", {}, **ours) == 401
    for each in tmp_path.iterdir():
        if each.is_file():
            assert REVIEW.encode() not in each.read_bytes()
            assert other.partition("=")[2].encode() not in each.read_bytes()
    with dashboard(tmp_path / "ledger", "--review", env=env) as up:
        assert up.get("/api/session", cookie=other)["reviews"]
        assert not up.get("/api/session", cookie=one)["reviews"]
    with dashboard(tmp_path / "ledger", "--review", env={"GRV_REVIEWERS": f"ann:{OTHER}"}) as up:
        assert not up.get("/api/session", cookie=other)["reviews"]  # her token was changed


@pytest.mark.slow
@pytest.mark.timeout(60)  # a stream that goes on never ends
def test_signing_out_ends_the_streams_of_the_session(tmp_path: Path) -> None:
    run(tmp_path / "ledger", ["one"])
    env = {"GRV_REVIEWERS": f"ann:{REVIEW}"}
    with dashboard(tmp_path / "ledger", "--review", env=env) as up:
        cookie = signed_in(up, REVIEW)
        request = urllib.request.Request(f"{origin(up)}/api/events", headers={"cookie": cookie})
        with urllib.request.urlopen(request, timeout=30) as stream:
            assert stream.readline() == b"retry: 1500\n"
            assert (
                up.status("/api/session", method="DELETE", cookie=cookie, origin=origin(up)) == 204
            )
            run(tmp_path / "ledger", ["two"])
            assert b"event:" not in b"".join(stream).partition(b"\n\n")[2]


@pytest.mark.slow
def test_one_reader_does_not_take_the_streams_of_all(up: Dashboard) -> None:
    def opened(key: str) -> int:
        cookie = f"Cookie: {signed_in(up, key)}"
        stream = stack.enter_context(socket.create_connection(address, timeout=10))
        stream.sendall(f"GET /api/events HTTP/1.1\r\nHost: x\r\n{cookie}\r\n\r\n".encode())
        said = stream.recv(1 << 16)
        while b"event:" not in said and b"error" not in said:
            said += stream.recv(1 << 16)
        return int(said.split()[1])

    parts = urlsplit(up.url)
    address = (parts.hostname, parts.port)
    with ExitStack() as stack:
        assert [opened(REVIEW) for _ in range(51)] == [200] * 50 + [429]
        assert opened(WATCH) == 200


@pytest.mark.slow
def test_keys_are_guessed_slowly(tmp_path: Path) -> None:
    run(tmp_path / "ledger", ["one"])
    with dashboard(
        tmp_path / "ledger", "--review", env={"GRV_REVIEWERS": f"ann:{REVIEW} bob:{OTHER}"}
    ) as up:

        def sign_in(key: str) -> int:
            return up.status("/api/session", {"key": key}, origin=origin(up))

        assert sign_in(REVIEW) == 204
        found = [sign_in(f"guess {number}") for number in range(40)]
        assert found[:10] == [401] * 10
        assert found.count(429) >= 20
        assert sign_in(OTHER) == 429  # a right guess tells no more than a wrong one
        assert sign_in(REVIEW) == 204  # who was here before is not locked out


def test_every_response_has_the_strict_headers(up: Dashboard) -> None:

    for path in ("/", "/review", "/searches/x", "/assets/pages.css", "/api/session"):
        with urllib.request.urlopen(origin(up) + path, timeout=10) as response:
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/assets/nothing.js", "/assets/..%2f..%2froutes.py", "/api/nothing", "/nothing"]
)
def test_what_is_not_there_is_not_found(up: Dashboard, path: str) -> None:
    assert up.status(path) == 404


@pytest.mark.parametrize("query", ["show=x", "sort=x", "page=-1", "page=x", "page=99999999999"])
def test_a_wrong_filter_is_refused(up: Dashboard, query: str) -> None:
    assert up.status(f"/api/searches?{query}", cookie=signed_in(up, WATCH)) == 400


@pytest.mark.slow
def test_without_clients_only_this_machine_sees_the_ledger(tmp_path: Path) -> None:
    run(tmp_path / "ledger", ["one"])
    with dashboard(tmp_path / "ledger") as up:
        host = urlsplit(up.url).netloc
        assert up.get("/api/overview")["searches"] == 1
        assert up.status("/api/overview", host="evil.example") == 403
        assert up.status("/api/overview", host=host, origin="http://evil.example") == 403
        assert up.status("/review") == 404
        up.process.terminate()
        assert up.process.wait(20) == 0


@pytest.mark.parametrize(
    "item", ["\ud800:0", "\0:0", "x:-1", "x:9999999999", " :0", "a b:0", f"{'x' * 200}:0", ":0"]
)
def test_a_strange_name_of_a_candidate_is_refused(up: Dashboard, item: str) -> None:
    rita = signed_in(up, REVIEW)
    token = up.get("/api/session", cookie=rita)["token"]
    ours = {"cookie": rita, "origin": origin(up), "x_grv_token": token}
    assert up.status("/api/review/open", {"item": item}, **ours) == 400
    said = {"item": item, "lease": "\ud800", "verdict": "pass", "seconds": 1}
    assert up.status("/api/review/verdict", said, **ours) == 400


def test_strange_addresses_are_no_bugs(up: Dashboard) -> None:
    watch = signed_in(up, WATCH)
    assert up.status(f"/api/searches/x/{'9' * 5000}", cookie=watch) == 404
    assert up.status("/api/searches/%00", cookie=watch) == 404
    assert up.status("/api/searches/%00/1", cookie=watch) == 404
    assert up.status("/api/searches?q=%00", cookie=watch) == 400
    assert up.status("/api/session", {"key": "\ud800"}, origin=origin(up)) == 400
    assert not any("bug" in line for line in up.lines)


@pytest.mark.slow
def test_a_reviewer_is_not_told_which_searches_change(tmp_path: Path) -> None:
    """Only those who may see the ledger learn the names of searches."""

    async def first() -> list[bytes]:
        with closing(open_ledger(tmp_path / "ledger")) as ledger:
            follower = Follower(Store(ledger))
            found = []
            for named in (True, False):
                events = follower.stream(named=named)
                async with aclosing(events):  # type: ignore[type-var]
                    await anext(events)
                    assert follower.streams.total() == 1
                    ledger.append("a-search", [Started("p", {})])
                    found.append(await anext(events))
                assert follower.streams.total() == 0
            return found

    one, other = anyio.run(first)
    assert b"a-search" in one
    assert b"a-search" not in other
