"""Generate and verify in shells of doubling cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.values import Costs, Generate, Step, Verify
from ..theory.shells import nth_shell
from .promises import promises_of, sentence


@dataclass(frozen=True)
class Adaptive:
    """Spend in rounds of doubling cost; in each, generate, then verify the best candidates.

    This is the paper's ADAP (Algorithm 1). With `width=1` it is the algorithm as stated; with
    `width=None` it is the accounting of the paper's experiments, which pay for whole rounds. Choose
    it to reproduce the paper. The paper calls a round a cost shell.

    Attributes:
        draws: a shell generates `draws` times n candidates. n is the largest power of two such that
            n candidates and a verification fit into the shell's cost.
        checks: a shell verifies at most `checks` times v candidates. v is the largest power of two
            such that v verifications, and at least v candidates, fit into the shell's cost.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 3- 9+ 2- 4-")  # scores; + passes
        >>> print(*dialogue(grv.policies.Adaptive(), grv.Costs(1, 3), world), sep=", ")
        generate 8, verify 1, solved by 3
    """

    draws: float = 2
    checks: float = 6
    for_guests: ClassVar[bool] = True
    rank_only: ClassVar[bool] = True
    relies_on: ClassVar[str] = "higher scores are not worse"
    proven: ClassVar[str] = sentence(promises_of("adaptive"))

    def __post_init__(self) -> None:
        for name, value in (("draws", self.draws), ("checks", self.checks)):
            if not 0 < value < 1e9:
                raise UsageError(f"adaptive: {name} must be positive and below 1e9, not {value}")

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the steps of one shell after another, each at the current costs."""
        for number in itertools.count():  # pragma: no branch (there is always another shell)
            shell = nth_shell(number, pool.costs)
            why = f"cost shell {shell.s}, from {shell.low:g} to {shell.high:g}"
            ahead = partial(self._draws, pool, number)
            yield Generate(shell.draws(self.draws), why, ahead)
            yield Verify(pool.best(shell.checks(self.checks)), why)

    def _draws(self, pool: Pool, number: int, checks: int) -> int:
        """The candidates of the shells after this one, up to the last of `checks` verifications."""
        draws = 0
        while (checks := checks - nth_shell(number, pool.costs).checks(self.checks)) > 0:
            number += 1
            draws += nth_shell(number, pool.costs).draws(self.draws)
        return draws
