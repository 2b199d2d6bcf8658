"""Spend as much on generating as on verifying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import Costs, Step
from ..theory.decimals import exact_ratio
from ..theory.slots import Schedule, Slot, balanced_draws
from .schedule import follow


@dataclass(frozen=True)
class Balanced:
    """Generate until that has cost as much as a verification, then verify the best.

    Each round generates g = floor(1 + rho) candidates and verifies the best open candidate; the
    first round generates only a quarter of g. rho is the cost of a verification in candidates.
    Choose it for a score that you trust.
    """

    rank_only: ClassVar[bool] = True
    relies_on: ClassVar[str] = "higher scores are not worse"
    proven: ClassVar[str] = (
        "at most (g + rho) / g J*, less than 2 J*, if higher scores pass no less often;"
        " no policy has a smaller constant for whole rho"
    )

    def slots(self, costs: Costs) -> Schedule:
        """The schedule: one small round, then equal rounds."""
        first, later = balanced_draws(exact_ratio(costs))
        return Schedule((Slot(first),), (Slot(later),))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Follow the schedule."""
        return follow(self.slots, pool)
