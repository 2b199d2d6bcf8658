"""Active learning from a pool, and searching by means of it (appendix D.2).

A learner sees a pool of points, asks for the labels of some of them, and says what it has learned.
Here it is a generator: it yields indices into the pool, is sent labels, and returns a *hypothesis*,
a function from points to labels. It (epsilon, delta)-learns a class if, whatever the target in the
class and the law of the points, the hypothesis errs with probability at most epsilon, except with
probability delta over the pool.
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
        """Whether they disagree about a point."""
        ...

    def tell(self, point: int, label: bool) -> None:
        """Drop those that do not agree with this label."""
        ...

    def hypothesis(self) -> Hypothesis:
        """One of those that are left."""
        ...


class FiniteSpace:
    """The version space of a binary class, concept by concept."""

    def __init__(self, of: ConceptClass) -> None:
        self._concepts: NDArray[np.bool_] = of.binary()
        self._left = np.arange(of.concepts)

    def is_open(self, point: int) -> bool:
        """Whether the concepts that are left disagree about a point."""
        labels = self._concepts[self._left, point]
        return bool(labels.any() and not labels.all())

    def tell(self, point: int, label: bool) -> None:
        """Drop the concepts that do not agree."""
        self._left = self._left[self._concepts[self._left, point] == label]
        if not len(self._left):
            raise UsageError("the labels are those of no concept of the class")

    def hypothesis(self) -> Hypothesis:
        """The first that is left."""
        row = self._concepts[self._left[0]].tolist()
        return lambda point: bool(row[point])


def disagreement_learner(space: Callable[[], VersionSpace]) -> Learner:
    """Ask for a label exactly where the concepts that are left disagree.

    What is not asked is known all the same, so that the hypothesis agrees with the target on the
    whole pool. With a pool of `pool_size` that makes it an (epsilon, delta)-learner.
    """

    def learn(pool: Sequence[int]) -> Learning:
        left = space()
        for index, point in enumerate(pool):
            if left.is_open(point):
                left.tell(point, (yield index))
        return left.hypothesis()

    return learn


def pool_size(concepts: int, epsilon: float, delta: float) -> int:
    """A pool so large that whoever agrees with it errs by at most epsilon, but for delta.

    One concept that errs by more agrees with n points with probability at most
    (1 - epsilon)^n <= exp(-epsilon n); there are so many concepts.
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0 < value < 1:
            raise UsageError(f"{name} must be between 0 and 1, not {value:g}")
    return max(1, math.ceil((math.log(concepts) - math.log(delta)) / epsilon))


@dataclass(frozen=True)
class Found:
    """What a search from a pool came to: an index into the pool, and the labels it took."""

    index: int
    labels: int


@dataclass(frozen=True)
class Learned:
    """What a learner came to: its hypothesis, and the labels it took."""

    hypothesis: Hypothesis
    labels: int


def taught(learner: Learner, pool: Sequence[int], label: Callable[[int], bool]) -> Learned:
    """Let a learner have the labels it asks for; `label` gives that of a point."""
    learning, labels = learner(pool), 0
    try:
        index = next(learning)
        while True:
            labels += 1
            index = learning.send(label(pool[index]))
    except StopIteration as end:
        return Learned(end.value, labels)


def found_by_learning(learner: Learner, pool: Sequence[int], label: Callable[[int], bool]) -> Found:
    """Theorem D.6: any learner as a searcher. The first point whose label comes back positive.

    If the class has the all-zero concept, the learner (epsilon, delta)-learns it, and the target
    is positive with probability above 2 epsilon, the point found is positive with probability at
    least 1 - 2 delta. Where no label comes back positive, the index is arbitrary: 0.
    """
    learning, labels = learner(pool), 0
    try:
        index = next(learning)
        while True:
            labels += 1
            answer = label(pool[index])
            if answer:
                return Found(index, labels)
            index = learning.send(answer)
    except StopIteration:
        return Found(0, labels)
