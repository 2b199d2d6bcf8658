"""Alternate, with other candidates if the same score fails repeatedly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from ..theory.constants import alternate_against_verify_all
from ..theory.decimals import exact_ratio
from ..theory.guard import LEAST_FACTOR
from ..theory.slots import Draws, alternate_draws
from ..theory.varied_bound import period
from .blind_slot import BlindSlots
from .failure_ranking import FailureRanking
from .oldest_guard import OldestGuard
from .promises import promises_of, sentence


@dataclass(frozen=True)
class Varied:
    """Like `alternate`, but tries other candidates instead of scores and answers that have failed.

    It differs from `alternate` in three cases:

    - No candidate has a key, and several times in a row the best candidate had exactly the same
      score. It then verifies once the first candidate of a second ranking.
    - A new candidate has a key that failed as the best. It then verifies the first candidate of
      that ranking.
    - Nothing more can be generated. It then verifies the rest by that ranking, and the oldest
      candidate in time, so that its bound holds for any score. If failures of a score count and
      there are no keys, it ranks scores by worth: it falls with the number of better candidates,
      and by half with each failure.

    The second ranking prefers scores that failed less often, then keys with more candidates, then
    higher scores. Failures of a score count only if equal scores suggest equal answers, and are not
    due to rounding or to a scale of marks.

    It is the default. Choose it if you do not know how good the score is. rho is the cost of a
    verification in candidates; if it is below 1.5, the policy verifies everything.

    Attributes:
        factor: if finite, the oldest open candidate is verified in time. Then, on every sequence of
            candidates, cost <= factor * verify_all. At least 2.

    Examples:
        >>> import grv
        >>> from grv.testing import World, dialogue
        >>> world = World.of("1- 5- 9+ 3-")  # scores; + passes
        >>> print(*dialogue(grv.policies.Varied(), grv.Costs(1, 3), world), sep=", ")
        generate 1, verify 1, generate 1, verify 1, generate 1, verify 1, solved by 2
    """

    for_guests: ClassVar[bool] = True
    factor: float = math.inf
    rank_only: ClassVar[bool] = False  # the gaps between scores decide whether ties count
    any_score: ClassVar[bool] = True
    relies_on: ClassVar[str] = "nothing: some candidates are verified whatever their score"

    def __post_init__(self) -> None:
        if not (isinstance(self.factor, int | float) and self.factor >= LEAST_FACTOR):
            raise UsageError(
                f"varied: factor must be at least {LEAST_FACTOR:g}, not {self.factor!r}"
            )

    @property
    def proven(self) -> str:
        """What is proven about its cost."""
        return sentence(promises_of("varied", factor=self.factor))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the rounds, then verify the rest; inside the guard, if there is a factor."""
        steps = self._steps(pool)
        if not self._is_guarded:
            yield from steps
            return
        guard = OldestGuard(pool, costs, self.factor)
        for step in steps:
            yield from guard.carried_out(step)

    @property
    def _is_guarded(self) -> bool:
        return math.isfinite(self.factor)

    def _steps(self, pool: Pool) -> Iterator[Step]:
        """The steps of the policy without its guard."""
        ranking = FailureRanking(pool)
        run = _ScoreRun()
        blind = BlindSlots(pool)
        rounds = 0
        while True:
            new = partial(_ahead, pool, not rounds, True)
            best = partial(_ahead, pool, False, False)
            newest = yield from blind.draw(new, repeats=blind.keyed or rounds <= run.limit)
            ranking.add_new()
            if pool.exhausted:
                break
            if newest is not None and pool.is_open(newest):
                yield from _verify(newest, "the new one, whatever its score", ranking)
            elif newest is not None:
                why = "instead of the new one, whose key has failed"
                yield from _verify(ranking.first(), why, ranking)
            first, later = alternate_draws(exact_ratio(pool.costs))  # after a measured verdict
            draws = later if rounds else first
            rounds = rounds + 1
            run.limit = period(later) - 1
            yield Generate(draws, f"{draws} more to choose from", best)
            ranking.add_new()
            yield from self._best(pool, ranking, run)
        yield from self._finish(pool, ranking, blind)

    def _best(self, pool: Pool, ranking: FailureRanking, run: _ScoreRun) -> Iterator[Step]:
        """Verify the best candidate, or another one if its score had too many slots in a row.

        After the guard has verified a candidate no slot is given away, as the proof needs.
        """
        best = next(iter(pool.best(1)), None)
        if best is None:
            return
        other = (
            ranking.first()
            if not (pool.keyed or (self._is_guarded and ranking.is_joined))
            and run.is_over(pool.scores[best], pool.alike[best])
            else None
        )
        if other is not None and ranking.ties_count:
            why = f"another score, after {run.limit} in a row with the same score"
            yield from _verify(other, why, ranking)
        else:
            yield from _verify(best, f"the best of {pool.waiting} open candidates", ranking)

    def _finish(self, pool: Pool, ranking: FailureRanking, blind: BlindSlots) -> Iterator[Step]:
        """Verify the rest when no more can be generated.

        What this costs stays within the bound times what verify-all pays for the candidates that no
        blind slot has drawn (Theorem 10). With a factor, the guard sees to more than that.
        """
        ranking.recheck_ties()
        weighed = ranking.ties_count and not pool.keyed
        best = "the best of the rest"
        if weighed:
            best += "; each failure halves the worth of a score"
        elif ranking.ties_count:
            best += ", of the scores that failed least"
        guard = None if self._is_guarded else _rest_guard(pool, blind)
        while (id := ranking.worthiest() if weighed else ranking.first()) is not None:
            due = None if guard is None else guard.due(float(exact_ratio(pool.costs)))
            if due is None:
                yield from _verify(id, best, ranking)
            else:
                yield from _verify(due, "the oldest of the rest", ranking, exactly=True)


def _rest_guard(pool: Pool, blind: BlindSlots) -> OldestGuard:
    """The guard of the rest, with the constant of the blind slots."""
    bound = alternate_against_verify_all(exact_ratio(pool.costs))
    return OldestGuard(pool, pool.costs, bound, apart=blind.drawn, tried=blind.tried)


def _ahead(pool: Pool, is_first: bool, is_new: bool, checks: int) -> int:
    return draws_ahead(alternate_draws(exact_ratio(pool.costs)), is_first, is_new, checks)


def draws_ahead(draws: Draws, is_first: bool, is_new: bool, checks: int) -> int:
    """How many candidates the next `checks` verifications need beyond those of the first of them.

    New candidates and the best alternate; the first verification is of a new one if `is_new`. That
    is the start of the search if `is_first`.
    """
    new = checks // 2
    best = (checks - 1) // 2
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
            self._highest = score
            self._alike = alike
            self._length = 0
        if self._length >= self.limit:
            self._length = 0
            return True
        self._length += 1
        return False


def _verify(
    id: CandidateId | None, why: str, ranking: FailureRanking, *, exactly: bool = False
) -> Iterator[Step]:
    if id is not None:
        yield Verify((id,), why, exactly=exactly)
        ranking.record_verdict(id)
