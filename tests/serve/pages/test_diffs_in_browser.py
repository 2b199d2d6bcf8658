"""Candidates that are diffs, as people see them: files that fold, colours, logs, cost and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from playwright.sync_api import Browser

from grv import Verdict
from grv.backends.protocols import Draft, Finding, Problem, Score, Usage
from support.pages import HOSTILE, Backends, Dashboard, Visit, chromium, dashboard, run

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("pages")]

LONG = "".join(f"+line {number}\n" for number in range(700))
DIFF = f"""I changed the parser and its table.

```diff
diff --git a/src/parser.py b/src/parser.py
index 1111111..2222222 100644
--- a/src/parser.py
+++ b/src/parser.py
@@ -10,6 +10,7 @@ def parse(text):
     tokens = split(text)
-    # {HOSTILE}
-    return tokens[1:]
+    # {HOSTILE}
+    # -- a comment that looks like a header
+    return tokens
     # end
diff --git a/table.csv b/table.csv
new file mode 100644
--- /dev/null
+++ b/table.csv
@@ -0,0 +1,700 @@
{LONG}diff --git a/old name.txt b/old name.txt
deleted file mode 100644
--- a/old name.txt
+++ /dev/null
@@ -1,2 +0,0 @@
--- this line began with two dashes
-gone
```
All tests pass.
"""
LOG = "\n".join(f"tests/test_parser.py::test_{number} PASSED" for number in range(40)) + "\n"


class Agent(Backends):
    """An agent whose second attempt is right; each attempt says what it cost."""

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        return [
            Draft(DIFF + f"attempt {at}", usage=Usage(1000, 500, 250.0 + at, 0.41 + at / 100))
            for at in range(first, first + n)
        ]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(0.0) for _ in drafts]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        right = draft.text.endswith("attempt 1")
        verdict = Verdict.PASSED if right else Verdict.FAILED
        evidence = {"test": f"test_parser {HOSTILE}", "stdout": f"{LOG}{HOSTILE}\n"}
        return Finding(verdict, "tests", evidence, Usage(seconds=58.5))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    ledger = tmp_path_factory.mktemp("diffs") / "ledger"
    run(ledger, ["fix-parser"], Agent())
    with dashboard(ledger) as up:
        yield up


def opened(browser: Browser, shown: Dashboard, **how: object) -> Visit:
    visit = Visit.of(browser, shown.url, **how)  # type: ignore[arg-type]
    visit.page.locator("tbody th a").click()
    visit.page.wait_for_selector("#beside .pane .diffs")
    return visit


def test_a_diff_is_shown_file_by_file(browser: Browser, shown: Dashboard) -> None:
    visit = opened(browser, shown)
    pane = visit.page.locator("#beside .pane").first
    assert "3 files changed" in pane.inner_text()
    files = pane.locator(".fold:has(.path)")
    names = files.locator("summary").all_inner_texts()
    assert [" ".join(each.split()) for each in names] == [
        "src/parser.py +3 −2",
        "table.csv +700 −0",
        "old name.txt +0 −2",
    ]
    assert [each.get_attribute("open") is not None for each in files.all()] == [True, False, True]
    parser = files.nth(0)
    assert parser.locator(".del").all_inner_texts()[0].strip() == f"-    # {HOSTILE}"
    assert len(parser.locator(".add").all()) == 3
    removed = files.nth(2).locator(".del").first.inner_text()
    assert removed.strip() == "--- this line began with two dashes"
    files.nth(1).locator("summary").click()
    files.nth(1).locator("button", has_text="more lines").click()
    assert len(files.nth(1).locator(".add").all()) == 700
    assert "All tests pass." in pane.inner_text()
    assert visit.page.evaluate("window.hacked ?? null") is None
    assert visit.complaints == []
    visit.close()


def test_logs_are_folded_and_attempts_have_their_cost_and_time(
    browser: Browser, shown: Dashboard
) -> None:
    visit = opened(browser, shown)
    pane = visit.page.locator("#beside .pane").first
    log = pane.locator(".evidence .fold")
    assert log.get_attribute("open") is None
    assert "42 lines" in log.locator("summary").inner_text()
    log.locator("summary").click()
    log.locator("pre").wait_for()
    assert "test_39 PASSED" in log.inner_text()
    assert "$0.42, 4 min, verified in 58 s" in pane.locator(".price").inner_text().replace(
        "59", "58"
    )
    head = visit.page.locator(".column .rows thead").inner_text().split()
    assert head == ["score", "verdict", "cost", "time", "text"]
    row = visit.page.locator("#candidate-1").inner_text()
    assert "$0.42" in row
    assert "4 min" in row
    assert "src/parser.py +3 −2" in row
    visit.close()


def test_a_hostile_diff_does_not_stop_the_page(browser: Browser, shown: Dashboard) -> None:
    visit = opened(browser, shown)
    seconds, files, after = visit.page.evaluate(
        """async () => {
            const { diff, parts } = await import("/assets/diff.js");
            const begun = performance.now();
            parts("diff --git a/x b/x\\n" + "a\\n".repeat(200000) + "--- \\n+++ \\n".repeat(60000));
            const many = diff("diff --git a/x b/x\\n@@ -1 +1 @@\\n".repeat(31000), "many");
            const count = () => many.querySelectorAll("details").length;
            const files = count();
            many.querySelector("button").click();
            return [(performance.now() - begun) / 1000, files, count()];
        }"""
    )
    assert (files, after) == (300, 600)
    assert seconds < 20  # it took minutes
    visit.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_page(browser: Browser, shown: Dashboard, width: int) -> None:
    visit = opened(browser, shown, width=width)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.close()


def test_what_the_reader_folds_stays_folded(browser: Browser, shown: Dashboard) -> None:
    visit = opened(browser, shown)
    first = visit.page.locator("#beside .pane").first.locator(".fold:has(.path)").first
    first.locator("summary").click()
    visit.page.wait_for_timeout(200)  # the browser says later that it was folded
    visit.page.keyboard.press("k")
    visit.page.keyboard.press("j")
    first = visit.page.locator("#beside .pane").first.locator(".fold:has(.path)").first
    assert first.get_attribute("open") is None
    visit.close()
