"""Replays many searches that share one budget, in the order of a schedule.

The definition is `run_batch`: ask the schedule, let that search take its step, tell what it cost. A
step ends at a verdict. Its cost is known before it is taken, as it is live if prices are known: the
search is replayed one step ahead, and what it found counts only when the schedule asks for it. If
the money does not cover the step, the search ends.

The course of a search does not depend on the schedule, so it is replayed once (`Course`). For a
rule that goes by keys, all steps of all searches are then sorted by their keys (`sorted_steps`);
one sort serves all budgets. A test proves that this equals `run_batch` over searches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.search import Search
from ..core.values import Verified
from ..logs.log import LoggedProblem
from ..schedules import Schedule
from .engine import turns

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Course:
    """The steps of one search, if nothing stops it.

    Attributes:
        levels: `[steps]`, what the search has spent after each step.
        solved: whether the last step finds an answer.
        arrived: `[steps]`, the number of candidates that have arrived after each step.
    """

    levels: Floats
    solved: bool
    arrived: NDArray[np.int64]

    @property
    def cost(self) -> float:
        """The whole cost."""
        return float(self.levels[-1]) if len(self.levels) else 0.0

    @property
    def solving_cost(self) -> float:
        """The cost of the answer; infinite if there is none."""
        return self.cost if self.solved else np.inf


def course_of(
    search: Search, problem: LoggedProblem, order: Sequence[int], *, keys: bool = False
) -> Course:
    """Replay a search to its end."""
    steps = SearchSteps(search, problem, order, keys=keys)
    levels = []
    arrived = []
    while steps.level is not None:
        steps.take()
        levels.append(steps.spent)
        arrived.append(steps.arrived)
    return Course(np.array(levels), steps.solved, np.array(arrived, dtype=np.int64))


class Steps(Protocol):
    """A search that takes one step at a time.

    Attributes:
        spent: what it has spent.
        level: what it will have spent after its next step; None if it has ended.
        solved: whether a step that was taken found an answer.
    """

    spent: float
    level: float | None
    solved: bool

    def take(self) -> None:
        """Take the next step."""
        ...


class SearchSteps:
    """The steps of a replayed search, which is one step ahead of what counts."""

    def __init__(
        self, search: Search, problem: LoggedProblem, order: Sequence[int], *, keys: bool = False
    ) -> None:
        self.search = search
        self._events = turns(search, problem, order=order, keys=keys)
        self.spent = 0.0
        self.arrived = 0
        self.solved = False
        self.level: float | None = None
        self._advance()

    def take(self) -> None:
        """Let the step that was replayed ahead count, and replay another one."""
        assert self.level is not None
        self.spent = self.level
        self.arrived = self.search.arrived
        outcome = self.search.outcome
        self.solved = outcome is not None and outcome.solved
        self._advance()

    def _advance(self) -> None:
        moved = False
        for event in self._events:
            moved = True
            if isinstance(event, Verified):
                self.search.ask()  # notices the end
                break
        self.level = self.search.bill.total if moved else None


class CourseSteps:
    """The steps of a course that is known."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._levels: list[float] = course.levels.tolist()
        self._taken = 0
        self.spent = 0.0
        self.solved = False
        self.level: float | None = self._levels[0] if self._levels else None

    def take(self) -> None:
        """Go on to the next level."""
        assert self.level is not None
        self.spent = self.level
        self._taken += 1
        ended = self._taken == len(self._levels)
        self.solved = ended and self._course.solved
        self.level = None if ended else self._levels[self._taken]


@dataclass(frozen=True, eq=False)
class BatchResult:
    """What a batch came to.

    Attributes:
        solved: `[problems]`, whether each has an answer.
        spent: `[problems]`, what each has cost.
        steps: the problems in the order of their steps.
    """

    solved: NDArray[np.bool_]
    spent: Floats
    steps: list[int]


