"""The page as text: what it says, what it lets in, how large it is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from grv.core.values import Costs
from grv.logs.log import Log, LoggedProblem
from grv.policies import POLICIES
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.page.glossary import glossary, meaning, meaning_of_prices
from grv.report.page.page import page
from grv.report.report import Report
from grv.report.request import ReportRequest, default_rows
from grv.testing import population

REQUEST = ReportRequest(costs=(Costs(1, 10), Costs(1, 3)), orders=3, many_orders=10)
HOSTILE = "</script ></script><!--<script>'\"&lt;${x}$y"


@pytest.fixture(scope="module")
def report() -> Report:
    first, *rest = population("coding", problems=8, candidates=40, seed=4).problems
    return make_report(
        [ReportSource("a log", log=Log((replace(first, id=HOSTILE), *rest)))], REQUEST
    )


class Reader(HTMLParser):
    """What a parser makes of the page: its tags, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [f"{k}={v}" for k, v in attrs if k in ("src", "srcset", "action")]
        self.outside += [str(v) for k, v in attrs if k == "href" and not str(v).startswith("#")]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"]:
            self.scripts.append(data)
            self.tags.append("end")


@pytest.mark.slow
def test_no_name_in_a_log_becomes_markup(report: Report) -> None:
    title = f"Report <{HOSTILE}>"
    read = Reader(page(report, title))
    assert read.tags.count("script") == 2
    assert not set("<>&") & set(read.scripts[0])
    data = json.loads(read.scripts[0])
    auc = next(table for table in data["tables"] if table["name"] == "auc_problems")
    assert HOSTILE in [row[1] for row in auc["rows"]]
    assert f"<h1>{title}" not in page(report, title)


def test_the_page_refers_to_nothing_outside(report: Report) -> None:
    text = page(report)
    assert Reader(text).outside == []
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]


def test_every_name_on_a_page_has_a_meaning(report: Report) -> None:
    assert all(meaning(name) for name in (*default_rows(), *POLICIES, "fixed(64, 4)"))
    assert meaning("nonsense(") == ""
    text = page(report)
    assert "<dt>costs 1,3</dt><dd>1 to generate (and score) a candidate, 3 to verify one" in text
    assert "<dt>difficulty-K</dt>" in text
    assert meaning_of_prices("measured") in dict(glossary([], ["measured"]))["costs measured"]


def test_the_name_of_the_only_log_is_not_repeated(report: Report) -> None:
    notes = report["rank_pass"].notes
    assert notes[0].startswith("a log: the rolling mean")
    assert "<li>The rolling mean" in page(report)


def test_the_page_that_the_documents_show_is_made_as_pages_are_today(report: Report) -> None:
    shown = (Path(__file__).parents[3] / "docs" / "report-sample.html").read_text(encoding="utf-8")
    policy = re.compile(r'Content-Security-Policy" content="[^"]*"')
    mine, theirs = policy.search(page(report)), policy.search(shown)
    assert mine is not None
    assert theirs is not None
    assert mine[0] == theirs[0], "python docs/make_report.py --pictures"


@pytest.mark.soak
@pytest.mark.slow
def test_a_page_of_a_large_log_stays_small() -> None:
    rng = np.random.default_rng(0)
    problems = []
    for at in range(100):
        passed = rng.random(500) < rng.beta(0.5, 4)
        scores = rng.normal(size=500) + passed
        problems.append(LoggedProblem(f"a problem with quite a long name {at}", scores, passed))
    rows = ("hindsight", "adaptive", "verify-all", "uniform-matched")
    request = ReportRequest(
        costs=(Costs(1, 10), Costs(1, 30)), policies=rows, orders=1, many_orders=1
    )
    assert (
        len(page(make_report([ReportSource("large", log=Log(tuple(problems)))], request)))
        < 3_000_000
    )
