"""Logs are paired on the problems they share."""

from __future__ import annotations

import dataclasses

import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs
from grv.logs.log import Log
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts.better_score import changed
from grv.report.request import ReportRequest
from support.reports import OTHER


@pytest.mark.slow
def test_logs_are_paired_on_the_problems_they_share() -> None:
    part = Log(OTHER.problems[2:5])
    worse = changed(part, 1.0, 0.0, seed=0)
    asked = ReportRequest(orders=3, many_orders=1, policies=("adaptive", "verify-all"))
    made = make_report([ReportSource("all", log=OTHER), ReportSource("noise", log=worse)], asked)
    for row in made["paired"].records():
        assert row["problems"] == 3
        first = compare([str(row["policy"])], part, Costs(), orders=3).rows[0].cost
        second = compare([str(row["policy"])], worse, Costs(), orders=3).rows[0].cost
        assert (row["cost"], row["first_cost"]) == pytest.approx((second, first))
        assert row["against"] == pytest.approx(second / first)
    same = made["paired"].only(policy="verify-all").records()[0]
    assert (same["against"], same["low"], same["high"]) == (1.0, 1.0, 1.0)


def test_logs_without_a_common_problem_are_named() -> None:
    renamed = [dataclasses.replace(problem, id=f"other {problem.id}") for problem in OTHER.problems]
    sources = [ReportSource("a", log=OTHER), ReportSource("b", log=Log(tuple(renamed)))]
    made = make_report(sources, ReportRequest(orders=1, many_orders=1, policies=("verify-all",)))
    assert made["paired"].rows == ()
    assert made["paired"].notes == ("b and a share no solvable problem.",)
