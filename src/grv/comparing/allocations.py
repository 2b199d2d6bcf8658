"""Ways to divide one budget among the problems of a log: the rules of `grv.schedules`, baselines.

The baselines cannot run live, or are what others do. `hindsight` and `oracle` know what no run
knows. `reset`, `elimination` and `two-stage` follow three papers. Their authors draw single
answers, so their searches verify every candidate (the policy `verify-all`). They were written from
the abstracts and from summaries, without the authors' code or their pseudo-code at hand: the bonus
of `elimination`, the share that `two-stage` explores and its kernel are not checked against the
papers. So a row is our reading of a method, not a reproduction of its figures.

- reset: Meir et al., More Bang for the Buck, arXiv:2601.21522v2. One attempt at each question in
  turn; what is solved is discarded.
- elimination: Zuo and Zhu, Strategic Scaling of Test-Time Compute, arXiv:2506.12721v2. A query is
  an arm of a bandit; the next answer goes to the query with the highest upper confidence bound of
  its rewards; a query is eliminated when it is solved. The reward is here the score, as its rank
  among all scores of the log, and the bonus is that of UCB1, sqrt(2 log t / n).
- two-stage: Raman, Asi and Kale, AdaBoN, arXiv:2505.12050v3. Three quarters of an equal share
  explore every problem; the rest goes where another candidate is expected to raise the best score
  most, by a kernel density of the scores seen. A problem that is solved gets no more, which the
  authors do not do.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..replay.batch import Course
from ..schedules import SCHEDULES, Rule, Schedule, parse, written
from ..schedules.by_key import ByKey
from ..schedules.stream import StreamSchedule
from ..specification import split, unknown

Floats = NDArray[np.float64]
_EXPLORED = 0.75  # of an equal share, before two-stage looks at the scores
_GRID = 48  # points of a kernel density


@dataclass(frozen=True, eq=False)
class BatchProblem:
    """A problem in one order of its candidates, as one of a batch.

    Attributes:
        course: the search.
        mean: the mean cost of a search for this problem over all orders; infinite if none solves
            it.
        expected: the prediction of the log, if it has one.
        scores: of the candidates in order of arrival, as ranks from 0 to 1 among all of the log.
    """

    course: Course
    mean: float
    expected: float | None
    scores: Floats


@runtime_checkable
class Keyed(Protocol):
    """An allocation that orders the steps of a batch by keys, whatever the budget."""

    def keys(self, problem: BatchProblem) -> Floats:
        """`[steps]`: the keys of the steps of a problem; they do not fall."""
        ...


@runtime_checkable
class Begun(Protocol):
    """An allocation that needs a schedule."""

    def begin(self, problems: Sequence[BatchProblem], budget: float) -> Schedule:
        """The schedule of a batch."""
        ...


Allocation = Keyed | Begun


@dataclass(frozen=True)
class ByRule:
    """A rule whose keys depend on the level and the prediction only."""

    rule: Rule

    def keys(self, problem: BatchProblem) -> Floats:
        """The keys of the rule."""
        key: Callable[[float, float], float] = self.rule.key  # type: ignore[attr-defined]
        expected = problem.expected or 0.0
        return np.array([key(level, expected) for level in problem.course.levels.tolist()])


@dataclass(frozen=True)
class BySchedule:
    """A rule that needs the budget."""

    rule: Rule

    def begin(self, problems: Sequence[BatchProblem], budget: float) -> Schedule:
        """The schedule of the rule."""
        return self.rule.begin(budget=budget, problems=len(problems))


@dataclass(frozen=True)
class Hindsight:
    """Knows what each search will cost, and takes the cheapest first."""

    def keys(self, problem: BatchProblem) -> Floats:
        """The whole cost."""
        return np.full(len(problem.course.levels), problem.course.solving_cost)


@dataclass(frozen=True)
class Oracle:
    """Knows the law of each problem: takes the problem with the lowest mean cost first."""

    def keys(self, problem: BatchProblem) -> Floats:
        """The mean cost."""
        return np.full(len(problem.course.levels), problem.mean)


@dataclass(frozen=True)
class Reset:
    """One attempt at each problem in turn (ReD)."""

    def keys(self, problem: BatchProblem) -> Floats:
        """The number of the attempt."""
        return np.arange(len(problem.course.levels), dtype=np.float64)


@dataclass(frozen=True)
class EqualShares:
    """The same cap for every problem: budget / problems. What is left is not spent."""

    def begin(self, problems: Sequence[BatchProblem], budget: float) -> Schedule:
        """One problem after the other."""
        return _Capped(budget / len(problems))


@dataclass(frozen=True)
class RollingShare:
    """One problem after the other; the cap is the money left / problems left."""

    def begin(self, problems: Sequence[BatchProblem], budget: float) -> Schedule:
        """A stream that learns nothing."""
        return StreamSchedule(budget, len(problems), first=len(problems) + 1)


class _Capped(ByKey):
    """Searches in the order of the file; one that would exceed the cap is not asked for again."""

    def __init__(self, cap: float) -> None:
        super().__init__(SCHEDULES["in-order"]())
        self._cap = cap

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
        """Add a problem, if the cap covers its first step."""
        above = spent + next_cost > self._cap
        super().add(problem, spent=spent, next_cost=next_cost, ended=ended or above)

    def tell(
        self,
        problem: int,
        *,
        spent: float,
        next_cost: float = 0.0,
        ended: bool = False,
        expected: float | None = None,
    ) -> bool:
        """Report a step."""
        above = spent + next_cost > self._cap
        return super().tell(problem, spent=spent, next_cost=next_cost, ended=ended or above)


@dataclass(frozen=True)
class Elimination:
    """The problem with the highest upper confidence bound of its scores (Zuo and Zhu)."""

    def begin(self, problems: Sequence[BatchProblem], budget: float) -> Schedule:
        """A bandit whose arms are the problems."""
        return _Bandit([each.scores for each in problems])


class _Bandit:
    """UCB1 over problems. Each step of a search draws one candidate."""

    def __init__(self, scores: Sequence[Floats]) -> None:
        self._sums: list[list[float]] = [np.cumsum(each).tolist() for each in scores]
        self._waiting = np.zeros(len(scores), dtype=np.bool_)
        self._number = np.zeros(len(scores))  # steps taken
        self._mean = np.full(len(scores), np.inf)  # those without a candidate come first
        self._taken = 0

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
        """Add a problem, which waits."""
        self._waiting[problem] = not ended

    def ask(self) -> int | None:
        """The problem with the highest bound; of equal ones, the first in the file."""
        if not self._waiting.any():
            return None
        self._taken += 1
        bonus = np.sqrt(2 * math.log(self._taken) / np.maximum(self._number, 1))
        problem = int(np.argmax(np.where(self._waiting, self._mean + bonus, -np.inf)))
        self._waiting[problem] = False
        return problem

    def tell(
        self,
        problem: int,
        *,
        spent: float,
        next_cost: float = 0.0,
        ended: bool = False,
        expected: float | None = None,
    ) -> bool:
        """Report a step."""
        sums = self._sums[problem]
        number = min(int(self._number[problem]) + 1, len(sums))
        self._number[problem] = number
        self._mean[problem] = sums[number - 1] / number
        self._waiting[problem] = not ended
        return not ended


@dataclass(frozen=True)
class TwoStage:
    """Explore all problems a little, then the most promising by their scores (AdaBoN)."""

    def begin(self, problems: Sequence[BatchProblem], budget: float) -> Schedule:
        """Explore, then be greedy."""
        return _Stages([each.scores for each in problems], _EXPLORED * budget / len(problems))


class _Stages:
    """First every problem up to a cap; then the largest expected gain of the best score."""

    def __init__(self, scores: Sequence[Floats], cap: float) -> None:
        self._scores = scores
        self._first = _Capped(cap)
        self._steps = [0] * len(scores)
        self._promising: list[tuple[float, int]] = []
        self._gains: dict[int, _Gains] = {}
        self._out: set[int] = set()

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
        """Add a problem, which waits."""
        self._first.add(problem, spent=spent, next_cost=next_cost, ended=ended)

    def ask(self) -> int | None:
        """The next problem to explore; after that, the most promising one."""
        problem = self._first.ask()
        if problem is None and self._promising:
            _, problem = heapq.heappop(self._promising)
            self._out.add(problem)
        return problem

    def tell(
        self,
        problem: int,
        *,
        spent: float,
        next_cost: float = 0.0,
        ended: bool = False,
        expected: float | None = None,
    ) -> bool:
        """Report a step."""
        self._steps[problem] += 1
        if problem in self._out:
            self._out.remove(problem)
        elif self._first.tell(problem, spent=spent, next_cost=next_cost, ended=ended):
            return True
        if ended:
            return False
        if problem not in self._gains:
            self._gains[problem] = _Gains(self._scores[problem][: self._steps[problem]])
        heapq.heappush(self._promising, (-self._gains[problem].next(), problem))
        return True


class _Gains:
    """How much each further candidate is expected to raise the best score of a problem.

    Scores follow a Gaussian kernel density of those seen, with Scott's bandwidth.
    """

    def __init__(self, scores: Floats) -> None:
        spread = float(scores.std()) if len(scores) > 1 else 0.0
        width = max(spread * len(scores) ** -0.2, 1e-3)
        best = float(scores.max())
        points = np.linspace(best, best + 4 * width, _GRID)
        below = [0.5 * (1 + math.erf(z / math.sqrt(2))) for z in _distances(points, scores, width)]
        self._below = np.array(below).reshape(_GRID, len(scores)).mean(axis=1)
        self._step = float(points[1] - points[0])
        self._power = np.ones(_GRID)

    def next(self) -> float:
        """The gain of one candidate more than at the last call."""
        gain = float(((1 - self._below) * self._power).sum() * self._step)
        self._power = self._power * self._below
        return gain


def _distances(points: Floats, scores: Floats, width: float) -> list[float]:
    distances: list[float] = ((points[:, None] - scores[None, :]) / width).ravel().tolist()
    return distances


PAPERS: dict[str, Allocation] = {
    "reset": Reset(),
    "elimination": Elimination(),
    "two-stage": TwoStage(),
}
KNOWING: dict[str, Allocation] = {"hindsight": Hindsight(), "oracle": Oracle()}
BASELINES: dict[str, Allocation] = {
    "equal-shares": EqualShares(),
    "rolling-share": RollingShare(),
    **PAPERS,
    **KNOWING,
}


def named_allocation(text: str) -> tuple[str, Allocation]:
    """The allocation that a text names, and its name in the table."""
    name, positional, parameters = split(text, "schedule")
    if name in BASELINES:
        if positional or parameters:
            raise UsageError(f"{name} takes no parameters: {text!r}")
        return name, BASELINES[name]
    if name not in SCHEDULES:
        raise UsageError(unknown("schedule", name, [*SCHEDULES, *BASELINES]))
    rule = parse(text)
    keyed = hasattr(rule, "key")
    return written(rule), ByRule(rule) if keyed else BySchedule(rule)
