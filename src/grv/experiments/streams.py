"""Endless candidates of a known law: what a policy costs where no log comes to an end.

A stream is drawn as far as somebody has looked, and the same whoever looks. A policy is replayed on
its first candidates; where it has come to the last of these, it might have noticed that there are
no more, so more are drawn and it is replayed again. There is an end to that, though: a search that
would never end comes to the last of `most` candidates, and then does what it does at the end of a
log. What it costs is then less than what it would cost without an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.search import Policy
from ..core.values import Costs
from ..logs.log import LoggedProblem
from ..replay.kernels.dispatch import trials
from ..replay.orders import Batch

_FIRST = 256  # candidates drawn at first; four times as many each time that they are not enough
MOST = 2**16  # candidates after which there are no more


class Drawn(NamedTuple):
    """Candidates in order of arrival. Both arrays are `[candidates]`."""

    scores: NDArray[np.float64]
    passed: NDArray[np.bool_]


class Endless(Protocol):
    """A law that candidates can be drawn from, independently of each other."""

    def sample(self, chance: np.random.Generator, n: int) -> Drawn:
        """So many candidates."""
        ...


class CandidateLaw(Endless, Protocol):
    """How scores and labels of one problem are distributed, known so well that J* is known too."""

    @property
    def pass_rate(self) -> float:
        """The probability that a candidate passes."""
        ...

    def optimum(self, costs: Costs) -> float:
        """J*, what a search costs at best if the law is known (Theorem 3.2)."""
        ...


class Population(Protocol):
    """A law of problems."""

    def law(self, chance: np.random.Generator) -> CandidateLaw:
        """The law of one problem's candidates."""
        ...


class DrawnProblem(NamedTuple):
    """A problem of so many candidates, and the law that these were drawn from."""

    problem: LoggedProblem
    law: CandidateLaw


def draw(population: Population, id: str, candidates: int, seed: Sequence[int]) -> DrawnProblem:
    """One problem with at least one pass; those without are drawn again, law and all."""
    chance = np.random.default_rng(seed)
    while True:
        law = population.law(chance)
        drawn = law.sample(chance, candidates)
        if drawn.passed.any():
            return DrawnProblem(LoggedProblem(id, *drawn), law)


class Fared(NamedTuple):
    """How a search of a stream went; `ended`: it came to the last candidate that is drawn."""

    solved: bool
    generated: int
    verified: int
    cost: float
    ended: bool = False


class Stream:
    """One endless sequence of candidates."""

    def __init__(self, law: Endless, seed: Sequence[int]) -> None:
        self._law = law
        self._chance = np.random.default_rng(seed)
        self._drawn = law.sample(self._chance, _FIRST)
        self._batch: Batch | None = None

    def fared(
        self, policy: Policy, costs: Costs, *, width: int | None = 1, most: int = MOST
    ) -> Fared:
        """What becomes of a search for a pass."""
        while True:
            batch = self._first_candidates()
            found = trials(policy, batch, costs, width=width)
            generated, solved = int(found.generated[0]), bool(found.solved[0])
            ended = generated == len(batch.problem)
            if not ended or len(batch.problem) >= most:
                break
            self._draw_more(most)
        verified, cost = int(found.verified[0]), float(found.costs(costs)[0])
        return Fared(solved, generated, verified, cost, ended)

    def _first_candidates(self) -> Batch:
        """Those drawn so far, as they came."""
        if self._batch is None:
            problem = LoggedProblem("stream", *self._drawn)
            self._batch = Batch(problem, np.arange(len(problem), dtype=np.intp)[None, :])
        return self._batch

    def _draw_more(self, most: int) -> None:
        old = self._drawn
        new = self._law.sample(self._chance, min(3 * len(old.scores), most - len(old.scores)))
        self._drawn = Drawn(*(np.concatenate(pair) for pair in zip(old, new, strict=True)))
        self._batch = None
