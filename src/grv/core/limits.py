"""The limits of a search: what it may spend, what an answer is worth, how wide and long it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from .errors import UsageError
from .pace import Pace
from .values import Cascade, Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a search may do. Live searches, replays, kernels and servers take it whole.

    Attributes:
        budget: the limit on the planned cost of all actions together.
        value: what an answer is worth, in the unit of the costs. If infinite, the search never
            gives up.
        width: the most verifications in flight at once; None means a whole step of the plan.
        pace: how far to look ahead if the width is above 1, what waiting costs, and the deadline.
        answers: how many different answers to find. A search for more than one does not look ahead.
        cascade: how second scores are used; None if there are none.
        most: the highest possible cost of one candidate and of one verification, if that differs
            from the price list. The budget reserves this much for each one that is asked for.

    Examples:
        >>> import grv
        >>> grv.Limits(budget=500, width=4).looks_ahead
        True
        >>> grv.Limits(budget=-1)
        Traceback (most recent call last):
        grv.core.errors.UsageError: the budget cannot be -1
    """

    budget: float = math.inf
    value: float = math.inf
    width: int | None = 1
    pace: Pace = field(default_factory=Pace)
    answers: int = 1
    cascade: Cascade | None = None
    most: Costs | None = None

    def __post_init__(self) -> None:
        if math.isnan(self.budget) or self.budget < 0:
            raise UsageError(f"the budget cannot be {self.budget}")
        if math.isnan(self.value) or self.value < 0:
            raise UsageError(f"what an answer is worth cannot be {self.value}")
        if self.width is not None and self.width < 1:
            raise UsageError(f"the width must be at least 1, not {self.width}")
        if self.answers < 1:
            raise UsageError(f"the number of answers must be at least 1, not {self.answers}")

    def of(self, problem: str) -> Limits:
        """The limits of the searches for one problem, given its id."""
        return replace(self, pace=self.pace.of(problem)) if self.pace.random_phase else self

    @property
    def second_cost(self) -> float:
        """The most that a second score costs; 0 if there are none."""
        return 0.0 if self.cascade is None else self.cascade.cost

    @property
    def looks_ahead(self) -> bool:
        """Whether a search verifies what comes next if the verifications in flight fail."""
        return self.width is not None and self.width > 1 and self.answers == 1