def run_batch(
    schedule: Schedule,
    searches: Sequence[Steps],
    budget: float,
    *,
    expected: Sequence[float | None] | None = None,
    at_once: int = 1,
    ended: Callable[[int], None] = lambda problem: None,
) -> BatchResult:
    """Run the searches by a schedule until the money is gone or all have ended.

    Args:
        schedule: says who is next. It is empty.
        searches: in the order of the file.
        budget: the money for all of them.
        expected: predictions of their costs, for rules that use them.
        at_once: how many steps run at the same time; the first to start is the first to end.
        ended: called with each problem after its step, before the schedule is told.
    """
    for problem, search in enumerate(searches):
        if search.level is not None:
            prediction = None if expected is None else expected[problem]
            schedule.add(problem, next_cost=search.level, expected=prediction)
    total = 0.0
    order: list[int] = []
    out: deque[int] = deque()
    while True:
        while len(out) < at_once and (asked := schedule.ask()) is not None:
            search = searches[asked]
            assert search.level is not None
            cost = search.level - search.spent
            if total + cost > budget:
                schedule.tell(asked, spent=search.spent, ended=True)
                continue
            total += cost
            order.append(asked)
            out.append(asked)
        if not out:
            break
        problem = out.popleft()
        search = searches[problem]
        search.take()
        ended(problem)
        if search.level is None:
            schedule.tell(problem, spent=search.spent, ended=True)
        else:
            rest = search.level - search.spent
            schedule.tell(problem, spent=search.spent, next_cost=rest)
    return BatchResult(
        np.array([search.solved for search in searches], dtype=np.bool_),
        np.array([search.spent for search in searches]),
        order,
    )


@dataclass(frozen=True, eq=False)
class SortedSteps:
    """All steps of a batch in the order in which a rule takes them.

    Attributes:
        problems: `[steps]`, whose step it is.
        costs: `[steps]`, what the step costs.
        solves: `[steps]`, whether it finds an answer.
    """

    problems: NDArray[np.int64]
    costs: Floats
    solves: NDArray[np.bool_]

    def solved(self, budgets: Sequence[float]) -> list[NDArray[np.int64]]:
        """For each budget, the problems that are solved with it."""
        totals = np.cumsum(self.costs)
        return [self._solved(totals, budget) for budget in budgets]

    def _solved(self, totals: Floats, budget: float) -> NDArray[np.int64]:
        paid = int(np.searchsorted(totals, budget, side="right"))
        found = self.problems[:paid][self.solves[:paid]]
        more = list(self._rest(paid, float(totals[paid - 1]) if paid else 0.0, budget))
        return np.concatenate([found, np.array(more, dtype=np.int64)]) if more else found

    def _rest(self, start: int, total: float, budget: float) -> Iterator[int]:
        """What is solved after the first step that the money does not cover.

        That search has ended. A search with a cheaper step may still go on.
        """
        costs = self.costs[start:]
        if not len(costs):
            return
        least = float(costs.min())
        ended: set[int] = set()
        for at in range(start, len(self.costs)):
            if total + least > budget:
                return
            problem = int(self.problems[at])
            cost = float(self.costs[at])
            if problem in ended:
                continue
            if total + cost > budget:
                ended.add(problem)
                continue
            total += cost
            if self.solves[at]:
                yield problem


def sorted_steps(courses: Sequence[Course], keys: Sequence[Floats]) -> SortedSteps:
    """Sort the steps of all courses by their keys; equal keys go in the order of the courses.

    Args:
        courses: one per problem, in the order of the file.
        keys: for each course the key of each step; they must not fall.
    """
    lengths = [len(course.levels) for course in courses]
    problems = np.repeat(np.arange(len(courses)), lengths)
    costs = np.concatenate([np.diff(course.levels, prepend=0.0) for course in courses])
    solves = np.zeros(len(problems), dtype=np.bool_)
    ends = np.cumsum(lengths) - 1
    solved = np.array([course.solved for course in courses], dtype=np.bool_)
    solves[ends[solved]] = True
    order = np.argsort(np.concatenate(keys), kind="stable")
    return SortedSteps(problems[order], costs[order], solves[order])
