"""Alternate, with variety where the score repeats itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from ..theory.decimals import exact_ratio
from ..theory.slots import alternate_draws
from ..theory.variety import period
from .variety import Variety

ONE_IN = 3  # of the verifications after the last draw, this is blind: the oldest candidate


@dataclass(frozen=True)
class Varied:
    """Like `alternate`, but scores and answers that have failed give way to others.

    It differs from `alternate` in three places. After several failures in a row at exactly one
    score, the best slot goes once to the score that failed least often. If a new candidate has a
    refuted key, its slot goes to the key with the most candidates. When nothing more can be
    generated, the rest is verified in that order, every third time the oldest candidate. Failures
    of a score count only if equal scores mean more than rounding or marks on a scale.

    It is the default. Below rho = 1.5, the cost of a verification in candidates, it verifies
    everything.
    """

    rank_only: ClassVar[bool] = False  # the gaps between scores tell what a tie is
    proven: ClassVar[str] = (
        "at most 3 J* if higher scores pass no less often; at most 3 times verify-all for any score"
    )

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the rounds, and what comes after the last one."""
        draws, later = alternate_draws(exact_ratio(costs))
        variety, run = Variety(pool), _Run(period(later) - 1)
        while not pool.exhausted:
            seen = len(pool)
            yield Generate(1, "one to verify unseen")
            variety.take_in()
            if len(pool) > seen:
                if pool.is_open(newest := CandidateId(seen)):
                    yield from _verify(newest, "whatever its score", variety)
                else:
                    yield from _verify(variety.first(), "in place of a refuted draw", variety)
                yield Generate(draws, f"{draws} more to choose from")
                variety.take_in()
                yield from self._best(pool, variety, run)
                _, draws = alternate_draws(exact_ratio(pool.costs))
        yield from self._finish(variety)

    def _best(self, pool: Pool, variety: Variety, run: _Run) -> Iterator[Step]:
        """The slot for the best one, which is not for one score all the time."""
        best = next(iter(pool.best(1)), None)
        if best is None:
            return
        other = variety.first() if not pool.keyed and run.is_over(pool.scores[best]) else None
        if other is not None and variety.tell:
            yield from _verify(other, f"not {run.limit + 1} in a row of a score", variety)
        else:
            yield from _verify(best, f"the best of {pool.waiting} that wait", variety)

    def _finish(self, variety: Variety) -> Iterator[Step]:
        """What is left when no more can be generated."""
        variety.look()
        least = ", its score failed least" if variety.tell else ""
        turn = 0
        while (id := variety.first()) is not None:
            turn += 1
            if turn % ONE_IN == 0:
                yield from _verify(variety.oldest(), f"the oldest that is left{least}", variety)
            else:
                yield from _verify(id, f"the first of those left{least}", variety)


class _Run:
    """How many best slots in a row went to one score."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._score: float | None = None
        self._length = 0

    def is_over(self, score: float) -> bool:
        """Whether this score has had its `limit` in a row; the slot counts for it if not."""
        if score != self._score:
            self._score, self._length = score, 0
        if self._length == self.limit:
            self._length = 0
            return True
        self._length += 1
        return False


def _verify(id: CandidateId | None, why: str, variety: Variety) -> Iterator[Step]:
    if id is not None:
        yield Verify((id,), why)
        variety.told(id)
