"""Orders: the sequences in which logged candidates arrive.

`Scheme` says how they are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..logs.log import LoggedProblem
from ..options import choose
from .scheme import Scheme


@dataclass(frozen=True, eq=False)
class OrderBatch:
    """One problem in several orders. All arrays are `[orders, candidates]`.

    Attributes:
        problem: the problem with its candidates.
        orders: candidate numbers in order of arrival.
        keyed: whether keys are used.
    """

    problem: LoggedProblem
    orders: NDArray[np.intp]
    keyed: bool = False

    @property
    def size(self) -> int:
        """The number of orders."""
        return len(self.orders)

    @property
    def candidates(self) -> int:
        """The number of candidates of the problem."""
        return len(self.problem)

    @cached_property
    def levels(self) -> NDArray[np.integer]:
        """0 for the best score, 1 for the next distinct score, ..., in order of arrival."""
        levels = self.problem.levels
        # Sixteen bits are enough for most logs, and NumPy sorts them several times faster.
        small = levels.astype(np.int16) if len(levels) < 2**15 else levels
        return small[self.orders]

    @cached_property
    def passed(self) -> NDArray[np.bool_]:
        """Whether each candidate passes, in order of arrival."""
        return self.problem.passed[self.orders]

    @cached_property
    def keys(self) -> NDArray[np.int32] | None:
        """Key numbers in order of arrival, -1 for none; None if there are none.

        Refuted candidates have `REFUTED_CODE`, also if other keys are not used.
        """
        codes = self.problem.codes(keyed=self.keyed)
        return None if codes is None else codes[self.orders]

    @cached_property
    def ranked(self) -> NDArray[np.intp]:
        """Positions of arrival, best candidate first; on ties, the older first."""
        return np.argsort(self.levels, axis=1, kind="stable")

    @cached_property
    def by_place(self) -> list[tuple[list[int], list[bool], list[int]]]:
        """For each order: the rank of each arrival, then verdicts and levels by rank.

        These are lists, for loops over single candidates.
        """
        places = np.empty_like(self.ranked)
        np.put_along_axis(places, self.ranked, np.arange(places.shape[1])[None, :], axis=1)
        passed, levels = (
            np.take_along_axis(values, self.ranked, axis=1) for values in (self.passed, self.levels)
        )
        return list(zip(places.tolist(), passed.tolist(), levels.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class ManyOrders:
    """The orders of several problems with as many candidates each, without keys.

    A kernel that reads nothing else of a batch calls NumPy once for all of them. All arrays are
    `[orders of all problems, candidates]`.

    Attributes:
        levels: see `OrderBatch`.
        passed: see `OrderBatch`.
        distinct: `[orders]`, whether no two candidates of the problem are alike.
    """

    levels: NDArray[np.integer]
    passed: NDArray[np.bool_]
    distinct: NDArray[np.bool_]
    keys: None = None

    @classmethod
    def of(cls, batches: Sequence[OrderBatch]) -> ManyOrders:
        """All orders of these batches."""
        apart = [int(batch.problem.alike_levels.max()) + 1 == batch.candidates for batch in batches]
        return cls(
            np.concatenate([batch.levels for batch in batches]),
            np.concatenate([batch.passed for batch in batches]),
            np.repeat(apart, [batch.size for batch in batches]),
        )

    @property
    def size(self) -> int:
        """The number of orders."""
        return len(self.levels)

    @property
    def candidates(self) -> int:
        """The number of candidates of each problem."""
        return int(self.levels.shape[1])


def of_one_size(batches: Sequence[OrderBatch]) -> list[list[int]]:
    """The places of the batches that have as many candidates and orders, for each such size."""
    places: dict[tuple[int, int], list[int]] = {}
    for place, batch in enumerate(batches):
        places.setdefault((batch.candidates, batch.size), []).append(place)
    return list(places.values())


class Orders:
    """Problems with the orders in which their candidates arrive, from any problem on.

    Attributes:
        problems: in the sequence in which orders are drawn.
        places: the place of each of them among the problems given.
    """

    def __init__(
        self,
        problems: Sequence[LoggedProblem],
        orders: int,
        *,
        seed: int = 0,
        scheme: Scheme | str = Scheme.STABLE,
        keyed: bool = False,
    ) -> None:
        if orders < 1:
            raise UsageError(f"there must be at least 1 order, not {orders}")
        if seed < 0:
            raise UsageError(f"the seed must not be negative, not {seed}")
        self._scheme = choose(Scheme, scheme, "the order scheme")
        self._paper = self._scheme is Scheme.PAPER
        self._orders = orders
        self._seed = seed
        self._keyed = keyed
        self.places = list(range(len(problems)))
        if self._paper:
            # The published code skips unsolvable problems; they must not change the orders of the
            # others.
            self.places.sort(key=lambda place: not problems[place].solvable)
        self.problems = [problems[place] for place in self.places]
        self._restart()

    def _restart(self) -> None:
        self._sequence = np.random.default_rng(self._seed)
        self._drawn = 0

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[OrderBatch]:
        """Yield the problems from `start` up to `stop` (excluded), each with its orders."""
        if self._paper:
            if self._drawn > start:
                self._restart()
            for problem in self.problems[self._drawn : start]:
                self._drawn_rows(problem)
        for problem in self.problems[start:stop]:
            rows = self._drawn_rows(problem) if self._paper else self._stable_rows(problem)
            yield OrderBatch(problem, np.array(rows, dtype=np.intp), self._keyed)

    def _drawn_rows(self, problem: LoggedProblem) -> list[NDArray[np.intp]]:
        """The next orders of the one sequence of the published code."""
        self._drawn += 1
        return [self._sequence.permutation(len(problem)) for _ in range(self._orders)]

    def _stable_rows(self, problem: LoggedProblem) -> list[NDArray[np.intp]]:
        if self._scheme is Scheme.LOGGED:
            return [np.arange(len(problem))] * self._orders
        name = hashlib.blake2b(problem.id.encode(), digest_size=8).digest()
        words = [self._seed, int.from_bytes(name, "big")]
        return [
            np.random.default_rng([*words, number]).permutation(len(problem))
            for number in range(self._orders)
        ]


def batches(
    problems: Sequence[LoggedProblem],
    orders: int,
    *,
    seed: int = 0,
    scheme: Scheme | str = Scheme.STABLE,
    keyed: bool = False,
) -> Iterator[OrderBatch]:
    """Yield each problem with `orders` orders."""
    return Orders(problems, orders, seed=seed, scheme=scheme, keyed=keyed).batches()
