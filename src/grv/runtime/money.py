"""One budget for many searches: what is in flight is reserved, so that the cap is never passed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..core.errors import UsageError


class OutOfMoney(Exception):
    """The run's budget does not cover the next action. Not an error: it ends one search."""


@dataclass
class Held:
    """An amount that is reserved, until it is known what was `paid`."""

    paid: float


class Purse:
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
            raise OutOfMoney
        self._reserved += amount
        held = Held(amount)
        try:
            yield held
        finally:
            self._reserved -= amount
            self.spent += held.paid
