"""The results of a policy in several orders of a problem, as arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs, Latency


@dataclass(frozen=True, eq=False)
class Trials:
    """The results of a policy in several orders. All arrays are `[orders]`.

    Attributes:
        solved: whether a candidate passed.
        generated: the number of candidates generated.
        verified: the number of candidates verified.
        rounds: `[orders, 4]`, rounds of generation, of verification and of second scores, and
            those of verification during which candidates are generated; see `Rounds`.
        passed: how many of those verified passed; None if that is unknown and all cost the same.
        paid: the cost, if it does not follow from the counts and a price list.
        rescored: the number of second scores, if there is a cascade.
    """

    solved: NDArray[np.bool_]
    generated: NDArray[np.int32]
    verified: NDArray[np.int32]
    rounds: NDArray[np.int32]
    passed: NDArray[np.int32] | None = None
    paid: NDArray[np.float64] | None = None
    rescored: NDArray[np.int32] | None = None

    def costs(self, costs: Costs) -> NDArray[np.float64]:
        """The cost of each trial: `paid`, or else by the price list."""
        if self.paid is not None:
            return self.paid
        generated: Any = self.generated  # `Costs.of` takes arrays too
        verified: Any = self.verified
        if not costs.has_failure:
            return np.asarray(costs.of(generated, verified))
        assert self.passed is not None, "these trials do not know what failed"
        return np.asarray(costs.of(generated, verified, verified - self.passed))

    def worth(self, value: float, costs: Costs) -> Trials:
        """The trials if the costs were known in advance: those above the value are not started."""
        left = self.costs(costs) > value
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        there = {name: array for name, array in arrays.items() if array is not None}
        return Trials(**{name: patched(array, left, 0) for name, array in there.items()})

    def by_problem(self, problems: int) -> Trials:
        """The trials of the orders of so many problems as arrays `[problems, orders]`."""
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Trials(
            **{
                name: array.reshape(problems, -1, *array.shape[1:])
                for name, array in arrays.items()
                if array is not None
            }
        )

    def seconds(self, latency: Latency) -> NDArray[np.float64]:
        """The duration of each trial in seconds."""
        seconds = np.array([*dataclasses.astuple(latency), latency.excess])
        total: NDArray[np.float64] = self.rounds @ seconds
        return total


def in_flight(checks: NDArray[np.integer], width: int | None) -> NDArray[np.integer]:
    """The rounds of verification of a step with this many verifications."""
    return np.minimum(checks, 1) if width is None else -(-checks // width)


def rounds_of(
    generate: NDArray[np.integer] | int,
    verify: NDArray[np.integer],
    overlapped: NDArray[np.integer] | int = 0,
) -> NDArray[np.int32]:
    """The array `Trials.rounds`, from the rounds of generation and of verification."""
    rounds = np.zeros((len(verify), 4), dtype=np.int32)
    rounds[:, 0] = generate
    rounds[:, 1] = verify
    rounds[:, 3] = overlapped
    return rounds


def patched(array: NDArray[Any], where: NDArray[np.bool_], new: Any) -> NDArray[Any]:
    """A copy of the array with new values where the mask is True."""
    copy = array.copy()
    copy[where] = new
    return copy


def stacked(found: Sequence[Trials]) -> Trials:
    """Those of several problems as arrays `[problems, orders]`, of rounds `[..., 4]`."""
    return Trials(**{name: np.array(arrays) for name, arrays in _columns(found).items()})


def joined(found: Sequence[Trials], places: Sequence[int]) -> Trials:
    """Stacked trials, one after the other; the first problem belongs to the first place, etc."""
    order = np.argsort(places, kind="stable")
    is_sorted = bool((order == np.arange(len(order))).all())
    arrays = {name: np.concatenate(each) for name, each in _columns(found).items()}
    return Trials(**{n: each if is_sorted else each[order] for n, each in arrays.items()})


def _columns(found: Sequence[Trials]) -> dict[str, list[NDArray[Any]]]:
    """The arrays of all trials by name, without those that some trials do not have."""
    names = [field.name for field in dataclasses.fields(Trials)]
    columns = {name: [getattr(each, name) for each in found] for name in names}
    return {name: each for name, each in columns.items() if all(a is not None for a in each)}
