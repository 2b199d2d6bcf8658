"""One search of a ledger, as lines for the screen and as JSON data.

Texts, reasons and evidence come from models and programs. `say` escapes what could control a
terminal; here texts are only divided into lines.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..backends.protocols import verified_part
from ..core.values import Verdict
from ..ledger.entries import Ended, Entry, Found, ScoredAgain, Started
from ..ledger.view import RecordedCandidate, RecordedStep, SearchView
from ..runtime.solution import dollars_of

if TYPE_CHECKING:
    from ..ledger.rows import SearchSummary

# of a text, unless it is shown in full
_LINES = 3
_WIDTH = 160
_EVIDENCE = 300  # characters of one piece of evidence
# The steps of the JSON data, and their names there.
_STEPS = {"generated": "generate", "rescored": "rescore", "verified": "verify"}


class SearchLines:
    """Makes the lines of one search.

    Args:
        view: the search.
        full: whether texts and evidence are shown in full.
    """

    def __init__(self, view: SearchView, *, full: bool = False) -> None:
        self._view = view
        self._full = full
        self._candidates = {each.id: each for each in view.candidates}
        self._shown: set[int] = set()

    def lines(self) -> list[str]:
        """All lines, with what was lost or is unfinished at the end."""
        lines = [line for step in self._view.steps for line in self._step(step)]
        unused = [id for id in self._candidates if id not in self._shown]
        if unused:
            lines.append(f"not used yet: {len(unused)} candidates")
            lines += self._arrived(unused)
        refuted = len(self._view.tally.refuted)
        if refuted:
            lines.append(f"refuted without verification, so neither verified nor billed: {refuted}")
        return [*lines, *self._sums()]

    def _step(self, step: RecordedStep) -> Iterator[str]:
        spent = f"; {step.spent:g} spent so far" if step.spent else ""
        match step.kind, step.entry:
            case _, Started(_, about) as started:
                settings = [f"{k} {v}" for k, v in about.items() if v not in (None, "", [])]
                yield "started: " + ", ".join([*settings, *_conditions(started)])
            case _, ScoredAgain(candidate, score, reason):
                second = f"has no second score: {reason}" if score is None else f"gets {score:g}"
                yield f"candidate {candidate} {second}"
            case _, Found() as found:
                yield from self._found(found)
            case "generated" | "rescored", _:
                yield f"{step.kind} {len(step.ids)} ({step.reason}){spent}"
                if step.kind == "generated":
                    yield from self._arrived(step.ids)
            case "verified", _:
                ran = f"verified {len(step.ids) - len(step.shared)}"
                ran += f", shared {len(step.shared)}" if step.shared else ""
                yield f"{ran} ({step.reason}){spent}"
                if step.meanwhile:
                    yield f"generated {len(step.meanwhile)} meanwhile"
                    yield from self._arrived(step.meanwhile)
            case _, Ended(reason, answer, generated, verified, total, why, shared):
                end = f"{reason}: {generated} generated, {verified} verified"
                end += f", {shared} shared" if shared else ""
                end += f", cost {total:g}"
                end += f"; {why}" if why else ""
                yield end + ("" if answer is None else f"; candidate {answer} is the answer")
            case "failed", _:
                yield f"failed: {step.why}"

    def _arrived(self, ids: Iterable[int]) -> Iterator[str]:
        """Candidates that the search was told of, each where it is told first."""
        for id in ids:
            if id not in self._shown:
                self._shown.add(id)
                yield from self._candidate(self._candidates[id])

    def _candidate(self, candidate: RecordedCandidate) -> Iterator[str]:
        """The score and the text of a candidate."""
        reason = candidate.score_reason
        if candidate.scored is None:
            score = ", not scored yet"
        elif candidate.dropped:
            score = f", dropped as broken: {reason}"
        elif candidate.score is None:
            score = f", no score: {reason}"
        else:
            score = f", score {candidate.score:.4g}"
        if candidate.refuted:
            why = f": {reason}" if candidate.score is not None and reason else ""
            score += f", refuted without verification{why}"
        name = f" of {candidate.generator}" if candidate.generator else ""
        yield f"  candidate {candidate.id}{name}{score}"
        if not candidate.dropped:
            yield from (f"    | {line}" for line in self._text(candidate.text))

    def _found(self, found: Found) -> Iterator[str]:
        """A verdict with its evidence; in short, a pass has only what it is about."""
        reason = f": {found.reason}" if found.reason else ""
        by = f" (says {found.reviewer})" if found.reviewer else ""
        known = " (known already: nothing was run)" if found.shared else ""
        yield f"candidate {found.candidate} {found.verdict.value}{by}{reason}{known}"
        if found.note:
            yield f"    {found.note}"
        is_short = found.verdict is Verdict.PASSED and not self._full
        evidence = verified_part(found.evidence) if is_short else found.evidence
        for name, value in evidence.items():
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

    def _sums(self) -> Iterator[str]:
        """What has no result, and what everything adds up to."""
        tally = self._view.tally
        needless = {"verify": tally.cancelled, "generate": tally.cancelled_drafts}
        if any(needless.values()):
            counted = ", ".join(f"{count} {call}" for call, count in needless.items() if count)
            yield f"paid but unneeded: {counted}"
        if tally.lost:
            counted = ", ".join(f"{count} {call}" for call, count in tally.lost.items())
            yield f"possibly paid, lost: {counted}"
        for call, candidate in sorted(tally.parked):
            yield f"parked: {call} of candidate {candidate}, until its result is entered"
        made = len(tally.made)
        cost = tally.billed
        total = f"in all: {made} generated, {tally.verifications} verified, cost {cost:g}"
        more = tally.paid - tally.billed
        yield total + (f"; possibly paid {tally.paid:g}" if more > 1e-9 * tally.paid else "")


def _conditions(started: Started) -> list[str]:
    """How strictly programs are isolated, if any run."""
    conditions = started.conditions
    if conditions is None or not conditions.isolation:
        return []
    return [f"isolation {conditions.isolation}"]


def search_data(summary: SearchSummary, entries: Sequence[Entry]) -> dict[str, Any]:
    """A search as JSON data: settings, candidates with scores and verdicts, steps, costs."""
    view = SearchView(entries)
    end = view.last_end
    failures = [step.why for step in view.steps if step.kind == "failed"]
    return {
        **dataclasses.asdict(summary),
        "generated": len(view.tally.made),
        "verified": view.tally.verifications,
        "prompt": view.prompt,
        "settings": dict(view.about),
        "message": end.why if end is not None else (failures or [""])[-1],
        "answer": None if end is None else end.answer,
        "shared": view.tally.shared,
        "candidates": [_candidate_data(each) for each in view.candidates],
        "steps": [_step_data(step) for step in view.steps if step.kind in _STEPS],
        "lost": dict(view.tally.lost),
        "dollars": dollars_of(view),
    }


def _candidate_data(candidate: RecordedCandidate) -> dict[str, Any]:
    data: dict[str, Any] = {
        "candidate": candidate.id,
        "text": candidate.text,
        "generator": candidate.generator,
        "usage": candidate.usage.as_data(),
    }
    if candidate.scored is not None:
        data |= {
            "score": candidate.score,
            "key": candidate.scored.key,
            "score_reason": candidate.score_reason,
            "refuted": candidate.refuted,
            "dropped": candidate.dropped,
        }
    if candidate.scored_again is not None:
        data["second_score"] = candidate.second_score
    finding = candidate.verdict
    if finding is not None:
        data |= {
            "verdict": finding.verdict.value,
            "reason": finding.reason,
            "shared": finding.shared,
        }
        data["evidence"] = dict(finding.evidence)
        data |= verified_part(finding.evidence)
    return data


def _step_data(step: RecordedStep) -> dict[str, Any]:
    data: dict[str, Any] = {
        "step": _STEPS[step.kind],
        "count": len(step.ids),
        "ids": [*step.ids],
        "why": step.reason,
        "spent": step.spent,
    }
    if step.generator:
        data["generator"] = step.generator
    if step.kind == "verified":
        data["meanwhile"] = len(step.meanwhile)
    return data
