"""Verify candidates that score high enough, as they arrive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from .promises import promises_of, sentence


@dataclass(frozen=True)
class Threshold:
    """Verify each new candidate whose score is at least `t`.

    It costs J_t = (c_rew + c_ver q_t) / s_t on average (section 4.1), where q_t is the chance to
    score at least t and s_t the chance to score at least t and pass. Choose it if you know a good
    threshold.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 3- 9+ 2- 4-")  # scores; + passes
        >>> print(*dialogue(grv.policies.Threshold(5), grv.Costs(1, 3), world), sep=", ")
        generate 1, generate 1, verify 1, generate 1, generate 1, verify 1, solved by 3
    """

    t: float
    for_guests: ClassVar[bool] = True
    example: ClassVar[str] = "threshold(5)"
    rank_only: ClassVar[bool] = False
    relies_on: ClassVar[str] = "scores above the threshold are better"
    proven: ClassVar[str] = sentence(promises_of("threshold"))

    def __post_init__(self) -> None:
        if not isinstance(self.t, int | float) or math.isnan(self.t):
            raise UsageError(f"threshold: t must be a number, not {self.t!r}")

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield one candidate after another, and the verifications of the good ones."""
        while not pool.exhausted:
            yield Generate(1, "the next candidate")
            newest = CandidateId(len(pool) - 1)
            if newest >= 0 and pool.is_open(newest) and pool.scores[newest] >= self.t:
                yield Verify((newest,), f"score {pool.scores[newest]:g} is at least {self.t:g}")
