"""Verify everything, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from .promises import promises_of, sentence


@dataclass(frozen=True)
class VerifyAll:
    """Verify every candidate as it arrives; the score is not used.

    It costs (c_rew + c_ver) / p on average, where p is the pass rate. Choose it if there is no
    score, or if a verification costs less than a candidate.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 9+ 3-")  # scores; + passes
        >>> print(*dialogue(grv.policies.VerifyAll(), grv.Costs(1, 3), world), sep=", ")
        generate 1, verify 1, generate 1, verify 1, generate 1, verify 1, solved by 2
    """

    for_guests: ClassVar[bool] = True
    rank_only: ClassVar[bool] = True
    any_score: ClassVar[bool] = True
    relies_on: ClassVar[str] = "nothing: it ignores the score"
    proven: ClassVar[str] = sentence(promises_of("verify-all"))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield one candidate after another, each with its verification."""
        while not pool.exhausted:
            yield Generate(1, "the next candidate", lambda checks: checks - 1)
            newest = CandidateId(len(pool) - 1)
            if newest >= 0 and pool.is_open(newest):
                yield Verify((newest,), "every candidate is verified")
