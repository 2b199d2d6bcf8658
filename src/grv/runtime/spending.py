"""One budget for many searches: what is in flight is reserved, so that the cap is never passed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from ..core.errors import UsageError
from ..core.values import Costs


class OutOfBudget(Exception):
    """The run's budget does not cover the next action. Not an error: it ends one search."""


@dataclass
class Held:
    """An amount that is reserved, until it is known what was `paid`."""

    paid: float


class TotalBudget:
    """What a run may spend, in the unit of its costs."""

    def __init__(self, total: float = math.inf) -> None:
        if math.isnan(total) or total < 0:
            raise UsageError(f"the total budget cannot be {total}")
        self.total = total
        self.spent = 0.0
        self._reserved = 0.0

    @property
    def left(self) -> float:
        """What is neither spent nor reserved."""
        return self.total - self.spent - self._reserved

    def spend(self, amount: float) -> None:
        """Count what an earlier process has paid for."""
        self.spent += amount

    @contextmanager
    def reserved(self, amount: float) -> Iterator[Held]:
        """Keep an amount for what is about to be done.

        It is spent even if that fails, unless it is known by then what was really paid.
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
    """Lets problems in: so many at once, and no more than the purse can do something for.

    A small budget that is spread over many problems solves none: it ends before their candidates
    are verified.
    """

    STAKE = 4  # candidates, each generated and verified, that there must be money for

    def __init__(self, most: int, total: TotalBudget, costs: Costs, budget: float) -> None:
        self._most, self._total = most, total
        self._stake = min(budget, costs.of(self.STAKE, self.STAKE))
        self._inside = 0
        self._someone_left = anyio.Event()

    async def enter(self) -> None:
        """Wait until there is room for one more; for the first one there always is."""
        while self._inside and not self._has_room():
            self._someone_left = anyio.Event()
            await self._someone_left.wait()
        self._inside += 1

    def leave(self) -> None:
        """Make room for another one."""
        self._inside -= 1
        self._someone_left.set()

    def _has_room(self) -> bool:
        more = self._inside + 1
        return more <= self._most and more * self._stake <= self._total.left
