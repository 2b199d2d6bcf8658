"""One budget for many: the cap is never passed."""

from __future__ import annotations

import math
from contextlib import ExitStack

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.runtime.spending import Gate, OutOfBudget, TotalBudget


def test_what_is_in_flight_is_reserved() -> None:
    total = TotalBudget(10)
    with total.reserved(6):
        assert (total.spent, total.left) == (0, 4)
        with pytest.raises(OutOfBudget), total.reserved(5):
            pass
        with total.reserved(4):
            assert total.left == 0
        assert total.spent == 4
    assert (total.spent, total.left) == (10, 0)
    with total.reserved(0):
        pass


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("total", "budget", "inside"), [(0, 50, 1), (87, 50, 1), (88, 50, 2), (999, 10, 5), (55, 10, 5)]
)
async def test_so_many_problems_at_once_as_there_is_money_for(
    total: float, budget: float, inside: int
) -> None:
    gate = Gate(5, TotalBudget(total), Costs(1, 10), budget)
    entered = 0
    with anyio.move_on_after(0.1):
        while True:
            await gate.enter()
            entered += 1
    assert entered == inside
    gate.leave()
    with anyio.fail_after(60):
        await gate.enter()


def test_what_fails_is_spent_all_the_same() -> None:
    total = TotalBudget(10)
    with pytest.raises(KeyError), total.reserved(3):
        raise KeyError
    assert (total.spent, total.left) == (3, 7)


def test_what_was_paid_before_counts() -> None:
    total = TotalBudget(10)
    total.spend(12)
    with pytest.raises(OutOfBudget), total.reserved(1):
        pass


def test_without_a_cap_there_is_always_more() -> None:
    total = TotalBudget()
    with total.reserved(1e300):
        assert total.left == math.inf


@pytest.mark.parametrize("total", [-1, math.nan])
def test_a_total_that_is_none_is_refused(total: float) -> None:
    with pytest.raises(UsageError, match="the total budget cannot be"):
        TotalBudget(total)


@given(
    st.integers(0, 1000),
    st.lists(st.tuples(st.sampled_from([0.1, 0.3, 1, 2.5, 10]), st.integers(0, 3))),
)
def test_spent_and_reserved_together_never_pass_the_cap(
    tenths: int, steps: list[tuple[float, int]]
) -> None:
    total, flying = TotalBudget(tenths / 10), [ExitStack() for _ in range(4)]
    for amount, which in steps:
        flying[which].close()
        try:
            flying[which].enter_context(total.reserved(amount))
        except OutOfBudget:
            continue
        assert total.left >= -1e-9
    for each in flying:
        each.close()
    assert total.spent <= total.total + 1e-9
