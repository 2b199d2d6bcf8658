"""A report agrees with `grv compare`, and no table is empty without a note."""

from __future__ import annotations

import json

import numpy as np
import pytest

from grv.comparing.compare import compare
from grv.comparing.rows import DEFAULT_ROWS
from grv.core.errors import LogError, UsageError
from grv.core.values import Cascade, Costs
from grv.logs.log import Log, LoggedProblem
from grv.report.build import make_report
from grv.report.inputs import ReportSource, parse_comparison
from grv.report.parts import PARTS, TABLES
from grv.report.report import Report
from grv.report.request import ReportRequest
from support.reports import FEW, LOG, OTHER, PRICES, REQUEST, two_logs, with_columns


def test_every_table_is_there_and_none_is_empty_without_a_word() -> None:
    report = two_logs()
    assert [table.name for table in report.tables] == list(TABLES)
    for table in report.tables:
        assert table.rows or table.notes, table.name


def test_what_is_saved_is_json_and_comes_back() -> None:
    report = two_logs()
    text = json.dumps(report.to_json(), allow_nan=False)
    again = Report.from_json(json.loads(text))
    assert again.tables == report.tables
    assert again.to_json() == json.loads(text)


@pytest.mark.slow
def test_the_same_report_is_made_twice() -> None:
    report = two_logs()
    again = make_report(
        [ReportSource("first", log=LOG), ReportSource("second", log=OTHER)], REQUEST
    )
    assert again.to_json() == report.to_json()


@pytest.mark.slow
def test_a_cascade_is_that_of_compare() -> None:
    log, cascade = with_columns(Log(OTHER.problems[:4])), Cascade(4, 0.5)
    asked = ReportRequest(policies=FEW, orders=2, many_orders=1)
    made = make_report([ReportSource("x", log=log, cascade=cascade)], asked)
    saved = compare(FEW, log, Costs(), orders=2, cascade=cascade).rows
    assert made["summary"].column("cost") == sorted(row.cost for row in saved)
    assert made.logs[0].score == "score, then second for the best 4"
    assert "the effect of second" in " ".join(made["auc_summary"].notes)


def test_a_saved_comparison_gives_the_same_costs_and_says_what_is_left_out() -> None:
    report = two_logs()
    saved = json.loads(json.dumps(compare(DEFAULT_ROWS, OTHER, PRICES, orders=4).to_json()))
    comparison = parse_comparison(saved)
    assert json.loads(json.dumps(comparison.to_json())) == saved
    made = make_report([ReportSource("second", "comparison", None, comparison)])
    wanted = [r for r in report["summary"].only(log="second").rows if r[2] in DEFAULT_ROWS]
    assert list(made["summary"].rows) == wanted
    for part in PARTS:
        if part.of_comparison is None:
            for table in part.tables:
                assert not made[table.name].rows
                assert "without candidates" in made[table.name].notes[0]


def test_what_is_no_comparison_is_refused() -> None:
    with pytest.raises(LogError, match="format 1"):
        parse_comparison({"format": 99})
    with pytest.raises(LogError, match="grv compare --json"):
        parse_comparison({"format": 1, "log": {}, "settings": {}, "rows": []})


@pytest.mark.slow
def test_progress_ends_where_it_said_it_would() -> None:
    told: list[tuple[int, int]] = []
    asked = ReportRequest(orders=2, many_orders=2)
    make_report([ReportSource("x", log=OTHER)], asked, progress=lambda *now: told.append(now))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_logs_need_names_of_their_own() -> None:
    with pytest.raises(UsageError, match="different names"):
        make_report([ReportSource("x", log=LOG), ReportSource("x", log=OTHER)])
    with pytest.raises(UsageError, match="at least one log"):
        make_report([])


def problem(id: str, scores: list[float], passed: list[bool]) -> LoggedProblem:
    unscored = sum(score == -np.inf for score in scores)
    return LoggedProblem(id, np.array(scores), np.array(passed), unscored=unscored)


MIXED = [True, False, False, True, False, False]
DEGENERATE = {
    "one problem": (Log((problem("a", [1, 2, 3, 4, 5, 6], MIXED),)), "there is only one problem"),
    "no solvable problem": (
        Log((problem("a", [1, 2, 3], [False] * 3), problem("b", [1, 2], [False] * 2))),
        "nothing to compare",
    ),
    "all passed": (
        Log((problem("a", [1, 2, 3], [True] * 3), problem("b", [1, 2], [True] * 2))),
        "all candidates passed",
    ),
    "all scores equal": (
        Log((problem("a", [2.0] * 6, MIXED), problem("b", [2.0] * 6, MIXED[::-1]))),
        "all scores are equal",
    ),
    "one candidate each": (
        Log((problem("a", [1.0], [True]), problem("b", [2.0], [False]))),
        "one candidate, so there is nothing to rank",
    ),
    "one candidate in all": (Log((problem("a", [1.0], [True]),)), "nothing to rank"),
    "missing scores": (
        Log((problem("a", [1, -np.inf, 3, -np.inf, 2, 0], MIXED),)),
        "2 of 6 candidates have no score",
    ),
    "no score at all": (
        Log((problem("a", [-np.inf] * 6, MIXED), problem("b", [-np.inf] * 2, [True, False]))),
        "no candidate has a score",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEGENERATE)
def test_a_log_that_says_little_is_said_to(name: str) -> None:
    log, words = DEGENERATE[name]
    made = make_report([ReportSource("x", log=log)], ReportRequest(orders=3, many_orders=3))
    json.dumps(made.to_json(), allow_nan=False)
    notes = [note for table in made.tables for note in table.notes]
    assert any(words in note for note in notes), notes
    for table in made.tables:
        assert table.rows or table.notes
        if not table.rows:
            assert table.notes[0] != "There is nothing to show here.", table.name
