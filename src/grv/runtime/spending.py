"""The budget of a run, which all processes share that use its ledger.

The ledger enforces the cap: every attempt of a call reserves what it may cost, and an attempt that
the cap does not cover is not made. What is here avoids waste: an action starts only if the budget
covers all of it, and a problem only if there is money for a few verified candidates.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from ..core.errors import UsageError
from ..core.values import Costs
from .ledger_writer import LedgerWriter

PROBLEM_SPENT = "the problem's budget does not pay for another step"
TOTAL_SPENT = "the total budget does not pay for another step"


class OutOfBudget(Exception):
    """A budget does not cover the next action. This ends one search; it is not an error.

    `of_run` says whether it is the budget of the run; otherwise it is that of the problem.
    """

    def __init__(self, *, of_run: bool) -> None:
        super().__init__(TOTAL_SPENT if of_run else PROBLEM_SPENT)


class Plan:
    """What an action may still reserve."""

    def __init__(self, budget: RunBudget, amount: float) -> None:
        self._budget, self._left = budget, amount
        budget.planned += amount

    def take(self, amount: float) -> None:
        """Count an amount that is now reserved in the ledger."""
        taken = min(amount, self._left)
        self._left -= taken
        self._budget.planned -= taken


class RunBudget:
    """The highest amount that may be possibly paid on a ledger, in the unit of its costs.

    Attributes:
        total: the cap.
        planned: what actions that have started may still reserve.
        account: the account that pays.
    """

    def __init__(self, total: float, writer: LedgerWriter, account: str = "") -> None:
        check_total(total)
        self.total, self.account, self.planned = total, account, 0.0
        self._writer = writer
        self._before = writer.ledger.possibly_paid(account)

    @property
    def paid(self) -> float:
        """What was possibly paid, as far as this process knows."""
        return self._before + self._writer.charged

    @property
    def left(self) -> float:
        """The amount neither paid nor planned."""
        return self.total - self.paid - self.planned

    @asynccontextmanager
    async def plan(self, amount: float) -> AsyncIterator[Plan]:
        """Plan to spend an amount; OutOfBudget if the total does not cover it."""
        if amount and math.isfinite(self.total):
            read = self._writer.ledger.possibly_paid
            paid = await anyio.to_thread.run_sync(read, self.account)
            self._before = paid - self._writer.charged
            if amount > self.left * (1 + 1e-9):
                raise OutOfBudget(of_run=True)
        plan = Plan(self, amount)
        try:
            yield plan
        finally:
            plan.take(math.inf)


def check_total(total: float) -> None:
    """Refuse a total budget that is no amount."""
    if math.isnan(total) or total < 0:
        raise UsageError(f"the total budget cannot be {total}")


class Gate:
    """Limits how many problems are searched at once: to a number, and to what the budget allows.

    A small budget spread over many problems solves none of them: it is spent before candidates are
    verified. So each problem needs enough money for a few verified candidates.
    """

    STAKE = 4  # a problem starts if there is money to generate and verify this many candidates

    def __init__(self, most: int, budget: RunBudget, costs: Costs, each: float) -> None:
        self._most, self._budget = most, budget
        self._stake = min(each, costs.of(self.STAKE, self.STAKE))
        self._inside = 0
        self._someone_left = anyio.Event()

    async def enter(self) -> None:
        """Wait until one more problem may start. One problem may always run."""
        while self._inside and not self._has_room():
            self._someone_left = anyio.Event()
            await self._someone_left.wait()
        self._inside += 1

    def enter_at_once(self) -> None:
        """Enter without waiting, after a join: as a rule, the result is already recorded."""
        self._inside += 1

    def leave(self) -> None:
        """End a problem, so that another may start."""
        self._inside -= 1
        self._someone_left.set()

    def _has_room(self) -> bool:
        more = self._inside + 1
        return more <= self._most and more * self._stake <= self._budget.left
