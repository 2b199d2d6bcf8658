"""What a schedule is: ask which search takes its next step, tell what the step cost.

A *step* of a search ends at its next verdict: candidates and then one verification, or the block of
verifications that a wide search sends at once. A problem is known by its place in the file. A
schedule stores a few numbers per problem, never a candidate. It reads no clock and no disk, so a
run that is resumed repeats its order.

A schedule does not know the bill. The driver runs a step only if the money covers it. If the money
does not cover a step, the driver tells the schedule that this search has ended and asks again:
another search may have a cheaper step.
"""

from __future__ import annotations

import math
from typing import Protocol

from ..core.errors import UsageError


class Schedule(Protocol):
    """The order of the steps of one run.

    Every problem is in one of three states: *waiting*, *out* (asked for, its step is running) or
    *ended*. If c steps may run at once, call `ask` until c searches are out.
    """

    def add(
        self,
        problem: int,
        *,
        weight: float = 1.0,
        expected: float | None = None,
        spent: float = 0.0,
        next_cost: float = 0.0,
        ended: bool = False,
    ) -> None:
        """Add a problem, which waits.

        Args:
            problem: its place in the file; of two problems with equal keys, the first goes first.
            weight: how much an answer is worth, compared with the other problems.
            expected: the predicted cost of solving it, if there is a prediction.
            spent: what its search has cost already, if the run is resumed.
            next_cost: what the search will spend up to and with its next verdict.
            ended: whether the search ended before the run was resumed. Then it is never asked for,
                but a rule that learns from earlier spending counts it.
        """
        ...

    def ask(self) -> int | None:
        """The problem whose search takes the next step; None if no problem waits."""
        ...

    def tell(
        self,
        problem: int,
        *,
        spent: float,
        next_cost: float = 0.0,
        ended: bool = False,
        expected: float | None = None,
    ) -> bool:
        """Report the step of a search that is out.

        Args:
            problem: the search.
            spent: its whole cost so far.
            next_cost: what it will spend up to and with its next verdict.
            ended: whether it is solved, has given up, has no candidates left, or cannot be paid.
            expected: a new prediction, if there is one.

        Returns:
            whether the search may be asked for again. If not, close it.
        """
        ...


class Rule(Protocol):
    """What a schedule follows. A frozen dataclass: its fields are its parameters."""

    def begin(self, *, budget: float = math.inf, problems: int | None = None) -> Schedule:
        """The schedule of a run.

        Args:
            budget: the money for all problems together.
            problems: how many problems there will be; None if that is not known.
        """
        ...


def checked_weight(weight: float) -> float:
    """The weight of a problem, if it can be one."""
    if not 0 < weight < math.inf:
        raise UsageError(f"the weight of a problem must be positive and finite, not {weight}")
    return weight


def checked_expected(expected: float | None) -> float | None:
    """The predicted cost of a problem, if it can be one."""
    if expected is not None and not 0 <= expected < math.inf:
        raise UsageError(f"a predicted cost must be finite and not negative, not {expected}")
    return expected
