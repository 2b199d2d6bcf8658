"""The budget curve is the best of all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grv.core.limits import Limits
from grv.core.values import Costs
from grv.logs.log import Log
from grv.policies import Fixed
from grv.replay.hindsight import least_checks_of, paid_checks_of
from grv.replay.kernels.dispatch import trials
from grv.replay.orders import batches
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts.budget_curve import Curve
from grv.report.request import ReportRequest
from grv.report.table import significant
from grv.testing import World
from grv.theory import uniform
from grv.theory.uniform import PairRows, PairTable
from support.examples import examples


@pytest.mark.slow
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


@settings(max_examples=examples(60))
@given(
    trials=st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1, max_size=4),
    costs=st.sampled_from([Costs(1, 10), Costs(0.1, 0.3), Costs(1, 10, failure=3)]),
    cells=st.sampled_from([1, 20, 1 << 20]),
)
def test_a_curve_in_blocks_is_that_of_all_pairs_at_once(
    trials: list[list[bool]], costs: Costs, cells: int
) -> None:
    problems = [
        World.of(" ".join(f"{9 - at}{'-+'[passed]}" for at, passed in enumerate(labels))).logged(
            str(number)
        )
        for number, labels in enumerate(trials)
    ]
    table = PairTable(max(map(len, problems)))
    for batch in batches(problems, 3):
        least = least_checks_of(batch)
        table.add(least, paid_checks_of(batch, least, Limits()))
    curve = Curve()
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(uniform, "_CELLS", cells)
        for block in table.blocks():
            curve.add(block, costs)

    assert curve.steps() == steps_of_all(table.prices(costs), table.solved())


def steps_of_all(
    prices: NDArray[np.float64], solved: NDArray[np.float64]
) -> list[tuple[float, float, int, int]]:
    """The steps, from all pairs in one table; as many as there are."""
    m, k = np.nonzero(np.tril(np.ones_like(solved, dtype=np.bool_)))
    cost = prices[m, k]
    share = solved[m, k]
    order = np.lexsort((k, m, -share, cost))
    best = np.maximum.accumulate(share[order])
    rises = np.flatnonzero(np.diff(best, prepend=-1.0) > 1e-12)
    return [
        (significant(cost[at]), significant(share[at]), int(m[at]) + 1, int(k[at]) + 1)
        for at in order[rises].tolist()
    ]


def test_a_long_curve_keeps_its_ends() -> None:
    size = 300
    share = np.tril(np.arange(size * size, dtype=float).reshape(size, size))
    curve = Curve()
    curve.add(PairRows(0, share / share.max(), np.arange(size) + 1.0 + 0 * share), Costs(1, 1))
    steps = curve.steps()
    assert 100 < len(steps) <= 150
    assert steps[0][1] == 0
    assert steps[-1][1] == 1
