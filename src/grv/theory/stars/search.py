"""Star numbers, exact, with witnesses (Definitions 6.1 and D.1).

The *centered star number* s_0 of a binary class is the largest m for which there are points
x_1 ... x_m and concepts h_1 ... h_m with h_i(x_j) = 1 if and only if i = j. For a probabilistic
class and an eta in (0, 1], h_i(x_i) must be at least eta, and h_i(x_j) must be zero for all other
j. The usual *star number* of a binary class compares with any concept of the class, the centre,
instead of with zero: among the points, h_i differs from the centre only in x_i.

To find it is to find a largest induced matching of a bipartite graph, which is NP-hard. Lower
bounds come from a local search (`climb.py`). Upper bounds come from `tree.py`, which looks for a
star as large as the current upper bound; each refutation lowers the bound by one. Large sizes are
refuted quickly, so the interval narrows fast at first and slowly later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UsageError
from .classes import ConceptClass
from .climb import Climb
from .tree import Bits, Rows, Tree

Centre = Literal["zero", "any"]

_FIRST_CLIMB = 200  # attempts to improve the greedy star before the first refutation; at most one
# attempt per pair of points
_CENTRE_CLIMB = 5  # the same per centre, if there are many centres
_CLIMB_EVERY = 8  # batches of nodes between two later attempts
_MOST_COMPARED = 4000  # rows; with more, removing superfluous hits takes longer than it saves
_MOST_KEPT = 50_000_000  # entries of the matrices of all centres in memory


@dataclass(frozen=True)
class Star:
    """Bounds on a star number, and a star of `lower` points.

    Attributes:
        lower: the size of the star found.
        upper: no star is larger than this.
        points: the column numbers of the star.
        concepts: the row numbers of the star, one per point.
        centre: the row number of the centre; None means the all-zero concept.
    """

    lower: int
    upper: int
    points: tuple[int, ...]
    concepts: tuple[int, ...]
    centre: int | None = None

    @property
    def number(self) -> int | None:
        """The star number, or None if the bounds differ."""
        return self.lower if self.lower == self.upper else None


def star_number(
    of: ConceptClass,
    *,
    eta: float | None = None,
    centre: Centre = "zero",
    time_limit: float = math.inf,
    steps: float = math.inf,
    progress: Callable[[Star], None] | None = None,
) -> Star:
    """The star number, or the interval known at the time limit (Definitions 6.1 and D.1).

    With any concept as the centre it is no smaller (Remark 6.4).

    Args:
        of: the class; if the centre is zero, the all-zero concept counts as a member.
        eta: the lowest chance that counts as passing, for a probabilistic class.
        centre: zero, or any concept of the class.
        time_limit: the limit in seconds.
        steps: a limit on the steps of the method, which does not depend on the machine.
        progress: called with the current interval after every step.
    """
    end = time.monotonic() + time_limit
    for step, star in enumerate(narrowing(of, eta=eta, centre=centre)):
        if progress is not None:
            progress(star)
        if time.monotonic() >= end or step >= steps:
            break
    return star


def narrowing(
    of: ConceptClass, *, eta: float | None = None, centre: Centre = "zero"
) -> Iterator[Star]:
    """The interval after each step; the last one is a single number. Some steps change nothing."""
    if eta is not None and not 0 < eta <= 1:
        raise UsageError(f"eta must be above 0 and at most 1, not {eta:g}")
    if centre == "any":
        if eta is not None:
            raise UsageError("eta can only be used with zero as the centre")
        return _from_any_centre(of.binary())
    if eta is None:
        support = hits = of.binary()
    else:
        support = of.values > 0
        hits = of.values >= eta
    return _from_zero(support, hits)


def is_star(
    of: ConceptClass,
    points: tuple[int, ...],
    concepts: tuple[int, ...],
    *,
    eta: float = 1.0,
    centre: int | None = None,
) -> bool:
    """Whether the points and concepts are a star, by the definition."""
    if len(points) != len(concepts) or len(set(points)) != len(points):
        return False
    values = of.values[np.ix_(concepts, points)]
    if centre is not None:
        values = np.abs(values - of.values[centre, list(points)])
    own = np.eye(len(points), dtype=np.bool_)
    return bool((values[own] >= eta).all() and (values[~own] == 0).all())


class _Problem:
    """Stars around one centre: the rows that matter, and their numbers in the class."""

    def __init__(
        self,
        support: Bits,
        hits: Bits,
        centre: int | None = None,
        numbers: NDArray[np.intp] | None = None,
    ) -> None:
        self._centre = centre
        self._columns = _distinct(support.T, hits.T)
        support = support[:, self._columns]
        hits = hits[:, self._columns]
        self._numbers = _distinct(support, hits)
        support = support[self._numbers]
        hits = hits[self._numbers]
        if len(support) <= _MOST_COMPARED:
            hits = _without_superfluous(support, hits)
            kept = hits.any(axis=1)
            support = support[kept]
            hits = hits[kept]
            self._numbers = self._numbers[kept]
        self._rows = Rows(support, hits)
        if numbers is not None:
            self._numbers = numbers[self._numbers]
        self.upper = min(support.shape)  # each point needs its own row
        self.best: Bits = np.zeros(len(self._columns), dtype=np.bool_)

    @cached_property
    def _climb(self) -> Climb:
        return Climb(self._rows)

    @cached_property
    def _tree(self) -> Tree:
        return Tree(self._rows)

    @property
    def pairs(self) -> int:
        """The number of pairs of distinct points."""
        return len(self._columns) * (len(self._columns) - 1) // 2

    @property
    def size(self) -> int:
        """The size of the best star so far."""
        return int(self.best.sum())

    def star(self, upper: int) -> Star:
        """The best star so far, with the row and column numbers of the class."""
        at = np.flatnonzero(self.best)
        alone = self._rows.support[:, at].sum(axis=1) == 1
        rows = (self._rows.hits[:, at] & alone[:, None]).argmax(axis=0) if len(at) else at
        points = tuple(int(point) for point in self._columns[at])
        concepts = tuple(int(number) for number in self._numbers[rows])
        return Star(len(at), upper, points, concepts, self._centre)

    def grow(self, attempts: int) -> Iterator[None]:
        """Make this many attempts to find a larger star."""
        while attempts and self.size < self.upper:
            attempts -= self._climb.step()
            self._keep(self._climb.best)
            yield

    def look(self) -> None:
        """Lower the upper bound as far as possible without branching."""
        for bound in (self._tree.groups, self._tree.bound):
            if self.size < self.upper:
                self.upper = min(self.upper, bound())

    def refute(self) -> Iterator[None]:
        """Lower the upper bound by one, or find a star of that size."""
        for step, _ in enumerate(self._tree.search(self.upper)):
            yield
            if step % _CLIMB_EVERY == 0:
                self._climb.step()
                self._keep(self._climb.best)
            self._keep(self._tree.best)
            if self.size == self.upper:
                return
        self._keep(self._tree.best)
        self.upper -= self.size < self.upper

    def _keep(self, star: Bits) -> None:
        if star.sum() > self.size:
            self.best = star


def _from_zero(support: Bits, hits: Bits) -> Iterator[Star]:
    problem = _Problem(support, hits)
    known = problem.star(problem.upper)

    def shown() -> Star:
        nonlocal known
        if (problem.size, problem.upper) != (known.lower, known.upper):
            known = problem.star(problem.upper)
        return known

    for attempts in (1, min(_FIRST_CLIMB, problem.pairs)):
        for _ in problem.grow(attempts):
            yield shown()
        problem.look()
    while problem.size < problem.upper:
        for _ in problem.refute():
            yield shown()
    yield shown()


def _from_any_centre(concepts: Bits) -> Iterator[Star]:
    """Visit each centre once, then always the centre with the highest upper bound."""
    numbers = _distinct(concepts, None)
    numbers = numbers[np.argsort(concepts[numbers].sum(axis=1), kind="stable")]
    trivial = min(len(_distinct(concepts.T, None)), len(numbers) - 1)
    uppers = dict.fromkeys(numbers.tolist(), trivial)
    problems = _Kept(concepts, numbers)
    best = Star(0, trivial, (), (), int(numbers[0]))

    def improved(problem: _Problem) -> Star:
        larger = problem.size > best.lower
        return problem.star(best.upper) if larger else best

    for centre in uppers:
        problem = problems[centre]
        for attempts in (1, _CENTRE_CLIMB):
            for _ in problem.grow(attempts):
                best = improved(problem)
                yield best
            problem.look()
        uppers[centre] = problem.upper
        best = replace(best, upper=max(best.lower, *uppers.values()))
        yield best
        if best.number is not None:
            return
    while best.number is None:
        centre = max(uppers, key=uppers.__getitem__)
        problem = problems[centre]
        problem.upper = uppers[centre]
        for _ in problem.refute():
            best = improved(problem)
            yield best
        best = improved(problem)
        uppers[centre] = problem.upper
        best = replace(best, upper=max(best.lower, *uppers.values()))
    yield best


class _Kept:
    """A cache of the problems around the centres, limited by memory."""

    def __init__(self, concepts: Bits, numbers: NDArray[np.intp]) -> None:
        self._concepts = concepts[numbers]
        self._numbers = numbers
        self._at = {int(number): at for at, number in enumerate(numbers)}
        self._most = max(1, _MOST_KEPT // concepts.size)
        self._made: dict[int, _Problem] = {}

    def __getitem__(self, centre: int) -> _Problem:
        if centre not in self._made:
            if len(self._made) >= self._most:
                self._made.clear()
            differs = self._concepts ^ self._concepts[self._at[centre]]
            self._made[centre] = _Problem(differs, differs, centre, self._numbers)
        return self._made[centre]


def _distinct(support: Bits, hits: Bits | None) -> NDArray[np.intp]:
    """The numbers of the distinct rows that have hits, in order."""
    joined = support if hits is None else np.hstack([support, hits])
    if not joined.size:
        return np.arange(0)
    packed = np.packbits(joined, axis=1)
    whole = np.ascontiguousarray(packed).view([("", packed.dtype, packed.shape[1])]).ravel()
    _, first = np.unique(whole, return_index=True)
    first.sort()
    return first if hits is None else first[hits[first].any(axis=1)]


def _without_superfluous(support: Bits, hits: Bits) -> Bits:
    """The hits without those that a row with a smaller support also has.

    Whenever the larger row is the witness of a point of a star, the smaller row is too.
    """
    ones = support.astype(np.float32)
    size = ones.sum(axis=1)
    within = (ones @ ones.T) == size[:, None]  # [smaller, larger]
    equal = size[:, None] == size
    within &= ~equal | np.triu(np.ones_like(within), 1)  # of equal rows, the first
    better = within.T.astype(np.float32) @ hits.astype(np.float32) > 0
    found: Bits = hits & ~better
    return found
