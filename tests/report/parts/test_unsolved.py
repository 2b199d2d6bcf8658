"""Spending on problems without a pass."""

from __future__ import annotations

import dataclasses

import pytest

from grv.comparing.compare import compare
from grv.comparing.settings import Unsolvable
from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from grv.theory.optimum import rule_cost
from support.reports import LOG, REQUEST, two_logs


@pytest.mark.slow
def test_unsolved_problems_cost_what_compare_says() -> None:
    report = two_logs()
    saved = compare(["adaptive"], LOG, Costs(1, 10), orders=4, unsolvable=Unsolvable.INCLUDE)[
        "adaptive"
    ]
    row = report["unsolved"].only(log="first", costs="1,10", policy="adaptive").records()[0]
    assert row["cost"] == saved.unsolvable_cost == rule_cost(1.0, 1 / 20, Costs(1, 10))
    solvable = compare(["adaptive"], LOG, Costs(1, 10), orders=4)["adaptive"].cost
    assert row["solvable_cost"] == pytest.approx(solvable)
    assert row["share"] == pytest.approx(220 / (220 + 8 * solvable))
    included = make_report(
        [ReportSource("x", log=LOG)], dataclasses.replace(REQUEST, unsolvable=Unsolvable.INCLUDE)
    )
    again = included["unsolved"].only(costs="1,10", policy="adaptive").records()[0]
    assert again["solvable_cost"] == pytest.approx(solvable)


def test_a_policy_that_gives_up_spends_no_more_than_an_answer_is_worth() -> None:
    asked = ReportRequest(orders=2, many_orders=1, policies=("adaptive", "verify-all"), value=50.0)
    spent = make_report([ReportSource("x", log=LOG)], asked)["unsolved"].column("cost")
    assert all(0 < float(cost or 0) <= 50 for cost in spent)
    with pytest.raises(UsageError, match="nothing is worth trying"):
        make_report([ReportSource("x", log=LOG)], dataclasses.replace(asked, value=10.0))
