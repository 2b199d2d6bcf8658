"""The progress of a run, reported to a listener."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run of `solve_many`.

    Attributes:
        problems: the number of problems of the run.
        done: the number of problems whose search has ended.
        solved: the number of problems solved.
        spent: the cost so far; with a total budget, including earlier processes.
        in_flight: the number of calls in flight.
        waiting: what calls wait for, in words; empty if they do not wait.
    """

    problems: int
    done: int
    solved: int
    spent: float
    in_flight: int
    waiting: str = ""


Listener = Callable[[Progress], None]
CandidateListener = Callable[[int], None]  # told how many more candidates are done, when collecting
