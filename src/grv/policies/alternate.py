"""Verify a new candidate, then the best of several, in turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import Costs, Step
from ..theory.decimals import exact_ratio
from ..theory.slots import BLIND, Slot, SlotSchedule, alternate_draws
from .promises import promises_of, sentence
from .schedule import follow


@dataclass(frozen=True)
class Alternate:
    """In turns: verify a new candidate whatever its score, then the best of several.

    Each round generates one candidate and verifies it, then generates n = round(rho) more and
    verifies the best open candidate. rho is the cost of a verification in candidates; the first
    round generates only a quarter of n. Choose it for a score of unknown quality. If rho is below
    1.5, it verifies everything.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 9+ 3-")  # scores; + passes
        >>> print(*dialogue(grv.policies.Alternate(), grv.Costs(1, 3), world), sep=", ")
        generate 1, verify 1, generate 1, verify 1, generate 1, verify 1, solved by 2
    """

    for_guests: ClassVar[bool] = True
    rank_only: ClassVar[bool] = True
    any_score: ClassVar[bool] = True
    relies_on: ClassVar[str] = "nothing: some candidates are verified whatever their score"
    proven: ClassVar[str] = sentence(promises_of("alternate"))

    def slots(self, costs: Costs) -> SlotSchedule:
        """The schedule: a blind slot before each of the others."""
        first, later = alternate_draws(exact_ratio(costs))
        return SlotSchedule((BLIND, Slot(first)), (BLIND, Slot(later)))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Follow the schedule."""
        return follow(self.slots, pool)
