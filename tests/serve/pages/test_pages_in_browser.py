"""The dashboard as people meet it: in a browser, while a run goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, expect

from support.pages import HOSTILE, Backends, Dashboard, Visit, chromium, dashboard, run

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("pages")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A ledger with 52 solved searches, one of a hostile name, and 3 unsolved ones."""
    ledger = tmp_path_factory.mktemp("pages") / "ledger"
    run(ledger, [*(f"task-{at:02}" for at in range(51)), HOSTILE])
    run(ledger, [f"hopeless-{at}" for at in range(3)], Backends(every=0))
    with dashboard(ledger, "--total-budget", 100_000) as up:
        yield up


@pytest.fixture(scope="module")
def seen(browser: Browser, shown: Dashboard) -> Visit:
    return Visit.of(browser, shown.url)


@pytest.fixture
def fresh(seen: Visit, shown: Dashboard) -> Visit:
    seen.complaints.clear()
    seen.requests.clear()
    seen.page.goto(shown.url)
    seen.page.wait_for_selector("html.ready")
    return seen


@pytest.mark.soak
def test_a_run_is_watched_live_from_start_to_end(browser: Browser, tmp_path: Path) -> None:
    ledger, names = tmp_path / "ledger", [f"task-{at}" for at in range(4)]
    run(ledger, ["before"])
    going = Thread(
        target=run, args=(ledger, names, Backends(seconds=1.5)), kwargs={"at_once": 1}, daemon=True
    )

    with dashboard(ledger) as up:
        visit = Visit.of(browser, up.url)
        solved, running = (visit.page.locator(".tile .figure-of").nth(at) for at in (1, 0))
        expect(solved).to_have_text("1")
        going.start()
        visit.waits_for("tbody .pill", "running")
        expect(running).to_have_text("1")
        visit.page.locator("tr", has_text="task-3").locator("a").click()
        visit.waits_for(".title .pill", "running")
        visit.waits_for(".timeline", "candidate 0 failed")
        visit.waits_for(".title .pill", "solved")
        visit.waits_for(".timeline", "Ended: solved")
        visit.page.locator(".back a").click()
        expect(solved).to_have_text("5")
        expect(running).to_have_text("0")
        going.join()
        assert visit.complaints == []
        visit.close()


def test_html_in_prompts_and_candidates_is_text(fresh: Visit, shown: Dashboard) -> None:
    fresh.page.fill("#q", "window.hacked")
    fresh.waits_for("#pager", "1–1 of 1")
    assert fresh.text("tbody th") == HOSTILE
    fresh.page.locator("tbody th a").click()
    fresh.page.wait_for_selector("#beside .pane")

    assert HOSTILE in fresh.text("h1")
    assert HOSTILE in fresh.text("#search pre")
    assert HOSTILE in fresh.page.inner_text("#beside")
    assert "The failing test" in fresh.page.inner_text("#beside")
    assert fresh.page.evaluate("window.hacked ?? null") is None
    assert [url for url in fresh.requests if not url.startswith(shown.url)] == []
    assert fresh.complaints == []


def test_no_script_style_or_address_of_others_gets_in(fresh: Visit) -> None:
    blocked = fresh.page.evaluate(
        """async () => {
            const blocked = new Set();
            const told = (event) => blocked.add(event.violatedDirective);
            document.addEventListener('securitypolicyviolation', told);
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 2';
            document.body.append(script);
            const style = document.createElement('style');
            style.textContent = 'body { display: none }';
            document.head.append(style);
            await fetch('http://127.0.0.1:9/').catch(() => {});
            new Image().src = 'http://127.0.0.1:9/x.png';
            await new Promise((done) => setTimeout(done, 100));
            return [[...blocked].sort(), window.hacked ?? null];
        }"""
    )
    assert blocked == [["connect-src", "img-src", "script-src-elem", "style-src-elem"], None]


def test_a_search_shows_steps_reasons_and_candidates_side_by_side(fresh: Visit) -> None:
    fresh.page.fill("#q", "task-00")
    fresh.waits_for("#pager", "of 1")
    fresh.page.locator("tbody th a").click()
    fresh.page.wait_for_selector("#beside .pane")

    steps = fresh.page.locator(".timeline li").all_inner_texts()
    assert "every candidate is verified" in steps[2]
    assert "candidate 0 failed" in steps[2]
    assert steps[-1].startswith("Ended: solved")
    panes = fresh.page.locator(".pane")
    assert "return a + b" in panes.nth(0).inner_text()
    assert "expected" in panes.nth(1).inner_text()
    fresh.page.locator(".pane select").nth(1).select_option("1")
    assert re.search(r"\?left=2&right=1$", fresh.page.url)
    fresh.page.reload()
    fresh.page.wait_for_selector("#beside .pane")
    assert "# 1 " in fresh.page.locator(".pane").nth(1).inner_text()
    assert fresh.complaints == []


