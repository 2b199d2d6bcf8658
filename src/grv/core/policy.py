"""What decides: the interface of every policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from .pool import Pool
from .values import Costs, Step


class Policy(Protocol):
    """Decides what to do next. A frozen dataclass: its fields are its parameters.

    Examples:
        >>> import grv
        >>> class Simple:
        ...     def plan(self, pool, costs):
        ...         while not pool.exhausted:
        ...             yield grv.Generate(2)
        ...             yield grv.Verify(pool.best(1))
        >>> from grv.testing import World, dialogue
        >>> print(*dialogue(Simple(), grv.Costs(), World.of("1- 5- 3- 9+ 2- 4-")), sep=", ")
        generate 2, verify 1, generate 2, verify 1, solved by 3
    """

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield steps. When resumed, the last step's result is already in `pool`.

        `costs` is the price list at the start; `pool.costs` is the current estimate. In both,
        `verify` is what a verification costs that fails.

        A plan is deterministic, given the events. It does not check for success or for the budget:
        the search does. A plan that ends has given up.
        """
        ...
