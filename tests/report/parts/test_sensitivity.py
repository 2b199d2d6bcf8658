"""Costs by cost ratio are those of `grv compare` at that ratio."""

from __future__ import annotations

import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs
from support.reports import OTHER, two_logs


def test_costs_at_another_ratio_are_those_of_compare() -> None:
    names = ["adaptive", "verify-all", "balanced"]
    found = compare(names, OTHER, Costs(1, 50), orders=4)
    table = two_logs()["sensitivity"].only(log="second", rho=50.0)
    rows = {str(row["policy"]): row for row in table.records()}
    for name in names:
        assert rows[name]["cost"] == found[name].cost
        assert rows[name]["ratio"] == pytest.approx(found[name].ratio)
        in_order = found[name].cost / found["verify-all"].cost
        assert rows[name]["in_order"] == pytest.approx(in_order)
