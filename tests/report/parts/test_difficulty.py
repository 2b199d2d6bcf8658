"""Difficulty groups: rows by number of groups, and the groups."""

from __future__ import annotations

import pytest

from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from support.reports import OTHER, two_logs


@pytest.mark.slow
def test_rows_with_groups_have_their_number_and_their_groups() -> None:
    rows = two_logs()["difficulty"].only(log="second", costs="1,10").records()
    groups = {row["policy"]: row["groups"] for row in rows}
    assert groups["difficulty-3"] == 3
    assert groups["adaptive"] is None
    three = two_logs()["groups"].only(log="second", costs="1,10", policy="difficulty-3").records()
    assert [row["group"] for row in three] == [1, 2, 3]
    assert sum(int(row["problems"] or 0) for row in three) == len(OTHER.problems)
    assert [row["from"] for row in three] == sorted(float(row["from"] or 0) for row in three)


def test_missing_rows_are_named() -> None:
    made = make_report(
        [ReportSource("x", log=OTHER)], ReportRequest(policies=("adaptive",), orders=2)
    )
    assert made["difficulty"].notes == (
        "x: ratios are relative to adaptive.",
        "x: no difficulty-K is among the policies.",
        "x: hindsight is not among the policies.",
    )
