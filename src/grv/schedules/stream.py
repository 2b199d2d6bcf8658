"""Problems one by one, without a way back: a cap on each, from what earlier ones have cost.

With the money left and the number of problems left, a cap L spends the money exactly if
E min(T, L) = left / remaining, where T is what the search of a problem costs until it ends by
itself. The law of T is the Kaplan-Meier curve of the earlier problems: those that were capped are
censored, since all that is known is that they cost more. One search that never ends is added to
them. Without it, a few cheap problems would say that every search ends, and the first impossible
problem would get all the money.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

from ..core.errors import UsageError
from .schedule import checked_weight

FIRST = 6  # problems whose cap is an equal share: too few have ended to say more
_GROWTH = 1.1  # the curve is fitted again when this many times as many problems have ended


@dataclass(frozen=True)
class Stream:
    """One problem after the other, each with a cap that spends the rest of the money evenly.

    The cap of a problem is multiplied by its weight; weights should be 1 on average. Every problem
    may reach its first verdict. Choose it if a problem cannot wait: answers go out as problems come
    in. It needs the total budget and the number of problems.

    Examples:
        >>> import grv
        >>> schedule = grv.schedules.Stream().begin(budget=100, problems=2)
        >>> schedule.add(0, next_cost=11)
        >>> schedule.add(1, next_cost=11)
        >>> schedule.ask()
        0
        >>> schedule.tell(0, spent=44, next_cost=11)  # the cap is 50
        False
        >>> schedule.ask()
        1
    """

    def begin(self, *, budget: float = math.inf, problems: int | None = None) -> StreamSchedule:
        """The schedule of a run."""
        if problems is None or math.isinf(budget):
            raise UsageError("stream needs a total budget and the number of problems")
        return StreamSchedule(budget, problems)


class StreamSchedule:
    """The schedule of a stream. Searches that have begun go first, in the order of the file.

    Until `first` searches have ended, the cap is an equal share of what is left.
    """

    def __init__(self, budget: float, problems: int, first: int = FIRST) -> None:
        self._budget = budget
        self._remaining = problems  # those that have not begun
        self._new: deque[tuple[int, float, float, float]] = deque()
        self._waiting: list[int] = []
        self._out: set[int] = set()
        self._caps: dict[int, float] = {}  # of searches that have begun and not ended
        self._spent: dict[int, float] = {}
        self._paid = 0.0  # by searches that have ended or were capped
        self._curve = SpendingCurve(first)

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
        """Add a problem, which waits for its turn."""
        checked_weight(weight)
        if ended:
            self._remaining -= 1
            self._paid += spent
            self._curve.add(spent, capped=False)
        else:
            self._new.append((problem, weight, spent, next_cost))

    def ask(self) -> int | None:
        """The first search that has begun and waits; else the next problem."""
        while not self._waiting and self._new:
            self._begin_next()
        if not self._waiting:
            return None
        problem = heapq.heappop(self._waiting)
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
        """Report the step of a search that is out; False if its cap does not cover another one."""
        if problem not in self._out:
            raise ValueError(f"problem {problem} is not out")
        self._out.remove(problem)
        self._spent[problem] = spent
        if ended or spent + next_cost > self._caps[problem]:
            self._close(problem, capped=not ended)
            return False
        heapq.heappush(self._waiting, problem)
        return True

    def _begin_next(self) -> None:
        problem, weight, spent, next_cost = self._new.popleft()
        begun = sum(self._caps.values())  # reserved for searches that have begun
        left = max(0.0, self._budget - self._paid - begun)
        cap = weight * self._curve.cap(left / max(1, self._remaining))
        self._remaining -= 1
        self._caps[problem] = min(max(cap, next_cost), left) if spent == 0 else min(cap, left)
        self._spent[problem] = spent
        if spent > 0 and spent + next_cost > self._caps[problem]:
            self._close(problem, capped=True)
        else:
            heapq.heappush(self._waiting, problem)

    def _close(self, problem: int, *, capped: bool) -> None:
        spent = self._spent.pop(problem)
        del self._caps[problem]
        self._paid += spent
        self._curve.add(spent, capped=capped)


class SpendingCurve:
    """How often a search costs more than t: the Kaplan-Meier curve of the searches so far.

    >>> curve = SpendingCurve()
    >>> for spent in (2, 2, 4, 4, 6, 6):
    ...     curve.add(spent, capped=spent == 6)
    >>> round(curve.cap(3.0), 9)  # all spend 2; five of seven, one of which never ends, spend more
    3.4
    """

    def __init__(self, first: int = FIRST) -> None:
        self._first = first
        self._ended: list[tuple[float, bool]] = []
        self._fitted = 0  # how many had ended when the curve was fitted
        self._times: list[float] = []
        self._areas: list[float] = []  # E min(T, t) at each of the times
        self._survival: list[float] = []  # from each of the times on

    def add(self, spent: float, *, capped: bool) -> None:
        """Add a search that has ended, or that was capped."""
        self._ended.append((spent, capped))

    def cap(self, share: float) -> float:
        """The L with E min(T, L) = share."""
        if len(self._ended) < self._first:
            return share
        if len(self._ended) >= _GROWTH * self._fitted:
            self._fit()
        place = bisect_right(self._areas, share) - 1
        return self._times[place] + (share - self._areas[place]) / self._survival[place]

    def _fit(self) -> None:
        self._fitted = len(self._ended)
        self._times = [0.0]
        self._areas = [0.0]
        self._survival = [1.0]
        at_risk = self._fitted + 1  # with the search that never ends
        # At equal spending, those that ended come before those that were capped.
        for spent, capped in sorted(self._ended):
            if not capped:
                survival = self._survival[-1]
                self._areas.append(self._areas[-1] + survival * (spent - self._times[-1]))
                self._times.append(spent)
                self._survival.append(survival * (1 - 1 / at_risk))
            at_risk -= 1
