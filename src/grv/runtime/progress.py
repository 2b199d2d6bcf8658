"""How far a run is, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        problems: the number of problems of the run.
        done: how many have ended, solved or not.
        solved: how many are solved.
        spent: what the run has cost so far, earlier processes included where a total budget counts.
        in_flight: calls in flight.
    """

    problems: int
    done: int
    solved: int
    spent: float
    in_flight: int


Listener = Callable[[Progress], None]
