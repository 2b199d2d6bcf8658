"""What verify-all costs on a live run, and what may be advised from it: one answer everywhere."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import grv
from grv.backends.protocols import Draft, Finding, Problem
from grv.comparing.compare import compare
from grv.comparing.conclusion import advice
from grv.core.values import Costs, Verdict
from grv.ledger.sqlite import SqliteLedger
from grv.ledger.view import SearchView
from grv.logs.in_order import bounds
from grv.logs.log import Log
from grv.report.build import make_report
from grv.report.inputs import read_sources
from grv.report.request import ReportRequest, SourceFile
from grv.runtime.export import exported
from grv.serve.pages.overview import overview
from grv.serve.pages.store import Store

pytestmark = pytest.mark.slow

COSTS = Costs(1, 10)


class Checker:
    """Right answers are rare; some candidates are refuted, and equal answers share a key."""

    def refutation(self, problem: Problem, draft: Draft) -> str | None:
        """Every fifth candidate has no answer."""
        return "no answer" if self._number(draft) % 5 == 4 else None

    def key(self, problem: Problem, draft: Draft) -> str:
        """There are seven wrong answers."""
        return f"answer {self._number(draft) % 7}" if not self._right(problem, draft) else "right"

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """Whether it is the right one."""
        return Finding(Verdict.PASSED if self._right(problem, draft) else Verdict.FAILED)

    def _number(self, draft: Draft) -> int:
        return int(draft.text)

    def _right(self, problem: Problem, draft: Draft) -> bool:
        return self._number(draft) % 5 != 4 and self._number(draft) % 11 == int(problem.id)


def solve(folder: Path, policy: str) -> Path:
    """Run searches for eight problems; return their ledger."""
    made = iter(range(7, 10**6, 3))
    place = folder / "ledger"
    solutions = grv.solve_many_now(
        [Problem(str(number), "prompt") for number in range(8)],
        generator=lambda problem: str(next(made)),
        scorer=lambda problem, text: -abs(int(text) % 11 - int(problem.id)),
        verifier=Checker(),
        policy=policy,
        costs=COSTS,
        ledger=place,
        at_once=1,
    )
    assert {solution.outcome for solution in solutions} == {"solved"}
    return place


def test_a_run_that_is_verify_all_has_saved_nothing(tmp_path: Path) -> None:
    with closing(SqliteLedger(str(solve(tmp_path, "verify-all")))) as ledger:
        shown = overview(Store(ledger), float("inf"))["baselines"]
    assert shown["searches"] == 8
    assert shown["least"] == shown["most"] == shown["cost"]


@pytest.mark.parametrize("policy", ["varied", "balanced", "adaptive"])
def test_the_dashboard_says_what_compare_says_about_the_export(tmp_path: Path, policy: str) -> None:
    with closing(SqliteLedger(str(solve(tmp_path, policy)))) as ledger:
        shown = overview(Store(ledger), float("inf"))["baselines"]
        entries = [ledger.read(search) for search in ledger.search_ids()]
        log = Log.from_frame(exported(ledger).columns, score="score", unlabelled="bound")
    found = compare(
        ["verify-all"], log, COSTS, keys=True, orders=1, order_scheme="logged", baseline=None
    )
    row = found.rows[0]
    least, most = row.bounds.cost if row.bounds is not None else (row.cost, row.cost)
    assert shown["least"] == pytest.approx(8 * least)
    assert shown["most"] == pytest.approx(8 * most)
    each = [bounds(SearchView(some), COSTS) for some in entries]
    assert sum(high.bill.total for _, high in each) == shown["most"]


def test_a_report_on_a_ledger_advises_what_compare_advises(tmp_path: Path) -> None:
    """Labels are missing where the search expected failures: a share of resamples is no advice."""
    place = solve(tmp_path, "balanced")
    names = ("balanced", "verify-all", "adaptive")
    request = ReportRequest(costs=(COSTS,), policies=names, orders=3, many_orders=2)
    report = make_report(read_sources([SourceFile(str(place))]), request)
    with closing(SqliteLedger(str(place))) as ledger:
        log = Log.from_frame(exported(ledger).columns, score="score", unlabelled="bound")
    compared = compare(list(names), log, COSTS, orders=3)

    (sentence,) = advice(compared, "1,10")
    assert "the known labels do not tell which policy is cheapest" in sentence
    assert report.conclusions[2].sentences[0] == sentence
    assert not any("resamples" in text for text in report.conclusions[2].sentences)
    rows = report["which_policy"].records()
    assert {row["cheapest"] for row in rows} == {None}
