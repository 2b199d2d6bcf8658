"""The page as people meet it: in a browser, with a mouse, a keyboard, a phone."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from grv.core.values import Costs
from grv.logs.log import Log, LoggedProblem
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.page.page import page as page_of
from grv.report.parts import TABLES
from grv.report.report import Report
from grv.report.request import ReportRequest
from grv.testing import all_wrong, population

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("pages")]

HOSTILE = "</script><script>window.hacked=1</script>\"'><img src=x onerror=window.hacked=1>&amp;"
PRICES = (Costs(1, 10), Costs(1, 3))


def small(kind: str, seed: int) -> Log:
    first, *rest = population(kind, problems=8, candidates=40, seed=seed).problems
    return Log((replace(first, id=HOSTILE), *rest, all_wrong(40).logged("a hopeless one")))


@pytest.fixture(scope="module")
def report() -> Report:
    request = ReportRequest(costs=PRICES, orders=3, many_orders=10)
    sources = [
        ReportSource("first", log=small("coding", 4)),
        ReportSource(HOSTILE, log=small("math", 5)),
    ]
    return make_report(sources, request)


@dataclass
class Visit:
    """An open page, and what it did unasked."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def chart(self, name: str) -> str:
        return f"#{name} svg.figure"

    def rows(self, name: str) -> list[list[str]]:
        """The cells of a table, which is opened if need be."""
        self.page.evaluate(f"document.querySelector('#{name} details').open = true")
        self.page.wait_for_selector(f"#{name} tbody")
        texts = "(lines) => lines.map((line) => [...line.cells].map((cell) => cell.textContent))"
        found: list[list[str]] = self.page.locator(f"#{name} tbody tr").evaluate_all(texts)
        return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    assert path is not None, "no browser: make browser"
    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def visit(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Visit]:
    """Opens a page from the disk."""
    folder = tmp_path_factory.mktemp("pages")

    def opened(text: str, width: int = 1280) -> Visit:
        path = Path(folder) / f"page-{abs(hash(text))}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        found = Visit(context.new_page())
        found.page.on("console", lambda said: found.complaints.append(said.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda asked: found.requests.append(asked.url))
        found.page.goto(path.as_uri())
        found.page.wait_for_selector("html.ready")
        return found

    return opened


@pytest.fixture(scope="module")
def seen(visit: Callable[..., Visit], report: Report) -> Visit:
    return visit(page_of(report))


@pytest.fixture
def fresh(seen: Visit) -> Visit:
    """The shared page as it was in the beginning.

    Not by reloading: the browser then scrolls back to where it was, under the next click.
    """
    address = seen.page.url
    seen.page.goto("about:blank")
    seen.page.goto(address)
    seen.page.wait_for_selector("html.ready")
    return seen


def test_every_figure_is_drawn_and_has_its_words(fresh: Visit, report: Report) -> None:
    for table in report.tables:
        if not TABLES[table.name].drawings:
            continue
        if not table.rows:
            assert table.notes[0] in fresh.page.inner_text(f"li:has(#{table.name})")
            continue
        chart = fresh.page.locator(fresh.chart(table.name))
        assert chart.get_attribute("role") == "img"
        assert table.alt in (chart.get_attribute("aria-label") or "")
        marks = "path.dot, path.line, path.rule, path.whisker, rect.fill"
        assert chart.locator(marks).count() > 0, table.name
        box = chart.bounding_box()
        assert box is not None
        assert box["height"] > 50
    assert fresh.complaints == []


def test_nothing_leaves_the_page_and_nothing_gets_in(fresh: Visit) -> None:
    assert all(url.startswith(("file:", "blob:")) for url in fresh.requests)
    assert fresh.page.evaluate("window.hacked") is None
    assert HOSTILE in [cell for row in fresh.rows("auc_problems") for cell in row]
    blocked = fresh.page.evaluate(
        """async () => {
            let blocked = 0;
            document.addEventListener('securitypolicyviolation', () => { blocked += 1; });
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 2';
            document.body.append(script);
            await fetch('http://127.0.0.1:9/').catch(() => {});
            new Image().src = 'http://127.0.0.1:9/x.png';
            await new Promise((done) => setTimeout(done, 100));
            return [blocked, window.hacked ?? null];
        }"""
    )
    assert blocked == [3, None]
    fresh.complaints.clear()  # the browser told of those three


def test_pointing_at_a_bar_tells_its_numbers(fresh: Visit, report: Report) -> None:
    bar = fresh.page.locator(f"{fresh.chart('summary')} rect.fill").first
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    assert box is not None
    fresh.page.mouse.move(box["x"] + box["width"], box["y"] + box["height"] / 2)
    told = fresh.page.inner_text("#tip")
    row = report["summary"].records()[0]
    assert str(row["policy"]) in told
    assert f"{row['cost']:.1f}" in told
    fresh.page.mouse.move(2, 2)
    assert fresh.page.is_hidden("#tip")


def test_arrow_keys_walk_through_a_chart_and_say_what_is_there(fresh: Visit) -> None:
    fresh.page.focus(fresh.chart("optimal_pairs"))
    fresh.page.keyboard.press("ArrowRight")
    first = fresh.page.inner_text("#spoken")
    fresh.page.keyboard.press("ArrowRight")
    second = fresh.page.inner_text("#spoken")
    assert "generated" in first
    assert first != second
    assert fresh.page.is_visible("#tip")
    fresh.page.keyboard.press("Escape")
    assert fresh.page.is_hidden("#tip")


def test_every_control_can_be_reached_with_the_tab_key(fresh: Visit) -> None:
    wanted = fresh.page.evaluate(
        """() => {
            const all = [...document.querySelectorAll('a, button, input, summary, svg.figure')];
            window.wanted = all.filter((each) => each.checkVisibility() && each.type !== 'radio');
            window.reached = new Set();
            document.addEventListener('focusin', (event) => window.reached.add(event.target));
            return window.wanted.length;
        }"""
    )
    assert wanted > 60
    for _ in range(wanted // 10):  # with some to spare for what else takes the focus
        for _ in range(12):
            fresh.page.keyboard.press("Tab")
        if fresh.page.evaluate("window.reached.has(window.wanted.at(-1))"):
            break
    missed = "window.wanted.filter((each) => !window.reached.has(each)).map((one) => one.outerHTML)"
    assert fresh.page.evaluate(missed) == []
    fresh.page.focus("#prices input:checked")
    fresh.page.keyboard.press("ArrowRight")  # within a group of radio buttons
    assert fresh.page.input_value("#prices input:checked") == "1,3"


def test_policies_can_be_left_out(fresh: Visit) -> None:
    bars = fresh.page.locator(f"{fresh.chart('summary')} rect.fill")
    before = bars.count()
    fresh.page.click("nav .filter summary")
    fresh.page.click("#filters label:has-text('verify-all')")
    assert bars.count() == before - 2  # one per log
    trials = fresh.page.locator(f"{fresh.chart('trials')} path.line")
    assert trials.count() == 6  # two per log, and two in the legend
    fresh.page.click("#filters label:has(input[value='adaptive'])")
    assert trials.count() == 3  # those of hindsight
    assert "verify-all" not in [cell for row in fresh.rows("summary") for cell in row]
    fresh.page.click("#filters button:text-is('None')")
    assert "The filters above exclude all rows" in fresh.page.inner_text("#summary .chart")
    fresh.page.click("#filters button:text-is('All')")
    assert bars.count() == before


def test_another_price_list_redraws_everything(fresh: Visit, report: Report) -> None:
    for prices in ("1,3", "1,10"):
        fresh.page.click(f"#prices label:has(input[value='{prices}'])")
        fresh.page.wait_for_selector(f"#prices input[value='{prices}']:checked", state="attached")
        wanted = report["summary"].only(costs=prices).column("cost")
        written = fresh.page.locator(f"{fresh.chart('summary')} text.value").all_text_contents()
        assert [float(text.split(",")[0]) for text in written] == pytest.approx(wanted, abs=0.051)
        table = report["summary"].only(costs=prices)
        for row, cells in zip(table.rows, fresh.rows("summary"), strict=True):
            for column, value, cell in zip(table.columns, row, cells, strict=True):
                said = column.shown(value)
                if said != cell:  # halves are rounded up there, and to the even digit here
                    step = 10.0**-column.digits
                    there, here = (float(text.removesuffix(" %")) for text in (cell, said))
                    assert there == pytest.approx(here + step)


def test_a_log_can_be_left_out(fresh: Visit) -> None:
    panels = fresh.page.locator(f"{fresh.chart('coverage')} text.panel")
    assert panels.count() == 2
    fresh.page.click("#prices label:has-text('first')")
    assert panels.count() == 0  # a single one needs no heading
    assert fresh.page.locator(f"{fresh.chart('coverage')} path.line").count() > 0


def test_tables_sort_both_ways(fresh: Visit) -> None:
    fresh.rows("summary")
    head = fresh.page.locator("#summary th:has(button:text-is('cost'))")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    falling = [float(row[5]) for row in fresh.rows("summary")]
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert fresh.page.evaluate("document.activeElement.textContent") == "cost"
    assert [float(row[5]) for row in fresh.rows("summary")] == falling[::-1] == sorted(falling)


def test_tables_are_copied_whole(fresh: Visit, report: Report) -> None:
    fresh.page.click("#summary button:text-is('Copy')")
    fresh.page.wait_for_selector("#summary button:text-is('Copied')")
    lines = fresh.page.evaluate("navigator.clipboard.readText()").splitlines()
    table = report["summary"].only(costs="1,10")
    assert lines[0].split("\t") == [column.label for column in table.columns]
    assert [float(line.split("\t")[5]) for line in lines[1:]] == table.column("cost")
    fresh.page.click("#per_log button:text-is('Copy Markdown')")
    fresh.page.wait_for_selector("#per_log button:text-is('Copied')")
    assert "|---|---|---:|" in fresh.page.evaluate("navigator.clipboard.readText()")


def test_a_figure_is_saved_as_a_file_of_its_own(fresh: Visit, tmp_path: Path) -> None:
    with fresh.page.expect_download() as waiting:
        fresh.page.click("#sensitivity button:text-is('Save SVG')")
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    assert path.name == "sensitivity.svg"
    root = ET.parse(path).getroot()
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert title.text == "Costs by cost ratio"
    text = path.read_text(encoding="utf-8")
    assert "var(" not in text
    assert "class=" not in text
    assert fresh.complaints == []


def test_views_show_other_columns(fresh: Visit) -> None:
    label = fresh.page.locator(f"{fresh.chart('sensitivity')} text.label")
    assert "× baseline" in label.all_text_contents()
    fresh.page.click("#sensitivity .views label:has-text('in order')")
    assert "× in order" in label.all_text_contents()


def test_light_and_dark_by_preference_and_by_switch(fresh: Visit) -> None:
    def ground() -> str:
        return str(fresh.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    fresh.page.emulate_media(color_scheme="light")
    light = ground()
    fresh.page.emulate_media(color_scheme="dark")
    dark = ground()
    assert light != dark
    fresh.page.click("#theme")
    assert ground() == light
    fresh.page.click("#theme")
    assert ground() == dark
    fresh.page.emulate_media(color_scheme="light")


def test_a_phone_needs_no_sideways_scrolling(fresh: Visit) -> None:
    fresh.page.set_viewport_size({"width": 360, "height": 700})
    fresh.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    fresh.page.wait_for_timeout(100)
    assert fresh.page.evaluate("document.documentElement.scrollWidth") == 360
    boxes = [chart.bounding_box() for chart in fresh.page.locator("svg.figure").all()]
    assert all(box is None or box["x"] + box["width"] <= 360 for box in boxes)
    fresh.page.set_viewport_size({"width": 1280, "height": 900})


def test_on_a_phone_all_figures_but_the_first_of_each_part_are_folded(
    visit: Callable[..., Visit], report: Report
) -> None:
    here = visit(page_of(report), width=390)
    height = "document.documentElement.scrollHeight"
    unfold = "document.querySelectorAll('.folded').forEach((it) => it.classList.remove('folded'))"
    cards = here.page.locator(".part .card")
    folded = here.page.locator(".part .card.folded")
    assert folded.count() == cards.count() - here.page.locator(".part:has(.card)").count()
    figure = here.page.locator("#budget_curve")
    assert not figure.locator(".figure").is_visible()
    figure.locator("h3 button").click()
    box = figure.locator(".figure").bounding_box()
    assert box is not None
    assert 240 < box["width"] <= 390
    here.page.evaluate("location.hash = '#calibration'")
    here.page.locator("#calibration .figure").wait_for()
    short = here.page.evaluate(height)
    here.page.evaluate(unfold)
    assert short < 0.6 * here.page.evaluate(height)
    assert here.complaints == []


def logged(name: str, passed: list[int], scores: list[float]) -> LoggedProblem:
    return LoggedProblem(name, np.array(scores, dtype=float), np.array(passed, dtype=bool))


DEGENERATE = {
    "one problem": Log((logged("a", [0, 1, 0, 0], [0.1, 0.9, 0.3, 0.2]),)),
    "no solvable problem": Log(tuple(all_wrong(5).logged(name) for name in "ab")),
    "all passed": Log(tuple(logged(name, [1, 1, 1], [0.1, 0.2, 0.3]) for name in "ab")),
    "all scores equal": Log(tuple(logged(name, [0, 1, 0, 1], [1.0] * 4) for name in "ab")),
    "one candidate each": Log((logged("a", [1], [0.5]), logged("b", [0], [0.4]))),
    "missing scores": Log(
        (logged("a", [0, 1, 0], [-np.inf, 0.5, 0.2]), logged("b", [1, 0], [-np.inf] * 2))
    ),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_a_log_with_little_in_it_gets_words_instead_of_empty_charts(
    case: str, visit: Callable[..., Visit]
) -> None:
    request = ReportRequest(costs=PRICES, orders=2, many_orders=3)
    made = make_report([ReportSource("log", log=DEGENERATE[case])], request)
    here = visit(page_of(made), width=390)
    assert here.complaints == []
    assert len(here.page.inner_text(".conclusions")) > 100
    for table in made.tables:
        if table.rows and TABLES[table.name].drawings:
            drawn = here.page.locator(f"{here.chart(table.name)} path").count() > 0
            said = here.page.inner_text(f"#{table.name} .chart")
            assert drawn or "there is nothing to draw" in said, table.name
        elif not table.rows:
            idle = TABLES[table.name].compares == "log"  # there is one log
            reasons = here.page.locator(f"li:has(#{table.name})").all_inner_texts()
            assert idle or len(reasons[0]) > len(table.title) + 10
    assert "NaN" not in here.page.inner_html("main")
    assert "undefined" not in here.page.inner_html("main")
    assert here.page.evaluate("document.documentElement.scrollWidth") == 390
    here.page.context.close()


def test_the_page_says_in_words_what_it_says_in_data(fresh: Visit, report: Report) -> None:
    data = json.loads(fresh.page.inner_text("#data") or fresh.page.text_content("#data") or "")
    assert [table["name"] for table in data["tables"]] == [t.name for t in report.tables if t.rows]
    assert len(fresh.page.locator(".conclusion li").all()) >= 3
