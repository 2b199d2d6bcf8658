"""What sooner costs: the rows are those of `grv compare` at each width."""

from __future__ import annotations

import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs, Latency
from grv.policies import DEFAULT, spec
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts.frontier import WIDTHS
from grv.report.request import ReportRequest
from support.reports import FEW, OTHER, two_logs

pytestmark = pytest.mark.slow


def test_the_points_are_those_of_compare() -> None:
    asked = ReportRequest(
        policies=FEW, orders=2, many_orders=1, latency=Latency(5, 30), wait_price=0.5
    )
    table = make_report([ReportSource("x", log=OTHER)], asked)["frontier"]
    rows = [
        compare([spec.spec(DEFAULT)], OTHER, orders=2, latency=Latency(5, 30), width=width).rows[0]
        for width in WIDTHS
    ]
    costs, seconds = [row.cost for row in rows], [row.seconds or 0.0 for row in rows]

    assert table.column("width") == list(WIDTHS)
    assert table.column("cost") == costs
    assert table.column("seconds") == seconds
    both = [cost + 0.5 * each for cost, each in zip(costs, seconds, strict=True)]
    assert table.column("both") == pytest.approx(both)
    assert costs[0] == min(costs)
    assert seconds[0] == max(seconds)
    assert rows[0].costs == Costs()


def test_without_latencies_there_is_a_note() -> None:
    assert "no seconds" in two_logs()["frontier"].notes[0]
