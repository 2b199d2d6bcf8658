"""The entries of a ledger: one for each decision, payment and result.

The entries of a search have this order:

    Started
    Intended, Made..., Scored..., Told      a generation; each draft is written before it is scored
    Intended, ScoredAgain..., Told          second scores, if there is a cascade
    Intended, Found..., Told                verifications; each verdict is written as it arrives
    ...
    Ended | Failed                          if this is missing, the search can be resumed

To resume, a new search is started and told the recorded results before anything new is requested. A
plan is deterministic, so it takes the same steps up to the point where it stopped. A second
`Started` means that the search was resumed with another policy, budget or width; its steps may then
differ, but it uses the same candidates.

An `Intended` without results was in flight when the process died. It may have been paid for; its
results are lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ..core.errors import LedgerError
from ..core.values import CandidateId, Event, Generated, Rescored, Verdict, Verified

FORMAT = 1

Call = Literal["generate", "score", "rescore", "verify"]
# JSON data of backends, stored unchanged; hence `Any`.
Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Started:
    """A search starts. `about` has its settings: generator, scorer, policy, costs, budget, seed."""

    problem: str
    about: Data


@dataclass(frozen=True, slots=True)
class Intended:
    """A call is about to be made, for these candidates."""

    call: Call
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A draft arrived."""

    candidate: int
    text: str
    logprobs: tuple[float, ...] | None = None
    usage: Data = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scored:
    """A score arrived; None if scoring failed, with the reason."""

    candidate: int
    score: float | None
    key: str | None = None
    reason: str = ""
    usage: Data = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoredAgain:
    """A second score arrived; None if scoring failed, with the reason."""

    candidate: int
    score: float | None
    reason: str = ""
    usage: Data = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """A verdict arrived."""

    candidate: int
    verdict: Verdict
    reason: str = ""
    evidence: Data = field(default_factory=dict)
    usage: Data = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Told:
    """The search was told this result of its last action; `why` is the reason of the action."""

    event: Event
    why: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The search has ended. `why` is an optional explanation."""

    reason: str
    answer: int | None
    generated: int
    verified: int
    total: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The search could not continue: a backend failed permanently."""

    message: str


Entry = Started | Intended | Made | Scored | ScoredAgain | Found | Told | Ended | Failed

_KINDS: dict[str, type[Any]] = {
    kind.__name__.lower(): kind
    for kind in (Started, Intended, Made, Scored, ScoredAgain, Found, Told, Ended, Failed)
}


_JSON = json.JSONEncoder(separators=(",", ":"), default=repr)


def kind_of(entry: Entry) -> str:
    """The entry's name in the ledger."""
    return type(entry).__name__.lower()


def to_text(entry: Entry) -> str:
    """The entry as one line of JSON."""
    match entry:
        case Found():
            record = {**_fields(entry), "verdict": entry.verdict.value}
        case Told(event, why):
            record = {"event": _event_record(event), "why": why}
        case _:
            record = _fields(entry)
    return _JSON.encode(record)


def from_text(kind: str, text: str) -> Entry:
    """The entry in a line of a ledger."""
    try:
        cls, record = _KINDS[kind], json.loads(text)
        match kind:
            case "found":
                record["verdict"] = Verdict(record["verdict"])
            case "told":
                record["event"] = _event(record["event"])
            case "intended":
                record["candidates"] = tuple(record["candidates"])
            case "made" if record["logprobs"] is not None:
                record["logprobs"] = tuple(record["logprobs"])
        names = [each.name for each in fields(cls) if each.name in record or each.name != "why"]
        entry: Entry = cls(**{name: record[name] for name in names})
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError(f"not an entry of kind {kind!r}: {text[:80]!r}") from error
    return entry


def _fields(entry: Entry) -> dict[str, Any]:
    """The fields of an entry by name. `asdict` would copy them and take longer than JSON."""
    return {name: getattr(entry, name) for name in entry.__slots__}


def _event_record(event: Event) -> dict[str, Any]:
    match event:
        case Generated(scores, keys, paid):
            return {
                "generated": [None if score == -math.inf else score for score in scores],
                "keys": list(keys),
                "paid": paid,
            }
        case Verified(verdicts, paid):
            told = {str(id): verdict.value for id, verdict in verdicts.items()}
            return {"verified": told, "paid": paid}
        case Rescored(scores, paid):
            second = {str(id): None if s == -math.inf else s for id, s in scores.items()}
            return {"rescored": second, "paid": paid}


def _event(record: dict[str, Any]) -> Event:
    if "generated" in record:
        scores = (-math.inf if score is None else score for score in record["generated"])
        return Generated(tuple(scores), tuple(record["keys"]), record["paid"])
    if "rescored" in record:
        second = record["rescored"].items()
        ranked = {CandidateId(int(id)): -math.inf if s is None else s for id, s in second}
        return Rescored(ranked, record["paid"])
    verdicts = {CandidateId(int(id)): Verdict(told) for id, told in record["verified"].items()}
    return Verified(verdicts, record["paid"])
