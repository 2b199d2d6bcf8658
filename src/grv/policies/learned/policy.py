"""Decide as history says, inside a guard for the case that history is wrong."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ...core.errors import UsageError
from ...core.pool import Pool
from ...core.values import Costs, Generate, Step, Verify
from ...theory.guard import FACTOR, LEAST_FACTOR
from .belief import Belief
from .drift import Likeness
from .guard import Guard, guarded
from .merit_ranking import Crowd
from .prior import Prior, load


class UnlikeHistoryWarning(UserWarning):
    """A prompt's scores look nothing like those that a prior was fitted on."""


@dataclass(frozen=True)
class Learned:
    """Verify what history says is worth it: empirical Bayes, with a guard.

    `grv learn` fits the prior. Generates one candidate at a time, and verifies the one of the
    greatest merit if that is above a limit which was found by replaying the history. Costs at most
    `factor` J* where higher scores pass no less often, whatever the prior says. Where a prompt's
    scores look nothing like the history's, the default policy goes on, inside the same guard.

    Attributes:
        prior: the file.
        hash: of its content, as `grv learn` prints it; a file with another content is refused.
            Where it is not given, it is filled in, so that what a ledger keeps names the content.
        factor: of the guard.
    """

    prior: str
    hash: str = ""
    factor: float = FACTOR
    rank_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.prior, str):
            raise UsageError(f"learned: the prior is a file's name, not {self.prior!r}")
        if not (isinstance(self.factor, int | float) and LEAST_FACTOR <= self.factor < math.inf):
            raise UsageError(
                f"learned: factor must be at least {LEAST_FACTOR:g}, not {self.factor!r}"
            )
        found, hash = load(self.prior)
        if self.hash and self.hash != hash:
            raise UsageError(
                f"{self.prior}: has changed: its hash is {hash}, not {self.hash}; find the old"
                " file, or leave the hash out to use the new one"
            )
        object.__setattr__(self, "hash", hash)
        self.__dict__["law"] = found

    @cached_property
    def law(self) -> Prior:
        """What the file holds."""
        return load(self.prior)[0]

    def check_score(self, score: str) -> None:
        """Refuse to go by a score that the prior is not for."""
        if score != self.law.score:
            raise UsageError(
                f"{self.prior} is for the score {self.law.score!r}, not {score!r}: choose that one"
                " with --score, or learn another prior"
            )

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield what history says, and what the guard needs."""
        return learned_plan(self.law, pool, costs, self.factor, self.prior)


def learned_plan(
    prior: Prior, pool: Pool, costs: Costs, factor: float = FACTOR, name: str = "the prior"
) -> Iterator[Step]:
    """The plan of a search that goes by a prior; `name` is for the warning that it does not."""
    guard = Guard(pool, costs, factor)
    return guarded(_decide(prior, pool, costs, guard, name), pool, guard)


def _decide(prior: Prior, pool: Pool, costs: Costs, guard: Guard, name: str) -> Iterator[Step]:
    crowd, likeness = Crowd(pool, prior, Belief(prior, costs.ratio)), Likeness(prior)
    limits = [prior.limit(costs.ratio, keyed=keyed) for keyed in (False, True)]
    while True:
        if complaint := likeness.complaint(pool.scores):
            yield from _without_history(complaint, pool, costs, name)
            return
        crowd.take_in(guard.asked)
        chosen = crowd.best()
        if chosen is None and pool.exhausted:
            return
        limit = limits[crowd.keyed]
        merit = 0.0 if chosen is None else chosen.merit
        worth = f"merit {merit:.2f}, limit {limit:.2f}"
        if chosen is not None and (
            pool.exhausted or (merit >= limit and guard.has_room(chosen.id))
        ):
            yield Verify((chosen.id,), worth)
        else:
            yield Generate(1, worth)


def _without_history(complaint: str, pool: Pool, costs: Costs, name: str) -> Iterator[Step]:
    """The default policy, with a warning."""
    from .. import DEFAULT

    warnings.warn(
        f"{name}: there are prompts whose scores look nothing like its history's; for these the"
        " default policy decides, inside the guard (the reasons of their steps say more)",
        UnlikeHistoryWarning,
        stacklevel=2,
    )
    for step in DEFAULT.plan(pool, costs):
        why = f"unlike the history, {complaint}: {step.why}"
        yield Generate(step.n, why) if isinstance(step, Generate) else Verify(step.ids, why)
