"""Alternate, with other candidates if the same score fails repeatedly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from ..theory.decimals import exact_ratio
from ..theory.slots import Draws, alternate_draws
from ..theory.variety import period
from .variety import Variety

ONE_IN = 3  # after the last draw, one in this many verifications takes the oldest candidate


@dataclass(frozen=True)
class Varied:
    """Like `alternate`, but tries other candidates instead of scores and answers that have failed.

    It differs from `alternate` in three cases:

    - No candidate has a key, and several times in a row the best candidate had exactly the same
      score. It then verifies once the first candidate of a second ranking.
    - A new candidate has a refuted key. It then verifies the first candidate of that ranking.
    - Nothing more can be generated. It then verifies the rest by that ranking, and every third time
      the oldest candidate. If failures of a score count and there are no keys, it ranks scores by
      worth: it falls with the number of better candidates, and by half with each failure.

    The second ranking prefers scores that failed less often, then keys with more candidates, then
    higher scores. Failures of a score count only if equal scores suggest equal answers, and are not
    due to rounding or to a scale of marks.

    It is the default. Choose it if you do not know how good the score is. rho is the cost of a
    verification in candidates; if it is below 1.5, the policy verifies everything.
    """

    rank_only: ClassVar[bool] = False  # the gaps between scores decide whether ties count
    any_score: ClassVar[bool] = True
    relies_on: ClassVar[str] = "nothing: some candidates are verified whatever their score"
    proven: ClassVar[str] = (
        "at most 3 J* if higher scores pass no less often; at most 3 times verify-all for any score"
    )

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the rounds, then verify the rest."""
        variety, run, rounds = Variety(pool), _ScoreRun(), 0
        while not pool.exhausted:
            seen = len(pool)
            new, best = partial(_ahead, pool, not rounds, True), partial(_ahead, pool, False, False)
            yield Generate(1, "one to verify whatever its score", new)
            variety.add_new()
            if len(pool) > seen:
                if pool.is_open(newest := CandidateId(seen)):
                    yield from _verify(newest, "the new one, whatever its score", variety)
                else:
                    why = "instead of the new one, whose key has failed"
                    yield from _verify(variety.first(), why, variety)
                first, later = alternate_draws(exact_ratio(pool.costs))  # after a measured verdict
                draws, rounds = later if rounds else first, rounds + 1
                run.limit = period(later) - 1
                yield Generate(draws, f"{draws} more to choose from", best)
                variety.add_new()
                yield from self._best(pool, variety, run)
        yield from self._finish(pool, variety)

    def _best(self, pool: Pool, variety: Variety, run: _ScoreRun) -> Iterator[Step]:
        """Verify the best candidate, or another one if its score had too many slots in a row."""
        best = next(iter(pool.best(1)), None)
        if best is None:
            return
        other = (
            variety.first()
            if not pool.keyed and run.is_over(pool.scores[best], pool.alike[best])
            else None
        )
        if other is not None and variety.ties_count:
            why = f"another score, after {run.limit} in a row with the same score"
            yield from _verify(other, why, variety)
        else:
            yield from _verify(best, f"the best of {pool.waiting} open candidates", variety)

    def _finish(self, pool: Pool, variety: Variety) -> Iterator[Step]:
        """Verify the rest when no more can be generated."""
        variety.recheck_ties()
        weighed = variety.ties_count and not pool.keyed
        least = ", of the scores that failed least" if variety.ties_count else ""
        turn = 0
        while (id := variety.worthiest() if weighed else variety.first()) is not None:
            turn += 1
            if turn % ONE_IN == 0:
                yield from _verify(variety.oldest(), f"the oldest of the rest{least}", variety)
            elif weighed:
                why = "the best of the rest; each failure halves the worth of a score"
                yield from _verify(id, why, variety)
            else:
                yield from _verify(id, f"the best of the rest{least}", variety)


def _ahead(pool: Pool, is_first: bool, is_new: bool, checks: int) -> int:
    return draws_ahead(alternate_draws(exact_ratio(pool.costs)), is_first, is_new, checks)


def draws_ahead(draws: Draws, is_first: bool, is_new: bool, checks: int) -> int:
    """How many candidates the next `checks` verifications need beyond those of the first of them.

    New candidates and the best alternate; the first verification is of a new one if `is_new`. That
    is the start of the search if `is_first`.
    """
    new, best = checks // 2, (checks - 1) // 2
    if is_new:
        new, best = best, new
    less = draws.later - draws.first if is_new and is_first and best else 0
    return new + best * draws.later - less


class _ScoreRun:
    """Counts how many best slots in a row went to the same score.

    If the pool has values of `alike` other than the scores, the slots of a row have the same value,
    and none a higher score than the first: a new best candidate starts a new row, as the proof of
    the bound needs.

    Attributes:
        limit: how many it may have. It follows the estimated costs.
    """

    def __init__(self) -> None:
        self.limit = 0
        self._highest = -math.inf
        self._alike: float | None = None
        self._length = 0

    def is_over(self, score: float, alike: float) -> bool:
        """Whether this value has had `limit` slots in a row. If not, count this slot for it."""
        if alike != self._alike or score > self._highest:
            self._highest, self._alike, self._length = score, alike, 0
        if self._length >= self.limit:
            self._length = 0
            return True
        self._length += 1
        return False


def _verify(id: CandidateId | None, why: str, variety: Variety) -> Iterator[Step]:
    if id is not None:
        yield Verify((id,), why)
        variety.record_verdict(id)
