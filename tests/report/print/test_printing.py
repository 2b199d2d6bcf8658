"""Figures and tables as files for a publication."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.logs.log import Log
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts import TABLES
from grv.report.print.job import FigureItem
from grv.report.print.plots import plot
from grv.report.print.printing import sheets_of, write_sheets
from grv.report.report import Report
from grv.report.request import ReportRequest
from grv.testing import all_wrong, population

PRICES = (Costs(1, 10), Costs(1, 3))
DRAWN = sorted(name for name, table in TABLES.items() if table.drawings)


def log(kind: str) -> Log:
    hopeless = all_wrong(30).logged("a hopeless one")
    return Log((*population(kind, problems=6, candidates=30, seed=2).problems, hopeless))


@pytest.fixture(scope="module")
def report() -> Report:
    sources = [ReportSource(kind, log=log(kind)) for kind in ("coding", "math")]
    return make_report(sources, ReportRequest(costs=PRICES, orders=2, many_orders=5))


@pytest.mark.slow
def test_everything_that_is_drawn_is_printed_at_each_price_list(report: Report) -> None:
    files = [(sheet.name, sheet.drawing is None) for sheet in sheets_of(report)]
    assert len(set(files)) == len(files)
    drawn = {sheet.name for sheet in sheets_of(report) if sheet.drawing is not None}
    assert {"summary-1-10", "summary-1-3", "coverage", "optimal_pairs-1-3"} <= drawn
    assert "sensitivity-relative-to-verifying-in-order" in drawn
    there = {sheet.table.name for sheet in sheets_of(report) if sheet.drawing is not None}
    assert there == {name for name in DRAWN if report[name].rows}


@pytest.mark.slow
def test_files_of_the_items_asked_for(report: Report, tmp_path: Path) -> None:
    items = (
        FigureItem("figure-1", "optimal_pairs", logs=("coding",), costs=("1,10",), draw=True),
        FigureItem("table-1", "summary", costs=("1,10",), columns=("policy", "cost", "solved")),
    )
    told: list[tuple[int, int]] = []
    files = write_sheets(
        report, str(tmp_path), items, lambda done, total: told.append((done, total))
    )
    assert sorted(files) == sorted(path.name for path in tmp_path.iterdir())
    assert sorted(files) == sorted(
        ["figure-1.pdf", "figure-1.png", *(f"table-1.{end}" for end in ("csv", "md", "tex", "txt"))]
    )
    assert told == [(1, 2), (2, 2)]
    assert (tmp_path / "figure-1.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "figure-1.png").read_bytes().startswith(b"\x89PNG")
    assert r"\toprule" in (tmp_path / "table-1.tex").read_text(encoding="utf-8")
    assert (tmp_path / "table-1.csv").read_text().splitlines()[0] == "policy,cost,solved"


@pytest.mark.slow
def test_the_only_log_is_named_in_data_but_not_in_print(tmp_path: Path) -> None:
    asked = ReportRequest(orders=1, many_orders=1, policies=("adaptive", "verify-all"))
    made = make_report([ReportSource("the log", log=log("coding"))], asked)
    kept = dataclasses.replace(made, tables=(made["groups"], made["auc_summary"]))
    files = write_sheets(kept, str(tmp_path))
    assert sorted(files) == [f"auc_summary.{ending}" for ending in ("csv", "md", "tex", "txt")]
    assert "the log" in (tmp_path / "auc_summary.csv").read_text()
    assert "the log &" not in (tmp_path / "auc_summary.tex").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_what_is_printed_is_what_the_table_says(name: str, report: Report) -> None:
    table = report[name]
    if not table.rows:
        return  # no log of this kind counts it
    if "costs" in [column.name for column in table.columns]:
        table = table.only(costs="1,10")
    for drawing in TABLES[name].drawings:
        figure = plot(table, drawing, {"auc_summary": report["auc_summary"]})
        drawn = [
            len(axes.lines) + len(axes.collections) + len(axes.patches) for axes in figure.axes
        ]
        assert sum(drawn) > 0
    if name == "coverage":
        lines = plot(table, TABLES[name].drawings[0]).axes[0].lines
        wanted = table.only(log="coding").column("at_random")
        assert [float(y) for y in lines[0].get_ydata()] == pytest.approx(wanted)  # type: ignore[arg-type, union-attr]


def test_a_folder_that_cannot_be_made_is_named(report: Report, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        write_sheets(report, str(tmp_path / "file" / "folder"))
