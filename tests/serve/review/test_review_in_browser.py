"""Review as people do it: in browsers, while servers and runs are killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Route, expect

from support.commands import ended, kill, records, start
from support.pages import (
    Visit,
    chromium,
    dashboard,
    parked,
    run,
    verdicts,
    waiting,
    write_human_problems,
)
from support.servers import FaultyServer

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("pages")]

ANN, BOB = "ann-token-0123456789", "bob-token-0123456789"
REVIEWERS = {"GRV_REVIEWERS": f"ann:{ANN} bob:{BOB}"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


def signed_in(browser: Browser, url: str, token: str) -> Visit:
    visit = Visit.of(browser, f"{url}sign-in?to=/review#key={token}")
    visit.page.wait_for_url("**/review**")
    visit.page.wait_for_selector("html.ready")
    return visit


def item(visit: Visit) -> str:
    """The item that a reviewer has; empty if none."""
    visit.page.locator(".sayings, .done").first.wait_for()
    return visit.page.url.partition("#")[2]


def next_parked(ledger: Path, run: Thread) -> object:
    """The candidates that wait, as soon as there are any; nothing if the run has ended."""
    until = time.monotonic() + 60
    while not (left := parked(ledger)) and run.is_alive():
        assert time.monotonic() < until
        time.sleep(0.1)
    return left


def test_two_reviewers_never_hold_one_item(browser: Browser, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    with (
        waiting(ledger, ["one", "two"]) as run,
        dashboard(ledger, "--review", env=REVIEWERS) as up,
    ):
        ann, bob = (signed_in(browser, up.url, token) for token in (ANN, BOB))
        held = {item(ann), item(bob)}
        assert held == {f"{search}:{candidate}" for search, candidate in parked(ledger)}
        third = ann.page.context.new_page()
        third.goto(f"{up.url}review")
        expect(third.locator("h1").last).to_have_text("Nothing to review")

        bob.page.goto("about:blank")  # he leaves
        third.reload()
        third.wait_for_selector(".sayings")
        assert {item(ann), third.url.partition("#")[2]} == held
        shown = third.content()
        assert "Is it right?" in shown
        assert "It adds." in shown
        assert not any(word in ann.page.inner_text("main") for word in ("score", "0.0"))

        third.close()
        while left := next_parked(ledger, run):
            ann.page.wait_for_selector(".sayings")
            key = "p" if "return a + b" in ann.text("pre >> nth=1") else "f"
            now = item(ann)
            ann.page.keyboard.press(key)
            expect(ann.page.locator("#item")).not_to_have_attribute("data-item", now)
            until = time.monotonic() + 20
            while left == parked(ledger):
                assert time.monotonic() < until, "the verdict is not on record"
                time.sleep(0.1)
        assert ann.complaints == []
        for each in (ann, bob):
            each.close()
    assert sorted(each.candidate for each in verdicts(ledger)) == [0, 0, 1, 1]
    assert {each.reviewer for each in verdicts(ledger)} == {"ann"}


def test_a_verdict_exists_once_though_the_server_is_killed_after_the_click(
    browser: Browser, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    with waiting(ledger, ["one"], budget=11):
        with dashboard(ledger, "--review", env=REVIEWERS) as up:
            ann = signed_in(browser, up.url, ANN)
            before, port = item(ann), int(up.url.rstrip("/").rpartition(":")[2])

            def lose_the_answer(route: Route) -> None:
                route.fetch()  # the server writes the verdict
                kill(up.process)
                route.abort()

            ann.page.route("**/verdict", lose_the_answer, times=1)
            ann.page.keyboard.press("n")
            ann.page.keyboard.type("it subtracts <b>")
            ann.page.keyboard.press("Escape")
            ann.page.keyboard.press("f")
            ann.waits_for("#message", "does not answer")
        with dashboard(ledger, "--review", env=REVIEWERS, port=port):
            expect(ann.page.locator("h1").last).to_have_text("Nothing to review")
            ann.page.locator("summary", has_text="Your last 1 verdict").click()
            assert "one candidate 0" in ann.text(".recent")
            assert ann.page.locator(".recent [title]").get_attribute("title") == before
            ann.close()
    (found,) = verdicts(ledger)
    assert (found.reviewer, found.note, found.verdict.value) == (
        "ann",
        "it subtracts <b>",
        "failed",
    )
    assert 0 < found.usage.seconds < 120


@pytest.mark.soak
def test_a_job_whose_verifier_is_a_person_finishes_over_three_restarts(
    browser: Browser, tmp_path: Path
) -> None:
    problems = write_human_problems(tmp_path / "problems.jsonl", ["one"])
    out, ledger = tmp_path / "out.jsonl", tmp_path / "ledger"
    texts = iter(["bad one", "bad two", "good", "never"])
    with FaultyServer(text=lambda _, seed: next(texts)) as model:
        words = [
            "solve",
            problems,
            "--generator",
            "openai:m",
            "--base-url",
            model.url,
            "--out",
            out,
        ]
        words += ["--ledger", ledger, "--policy", "verify-all", "--score", "length", "--budget", 90]
        process = start(*words)
        while not ledger.exists() or not parked(ledger):
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        with dashboard(ledger, "--review") as up:
            me = Visit.of(browser, up.review)
            me.page.wait_for_url("**/review**")
            for candidate in range(3):
                expect(me.page.locator("pre").nth(1)).to_contain_text(
                    "good" if candidate == 2 else "bad", timeout=60_000
                )
                assert item(me).endswith(f":{candidate}")
                kill(process)
                me.page.keyboard.press("p" if candidate == 2 else "f")
                me.waits_for("h1", "Nothing to review")
                process = start(*words)
            ran = ended(process)
            assert me.complaints == []
            me.close()

    assert ran.code == 0, ran
    (answer,) = records(out)
    assert answer["answer"] == "good"
    assert [each.candidate for each in verdicts(ledger)] == [0, 1, 2]


@pytest.mark.parametrize("to", ["/%09/127.0.0.2:PORT/", "/%0a%5c127.0.0.2:PORT/"])
def test_signing_in_leads_to_no_other_server(browser: Browser, tmp_path: Path, to: str) -> None:
    ledger = tmp_path / "ledger"
    run(ledger, ["one"])
    with dashboard(ledger, "--review", env=REVIEWERS) as up:
        away = to.replace("PORT", up.url.rstrip("/").rpartition(":")[2])
        visit = Visit.of(browser, f"{up.url}sign-in")
        visit.page.goto("about:blank")
        visit.page.goto(f"{up.url}sign-in?to={away}#key={ANN}", wait_until="commit")
        visit.page.wait_for_url(lambda url: "?to=" not in url, wait_until="commit")
        assert not any(url.startswith("http://127.0.0.2") for url in visit.requests)
        assert visit.page.url.startswith(up.url)
        visit.close()
