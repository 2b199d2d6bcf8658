"""One search as JSON data: its steps with their reasons, and its candidates."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...core.values import REFUTED, Event, Generated, Rescored, Verified, arrivals
from ...ledger.entries import (
    Charged,
    Ended,
    Entry,
    Failed,
    Found,
    Made,
    Parked,
    Scored,
    ScoredAgain,
    Settled,
    Started,
    Told,
    charge_of,
)
from ...ledger.pending import pending_calls
from .store import Listed, last_start

LONGEST = 20_000  # characters of a text that are sent with the search; the rest on request
_MOST = 500  # candidates that are sent with the search

Timed = Sequence[tuple[Entry, float]]


def listed_data(listed: Listed) -> dict[str, Any]:
    """A search in a list."""
    return {**asdict(listed.summary), "status": listed.status, "waiting": listed.waiting}


def search_data(listed: Listed, timed: Timed, damage: str) -> dict[str, Any]:
    """Everything that the page of a search shows."""
    entries = [entry for entry, _ in timed]
    started, pending = last_start(entries), pending_calls(entries)
    ended = next((each for each in reversed(entries) if isinstance(each, Ended)), None)
    candidates = candidates_of(timed)
    return {
        **listed_data(listed),
        "damage": damage,
        "prompt": _cut(started.prompt) if started else _cut(""),
        "check": _check(started.check) if started else None,
        "settings": dict(started.about) if started else {},
        "answer": None if ended is None else ended.answer,
        "steps": [*steps_of(timed)],
        "candidates": [_sent(each) for each in candidates[:_MOST]],
        "left_out": max(0, len(candidates) - _MOST),
        "lost": dict(pending.lost),
        "cancelled": pending.cancelled,
        "corrected": _is_corrected(entries),
    }


def steps_of(timed: Timed) -> Iterator[dict[str, Any]]:
    """What happened, in order: each step with its reason and what was spent so far."""
    spent, seen, generators = 0.0, Counter[str](), list[str]()
    for entry, at in timed:
        spent += charge_of([entry])
        step: dict[str, Any] | None = None
        match entry:
            case Started(_, about):
                again, seen = seen.total() > 0, Counter()
                generators = [*about.get("generators", ())]
                step = {"step": "continued" if again else "started", "why": _plan(about)}
            case Told(event, why):
                name = why.partition(":")[0] if generators else ""
                place = generators.index(name) if name in generators else 0
                step = {**_told(event, seen[name], max(1, len(generators)), place), "why": why}
                seen[name] += sum(len(batch.scores) for batch in arrivals(event))
            case Settled(call, candidates, _, reason) if reason:
                step = {"step": "attempt failed", "call": call, "ids": [*candidates], "why": reason}
            case Parked(_, candidates, note):
                step = {"step": "parked", "ids": [*candidates], "why": note}
            case Found(candidate, verdict, reviewer=reviewer, note=note) if reviewer:
                verdicts = {str(candidate): verdict.value}
                step = {"step": "reviewed", "verdicts": verdicts, "ids": [candidate]}
                step |= {"reviewer": reviewer, "why": note}
            case Charged(_, reason):
                step = {"step": "charged", "why": reason}
            case Ended(reason, answer, why=why):
                step = {"step": "ended", "outcome": reason, "why": why}
                step["ids"] = [] if answer is None else [answer]
            case Failed(message):
                step = {"step": "failed", "why": message}
        if step is not None:
            yield {"at": at, "spent": spent, "ids": [], **step}


def _told(event: Event, seen: int, generators: int, place: int) -> dict[str, Any]:
    """A result. Several generators take turns in the numbers of candidates."""
    match event:
        case Generated(scores):
            own = range(seen, seen + len(scores))
            return {"step": "generated", "ids": [generators * id + place for id in own]}
        case Rescored(second):
            return {"step": "rescored", "ids": [*second]}
        case Verified(verdicts):
            told = {str(id): verdict.value for id, verdict in verdicts.items()}
            ahead = [*range(seen, seen + sum(len(each.scores) for each in arrivals(event)))]
            more = {"meanwhile": ahead} if ahead else {}
            return {"step": "verified", "ids": [*verdicts], "verdicts": told, **more}


def _plan(about: Mapping[str, Any]) -> str:
    """The plan of a search in a few words."""
    words = [f"policy {about['policy']}"] if about.get("policy") else []
    words += [f"budget {about['budget']:g}"] if about.get("budget") else []
    return ", ".join(words)


def candidates_of(timed: Timed) -> list[dict[str, Any]]:
    """The candidates with scores and all their verdicts, in order of arrival."""
    found: dict[int, dict[str, Any]] = {}
    for entry, at in timed:
        match entry:
            case Made(id, text, _, usage):
                found[id] = {"candidate": id, "text": text, "usage": dict(usage), "verdicts": []}
            case Scored(id, score, key, reason) if id in found:
                found[id] |= {"score": score, "score_reason": reason, "refuted": key == REFUTED}
            case ScoredAgain(id, score) if id in found:
                found[id]["second_score"] = score
            case Found(id) if id in found:
                found[id]["verdicts"].append(_verdict(entry, at))
    waiting = {id for call, id in pending_calls([e for e, _ in timed]).parked if call == "verify"}
    for id, each in found.items():
        each["waiting"] = id in waiting
    return [found[id] for id in sorted(found)]


def _verdict(found: Found, at: float) -> dict[str, Any]:
    return {
        "at": at,
        "verdict": found.verdict.value,
        "reason": found.reason,
        "evidence": dict(found.evidence),
        "seconds": found.usage.get("seconds"),
        "reviewer": found.reviewer,
        "note": found.note,
    }


def _is_corrected(entries: Sequence[Entry]) -> bool:
    """Whether a verdict was changed after the search had ended."""
    changed, verdicts = False, dict[int, Any]()
    for entry in entries:
        match entry:
            case Found(id, verdict):
                changed = changed or verdicts.get(id, verdict) != verdict
                verdicts[id] = verdict
            case Started() | Told() | Ended():
                changed = False
    return changed


def _sent(candidate: dict[str, Any]) -> dict[str, Any]:
    return {**candidate, "text": _cut(candidate["text"])}


def _cut(text: str) -> dict[str, Any]:
    """A text with its length; if it is long, the beginning."""
    return {"text": text[:LONGEST], "length": len(text)}


def _check(text: str) -> Any:
    """The check of a problem: parsed, or as it is if it is not JSON."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text
