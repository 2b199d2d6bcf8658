"""Generate a fixed number of candidates, verify the best ones, stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.values import Costs, Generate, Step, Verify


@dataclass(frozen=True)
class Fixed:
    """Generate `m` candidates and verify the best `k` of them, whatever the problem.

    This is the paper's Uniform, a non-adaptive pair (N_rew, N_ver), also known as best-of-n. Choose
    it as a baseline.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 3- 9+ 2- 4-")  # scores; + passes
        >>> print(*dialogue(grv.policies.Fixed(4, k=2), grv.Costs(1, 3), world), sep=", ")
        generate 4, verify 1, solved by 3
    """

    m: int
    k: int
    for_guests: ClassVar[bool] = True
    example: ClassVar[str] = "fixed(32, 4)"
    rank_only: ClassVar[bool] = True
    relies_on: ClassVar[str] = "higher scores are not worse"
    proven: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.m, int) and isinstance(self.k, int) and 1 <= self.k <= self.m):
            raise UsageError(f"fixed: needs whole numbers 1 <= k <= m, not m={self.m}, k={self.k}")

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the two steps."""
        yield Generate(self.m, f"{self.m} to choose from", lambda _: 0)
        yield Verify(pool.best(self.k), f"the best {self.k} of {len(pool)}")
