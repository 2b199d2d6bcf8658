"""One search as JSON data: its steps with their reasons, and its candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...backends.protocols import verified_part
from ...files import parse_json
from ...ledger.entries import Ended, Entry, Found, Settled, Started
from ...ledger.view import GivenVerdict, RecordedCandidate, RecordedStep, SearchView, StepKind
from .store import Listed

LONGEST = 20_000  # characters of a text that are sent with the search; the rest on request
_MOST = 500  # candidates that are sent with the search
_PARTS: frozenset[StepKind] = frozenset({"second score", "verdict"})  # of other steps
_WITH_VERDICTS: frozenset[StepKind] = frozenset({"verified", "reviewed"})

Timed = Sequence[tuple[Entry, float]]


def listed_data(listed: Listed) -> dict[str, Any]:
    """A search in a list."""
    return {**asdict(listed.summary), "status": listed.status, "waiting": listed.waiting}


def search_data(listed: Listed, timed: Timed, damage: str) -> dict[str, Any]:
    """Everything that the page of a search shows."""
    view = view_of(timed)
    tally = view.tally
    candidates = view.candidates
    return {
        **listed_data(listed),
        "generated": len(tally.made),
        "verified": tally.verifications,
        "damage": damage,
        "prompt": _cut(view.prompt),
        "check": _check(view.started.check) if view.started else None,
        "settings": dict(view.about),
        "answer": None if view.last_end is None else view.last_end.answer,
        "shared": tally.shared,
        "steps": [step_data(step) for step in view.steps if step.kind not in _PARTS],
        "candidates": [_sent(candidate_data(each)) for each in candidates[:_MOST]],
        "left_out": max(0, len(candidates) - _MOST),
        "lost": dict(tally.lost),
        "cancelled": tally.cancelled,
        "corrected": view.is_corrected,
    }


def view_of(timed: Timed) -> SearchView:
    """The view of entries with their times."""
    return SearchView([entry for entry, _ in timed], times=[at for _, at in timed])


def step_data(step: RecordedStep) -> dict[str, Any]:
    """What happened, with its reason and what was spent so far."""
    data: dict[str, Any] = {
        "at": step.at,
        "spent": step.spent,
        "ids": [*step.ids],
        "step": step.kind,
        "why": step.reason,
    }
    if step.generator:
        data["generator"] = step.generator
    if step.kind in _WITH_VERDICTS:
        data["verdicts"] = {str(id): verdict.value for id, verdict in step.verdicts.items()}
    if step.meanwhile:
        data["meanwhile"] = [*step.meanwhile]
    if step.shared:
        data["shared"] = [*step.shared]
    match step.entry:
        case Started(_, about):
            data["why"] = _plan(about)
        case Settled(call):
            data["call"] = call
        case Found(reviewer=reviewer):
            data["reviewer"] = reviewer
        case Ended(reason):
            data["outcome"] = reason
    return data


def _plan(about: Mapping[str, Any]) -> str:
    """The plan of a search in a few words."""
    words = [f"policy {about['policy']}"] if about.get("policy") else []
    words += [f"budget {about['budget']:g}"] if about.get("budget") else []
    return ", ".join(words)


def candidate_data(candidate: RecordedCandidate) -> dict[str, Any]:
    """A candidate with its scores and all its verdicts."""
    data: dict[str, Any] = {
        "candidate": candidate.id,
        "text": candidate.text,
        "generator": candidate.generator,
        "usage": candidate.usage.as_data(),
        "verdicts": [_verdict(given) for given in candidate.verdicts],
        "waiting": candidate.waiting,
    }
    if candidate.scored is not None:
        data |= {
            "score": candidate.score,
            "score_reason": candidate.score_reason,
            "key": candidate.key,
            "refuted": candidate.refuted,
            "dropped": candidate.dropped,
        }
    if candidate.scored_again is not None:
        data["second_score"] = candidate.second_score
    if candidate.verdict is not None:
        data |= verified_part(candidate.verdict.evidence)
    return data


def _verdict(given: GivenVerdict) -> dict[str, Any]:
    found = given.found
    return {
        "at": given.at,
        "verdict": found.verdict.value,
        "reason": found.reason,
        "evidence": {name: _shortened(value) for name, value in found.evidence.items()},
        "seconds": found.usage.seconds,
        "shared": found.shared,
        "reviewer": found.reviewer,
        "note": found.note,
    }


def _shortened(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else value


def _sent(candidate: dict[str, Any]) -> dict[str, Any]:
    return {**candidate, "text": _cut(candidate["text"])}


def _cut(text: str) -> dict[str, Any]:
    """A text with its length; if it is long, the beginning."""
    return {"text": text[:LONGEST], "length": len(text)}


def _check(text: str) -> Any:
    """The check of a problem: parsed, or as it is if it is not JSON."""
    try:
        return parse_json(text) if text else None
    except ValueError:
        return text
