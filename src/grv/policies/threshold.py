"""Verify a candidate exactly if it scores high enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify


@dataclass(frozen=True)
class Threshold:
    """Stream: generate one, verify it if its score is at least `t`, else forget it.

    Costs J_t = (c_rew + c_ver q_t) / s_t on average (section 4.1); the best t is the
    distribution-aware optimum where higher scores pass no less often (Lemma C.1).
    """

    t: float
    rank_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.t, int | float) or math.isnan(self.t):
            raise UsageError(f"threshold: t must be a number, not {self.t!r}")

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield one candidate after the other, and the verifications of the good ones."""
        while not pool.exhausted:
            yield Generate(1, "the next one")
            newest = CandidateId(len(pool) - 1)
            if newest >= 0 and pool.is_open(newest) and pool.scores[newest] >= self.t:
                yield Verify((newest,), f"{pool.scores[newest]:g} is at least {self.t:g}")
