"""The budget curve is the best of all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from grv.core.values import Costs
from grv.logs.log import Log
from grv.policies import Fixed
from grv.replay.kernels.dispatch import trials
from grv.replay.orders import batches
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts.budget_curve import best_within_each
from grv.report.request import ReportRequest
from grv.testing import World


def test_the_budget_curve_is_the_best_of_all_pairs() -> None:
    log = Log((World.of("9- 8- 7+ 6- 5+").logged("a"), World.of("9+ 8- 7- 3- 2-").logged("b")))
    asked = ReportRequest(costs=(Costs(1, 3),), policies=("adaptive",), orders=3)
    curve = make_report([ReportSource("x", log=log)], asked)["budget_curve"].only(kind="curve")
    pairs = []
    for m, k in itertools.combinations_with_replacement(range(1, 6), 2):
        found = [trials(Fixed(k, m), batch, Costs(1, 3)) for batch in batches(log.problems, 3)]
        cost = np.mean([each.costs(Costs(1, 3)) for each in found])
        pairs.append((cost, np.mean([each.solved for each in found])))
    for row in curve.records():
        within = [share for cost, share in pairs if cost <= float(row["cost"] or 0) + 1e-3]
        assert row["solved"] == pytest.approx(max(within), abs=1e-4)
    assert curve.column("solved")[-1] == pytest.approx(max(share for _, share in pairs))


def test_a_long_curve_keeps_its_ends() -> None:
    size = 300
    prices = np.arange(size * size, dtype=float).reshape(size, size)
    steps = best_within_each(prices, np.tril(prices) / prices.max())
    assert len(steps) <= 150
    assert steps[0][1] == 0
    assert steps[-1][1] == 1
