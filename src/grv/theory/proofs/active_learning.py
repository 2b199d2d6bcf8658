"""Active learning from a pool, and search with an active learner (appendix D.2).

A learner sees a pool of points, requests the labels of some of them, and returns a *hypothesis*, a
function from points to labels. It is written as a generator: it yields indices into the pool and is
sent labels. It (epsilon, delta)-learns a class if, for any target in the class and any law of the
points, with probability at least 1 - delta over the pool, the hypothesis errs with probability at
most epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UsageError
from ..stars.classes import ConceptClass

Hypothesis = Callable[[int], bool]
Learning = Generator[int, bool, Hypothesis]
Learner = Callable[[Sequence[int]], Learning]


class VersionSpace(Protocol):
    """The concepts that agree with all labels seen so far."""

    def is_open(self, point: int) -> bool:
        """Whether the concepts disagree about a point."""
        ...

    def tell(self, point: int, label: bool) -> None:
        """Remove the concepts that do not agree with this label."""
        ...

    def hypothesis(self) -> Hypothesis:
        """One of the remaining concepts."""
        ...


class FiniteSpace:
    """The version space of a binary class, as a list of concepts."""

    def __init__(self, of: ConceptClass) -> None:
        self._concepts: NDArray[np.bool_] = of.binary()
        self._left = np.arange(of.concepts)

    def is_open(self, point: int) -> bool:
        """Whether the remaining concepts disagree about a point."""
        labels = self._concepts[self._left, point]
        return bool(labels.any() and not labels.all())

    def tell(self, point: int, label: bool) -> None:
        """Remove the concepts that do not agree with this label."""
        self._left = self._left[self._concepts[self._left, point] == label]
        if not len(self._left):
            raise UsageError("no concept of the class has these labels")

    def hypothesis(self) -> Hypothesis:
        """The first remaining concept."""
        row = self._concepts[self._left[0]].tolist()
        return lambda point: bool(row[point])


def disagreement_learner(space: Callable[[], VersionSpace]) -> Learner:
    """Request a label exactly if the remaining concepts disagree about the point.

    The other labels follow from the labels seen, so the hypothesis agrees with the target on the
    whole pool. With a pool of `pool_size` points this is an (epsilon, delta)-learner.
    """

    def learn(pool: Sequence[int]) -> Learning:
        left = space()
        for index, point in enumerate(pool):
            if left.is_open(point):
                left.tell(point, (yield index))
        return left.hypothesis()

    return learn


def pool_size(concepts: int, epsilon: float, delta: float) -> int:
    """The pool size at which every concept that agrees with it errs by at most epsilon.

    Such a learner is an (epsilon, delta)-learner (Definition D.4).

    This holds with probability at least 1 - delta: a concept that errs by more agrees with n points
    with probability at most (1 - epsilon)^n <= exp(-epsilon n), and a union bound covers all
    concepts.
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0 < value < 1:
            raise UsageError(f"{name} must be between 0 and 1, not {value:g}")
    return max(1, math.ceil((math.log(concepts) - math.log(delta)) / epsilon))


@dataclass(frozen=True)
class PoolSearch:
    """The result of a search in a pool (Definition D.5): an index, and the labels used."""

    index: int
    labels: int


@dataclass(frozen=True)
class Lesson:
    """The result of a learner: its hypothesis, and the number of labels used."""

    hypothesis: Hypothesis
    labels: int


def run_learner(learner: Learner, pool: Sequence[int], label: Callable[[int], bool]) -> Lesson:
    """Definition D.3: run a learner and give it the labels it requests, with `label`."""
    learning = learner(pool)
    labels = 0
    try:
        index = next(learning)
        while True:
            labels += 1
            index = learning.send(label(pool[index]))
    except StopIteration as end:
        return Lesson(end.value, labels)


def search_by_learning(
    learner: Learner, pool: Sequence[int], label: Callable[[int], bool]
) -> PoolSearch:
    """Theorem D.6: search with any learner; return the first point whose label is positive.

    If the class has the all-zero concept, the learner (epsilon, delta)-learns it, and the target
    is positive with probability above 2 epsilon, then the point found is positive with probability
    at least 1 - 2 delta. If no label is positive, the index is arbitrary: 0.
    """
    learning = learner(pool)
    labels = 0
    try:
        index = next(learning)
        while True:
            labels += 1
            answer = label(pool[index])
            if answer:
                return PoolSearch(index, labels)
            index = learning.send(answer)
    except StopIteration:
        return PoolSearch(0, labels)