def test_filters_make_permanent_links(fresh: Visit, browser: Browser) -> None:
    fresh.page.locator("label", has_text="Unsolved").click()
    fresh.waits_for("#pager", "1–3 of 3")
    address = fresh.page.url
    assert address.endswith("?show=unsolved")

    again = Visit.of(browser, address)
    assert again.page.locator("tbody tr").count() == 3
    again.close()
    fresh.page.go_back()
    fresh.waits_for("#pager", "1–50 of 55")
    fresh.page.locator("#texts").check()
    fresh.page.fill("#q", "a + b")
    fresh.waits_for("#pager", "of 52")
    assert fresh.complaints == []


def test_the_keyboard_is_enough(fresh: Visit) -> None:
    fresh.page.keyboard.press("/")
    fresh.page.keyboard.type("hopeless")
    fresh.waits_for("#pager", "of 3")
    fresh.page.keyboard.press("Escape")
    fresh.page.keyboard.press("j")
    fresh.page.keyboard.press("j")
    fresh.page.keyboard.press("Enter")
    fresh.page.wait_for_selector("#beside .pane")
    before = fresh.page.locator(".pane select").first.input_value()
    fresh.page.keyboard.press("j")
    assert fresh.page.locator(".pane select").first.input_value() != before
    fresh.page.keyboard.press("u")
    fresh.page.wait_for_selector("#tiles .tile")
    assert fresh.complaints == []


def test_a_phone_shows_all_without_scrolling_sideways(browser: Browser, shown: Dashboard) -> None:
    visit = Visit.of(browser, shown.url, width=360, theme="dark")
    wide = "document.documentElement.scrollWidth > innerWidth"
    ground = "getComputedStyle(document.body).backgroundColor"

    assert not visit.page.evaluate(wide)
    assert visit.page.evaluate(ground) == "rgb(18, 21, 26)"
    visit.page.locator("tbody th a").first.click()
    visit.page.wait_for_selector("#beside .pane")
    assert not visit.page.evaluate(wide)
    visit.page.locator("#theme").click()
    assert visit.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert visit.complaints == []
    visit.close()


@pytest.mark.parametrize("width", [390, 820, 1100, 1400])
def test_the_figure_of_a_tile_is_on_one_line(fresh: Visit, width: int) -> None:
    fresh.page.set_viewport_size({"width": width, "height": 900})
    figure = fresh.page.locator(".tile .figure-of").last
    line = "each => parseFloat(getComputedStyle(each).lineHeight)"
    for shown in ("−100 to 100 %", "−93 to 55 %"):
        figure.evaluate("(each, shown) => { each.textContent = shown }", shown)
        height = figure.evaluate("each => each.clientHeight")
        assert height < 1.5 * figure.evaluate(line)


def test_the_overview_says_what_the_ledger_has(fresh: Visit) -> None:
    tiles = [each.split("\n\n") for each in fresh.page.locator(".tile").all_inner_texts()]
    named = {name: (value, " ".join(more)) for name, value, *more in tiles}

    assert named["Solved"][0] == "52"
    assert named["Running"] == ("0", "everything has ended")
    assert named["Saved"][0] == "0 %"  # the run verified everything
    assert fresh.page.locator("#charts svg").count() == 2
    fresh.page.locator("summary", has_text="What the numbers mean").click()
    assert "a key that has failed is not verified again" in fresh.page.inner_text("#meanings")
    assert fresh.complaints == []


def test_the_link_back_leads_to_no_other_server(fresh: Visit, shown: Dashboard) -> None:
    search = shown.get("/api/searches")["searches"][0]["id"]
    for referrer, back in ((f"{shown.url}?page=1", f"{shown.url}?page=1"), ("", "/")):
        elsewhere = f"{shown.url.rstrip('/')}0/"  # begins as our own address does
        fresh.page.goto(f"{shown.url}searches/{search}", referer=referrer or elsewhere)
        fresh.page.wait_for_selector("html.ready")
        assert fresh.page.locator(".back a").get_attribute("href") == back


def test_before_data_arrives_the_page_says_what_it_waits_for(
    browser: Browser, shown: Dashboard
) -> None:
    page = browser.new_context().new_page()
    page.route("**/api/**", lambda route: None)  # no request is answered
    page.goto(shown.url)
    names = page.locator(".tile h2").all_inner_texts()
    assert names == ["Running", "Solved", "Spent", "Left", "Pass rate", "Saved"]
    assert "Reading the ledger" in page.locator("#list").inner_text()
    page.context.close()


def test_a_list_of_candidates_has_no_scroll_of_its_own(fresh: Visit) -> None:
    fresh.page.locator("tbody th a").first.click()
    fresh.page.wait_for_selector("#beside .pane")
    for place in (".column .rows", ".timeline"):
        inside = fresh.page.locator(place).evaluate("it => it.scrollHeight - it.clientHeight")
        assert inside <= 1, place


def test_the_sign_in_page_says_where_a_key_comes_from(fresh: Visit, shown: Dashboard) -> None:
    fresh.page.goto(f"{shown.url}sign-in")
    said = fresh.page.locator("#sign-in").inner_text()
    assert all(word in said for word in ("--clients", "GRV_REVIEWERS", "terminal"))
