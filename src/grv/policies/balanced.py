"""Spend as much on generating as on verifying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import Costs, Step
from ..theory.decimals import exact_ratio
from ..theory.slots import BalancedPath, SlotSchedule, balanced_slots
from .promises import promises_of, sentence
from .schedule import follow


@dataclass(frozen=True)
class Balanced:
    """Generate until that has cost as much as a verification, then verify the best.

    Each round generates 1 + rho candidates and verifies the best open candidate; rho is the cost of
    a verification in candidates. If 1 + rho is not whole, rounds of the two nearest sizes alternate
    so that the average is 1 + rho. The first round is a quarter of the others. Choose it for a
    score that you trust.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 3- 9+ 2- 4-")  # scores; + passes
        >>> print(*dialogue(grv.policies.Balanced(), grv.Costs(1, 3), world), sep=", ")
        generate 1, verify 1, generate 4, verify 1, solved by 3
    """

    for_guests: ClassVar[bool] = True
    rank_only: ClassVar[bool] = True
    relies_on: ClassVar[str] = "higher scores are not worse"
    proven: ClassVar[str] = sentence(promises_of("balanced"))

    def slots(self, costs: Costs) -> SlotSchedule | BalancedPath:
        """The path: one small round, then rounds of 1 + rho candidates on average."""
        return balanced_slots(exact_ratio(costs))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Follow the schedule."""
        return follow(self.slots, pool)
