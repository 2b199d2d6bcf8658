"""The part about one budget for all problems: a curve, and a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import grv
from grv.logs.log import Log, LoggedProblem
from grv.report.build import make_report
from grv.report.inputs import ReportSource, read_comparison
from grv.report.report import Report
from grv.report.request import ReportRequest


def batch_log() -> Log:
    made = []
    for number, passes in enumerate([0, 0, 1, 2, 4, 8, 12]):
        generator = np.random.default_rng(number)
        made.append(LoggedProblem(f"p{number}", generator.random(15), np.arange(15) >= 15 - passes))
    return Log(tuple(made))


def sentences(report: Report) -> list[str]:
    return [
        sentence
        for conclusion in report.conclusions
        for sentence in conclusion.sentences
        if "one budget for all problems" in sentence
    ]


@pytest.mark.slow
def test_a_report_has_the_curve_and_says_what_half_the_money_buys() -> None:
    request = ReportRequest(policies=("varied", "verify-all", "adaptive"), orders=2, jobs=1)
    report = make_report([ReportSource("log", log=batch_log())], request)
    (table,) = [table for table in report.tables if table.name == "batch"]
    rows = table.records()

    assert {row["schedule"] for row in rows} == {"least-spent", "in-order", "hindsight", "oracle"}
    assert {row["share"] for row in rows} == {0.1, 0.25, 0.5, 0.75, 1.0}
    assert {row["series"] for row in rows} >= {"least-spent, varied", "in-order, verify-all"}
    (sentence,) = sentences(report)
    assert sentence.startswith("With half the money that solving all solvable problems costs")
    assert "least-spent solves" in sentence
    assert "in-order solves" in sentence


def test_the_budgets_and_schedules_of_the_request_are_drawn(tmp_path: Path) -> None:
    found = grv.compare(
        ["default"], batch_log(), orders=2, total_budget="30%", schedule="doubling", jobs=1
    )
    found.save(tmp_path / "found.json")
    saved = read_comparison(str(tmp_path / "found.json"))
    report = make_report([ReportSource("saved", "comparison", comparison=saved)])
    (table,) = [table for table in report.tables if table.name == "batch"]

    assert [row["series"] for row in table.records()] == ["doubling", "hindsight", "oracle"]
    (sentence,) = sentences(report)
    assert sentence.startswith("With 30\N{NO-BREAK SPACE}% of the money")
    assert json.loads((tmp_path / "found.json").read_text())["batches"][0]["share"] == 0.3


def test_a_saved_comparison_without_batches_says_nothing_about_them() -> None:
    found = grv.compare(["default"], batch_log(), orders=2, jobs=1)
    report = make_report([ReportSource("saved", "comparison", comparison=found)])

    assert sentences(report) == []
