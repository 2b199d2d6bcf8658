"""Spending on problems without a pass."""

from __future__ import annotations

import dataclasses

import pytest

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.experiments.compare import compare
from grv.experiments.settings import Unsolvable
from grv.report.build import make_report
from grv.report.inputs.source import Source
from grv.report.request import Request
from grv.theory.optimum import rule_cost
from support.reports import LOG, REQUEST, two_logs


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
        [Source("x", log=LOG)], dataclasses.replace(REQUEST, unsolvable=Unsolvable.INCLUDE)
    )
    again = included["unsolved"].only(costs="1,10", policy="adaptive").records()[0]
    assert again["solvable_cost"] == pytest.approx(solvable)


def test_a_policy_that_gives_up_spends_no_more_than_an_answer_is_worth() -> None:
    asked = Request(orders=2, many_orders=1, policies=("adaptive", "verify-all"), value=50.0)
    spent = make_report([Source("x", log=LOG)], asked)["unsolved"].column("cost")
    assert all(0 < float(cost or 0) <= 50 for cost in spent)
    with pytest.raises(UsageError, match="nothing is worth trying"):
        make_report([Source("x", log=LOG)], dataclasses.replace(asked, value=10.0))
