"""Notebooks: the example runs in a real kernel, and what objects show there is safe."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest

import grv
from grv.backends.protocols import Draft
from grv.core.values import Bill
from grv.logs.log import Log, LoggedProblem
from grv.report.figures import report_on
from grv.runtime.solution import Solution
from grv.testing import population

EXAMPLE = Path(__file__).parents[1] / "examples" / "notebook.ipynb"
HOSTILE = "<script>alert('x')</script>&\x1b[2J\u202e$\\frac{"
LOG = population("math", problems=4, candidates=20, seed=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_example_notebook_runs_in_a_kernel_and_shows_tables_and_pictures() -> None:
    notebook = example()
    nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3").execute()

    shown = [
        (cell.source, output.get("data", {}))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    kinds = {last_line(source): set(data) for source, data in shown}
    assert "text/html" in kinds["log"]
    assert "text/html" in kinds["comparison"]
    assert "image/svg+xml" in kinds["comparison.plot()"]
    assert "image/svg+xml" in kinds['figures["coverage"]']
    assert "text/html" in kinds["solution"]
    texts = {last_line(source): data.get("text/html", "") for source, data in shown}
    assert "40" in texts["log"]
    assert "the cheapest policy that can run live" in texts["comparison"]
    assert "Verified answer" in texts["solution"]
    plain = {last_line(source): data.get("text/plain", "") for source, data in shown}
    assert plain["other.verified"] == "True"


ROLES = {"engineer": "Verified answer", "budget": "of the money solves", "training": "sft 6 lines"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("role", ROLES)
def test_the_notebook_of_a_role_runs_in_a_kernel_and_is_committed_without_output(role: str) -> None:
    read: Any = nbformat.read
    notebook = read(EXAMPLE.parent / f"{role}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    shown = "".join(
        output.get("text", "") + str(output.get("data", ""))
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
    assert ROLES[role] in shown


def example() -> Any:
    read: Any = nbformat.read
    return read(EXAMPLE, as_version=4)


def last_line(source: str) -> str:
    return str(source).strip().splitlines()[-1]


def test_the_example_notebook_is_committed_without_its_output() -> None:
    notebook = example()

    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells)


def shows_safely(html: str) -> bool:
    """Whether the text is escaped: the only tags are ours."""
    root = ET.fromstring(html)
    ours = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "pre"}
    attributes = {name for each in root.iter() for name in each.attrib}
    raw = "<script" in html or "\x1b" in html or "\u202e" in html
    return {each.tag for each in root.iter()} <= ours and attributes <= {"style"} and not raw


def hostile_log() -> Log:
    problems = tuple(dataclasses.replace(p, id=f"{p.id}{HOSTILE}") for p in LOG.problems)
    return Log(problems, score=HOSTILE, path=HOSTILE)


def test_hostile_names_are_escaped_in_every_table() -> None:
    log = hostile_log()
    comparison = grv.compare(
        {HOSTILE: grv.policies.Adaptive(), "default": grv.policies.VerifyAll()}, log, orders=2
    )
    draft = Draft(f"{HOSTILE}\n</pre>{HOSTILE}")
    solution = Solution(HOSTILE, "solved", draft, True, Bill(1, 1, 11.0), {}, message=HOSTILE)

    for shown in (log, comparison, solution):
        html = shown._repr_html_()
        assert shows_safely(html), type(shown)
        assert "&lt;script&gt;" in html


def test_a_hostile_name_is_no_formula_and_no_tag_in_a_picture() -> None:
    comparison = grv.compare(
        {HOSTILE: grv.policies.Adaptive(), "default": grv.policies.VerifyAll()}, LOG, orders=2
    )

    svg = comparison.plot()._repr_svg_()
    tags = {each.tag.rpartition("}")[2] for each in ET.fromstring(svg).iter()}
    assert "script" not in tags


def test_a_long_answer_is_cut_and_a_missing_one_is_not_shown() -> None:
    bill = Bill(3, 3, 33.0)
    long = Solution("p", "exhausted", Draft("x" * 10_000), False, bill, {})
    none = Solution("p", "failed", None, False, bill, {}, message="no server")

    assert "Best candidate, not verified" in long._repr_html_()
    assert "(6,000 more characters)" in long._repr_html_()
    assert "no server" in none._repr_html_()
    assert "<pre" not in none._repr_html_()


def test_a_log_shows_its_counts_and_its_first_problems() -> None:
    html = population("math", problems=14, candidates=5, seed=2)._repr_html_()

    assert shows_safely(html)
    assert ">14<" in html
    assert "and 4 more problems" in html


@pytest.mark.slow
def test_pictures_are_figures_of_matplotlib_and_files(tmp_path: Path) -> None:
    comparison = grv.compare(["default", "verify-all"], LOG, orders=2)
    picture = comparison.plot()

    assert type(picture.figure).__module__.startswith("matplotlib")
    assert picture.svg == picture.svg
    for kind, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        picture.save(tmp_path / f"a.{kind}")
        assert (tmp_path / f"a.{kind}").read_bytes().startswith(start)
    with pytest.raises(grv.UsageError, match="must end in svg, pdf, png"):
        picture.save(tmp_path / "a.gif")


def test_a_picture_is_of_one_price_list() -> None:
    two = [grv.Costs(1, 10), grv.Costs(1, 30)]
    several = grv.compare(["default", "verify-all"], LOG, two, orders=2)

    with pytest.raises(grv.UsageError, match=r"choose a price list, as in plot\('1,10'\)"):
        several.plot()
    assert several.plot("1, 30").table.column("cost") == [
        row.cost for row in several.rows if row.prices == "1,30"
    ]


def test_a_picture_of_bounds_shows_both_ends() -> None:
    unknown = np.array([False, True, True])
    problem = LoggedProblem(
        "a", np.array([1.0, 2.0, 3.0]), np.array([True, False, False]), unknown=unknown
    )
    bounded = grv.compare(["default", "verify-all"], Log((problem,), unlabelled=2), orders=2)

    table = bounded.plot().table
    assert [row[1:] for row in table.rows] == [
        (row.bounds.cost if row.bounds else None) for row in bounded.rows
    ]
    assert bounded.plot().svg
    assert "each number is a range" in bounded._repr_html_()
    assert shows_safely(bounded._repr_html_())


@pytest.mark.slow
def test_the_figures_of_a_report_are_objects() -> None:
    report = report_on(LOG, orders=2, many_orders=2, policies=("default", "verify-all"))
    figures = report.figures

    assert {"summary", "coverage"} <= set(figures)
    assert figures["coverage"].svg.startswith("<?xml")
    assert len(report["summary"].to_frame()) == len(report["summary"].rows)


def test_without_matplotlib_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    comparison = grv.compare(["default"], LOG, orders=2)

    with pytest.raises(grv.UsageError, match="pip install"):
        comparison.plot().svg  # noqa: B018


def options() -> dict[str, Any]:
    return {
        "generator": lambda problem: "42",
        "scorer": lambda problem, text: 1.0,
        "verifier": lambda problem, text: text == "42",
    }


def test_solve_now_works_inside_a_running_loop() -> None:
    async def cell() -> tuple[bool, bool, list[bool]]:
        now = grv.solve_now("What?", **options())
        awaited = await grv.solve("What?", **options())
        many = [each.verified for each in grv.solve_many_now(["a", "b"], **options())]
        return now.verified, awaited.verified, many

    assert asyncio.run(cell()) == (True, True, [True, True])
