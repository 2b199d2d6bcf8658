"""The cheapest pair per problem is that of hindsight."""

from __future__ import annotations

import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs
from support.reports import OTHER, two_logs

pytestmark = pytest.mark.slow


def test_optimal_pairs_are_hindsight_over_many_orders() -> None:
    report = two_logs()
    found = compare(["hindsight"], OTHER, Costs(1, 10), orders=20)
    spent = found.trials[0].costs(Costs(1, 10)).mean(axis=1)
    rows = report["optimal_pairs"].only(log="second", costs="1,10").records()
    assert [row["problem"] for row in rows] == list(found.problems)
    assert [row["cost"] for row in rows] == pytest.approx(spent.tolist(), rel=1e-4)
