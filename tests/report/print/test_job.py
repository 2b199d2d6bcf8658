"""The paper's tables and figures as data: what they ask for, and what comes of it."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest

from grv.apps.options.command import arguments_of
from grv.apps.report import report as command
from grv.core.errors import UsageError
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.print.job import FigureItem, check_ids
from grv.report.report import Report
from grv.report.request import SourceFile
from grv.testing import population

PAPER = Path(__file__).parents[3] / "paper" / "report.toml"


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    table = tomllib.loads(PAPER.read_text())["report"]
    assert isinstance(table, dict)
    return table


@pytest.fixture(scope="module")
def report(job: dict[str, Any]) -> Report:
    """The paper's settings on small logs of our own."""
    given = [SourceFile.parse(each) for each in job["logs"]]
    kinds = ["coding" if each.name == "coding" else "math" for each in given]
    sources = [
        ReportSource(each.name, log=population(kind, problems=4, candidates=40, seed=at))
        for at, (each, kind) in enumerate(zip(given, kinds, strict=True))
    ]
    asked = arguments_of(command, {"job": str(PAPER)})["request"]
    return make_report(sources, dataclasses.replace(asked, orders=3, many_orders=5))


@pytest.mark.slow
def test_every_table_and_figure_of_the_paper_comes_out(job: dict[str, Any], report: Report) -> None:
    made = {item.id: item.of(report) for item in map(FigureItem.parse, job["items"])}
    assert {f"figure-{number}" for number in range(1, 7)} == {
        "-".join(id.split("-")[:2]).rstrip("abcd") for id in made if id.startswith("figure")
    }
    assert all(table.rows for table in made.values())
    numbered = [id for id in made if id.startswith("table")]
    assert numbered == [f"table-{number}" for number in (1, 2, 3, 4)]  # as LaTeX numbers them


def test_the_summary_table_has_the_paper_s_columns(job: dict[str, Any], report: Report) -> None:
    items = {item.id: item for item in map(FigureItem.parse, job["items"])}
    table = items["table-1"].of(report)
    values = ["generated", "verified", "cost", "ratio", "solved"]
    assert [column.name for column in table.columns] == [
        "policy",
        *(f"{value} {log}" for log in ("math", "coding") for value in values),
    ]
    assert table.column("policy") == job["policy"]
    assert r"\multicolumn{5}{c}{math} & \multicolumn{5}{c}{coding}" in table.to_latex()
    ratios = items["table-3"].of(report)
    assert [c.name for c in ratios.columns][1:4] == ["cost 1,1", "ratio 1,1", "solved 1,1"]
    long = report["summary"].only(log="math", costs="1,30", policy="difficulty-5")
    assert ratios.only(policy="difficulty-5").column("cost 1,30") == long.column("cost")


def test_the_table_by_generator_begins_with_the_solvable_problems(
    job: dict[str, Any], report: Report
) -> None:
    item = {item.id: item for item in map(FigureItem.parse, job["items"])}["table-2"]
    first = item.of(report).records()[0]

    assert first["policy"] == "solvable problems"
    logs = {log.name: log.solvable for log in report.logs}
    for name in item.logs:
        assert first[f"cost {name}"] == logs[name] > 0
        assert first[f"ratio {name}"] is None
    assert item.of(report).to_text().split("\n")[1].split()[:3] == ["solvable", "problems", "4"]


def test_the_figure_of_auc_is_the_strict_one(job: dict[str, Any], report: Report) -> None:
    items = [item for item in map(FigureItem.parse, job["items"]) if item.id.startswith("figure-6")]

    assert [item.drawing.view for item in items if item.drawing] == ["strict", "strict"]
    usual = FigureItem("x", "auc", draw=True).drawing
    assert usual is not None
    assert usual.view == "ties count half"


def test_rows_come_in_the_order_asked_for(report: Report) -> None:
    item = FigureItem("x", "summary", policies=("adaptive", "hindsight"), logs=("coding",))
    assert item.of(report).column("policy") == ["adaptive"] * 4 + ["hindsight"] * 4


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([{"id": "a", "table": "nothing"}], "no table 'nothing'"),
        ([{"id": "a"}], "table is required"),
        ([{"id": "a", "table": "auc", "columns": ["cost"]}], "no column cost"),
        ([{"id": "a", "table": "auc", "colour": "red"}], "unknown option colour"),
        ([{"id": "a", "table": "auc", "logs": "x"}], "logs x: give a list"),
        ([{"id": "a", "table": "auc"}, {"id": "a", "table": "auc"}], "the same id"),
        (
            [{"id": "a", "table": "per_log", "across": "log"}],
            'already has one column per log; use table = "summary"',
        ),
        ([{"id": "a", "table": "groups", "draw": True}], "table groups has no figure"),
        ([{"id": "a", "table": "auc", "solvable": True}], "no place for solvable problems"),
        ([{"id": "a", "table": "auc", "view": "bars"}], "no view 'bars'; there are ties count"),
        ([{"id": "a", "table": "groups", "view": "bars"}], "no view 'bars'; there are none"),
    ],
)
def test_a_mistake_in_a_job_file_is_said_in_one_line(records: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        check_ids([FigureItem.parse(each) for each in records])
    assert "\n" not in str(caught.value)
