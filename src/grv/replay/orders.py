"""Orders: the sequences in which logged candidates arrive.

Two schemes. `stable` draws each order from the seed, the problem's id and the order's number, so
that adding a problem changes no other one's orders. `paper` is the published experiment's: one
generator, the solvable problems sorted by id, one permutation an order, in sequence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..logs.log import LoggedProblem

Scheme = Literal["stable", "paper"]


@dataclass(frozen=True, eq=False)
class Batch:
    """One problem in several orders at once. All arrays are `[orders, candidates]`.

    Attributes:
        problem: whose candidates they are.
        orders: candidate numbers in order of arrival.
        keyed: whether equivalence classes count.
    """

    problem: LoggedProblem
    orders: NDArray[np.intp]
    keyed: bool = False

    @property
    def size(self) -> int:
        """How many orders there are."""
        return len(self.orders)

    @cached_property
    def levels(self) -> NDArray[np.integer]:
        """0 for the best score, 1 for the next distinct one, ..., in order of arrival."""
        levels = self.problem.levels
        # Sixteen bits are enough for most logs, and numpy sorts them several times faster.
        small = levels.astype(np.int16) if len(levels) < 2**15 else levels
        return small[self.orders]

    @cached_property
    def passed(self) -> NDArray[np.bool_]:
        """In order of arrival."""
        return self.problem.passed[self.orders]

    @cached_property
    def keys(self) -> NDArray[np.int32] | None:
        """Class numbers in order of arrival, -1 for none; None where classes do not count."""
        if not self.keyed or self.problem.keys is None:
            return None
        return self.problem.keys[self.orders]

    @cached_property
    def ranked(self) -> NDArray[np.intp]:
        """Positions of arrival, best candidate first, ties to the older."""
        return np.argsort(self.levels, axis=1, kind="stable")

    @cached_property
    def by_place(self) -> list[tuple[list[int], list[bool], list[int]]]:
        """For each order the place in the ranking of each arrival; then verdicts, levels by place.

        Plain lists, for what goes through candidates one by one.
        """
        places = np.empty_like(self.ranked)
        np.put_along_axis(places, self.ranked, np.arange(places.shape[1])[None, :], axis=1)
        passed, levels = (
            np.take_along_axis(values, self.ranked, axis=1) for values in (self.passed, self.levels)
        )
        return list(zip(places.tolist(), passed.tolist(), levels.tolist(), strict=True))


def batches(
    problems: Sequence[LoggedProblem],
    orders: int,
    *,
    seed: int = 0,
    scheme: Scheme = "stable",
    keyed: bool = False,
) -> Iterator[Batch]:
    """The problems, each in so many orders, one problem at a time."""
    if orders < 1:
        raise UsageError(f"there must be at least 1 order, not {orders}")
    if seed < 0:
        raise UsageError(f"the seed must not be negative, not {seed}")
    if scheme not in get_args(Scheme):
        raise UsageError(f"the order scheme must be stable or paper, not {scheme!r}")
    sequence = np.random.default_rng(seed)
    # The published code never sees unsolvable problems; they must not disturb the others' orders.
    first = sorted(problems, key=lambda problem: not problem.solvable)
    for problem in first if scheme == "paper" else problems:
        if scheme == "paper":
            rows = [sequence.permutation(len(problem)) for _ in range(orders)]
        else:
            rows = [_stable_order(problem, number, seed) for number in range(orders)]
        yield Batch(problem, np.array(rows, dtype=np.intp), keyed)


def _stable_order(problem: LoggedProblem, number: int, seed: int) -> NDArray[np.intp]:
    name = hashlib.blake2b(problem.id.encode(), digest_size=8).digest()
    generator = np.random.default_rng([seed, int.from_bytes(name, "big"), number])
    return generator.permutation(len(problem))
