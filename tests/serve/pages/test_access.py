"""Who may open the pages: keys, cookies, and requests of other sites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

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


def cookie(key: str) -> str:
    return f"grv_key={key}"


def origin(up: Dashboard) -> str:
    return up.url.rstrip("/")


@pytest.mark.parametrize(
    "path", ["/api/overview", "/api/searches", "/api/searches/x", "/api/events"]
)
def test_the_ledger_is_shown_only_to_those_who_may_see_it(up: Dashboard, path: str) -> None:
    assert up.status(path) == 401
    assert up.status(path, cookie=cookie("wrong-key-0123456789")) == 401
    assert up.status(path, cookie=cookie(OTHER)) == 403
    if path != "/api/events":
        assert up.status(path, cookie=cookie(REVIEW)) == 403
        assert up.status(path, cookie=cookie(WATCH)) in (200, 404)


def test_a_review_needs_a_reviewer_our_own_page_and_its_token(up: Dashboard) -> None:
    session = up.get("/api/session", cookie=cookie(REVIEW))
    assert session["reviews"]
    ours = {"cookie": cookie(REVIEW), "origin": origin(up), "x_grv_token": session["token"]}
    path, body = "/api/review/next", dict[str, str]()

    assert up.status(path, body, **ours) == 200
    assert up.status(path, body, **(ours | {"cookie": cookie(WATCH)})) == 401
    assert up.status(path, body, **(ours | {"origin": "http://evil.example"})) == 403
    assert up.status(path, body, **(ours | {"origin": "null"})) == 403
    assert up.status(path, body, **(ours | {"sec_fetch_site": "cross-site"})) == 403
    assert up.status(path, body, **(ours | {"x_grv_token": "0" * 64})) == 403
    assert up.status(path, body, **(ours | {"content_type": "text/plain"})) == 415
    without = {name: value for name, value in ours.items() if name != "origin"}
    assert up.status(path, body, **without) == 403
    assert up.status("/api/review/verdict", {"item": "x"}, **ours) == 400
    assert up.status("/api/review/verdict", {"item": "s:0", "verdict": "maybe"}, **ours) == 400
    assert up.status("/api/review/open", {"item": "s:0"}, **ours) == 404


def test_signing_in_sets_a_cookie_that_scripts_and_other_sites_cannot_use(up: Dashboard) -> None:
    import json
    import urllib.request

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


def test_every_response_has_the_strict_headers(up: Dashboard) -> None:
    import urllib.request

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
    assert up.status(f"/api/searches?{query}", cookie=cookie(WATCH)) == 400


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
