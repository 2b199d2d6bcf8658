"""Decide by a prior fitted to history, inside a guard in case the prior is wrong."""

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
from ...theory.guard import FACTOR, LEAST_FOR_BOTH
from .. import spec
from ..promises import promises_of, sentence
from .belief import Belief
from .drift import Drift
from .guard import Guard, guarded
from .merit_ranking import MeritRanking
from .prior import Prior


class UnlikeHistoryWarning(UserWarning):
    """A problem's scores differ from those that the prior was fitted to."""


@dataclass(frozen=True)
class Learned:
    """Verify candidates that are worth it according to history; a guard bounds the cost.

    `grv learn` fits the prior to logs or ledgers (empirical Bayes). The policy generates one
    candidate at a time, and verifies the candidate with the highest merit if its merit reaches a
    limit, which was found by replaying the history. Merit is the expected saving by a verification,
    in verifications. If the scores of a problem differ from the history, the default policy
    decides, inside the same guard. Choose it if you have logs or ledgers of similar problems.

    Attributes:
        prior: the result of `grv learn`; `grv.learning.prior_file.load_prior` reads it from a file.
        hash: the prior's checksum, as `grv learn` prints it; a prior with another checksum is an
            error. If empty, it is filled in, so that a ledger identifies the content of the prior.
        factor: the factor of both guards, at least 3. With one verification at a time: expected
            cost <= factor * J* if higher scores pass no less often; and cost <= factor * the cost
            of verify-all on the same candidates and keys, for any score.

    Examples:
        >>> import grv
        >>> from grv.comparing import learn
        >>> from grv.learning import History, past
        >>> from grv.testing import population
        >>> log = population("math", problems=8, candidates=30)
        >>> prior = learn(History.of(past(log), log.score, ["a log"]))
        >>> grv.compare({"learned": grv.policies.Learned(prior)}, log, orders=1)["learned"].solved
        1.0
    """

    prior: Prior = field(metadata={spec.FILE: True})
    hash: str = ""
    factor: float = FACTOR
    example: ClassVar[str] = "learned('prior.json')"
    rank_only: ClassVar[bool] = False
    any_score: ClassVar[bool] = True
    relies_on: ClassVar[str] = "nothing for its bounds; it is cheap if the future is like the past"

    def __post_init__(self) -> None:
        if isinstance(self.prior, str):
            object.__setattr__(self, "prior", _loaded(self.prior))
        if not isinstance(self.prior, Prior):
            raise UsageError(f"learned: the prior must be a Prior, not {self.prior!r}")
        if not (isinstance(self.factor, int | float) and LEAST_FOR_BOTH <= self.factor < math.inf):
            raise UsageError(
                f"learned: factor must be at least {LEAST_FOR_BOTH:g}, not {self.factor!r}"
            )
        if self.hash and self.hash != self.prior.hash:
            raise UsageError(
                f"{self.prior.name} has changed: its hash is {self.prior.hash}, not {self.hash};"
                " find the old file, or leave out the hash to use the new one"
            )
        object.__setattr__(self, "hash", self.prior.hash)

    def check_score(self, score: str, alike: str | None = None) -> None:
        """Raise `UsageError` if the prior is for another score, or counts failures by another."""
        if score != self.prior.score:
            raise UsageError(
                f"{self.prior.name} is for the score {self.prior.score!r}, not {score!r}: use"
                f" --score {self.prior.score}, or learn another prior"
            )
        if self.prior.alike not in ("", alike):
            raise UsageError(
                f"{self.prior.name} counts failures by {self.prior.alike!r}: give --alike"
                f" {self.prior.alike}"
            )

    @property
    def proven(self) -> str:
        """What is proven about its cost."""
        return sentence(promises_of("learned", factor=self.factor))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the steps of the prior and of the guard."""
        guard = Guard(pool, costs, self.factor)
        return guarded(_decide(self.prior, pool, costs, guard), pool, guard)


def _loaded(path: str) -> Prior:
    """The prior in a file, for callers that still pass the file's name."""
    warnings.warn(
        "Learned('prior.json') becomes Learned(load_prior('prior.json')), with load_prior from"
        " grv.learning.prior_file",
        DeprecationWarning,
        stacklevel=4,
    )
    load: Callable[[str], Prior] = importlib.import_module("grv.learning.prior_file").load_prior
    return load(path)


def _decide(prior: Prior, pool: Pool, costs: Costs, guard: Guard) -> Iterator[Step]:
    ratio = prior.ratio(costs)
    ranking = MeritRanking(pool, prior, Belief(prior, ratio))
    drift = Drift(prior)
    limits = [prior.limit(ratio, keyed=keyed) for keyed in (False, True)]
    while True:
        if complaint := drift.complaint(pool.scores):
            yield from _without_history(complaint, pool, costs, prior.name)
            return
        ranking.update(guard.asked)
        chosen = ranking.best()
        if chosen is None and pool.exhausted:
            return
        limit = limits[ranking.keyed]
        if chosen is None:
            yield Generate(1, "no open candidate")
        elif pool.exhausted or (chosen.merit >= limit and guard.has_room(chosen.id)):
            yield Verify((chosen.id,), _worth(chosen.merit, limit))
        else:
            wait = "" if chosen.merit < limit else "; the guard allows no verification yet"
            yield Generate(1, _worth(chosen.merit, limit) + wait)


def _worth(merit: float, limit: float) -> str:
    """The merit of the best candidate against the limit, for people."""
    relation = "below" if merit < limit else "at least"
    saving = f"verifying the best one saves {merit:.2f} verifications on average"
    return f"{saving}, {relation} the limit of {limit:.2f}"


def _without_history(complaint: str, pool: Pool, costs: Costs, name: str) -> Iterator[Step]:
    """Warn, and follow the default policy."""
    from .. import DEFAULT

    warnings.warn(
        f"{name}: the scores of some problems differ from its history; for those problems the"
        " default policy decides, inside the guard (see the reasons of their steps)",
        UnlikeHistoryWarning,
        stacklevel=2,
    )
    for step in DEFAULT.plan(pool, costs):
        why = f"unlike the history ({complaint}): {step.why}"
        yield Generate(step.n, why) if isinstance(step, Generate) else Verify(step.ids, why)
