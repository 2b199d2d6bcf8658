"""Verify the best of several, and sometimes a new candidate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.values import Costs, Step
from ..theory.decimals import exact_ratio
from ..theory.slots import BLIND, Slot, SlotSchedule, hedged_draws
from .promises import promises_of, sentence
from .schedule import follow

_LONGEST = 1000  # rounds: all of them are listed whenever the schedule is needed


@dataclass(frozen=True)
class Hedged:
    """Verify the best of several, and sometimes a new candidate whatever its score.

    Each round generates g = round(alpha (1 + rho)) candidates and verifies the best open candidate.
    rho is the cost of a verification in candidates. It is a predecessor of `alternate`, kept for
    comparison.

    Attributes:
        alpha: the number of candidates of a round, divided by 1 + rho.
        every: after this many rounds, one more candidate is generated and verified.
        first: the number of rounds at the start that generate only one candidate.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 3- 9+ 2- 4-")  # scores; + passes
        >>> print(*dialogue(grv.policies.Hedged(), grv.Costs(1, 3), world), sep=", ")
        generate 1, verify 1, generate 2, verify 1, generate 2, verify 1, solved by 3
    """

    alpha: float = 0.5
    every: int = 4
    first: int = 1
    for_guests: ClassVar[bool] = True
    rank_only: ClassVar[bool] = True
    any_score: ClassVar[bool] = True
    relies_on: ClassVar[str] = "nothing: some candidates are verified whatever their score"

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1e9:
            raise UsageError(f"hedged: alpha must be positive and below 1e9, not {self.alpha}")
        for name, value, least in (("every", self.every, 1), ("first", self.first, 0)):
            if not isinstance(value, int) or not least <= value <= _LONGEST:
                raise UsageError(
                    f"hedged: {name} must be a whole number from {least} to {_LONGEST},"
                    f" not {value!r}"
                )

    @property
    def proven(self) -> str:
        """What is proven about its cost."""
        return sentence(promises_of("hedged", alpha=self.alpha, every=self.every))

    def slots(self, costs: Costs) -> SlotSchedule:
        """The schedule: rounds, with a blind slot after every `every` of them."""
        later = Slot(hedged_draws(exact_ratio(costs), self.alpha))
        first: list[Slot] = []
        for number in range(self.first + -self.first % self.every):  # up to a blind slot
            first.append(Slot(1) if number < self.first else later)
            first += [BLIND] if (number + 1) % self.every == 0 else []
        return SlotSchedule(tuple(first), (later,) * self.every + (BLIND,))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Follow the schedule."""
        return follow(self.slots, pool)
