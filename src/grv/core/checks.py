"""Checks of what a search is given: the steps of its plan, and the events."""

from __future__ import annotations

import math

from .errors import EventError, PolicyError
from .pool import Pool
from .values import (
    Action,
    CandidateId,
    Event,
    Generate,
    Generated,
    Rescore,
    Rescored,
    Verdict,
    Verified,
    Verify,
)


def check_new(pool: Pool, ids: tuple[CandidateId, ...]) -> None:
    """Raise a PolicyError if a plan names candidates that cannot be verified."""
    known = range(len(pool))
    if len(set(ids)) < len(ids) or any(i not in known or i in pool.verdicts for i in ids):
        raise PolicyError(f"cannot verify {ids}: unknown, repeated or already verified")


def check_event(asked: Action | None, event: Event) -> None:
    """Raise an EventError if the event cannot be the result of the action."""
    match asked, event:
        case Generate(n), Generated():
            _check_generated(n, event)
        case Rescore(ids), Rescored(rescored):
            if set(rescored) != set(ids):
                raise EventError(f"asked about {ids}, told about {tuple(rescored)}")
            if any(math.isnan(score) for score in rescored.values()):
                raise EventError("a second score is NaN; use -inf")
        case Verify(ids), Verified(verdicts):
            passed = Verdict.PASSED in verdicts.values()
            told = set(verdicts)
            if not told <= set(ids) or not (passed or len(told) == len(ids)):
                raise EventError(f"asked about {ids}, told about {tuple(verdicts)}")
            if not event.shared <= told:
                raise EventError(f"shared verdicts of {tuple(event.shared)} are missing")
            if event.repeated < 0:
                raise EventError(f"a verifier cannot be asked {event.repeated} times more")
            if event.meanwhile is not None:
                _check_generated(asked.meanwhile, event.meanwhile)
            elif asked.meanwhile and not passed:
                raise EventError(f"{asked.meanwhile} candidates generated meanwhile are missing")
        case _:
            raise EventError(f"asked {asked}, told {event}")
    _check_paid(event.paid)


def _check_generated(n: int, event: Generated) -> None:
    scores = event.scores
    keys = event.keys
    alike = event.alike
    if len(scores) > n:
        raise EventError(f"asked for {n} candidates, got {len(scores)}")
    if any(map(math.isnan, scores)) or any(map(math.isnan, alike)):
        raise EventError("a score is NaN; use -inf or leave the candidate out")
    if keys and len(keys) != len(scores):
        raise EventError(f"{len(scores)} candidates have {len(keys)} keys")
    if alike and len(alike) != len(scores):
        raise EventError(f"{len(scores)} candidates have {len(alike)} values of alike")
    _check_paid(event.paid)


def _check_paid(paid: float | None) -> None:
    if paid is not None and not (math.isfinite(paid) and paid >= 0):
        raise EventError(f"the payment must be finite and not negative, not {paid}")
