"""The cheapest policy, and how certain that is."""

from __future__ import annotations

import numpy as np
import pytest

from grv.comparing.compare import compare
from grv.comparing.rows import runs_live
from grv.comparing.significance import Resampled
from grv.core.values import Costs
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from grv.testing import population
from support.reports import OTHER, two_logs


def test_the_cheapest_policy_is_counted_over_the_resamples_of_compare() -> None:
    report = two_logs()
    rows = report["which_policy"].only(log="second", costs="1,10").records()
    names = [str(row["policy"]) for row in rows]
    assert all(map(runs_live, names))
    found = compare(names, OTHER, Costs(1, 10), orders=4)
    by_problem = [t.costs(Costs(1, 10)).mean(axis=1) for t in found.trials]
    totals = np.array([Resampled(8, 0).totals(each) for each in by_problem])
    first = np.mean(totals.argmin(axis=0) == 0)
    assert rows[0]["cheapest"] == pytest.approx(first, abs=0.01)
    assert sum(float(row["cheapest"] or 0) for row in rows) == pytest.approx(1)
    assert [row["cost"] for row in rows] == sorted(row.cost for row in found.rows)


@pytest.mark.slow
def test_a_policy_that_solves_fewer_is_not_the_cheapest() -> None:
    log = population("math", problems=6, candidates=40, seed=2)
    asked = ReportRequest(
        policies=("fixed(1, 1)", "verify-all", "adaptive"), orders=2, many_orders=1
    )
    rows = make_report([ReportSource("x", log=log)], asked)["which_policy"].records()
    assert rows[-1]["policy"] == "fixed(1, 1)"
    assert (rows[-1]["cheapest"], rows[-1]["words"]) == (None, "solves fewer")


@pytest.mark.slow
def test_a_report_without_a_live_policy_says_so() -> None:
    asked = ReportRequest(policies=("hindsight",), orders=2)
    made = make_report([ReportSource("x", log=OTHER)], asked)
    assert made["which_policy"].notes == ("x: none of the policies can run live.",)
