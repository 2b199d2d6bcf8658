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
from grv.report.contents import BY_NAME, FIGURES
from grv.report.dataset import Request, default_rows
from grv.report.drawings import DRAWINGS
from grv.report.page.answers import answers
from grv.report.page.glossary import glossary, meaning, meaning_of_prices
from grv.report.page.page import page
from grv.report.report import Report
from grv.report.source import Source
from grv.report.style import DARK, HUES_DARK, HUES_LIGHT, LIGHT, RAMP_DARK, RAMP_LIGHT, styles
from grv.testing import population

REQUEST = Request(costs=(Costs(1, 10), Costs(1, 3)), orders=3, many_orders=10)
HOSTILE = "</script ></script><!--<script>'\"&lt;${x}$y"


@pytest.fixture(scope="module")
def report() -> Report:
    first, *rest = population("coding", problems=8, candidates=40, seed=4).problems
    return make_report([Source("a log", log=Log((replace(first, id=HOSTILE), *rest)))], REQUEST)


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


def test_every_figure_that_is_drawn_has_a_drawing_over_columns_that_are_there() -> None:
    assert set(DRAWINGS) == {figure.name for figure in FIGURES if figure.draws}
    for name, drawings in DRAWINGS.items():
        for drawing in drawings:
            own = {column.name for column in BY_NAME[name].columns}
            assert {drawing.x.column, drawing.y.column} <= own
            for layer in drawing.layers:
                there = {column.name for column in BY_NAME[layer.table or name].columns}
                used = [layer.x, layer.y, layer.x2, layer.y2, layer.by, layer.hue]
                used += [layer.where[0]] if layer.where else []
                assert {each for each in used if isinstance(each, str) and each} <= {
                    *there,
                    "costs",
                }
        views = [drawing.view for drawing in drawings]
        assert len(set(views)) == len(views)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("colours", "hues", "ramp"),
    [(LIGHT, HUES_LIGHT, RAMP_LIGHT), (DARK, HUES_DARK, RAMP_DARK)],
    ids=["light", "dark"],
)
def test_text_and_marks_stand_out_from_their_ground(
    colours: dict[str, str], hues: tuple[str, ...], ramp: tuple[str, ...]
) -> None:
    for ground in (colours["ground"], colours["card"]):
        assert all(contrast(colours[text], ground) >= 4.5 for text in ("text", "faint", "link"))
        assert all(contrast(hue, ground) >= 3 for hue in hues)
        assert all(contrast(hue, ground) >= 3 for hue in ramp)
    assert contrast(colours["text"], colours["warn"]) >= 7


def test_names_of_one_report_never_share_a_whole_style() -> None:
    names = ["adaptive", "hindsight", "verify-all", "uniform-matched", "adaptive-all"]
    names += [f"difficulty-{groups}" for groups in (1, 2, 3, 5, 10)]
    names += ["balanced", "alternate", "fixed(64, 4)", "threshold(0.5)", "learned"]
    given = styles(names)
    assert len({given[name] for name in names}) == len(names)
    assert styles(names[::-1])["adaptive"] == given["adaptive"]


def test_the_first_screen_answers_three_questions(report: Report) -> None:
    costs, score, advice = answers(report)
    rows = {row["policy"]: row for row in report["summary"].only(costs="1,10").records()}
    assert f"adaptive {rows['adaptive']['cost']:.3g}," in costs.sentences[0]
    assert "costs 1 to generate and 10 to verify" in costs.sentences[0]
    auc = report["auc_summary"].records()[0]["mean"]
    assert isinstance(auc, float)
    assert f"{100 * auc:.0f}\N{NO-BREAK SPACE}% of the cases" in score.sentences[0]
    best = report["which_policy"].records()[0]["policy"]
    assert f"use {best}" in advice.sentences[0]


def test_policies_that_cost_the_same_are_named_together() -> None:
    log = population("coding", problems=8, candidates=40, seed=4)
    asked = Request(costs=(Costs(1, 1),), policies=("verify-all", "alternate"), orders=2)
    advice = answers(make_report([Source("x", log=log)], replace(asked, many_orders=1)))[2]
    assert "use verify-all" in advice.sentences[0]
    assert "(alternate costs the same): the cheapest in 100" in advice.sentences[0]


def test_every_name_on_a_page_has_a_meaning(report: Report) -> None:
    assert all(meaning(name) for name in (*default_rows(), *POLICIES, "fixed(64, 4)", "default"))
    assert meaning("nonsense(") == ""
    text = page(report)
    assert "<dt>costs 1,3</dt><dd>1 to generate (and score) a candidate, 3 to verify one" in text
    assert "<dt>difficulty-K</dt>" in text
    assert meaning_of_prices("measured") in dict(glossary([], ["measured"]))["costs measured"]


def test_the_name_of_the_only_log_is_not_repeated(report: Report) -> None:
    notes = report["rank_pass"].notes
    assert notes[0].startswith("a log: the rolling mean")
    assert "<li>The rolling mean" in page(report)
    assert "<li>At 1,10: " in page(report)


def test_the_page_that_the_documents_show_is_made_as_pages_are_today(report: Report) -> None:
    shown = (Path(__file__).parents[2] / "docs" / "report-sample.html").read_text(encoding="utf-8")
    policy = re.compile(r'Content-Security-Policy" content="[^"]*"')
    mine, theirs = policy.search(page(report)), policy.search(shown)
    assert mine is not None
    assert theirs is not None
    assert mine[0] == theirs[0], "python docs/make_report.py --pictures"


@pytest.mark.slow
def test_a_page_of_a_large_log_stays_small() -> None:
    rng = np.random.default_rng(0)
    problems = []
    for at in range(100):
        passed = rng.random(500) < rng.beta(0.5, 4)
        scores = rng.normal(size=500) + passed
        problems.append(LoggedProblem(f"a problem with quite a long name {at}", scores, passed))
    rows = ("hindsight", "adaptive", "verify-all", "uniform-matched")
    request = Request((Costs(1, 10), Costs(1, 30)), rows, orders=1, many_orders=1)
    assert len(page(make_report([Source("large", log=Log(tuple(problems)))], request))) < 3_000_000
