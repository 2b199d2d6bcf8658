"""One budget for many searches: what is in flight is reserved, so that the cap is never passed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.errors import UsageError


class OutOfMoney(Exception):
    """The run's budget does not cover the next action. Not an error: it ends one search."""


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
    def reserved(self, amount: float) -> Iterator[None]:
        """Keep an amount for what is about to be done; it is spent even if that fails."""
        if amount > self.left:
            raise OutOfMoney
        self._reserved += amount
        try:
            yield
        finally:
            self._reserved -= amount
            self.spent += amount
