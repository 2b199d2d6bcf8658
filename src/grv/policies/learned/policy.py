"""Decide as history says, inside a guard for the case that history is wrong."""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from ...core.errors import UsageError
from ...core.pool import Pool
from ...core.values import Costs, Generate, Step, Verify
from ...theory.guard import FACTOR, LEAST_FACTOR
from .. import spec
from .belief import Belief
from .drift import Likeness
from .guard import Guard, guarded
from .merit_ranking import Crowd
from .prior import Prior


class UnlikeHistoryWarning(UserWarning):
    """A prompt's scores look nothing like those that a prior was fitted on."""


@dataclass(frozen=True)
class Learned:
    """Verify what history says is worth it, inside a guard for the case that history is wrong.

    `grv learn` fits the prior to logs or ledgers (empirical Bayes). The policy generates one
    candidate at a time, and verifies the candidate of the greatest merit if its merit is above a
    limit, which was found by replaying the history. Merit is the chance to pass, relative to what a
    verification costs. If the scores of a prompt look nothing like the history, the default policy
    decides, inside the same guard.

    Attributes:
        prior: what history says; `grv.learning.prior_file.load_prior` reads one from a file.
        hash: the prior's checksum, as `grv learn` prints it; another prior is refused. It is filled
            in where it is not given, so that what a ledger keeps names the content.
        factor: of the guard.
    """

    prior: Prior = field(metadata={spec.FILE: True})
    hash: str = ""
    factor: float = FACTOR
    rank_only: ClassVar[bool] = False
    proven: ClassVar[str] = (
        "at most 5 J* if higher scores pass no less often, whatever the prior says"
    )

    def __post_init__(self) -> None:
        if isinstance(self.prior, str):
            object.__setattr__(self, "prior", _loaded(self.prior))
        if not isinstance(self.prior, Prior):
            raise UsageError(f"learned: the prior must be a Prior, not {self.prior!r}")
        if not (isinstance(self.factor, int | float) and LEAST_FACTOR <= self.factor < math.inf):
            raise UsageError(
                f"learned: factor must be at least {LEAST_FACTOR:g}, not {self.factor!r}"
            )
        if self.hash and self.hash != self.prior.hash:
            raise UsageError(
                f"{self.prior.name}: has changed: its hash is {self.prior.hash}, not {self.hash};"
                " find the old file, or leave the hash out to use the new one"
            )
        object.__setattr__(self, "hash", self.prior.hash)

    def check_score(self, score: str) -> None:
        """Refuse to go by a score that the prior is not for."""
        if score != self.prior.score:
            raise UsageError(
                f"{self.prior.name} is for the score {self.prior.score!r}, not {score!r}: choose"
                " that one with --score, or learn another prior"
            )

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield what history says, and what the guard needs."""
        guard = Guard(pool, costs, self.factor)
        return guarded(_decide(self.prior, pool, costs, guard), pool, guard)


def _loaded(path: str) -> Prior:
    """The prior in a file, for callers that still give the file's name."""
    warnings.warn(
        "Learned('prior.json') becomes Learned(load_prior('prior.json')), with load_prior from"
        " grv.learning.prior_file",
        DeprecationWarning,
        stacklevel=4,
    )
    load: Callable[[str], Prior] = importlib.import_module("grv.learning.prior_file").load_prior
    return load(path)


def _decide(prior: Prior, pool: Pool, costs: Costs, guard: Guard) -> Iterator[Step]:
    crowd, likeness = Crowd(pool, prior, Belief(prior, costs.ratio)), Likeness(prior)
    limits = [prior.limit(costs.ratio, keyed=keyed) for keyed in (False, True)]
    while True:
        if complaint := likeness.complaint(pool.scores):
            yield from _without_history(complaint, pool, costs, prior.name)
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
