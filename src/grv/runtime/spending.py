"""One budget for many searches. Calls in flight are reserved, so the total is never exceeded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from ..core.errors import UsageError
from ..core.values import Costs


class OutOfBudget(Exception):
    """The total budget does not cover the next action. This ends one search; it is not an error."""


@dataclass
class Held:
    """A reserved amount. Set `paid` once the real cost is known."""

    paid: float


class TotalBudget:
    """The highest amount that a run may spend, in the unit of its costs."""

    def __init__(self, total: float = math.inf) -> None:
        if math.isnan(total) or total < 0:
            raise UsageError(f"the total budget cannot be {total}")
        self.total = total
        self.spent = 0.0
        self._reserved = 0.0

    @property
    def left(self) -> float:
        """The amount neither spent nor reserved."""
        return self.total - self.spent - self._reserved

    def spend(self, amount: float) -> None:
        """Count an amount that an earlier process has spent."""
        self.spent += amount

    @contextmanager
    def reserved(self, amount: float) -> Iterator[Held]:
        """Reserve an amount for the block. At its end, even after an error, it is spent.

        If the block sets `paid`, that amount is spent instead.
        """
        if amount > self.left:
            raise OutOfBudget
        self._reserved += amount
        held = Held(amount)
        try:
            yield held
        finally:
            self._reserved -= amount
            self.spent += held.paid


class Gate:
    """Limits how many problems are searched at once: to a number, and to what the budget allows.

    A small budget spread over many problems solves none of them: it is spent before candidates are
    verified. So each problem needs enough money for a few verified candidates.
    """

    STAKE = 4  # a problem starts if there is money to generate and verify this many candidates

    def __init__(self, most: int, total: TotalBudget, costs: Costs, budget: float) -> None:
        self._most, self._total = most, total
        self._stake = min(budget, costs.of(self.STAKE, self.STAKE))
        self._inside = 0
        self._someone_left = anyio.Event()

    async def enter(self) -> None:
        """Wait until one more problem may start. One problem may always run."""
        while self._inside and not self._has_room():
            self._someone_left = anyio.Event()
            await self._someone_left.wait()
        self._inside += 1

    def leave(self) -> None:
        """End a problem, so that another may start."""
        self._inside -= 1
        self._someone_left.set()

    def _has_room(self) -> bool:
        more = self._inside + 1
        return more <= self._most and more * self._stake <= self._total.left
