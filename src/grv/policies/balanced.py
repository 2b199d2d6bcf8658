"""Generate as much as a verification costs, verify the best."""

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
    """Repeat: generate g = floor(1 + rho), verify the best; the first time after a quarter of g.

    For a score one trusts. Costs at most (g + rho) / g J*, less than 2 J*, where higher scores pass
    no less often, and no policy has a smaller constant when rho is whole. rho is the cost of a
    verification in candidates.
    """

    rank_only: ClassVar[bool] = True

    def slots(self, costs: Costs) -> Schedule:
        """The path: a small round, then equal ones."""
        first, later = balanced_draws(exact_ratio(costs))
        return Schedule((Slot(first),), (Slot(later),))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Follow the path."""
        return follow(self.slots, pool)
