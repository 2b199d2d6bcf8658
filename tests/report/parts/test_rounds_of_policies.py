"""Rounds and seconds are those of `grv compare`."""

from __future__ import annotations

from grv.comparing.compare import compare
from grv.core.values import Costs, Latency
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from support.reports import FEW, OTHER, two_logs


def test_rounds_and_seconds_are_those_of_compare() -> None:
    asked = ReportRequest(policies=FEW, orders=2, many_orders=1, latency=Latency(20, 60))
    made = make_report([ReportSource("x", log=OTHER)], asked)
    found = compare(FEW, OTHER, Costs(), orders=2, latency=Latency(20, 60))
    assert made["rounds"].column("seconds") == [row.seconds for row in found.rows]
    assert made["rounds"].column("rounds") == [row.rounds for row in found.rows]
    assert made["rounds"].notes == ()
    assert "no seconds" in two_logs()["rounds"].notes[0]
