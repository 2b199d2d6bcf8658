"""Verify one blindly, then the best of some, and so on in turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import Costs, Step
from ..theory.decimals import exact_ratio
from ..theory.slots import BLIND, Schedule, Slot, alternate_draws
from .schedule import follow


@dataclass(frozen=True)
class Alternate:
    """Repeat: generate one and verify it unseen; generate n = round(rho), verify the best.

    For a score of unknown quality; the first n is a quarter of the others. Costs less than 3 J*
    where higher scores pass no less often, and at most 3 times verify-all whatever the score is
    worth. rho is the cost of a verification in candidates; below 1.5 this is verify-all.
    """

    rank_only: ClassVar[bool] = True

    def slots(self, costs: Costs) -> Schedule:
        """The path: a blind slot before each of the others."""
        first, later = alternate_draws(exact_ratio(costs))
        return Schedule((BLIND, Slot(first)), (BLIND, Slot(later)))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Follow the path."""
        return follow(self.slots, pool)
