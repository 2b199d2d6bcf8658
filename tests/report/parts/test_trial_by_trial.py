"""Trials are sorted by hindsight and averaged if there are many."""

from __future__ import annotations

import numpy as np
import pytest

from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from grv.testing import population
from support.reports import OTHER, two_logs


def test_trials_are_sorted_by_hindsight_and_add_up() -> None:
    report = two_logs()
    rows = report["trials"].only(log="second", costs="1,10").records()
    hindsight = [float(row["hindsight"] or 0) for row in rows]
    assert hindsight == sorted(hindsight)
    assert rows[-1]["place"] == 8 * 4
    summary = {r["policy"]: r for r in report["summary"].only(log="second", costs="1,10").records()}
    for policy in ("hindsight", "adaptive"):
        mean = np.mean([float(row[policy] or 0) for row in rows])
        assert mean == pytest.approx(float(summary[policy]["cost"] or 0), rel=1e-4)
    failed = np.mean([float(row["failed"] or 0) for row in rows])
    assert 1 - failed == pytest.approx(float(summary["uniform-matched"]["solved"] or 0))


def test_the_rolling_median_is_that_of_the_neighbours() -> None:
    report = two_logs()
    rows = report["trials"].only(log="second", costs="1,10").records()
    spent = [float(row["adaptive"] or 0) for row in rows]  # 32 trials, 2 neighbours on each side
    for at, row in enumerate(rows):
        around = spent[max(at - 2, 0) : at + 3]
        assert row["median"] == pytest.approx(np.median(around), rel=1e-4)
        assert row["low"] == pytest.approx(np.quantile(around, 0.25), rel=1e-4)
        assert row["high"] == pytest.approx(np.quantile(around, 0.75), rel=1e-4)


@pytest.mark.slow
def test_many_trials_are_averaged() -> None:
    log = population("coding", problems=3, candidates=12, seed=1)
    asked = ReportRequest(
        orders=400, many_orders=1, policies=("hindsight", "adaptive", "uniform-matched")
    )
    table = make_report([ReportSource("x", log=log)], asked)["trials"]
    assert len(table) == 1000
    assert sum(int(n or 0) for n in table.column("trials")) == 1200
    assert table.column("place")[-1] == 1200


@pytest.mark.slow
def test_missing_rows_are_named() -> None:
    made = make_report(
        [ReportSource("x", log=OTHER)], ReportRequest(policies=("adaptive",), orders=2)
    )
    assert made["trials"].notes == ("x: this table needs the policies hindsight, uniform-matched.",)
