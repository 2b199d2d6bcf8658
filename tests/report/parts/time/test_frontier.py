"""What sooner costs: the rows are those of `grv compare` at each width."""

from __future__ import annotations

import pytest

from grv.core.values import Costs, Latency
from grv.experiments.compare import compare
from grv.policies import DEFAULT, spec
from grv.report.build import make_report
from grv.report.inputs.source import Source
from grv.report.parts.time.frontier import WIDTHS
from grv.report.request import Request
from support.reports import FEW, OTHER, two_logs


def test_the_points_are_those_of_compare() -> None:
    asked = Request(policies=FEW, orders=2, many_orders=1, latency=Latency(5, 30), second=0.5)
    table = make_report([Source("x", log=OTHER)], asked)["frontier"]
    name = spec.spec(DEFAULT)
    for width, record in zip(WIDTHS, table.records(), strict=True):
        how = {"orders": 2, "latency": Latency(5, 30), "width": width}
        (row,) = compare([name], OTHER, Costs(), **how).rows
        assert record["width"] == width
        assert (record["cost"], record["seconds"]) == (row.cost, row.seconds)
        assert record["both"] == pytest.approx(record["cost"] + 0.5 * record["seconds"])
    costs, seconds = table.column("cost"), table.column("seconds")
    assert costs[0] == min(costs)
    assert seconds[0] == max(seconds)
    assert "no seconds" in two_logs()["frontier"].notes[0]
