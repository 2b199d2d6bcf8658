"""One search of a ledger, as lines for the screen and as JSON data.

Texts, reasons and evidence come from models and programs. `say` escapes what could control a
terminal; here texts are only divided into lines.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.values import REFUTED, Event, Generated, Rescored, Verdict, Verified, arrivals
from ...ledger.entries import (
    Ended,
    Entry,
    Failed,
    Found,
    Made,
    Scored,
    ScoredAgain,
    Started,
    Told,
    charge_of,
)
from ...ledger.pending import pending_calls

if TYPE_CHECKING:
    from ...ledger.rows import SearchSummary

_LINES, _WIDTH = 3, 160  # of a text, unless it is shown in full
_EVIDENCE = 300  # characters of one piece of evidence


class SearchLines:
    """Makes the lines of one search, a step at a time.

    Args:
        full: whether texts and evidence are shown in full.
    """

    def __init__(self, *, full: bool = False) -> None:
        self._full = full
        self._made: dict[int, Made] = {}
        self._scored: dict[int, Scored] = {}
        self._shown: set[int] = set()
        self._spent = 0.0

    def of(self, entries: Sequence[Entry]) -> list[str]:
        """All lines, with what was lost or is unfinished at the end."""
        lines = [line for entry in entries for line in self._of(entry)]
        waiting = [id for id in self._made if id not in self._shown]
        if waiting:
            lines.append(f"not used yet: {len(waiting)} candidates")
            lines += [line for id in waiting for line in self._candidate(id)]
        refuted = sum(each.key == REFUTED for each in self._scored.values())
        if refuted:
            lines.append(f"refuted without verification, so neither verified nor billed: {refuted}")
        return [*lines, *_pending(entries)]

    def _of(self, entry: Entry) -> Iterator[str]:
        self._spent += charge_of([entry])
        match entry:
            case Started(_, about):
                said = (f"{k} {v}" for k, v in about.items() if v not in (None, "", []))
                yield "started: " + ", ".join(said)
            case Made(candidate):
                self._made[candidate] = entry
            case Scored(candidate):
                self._scored[candidate] = entry
            case ScoredAgain(candidate, score, reason):
                second = f"has no second score: {reason}" if score is None else f"gets {score:g}"
                yield f"candidate {candidate} {second}"
            case Found():
                yield from self._found(entry)
            case Told(event, why):
                yield from self._told(event, why)
            case Ended(reason, answer, generated, verified, total, why):
                end = f"{reason}: {generated} generated, {verified} verified, cost {total:g}"
                end += f"; {why}" if why else ""
                yield end + ("" if answer is None else f"; candidate {answer} is the answer")
            case Failed(message):
                yield f"failed: {message}"

    def _told(self, event: Event, why: str) -> Iterator[str]:
        spent = f"; {self._spent:g} spent so far" if self._spent else ""
        match event:
            case Generated(scores):
                yield f"generated {len(scores)} ({why}){spent}"
                yield from self._arrived(len(scores))
            case Rescored(second):
                yield f"rescored {len(second)} ({why}){spent}"
            case Verified(verdicts, _, ahead):
                yield f"verified {len(verdicts)} ({why}){spent}"
                if ahead is not None:
                    yield f"generated {len(ahead.scores)} meanwhile"
                    yield from self._arrived(len(ahead.scores))

    def _arrived(self, n: int) -> Iterator[str]:
        """The next candidates that the search was told of."""
        for id in sorted(self._made.keys() - self._shown)[:n]:
            yield from self._candidate(id)

    def _candidate(self, id: int) -> Iterator[str]:
        """The score and the text of a candidate."""
        self._shown.add(id)
        scored = self._scored.get(id)
        match scored:
            case None:
                score = ", not scored yet"
            case Scored(score=None, reason=reason):
                score = f", no score: {reason}"
            case Scored(score=value):
                score = f", score {value:.4g}"
        if scored is not None and scored.key == REFUTED:
            why = f": {scored.reason}" if scored.score is not None and scored.reason else ""
            score += f", refuted without verification{why}"
        name = self._made[id].generator
        yield f"  candidate {id}{f' of {name}' if name else ''}{score}"
        yield from (f"    | {line}" for line in self._text(self._made[id].text))

    def _found(self, found: Found) -> Iterator[str]:
        """A verdict; if it is not a pass, with its evidence: the failing test."""
        reason = f": {found.reason}" if found.reason else ""
        by = f" (says {found.reviewer})" if found.reviewer else ""
        yield f"candidate {found.candidate} {found.verdict.value}{by}{reason}"
        if found.note:
            yield f"    {found.note}"
        for name, value in found.evidence.items() if found.verdict is not Verdict.PASSED else ():
            text = value if isinstance(value, str) else json.dumps(value, default=repr)
            first, *more = text.rstrip("\n").split("\n") if self._full else [text[:_EVIDENCE]]
            yield f"    {name}: {first}"
            yield from (f"      {line}" for line in more)

    def _text(self, text: str) -> list[str]:
        lines = text.expandtabs(4).rstrip("\n").split("\n")
        if self._full:
            return lines
        shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..." for line in lines[:_LINES]]
        more = len(lines) - _LINES
        return [*shown, f"... {more} more lines: --full"] if more > 0 else shown


def _pending(entries: Sequence[Entry]) -> Iterator[str]:
    """What has no result."""
    pending = pending_calls(entries)
    if pending.cancelled:
        yield f"paid but unneeded: {pending.cancelled} verify"
    if pending.lost:
        counted = ", ".join(f"{count} {call}" for call, count in pending.lost.items())
        yield f"possibly paid, lost: {counted}"
    for call, candidate in sorted(pending.parked):
        yield f"parked: {call} of candidate {candidate}, until its result is entered"


def search_data(summary: SearchSummary, entries: Sequence[Entry]) -> dict[str, Any]:
    """A search as JSON data: settings, candidates with scores and verdicts, steps, costs."""
    started = [entry for entry in entries if isinstance(entry, Started)]
    failed = [entry.message for entry in entries if isinstance(entry, Failed)]
    ended = next((entry for entry in reversed(entries) if isinstance(entry, Ended)), None)
    return {
        **dataclasses.asdict(summary),
        "prompt": started[-1].prompt if started else "",
        "settings": dict(started[-1].about) if started else {},
        "message": ended.why if ended is not None else (failed or [""])[-1],
        "answer": None if ended is None else ended.answer,
        "candidates": [*_candidates(entries)],
        "steps": [*_steps(entries)],
        "lost": dict(pending_calls(entries).lost),
    }


def _candidates(entries: Iterable[Entry]) -> Iterator[Mapping[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for entry in entries:
        match entry:
            case Made(id, text, _, usage):
                found[id] = {"candidate": id, "text": text, "usage": dict(usage)}
            case Scored(id, score, key, reason) if id in found:
                found[id] |= {"score": score, "key": key, "score_reason": reason}
            case ScoredAgain(id, score) if id in found:
                found[id]["second_score"] = score
            case Found(id, verdict, reason, evidence) if id in found:
                found[id] |= {"verdict": verdict.value, "reason": reason}
                found[id]["evidence"] = dict(evidence)
    yield from found.values()


def _steps(entries: Iterable[Entry]) -> Iterator[Mapping[str, Any]]:
    spent = 0.0
    for entry in entries:
        spent += charge_of([entry])
        if isinstance(entry, Told):
            step, count = _counted(entry.event)
            record = {"step": step, "count": count, "why": entry.why, "spent": spent}
            if step == "verify":
                record["meanwhile"] = sum(len(each.scores) for each in arrivals(entry.event))
            yield record


def _counted(event: Event) -> tuple[str, int]:
    match event:
        case Generated(scores):
            return "generate", len(scores)
        case Rescored(second):
            return "rescore", len(second)
        case Verified(verdicts):
            return "verify", len(verdicts)
