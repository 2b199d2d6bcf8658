"""Infinite streams of candidates from a known law, for costs that do not depend on a log's length.

A stream is drawn only as far as it is read, and is the same for every reader. A policy is replayed
on the first candidates of the stream. If it reaches the last of them, it may have noticed the end,
so more are drawn and it is replayed again. The limit is `most` candidates: a search that would
never end then acts as at the end of a log, and its cost is lower than on an infinite stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.limits import Limits
from ...core.search import Policy
from ...core.values import Costs
from ...logs.log import LoggedProblem
from ...replay.kernels.dispatch import trials
from ...replay.orders import OrderBatch

_FIRST = 256  # the candidates drawn at first; four times as many whenever they are not enough
MOST = 2**16  # the limit on the candidates of a stream


class Drawn(NamedTuple):
    """Candidates in order of arrival. Both arrays are `[candidates]`."""

    scores: NDArray[np.float64]
    passed: NDArray[np.bool_]


class Endless(Protocol):
    """A law from which independent candidates can be drawn."""

    def sample(self, chance: np.random.Generator, n: int) -> Drawn:
        """Draw `n` candidates."""
        ...


class CandidateLaw(Endless, Protocol):
    """The distribution of scores and labels of one problem, with a known J*."""

    @property
    def pass_rate(self) -> float:
        """The probability that a candidate passes."""
        ...

    def optimum(self, costs: Costs) -> float:
        """J*, the lowest expected cost if the law is known (Theorem 3.2)."""
        ...


class Population(Protocol):
    """A distribution of problems."""

    def law(self, chance: np.random.Generator) -> CandidateLaw:
        """The law of one problem's candidates."""
        ...


class DrawnProblem(NamedTuple):
    """A problem with a finite number of candidates, and the law they were drawn from."""

    problem: LoggedProblem
    law: CandidateLaw


def draw(population: Population, id: str, candidates: int, seed: Sequence[int]) -> DrawnProblem:
    """One problem with at least one pass; if there is none, the law and the problem are redrawn."""
    chance = np.random.default_rng(seed)
    while True:
        law = population.law(chance)
        drawn = law.sample(chance, candidates)
        if drawn.passed.any():
            return DrawnProblem(LoggedProblem(id, *drawn), law)


class StreamResult(NamedTuple):
    """The result of a search; `ended` means that it reached the last candidate there is."""

    solved: bool
    generated: int
    verified: int
    cost: float
    ended: bool = False


class CandidateStream:
    """One infinite sequence of candidates."""

    def __init__(self, law: Endless, seed: Sequence[int]) -> None:
        self._law = law
        self._chance = np.random.default_rng(seed)
        self._drawn = law.sample(self._chance, _FIRST)
        self._batch: OrderBatch | None = None

    def run(
        self, policy: Policy, costs: Costs, *, width: int | None = 1, most: int = MOST
    ) -> StreamResult:
        """Search the stream with a policy."""
        while True:
            batch = self._first_candidates()
            result = trials(policy, batch, costs, Limits(width=width))
            generated = int(result.generated[0])
            solved = bool(result.solved[0])
            ended = generated == len(batch.problem)
            if not ended or len(batch.problem) >= most:
                break
            self._draw_more(most)
        verified = int(result.verified[0])
        cost = float(result.costs(costs)[0])
        return StreamResult(solved, generated, verified, cost, ended)

    def _first_candidates(self) -> OrderBatch:
        """The candidates drawn so far, in order of arrival."""
        if self._batch is None:
            problem = LoggedProblem("stream", *self._drawn)
            self._batch = OrderBatch(problem, np.arange(len(problem), dtype=np.intp)[None, :])
        return self._batch

    def _draw_more(self, most: int) -> None:
        old = self._drawn
        new = self._law.sample(self._chance, min(3 * len(old.scores), most - len(old.scores)))
        self._drawn = Drawn(*(np.concatenate(pair) for pair in zip(old, new, strict=True)))
        self._batch = None
