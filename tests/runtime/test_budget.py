"""One budget for many searches: plans, and how many problems may start."""

from __future__ import annotations

import math

import anyio
import pytest

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.ledger.entries import Intended, Started
from grv.ledger.ledger import MemoryLedger
from grv.runtime.budget import Gate, OutOfBudget, RunBudget
from grv.runtime.ledger_writer import LedgerWriter

pytestmark = pytest.mark.anyio


def budget(total: float, ledger: MemoryLedger | None = None) -> RunBudget:
    return RunBudget(total, LedgerWriter(ledger or MemoryLedger()))


def paid(amount: float) -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.append("s", [Started("p", {}), Intended("verify", (0,), amount)])
    return ledger


async def test_what_actions_may_still_reserve_is_planned() -> None:
    run = budget(10)
    async with run.plan(6) as plan:
        assert run.left == 4
        with pytest.raises(OutOfBudget):
            async with run.plan(5):
                pass
        async with run.plan(4):
            assert run.left == 0
        plan.take(2)  # now reserved in the ledger
        assert (run.planned, run.left) == (4, 6)
    assert run.left == 10


async def test_a_plan_that_fails_is_over() -> None:
    run = budget(10)
    with pytest.raises(KeyError):
        async with run.plan(3):
            raise KeyError
    assert run.left == 10


async def test_what_others_have_paid_counts() -> None:
    ledger = MemoryLedger()
    run = budget(10, ledger)
    ledger.append("s", [Started("p", {}), Intended("verify", (0,), 9.5)])
    with pytest.raises(OutOfBudget):
        async with run.plan(1):
            pass
    assert budget(10, paid(12)).left == -2


async def test_an_account_has_a_cap_within_the_total() -> None:
    ledger = paid(5)  # by another account
    run = budget(20, ledger)
    alice, bob = run.of_account("alice", 8), run.of_account("bob")
    ledger.append("a", [Started("p", {}, account="alice"), Intended("verify", (0,), 3.0)])
    async with alice.plan(4):
        with pytest.raises(OutOfBudget, match="the account's budget"):
            async with alice.plan(2):
                pass
        async with alice.plan(1), bob.plan(7):
            assert bob.planned == run.planned == 12
            with pytest.raises(OutOfBudget, match="the total budget"):
                async with bob.plan(1):
                    pass
    assert run.planned == 0
    assert (alice.caps.account, alice.caps.total, bob.caps.account) == (8, 20, math.inf)


async def test_without_a_cap_there_is_always_more() -> None:
    async with budget(math.inf).plan(1e300):
        assert budget(math.inf).left == math.inf


@pytest.mark.parametrize("total", [-1, math.nan])
def test_a_total_that_is_none_is_refused(total: float) -> None:
    with pytest.raises(UsageError, match="the total budget cannot be"):
        budget(total)


@pytest.mark.parametrize(
    ("total", "each", "inside"), [(0, 50, 1), (87, 50, 1), (88, 50, 2), (999, 10, 5), (55, 10, 5)]
)
async def test_as_many_problems_start_as_there_is_money_for(
    total: float, each: float, inside: int
) -> None:
    gate = Gate(lambda: 5, budget(total), Costs(1, 10), each)
    entered = 0
    with anyio.move_on_after(0.1):
        while True:
            await gate.enter()
            entered += 1
    assert entered == inside
    gate.leave()
    with anyio.fail_after(60):
        await gate.enter()
