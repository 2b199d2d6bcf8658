"""How a policy fared in several orders of a problem, as arrays."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs, Latency


@dataclass(frozen=True, eq=False)
class Trials:
    """How a policy fared in several orders. All arrays are `[orders]`.

    Attributes:
        solved: whether a candidate passed.
        generated: candidates generated.
        verified: candidates verified.
        rounds: `[orders, 3]`, rounds of generation, verification and second scores; see `Rounds`.
        paid: what was paid, where these counts do not say.
        rescored: second scores, where there is a cascade.
    """

    solved: NDArray[np.bool_]
    generated: NDArray[np.int32]
    verified: NDArray[np.int32]
    rounds: NDArray[np.int32]
    paid: NDArray[np.float64] | None = None
    rescored: NDArray[np.int32] | None = None

    def costs(self, costs: Costs) -> NDArray[np.float64]:
        """What each trial cost: as paid, or else by the price list."""
        if self.paid is not None:
            return self.paid
        return self.generated * costs.candidate + self.verified * costs.verify

    def worth(self, value: float, costs: Costs) -> Trials:
        """The trials of somebody who knows what each will cost and leaves those worth less."""
        left = self.costs(costs) > value
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        there = {name: array for name, array in arrays.items() if array is not None}
        return Trials(**{name: patched(array, left, 0) for name, array in there.items()})

    def seconds(self, latency: Latency) -> NDArray[np.float64]:
        """How long each trial took."""
        seconds = np.array(dataclasses.astuple(latency))
        total: NDArray[np.float64] = self.rounds @ seconds
        return total


def in_flight(checks: NDArray[np.integer], width: int | None) -> NDArray[np.integer]:
    """Rounds of verification that a step takes of which so many candidates are verified."""
    return np.minimum(checks, 1) if width is None else -(-checks // width)


def rounds_of(
    generate: NDArray[np.integer] | int, verify: NDArray[np.integer]
) -> NDArray[np.int32]:
    """Rounds as `Trials` has them, from those of generation and those of verification."""
    rounds = np.zeros((len(verify), 3), dtype=np.int32)
    rounds[:, 0], rounds[:, 1] = generate, verify
    return rounds


def patched(array: NDArray[Any], where: NDArray[np.bool_], new: Any) -> NDArray[Any]:
    """The array with other values in some places."""
    copy = array.copy()
    copy[where] = new
    return copy
