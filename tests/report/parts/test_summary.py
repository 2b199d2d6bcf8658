"""The summary has the numbers of `grv compare`."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grv.comparing.compare import compare
from grv.core.errors import LogError, UsageError
from grv.core.values import Costs, Measured
from grv.logs.log import Log
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest, default_rows
from support.reports import (
    FEW,
    LOG,
    OTHER,
    PRICES,
    two_logs,
    with_columns,
)

pytestmark = pytest.mark.slow


def test_costs_are_those_of_compare() -> None:
    report = two_logs()
    for name, log in (("first", LOG), ("second", OTHER)):
        saved = compare(default_rows(), log, PRICES, orders=4).to_json()["rows"]
        saved.sort(key=lambda row: (-row["costs"]["verify"], row["cost"]))  # the cheapest first
        rows = report["summary"].only(log=name).records()
        assert len(rows) == len(saved)
        for row, said in zip(rows, saved, strict=True):
            same = ("policy", "cost", "generated", "verified", "solved", "ratio", "low", "high")
            assert {key: row[key] for key in same} == {key: said[key] for key in same}
            assert row["m"] == said.get("m")
            assert row["costs"] == "{generate:g},{verify:g}".format(**said["costs"])


def test_tables_side_by_side_have_the_same_numbers() -> None:
    report = two_logs()
    long = {(r["log"], r["costs"], r["policy"]): r for r in report["summary"].records()}
    by_price, by_log = report["ratio_ablation"].records(), report["per_log"].records()
    for (log, costs, policy), row in long.items():
        wide = next(r for r in by_price if (r["log"], r["policy"]) == (log, policy))
        assert wide[f"cost {costs}"] == row["cost"]
        assert wide[f"ratio {costs}"] == row["ratio"]
        wide = next(r for r in by_log if (r["costs"], r["policy"]) == (costs, policy))
        assert wide[f"cost {log}"] == row["cost"]
        assert wide[f"solved {log}"] == row["solved"]


def test_measured_costs_are_those_of_compare() -> None:
    log = with_columns(Log(OTHER.problems[:4]))
    asked = ReportRequest(costs=(Costs(1, 10), None), policies=FEW, orders=2, many_orders=3)
    made = make_report([ReportSource("x", log=log)], asked)
    saved = compare(FEW, log, log.measured, orders=2).rows
    assert made["summary"].only(costs="measured").column("cost") == sorted(
        row.cost for row in saved
    )
    assert made["optimal_pairs"].only(costs="measured").column("orders") == [2] * 4
    assert any("on average a candidate cost" in note for note in made["summary"].notes)
    assert "measured" in " ".join(made["cheaper_verifier"].notes)
    with pytest.raises(LogError, match="'generate_cost' is missing"):
        make_report([ReportSource("x", log=OTHER)], asked)
    with pytest.raises(UsageError, match="given twice"):
        ReportRequest(costs=(None, Measured(1, 10)))


def test_it_says_which_prices_to_give_if_failures_are_cheaper() -> None:
    def notes(fail: float, right: float) -> str:
        problems = tuple(
            dataclasses.replace(
                each,
                generate_costs=np.full(len(each), 0.5),
                verify_costs=np.where(each.passed, right, fail),
            )
            for each in OTHER.problems[:3]
        )
        asked = ReportRequest(policies=("verify-all",), orders=1)
        made = make_report([ReportSource("x", log=Log(problems))], asked)
        return " ".join(made["summary"].notes)

    cheap = notes(2.0, 20.0)
    assert "that passed cost 20, and one that failed 2" in cheap
    assert "give --costs 0.5,20,2." in cheap
    assert "give --costs 0.5,30." in notes(30.0, 20.0)
    plain = make_report(
        [ReportSource("x", log=OTHER)], ReportRequest(policies=("verify-all",), orders=1)
    )
    assert "a verification that passed" not in " ".join(plain["summary"].notes)


def test_a_report_shows_a_price_of_failures() -> None:
    costs = Costs(1, 10, failure=2)
    asked = ReportRequest(costs=(costs, Costs(1, 10)), policies=FEW, orders=2, many_orders=2)
    made = make_report([ReportSource("x", log=Log(OTHER.problems[:4]))], asked)
    saved = compare(FEW, Log(OTHER.problems[:4]), costs, orders=2).rows
    summary = made["summary"].only(costs="1,10,2")
    assert summary.column("cost") == sorted(row.cost for row in saved)
    cheaper = made["cheaper_verifier"].only(costs="1,10,2", price=0.1).records()
    least = {row.policy: row.cost for row in saved}
    assert cheaper
    assert all(float(row["cost"] or 0) < least[str(row["policy"])] for row in cheaper)


def test_missing_ratios_are_explained() -> None:
    asked = ReportRequest(policies=("hindsight",), orders=2)
    made = make_report([ReportSource("x", log=OTHER)], asked)
    for name in ("summary", "ratio_ablation", "per_log", "difficulty"):
        assert "there are no ratios" in made[name].notes[0]
