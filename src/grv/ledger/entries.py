"""The entries of a ledger: one for each decision, payment and result.

The entries of a search have this order:

    Started
    Intended, Made..., Scored..., Told      a generation; each draft is written before it is scored
    Intended, ScoredAgain..., Told          second scores, if there is a cascade
    Intended, Staged..., Found..., Told     verifications; each verdict is written as it arrives
    ...
    Ended | Failed                          if this is missing, the search can be resumed

Every attempt of a call has its own `Intended`, written before the attempt, with the amount that it
may cost. An attempt that costs nothing is written with its result. `Settled` follows if the attempt
cost less or had no result. So the amounts of a search add up to what was possibly paid: all that
was reserved, minus all that was returned. `Charged` adds what was paid for entries that are
missing: of format 1, or lost in a damaged ledger.

To resume, a new search is started and told the recorded results before anything new is requested. A
plan is deterministic, so it takes the same steps up to the point where it stopped. A second
`Started` means that the search was resumed with another policy, budget or width; its steps may then
differ, but it uses the same candidates.

What arrives together is one row of the ledger: the drafts of a response, and the scores of drafts
that are scored together (`TOGETHER`). Its number is that of its last entry.

An `Intended` without results was in flight when the process died. It may have been paid for; its
results are lost. After `Parked`, the result comes from outside: it is not lost. A person's verdict
is appended by another process when it arrives. The drafts of a batch are fetched by the process
that runs the search, also a later one; `Intended` and `Parked` are written together, before the
batch is sent.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Literal, get_args

from ..conditions import Conditions
from ..core.errors import LedgerError
from ..core.values import CandidateId, Costs, Event, Generated, Rescored, Verdict, Verified
from ..files import DEEPEST, is_number, parse_json, shown, typed
from ..usage import UNUSED, Usage

JUDGED = "judged"  # the outcome of a search whose answer a check that errs has passed
Call = Literal["generate", "score", "rescore", "verify"]
# JSON data of backends, stored unchanged; hence `Any`.
Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Started:
    """A search starts.

    Attributes:
        problem: its id.
        about: the settings: generator, scorer, policy, costs, budget, seed.
        prompt: the prompt of the problem.
        check: the check of the problem, as JSON.
        account: the account that pays.
        prior: the prior that the policy `learning` decides by, as text; empty without one.
        scorer: the model of a trained score, which the search keeps. It is not part of the search's
            id, so that a new model does not make a search start again.
        shares: what earlier problems said about the share of right candidates, as text, if a check
            that errs decides by it; the search keeps it.
        conditions: those under which verdicts are wanted; None with the user's own verifier. They
            are not part of the search's id: a search under other conditions keeps the drafts.
    """

    problem: str
    about: Data
    prompt: str = ""
    check: str = ""
    account: str = ""
    prior: str = ""
    scorer: str = ""
    conditions: Conditions | None = None
    shares: str = ""


@dataclass(frozen=True, slots=True)
class Intended:
    """An attempt of a call is about to be made, for these candidates; it may cost `reserved`."""

    call: Call
    candidates: tuple[int, ...]
    reserved: float = 0.0


@dataclass(frozen=True, slots=True)
class Settled:
    """An attempt is over, and `returned` of what was reserved was not paid.

    Attributes:
        reason: why the attempt has no result; empty if it has one.
        unpaid: whether it was certainly not charged.
    """

    call: Call
    candidates: tuple[int, ...]
    returned: float = 0.0
    reason: str = ""
    unpaid: bool = False


@dataclass(frozen=True, slots=True)
class Parked:
    """The result of a call comes from outside, at any later time.

    `batch` says where drafts will be: the name of a batch and the id of the request in it, with
    the server's id of the batch once that is known. Then there is a second entry.
    """

    call: Call
    candidates: tuple[int, ...]
    note: str = ""
    batch: Data = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Charged:
    """An amount was possibly paid before, and no entry of this search says for what."""

    amount: float
    reason: str


@dataclass(frozen=True, slots=True)
class Made:
    """A draft arrived; `broken` says why it has no text, if the text could not be kept.

    `log` is the log of the run that made it, if a program did.
    """

    candidate: int
    text: str
    logprobs: tuple[float, ...] | None = None
    usage: Usage = UNUSED
    generator: str = ""
    broken: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """A score arrived; None if scoring failed, with the reason.

    If the key is `REFUTED`, the candidate certainly fails; with a score, the reason says why. If it
    is `DROPPED`, the candidate has no text.
    `alike` is its value by which failures are counted; None if that is the score. `judge` is the
    version of the judge that made the key; another one may make another.
    """

    candidate: int
    score: float | None
    key: str | None = None
    reason: str = ""
    usage: Usage = UNUSED
    alike: float | None = None
    judge: int = 0


@dataclass(frozen=True, slots=True)
class ScoredAgain:
    """A second score arrived; None if scoring failed, with the reason."""

    candidate: int
    score: float | None
    reason: str = ""
    usage: Usage = UNUSED


@dataclass(frozen=True, slots=True)
class Found:
    """A verdict arrived; if a person gave it, with the reviewer's name and note.

    `conditions` are those under which it was given, if they are known. If it is `shared`, nothing
    was run for it: it was known from another candidate, or from a store of verdicts.
    """

    candidate: int
    verdict: Verdict
    reason: str = ""
    evidence: Data = field(default_factory=dict)
    usage: Usage = UNUSED
    reviewer: str = ""
    note: str = ""
    conditions: Conditions | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """A candidate has passed a stage of its verification that was paid for; the next one begins.

    If the process dies before the verdict, the next process does not pay for this stage again.

    Attributes:
        candidate: its number.
        run: which stage it is, and in which of several verifications of the candidate.
        stage: the stage, as evidence lists it.
        evidence: what the stage found.
        conditions: those under which it ran, if they are known.
    """

    candidate: int
    run: str
    stage: Data = field(default_factory=dict)
    evidence: Data = field(default_factory=dict)
    conditions: Conditions | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """The search was told this result of its last action; `why` is the reason of the action.

    `generator` is the name of the generator that acted; empty if there is only one. Ledgers of an
    older format have it in front of the reason instead; see `with_generator`.
    """

    event: Event
    why: str = ""
    generator: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The search has ended. `why` is an optional explanation.

    `shared` counts the verdicts that cost nothing; they are not in `verified`.
    `wrong_probability` is that of an answer that a check which errs has passed; None for others.
    """

    reason: str
    answer: int | None
    generated: int
    verified: int
    total: float
    why: str = ""
    shared: int = 0
    wrong_probability: float | None = None

    @property
    def outcome(self) -> str:
        """The reason; `judged` instead of solved if the answer is not verified."""
        return JUDGED if self.wrong_probability is not None else self.reason


@dataclass(frozen=True, slots=True)
class Failed:
    """The search could not continue: a backend failed permanently."""

    message: str


Entry = (
    Started
    | Intended
    | Settled
    | Parked
    | Charged
    | Made
    | Scored
    | ScoredAgain
    | Staged
    | Found
    | Told
    | Ended
    | Failed
)

_KINDS: dict[str, type[Any]] = {kind.__name__.lower(): kind for kind in get_args(Entry)}
TOGETHER = (Made, Scored, ScoredAgain)  # several that follow each other may be one row

# Fields that format 1 did not have, or that mostly say nothing, with their defaults.
_ADDED: dict[str, Any] = {
    **dict.fromkeys(("prompt", "check", "account", "prior", "scorer", "shares"), ""),
    **dict.fromkeys(("generator", "broken", "log", "reviewer", "note"), ""),
    **{
        "batch": {},
        "reserved": 0.0,
        "alike": None,
        "judge": 0,
        "conditions": None,
        "wrong_probability": None,
        "shared": False,
        "usage": UNUSED,
    },
}

# Fields that a ledger stores once, by the hash of their text.
TEXTS: Mapping[str, tuple[str, ...]] = {
    "started": ("prompt", "check", "prior", "scorer"),
    "made": ("text",),
}


_ALWAYS = object()  # unequal to every value


def _encoded(value: object) -> object:
    """What JSON has no form for."""
    if isinstance(value, Usage):
        return value.as_data()
    return asdict(value) if isinstance(value, Conditions) else repr(value)


_JSON = json.JSONEncoder(separators=(",", ":"), default=_encoded)


def kind_of(entry: Entry) -> str:
    """The entry's name in the ledger."""
    return type(entry).__name__.lower()


def to_text(*entries: Entry, hashes: Sequence[Mapping[str, str]] = ()) -> str:
    """The entries of one row as one line of JSON.

    `hashes`, one mapping for each entry, stand for the texts of these fields.
    """
    records = [_record(entry) for entry in entries]
    for record, names in zip(records, hashes, strict=False):
        record |= names
    return _JSON.encode(records[0] if len(records) == 1 else records)


def from_text(kind: str, text: str) -> Entry:
    """The entry in a row that has one."""
    entries = row_from_text(kind, text)
    if len(entries) != 1:
        raise LedgerError(f"not an entry of kind {kind!r}: {shown(text)}")
    return entries[0]


def row_from_text(kind: str, text: str) -> list[Entry]:
    """The entries in a row of a ledger."""
    try:
        record = parse_json(text, deepest=2 * DEEPEST + 1)  # what was written can be read
        if isinstance(record, list) and issubclass(_KINDS[kind], TOGETHER):
            return [_entry(kind, each) for each in record]
        return [_entry(kind, record)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LedgerError(f"not an entry of kind {kind!r}: {shown(text)}") from error


def _entry(kind: str, record: Any) -> Entry:
    if kind == "told":
        why = record.get("why", "")
        generator = record.get("generator", "")
        return Told(_event(record["event"]), str(why), str(generator))
    if kind == "started":
        record = _with_wait_price(record)
    if isinstance(usage := record.get("usage"), Mapping):
        record = {**record, "usage": Usage.of(usage)}
    entry: Entry = typed(_KINDS[kind], record)
    _check_amounts(entry)
    return entry


def _with_wait_price(record: dict[str, Any]) -> dict[str, Any]:
    """The record of a start, with the price of waiting under its present name.

    Earlier versions called it `second`. With the present name, a search that is resumed with equal
    settings finds them equal, and does not start again.
    """
    about = record["about"]
    pace = about.get("pace")
    if not isinstance(pace, dict) or "second" not in pace:
        return record
    pace = {("wait_price" if name == "second" else name): value for name, value in pace.items()}
    return {**record, "about": {**about, "pace": pace}}


def _check_amounts(entry: Entry) -> None:
    """Refuse amounts that cannot be: a negative one would give money to others."""
    match entry:
        case Intended(reserved=amount) | Charged(amount=amount):
            possible = 0 <= amount < math.inf
        case Settled(returned=amount):  # negative if a measured cost was higher than expected
            possible = math.isfinite(amount)
        case Ended(generated=generated, verified=verified, total=total):
            amount = min(generated, verified, total)
            possible = amount >= 0 and math.isfinite(total)
        case _:
            return
    if not possible:
        raise ValueError(f"{amount} cannot be paid")


def _record(entry: Entry) -> dict[str, Any]:
    """The fields of an entry by name; later additions only if they say something.

    `asdict` would copy them and take longer than JSON.
    """
    record = {}
    values_of, fields = _fields(type(entry))  # type: ignore[arg-type]  # it is hashable
    for (name, default), value in zip(fields, values_of(entry), strict=True):
        if value is not default and value != default:
            record[name] = value
    if isinstance(entry, Found):
        record["verdict"] = entry.verdict.value
    elif isinstance(entry, Told):
        record["event"] = _event_record(entry.event)
    return record


@functools.cache
def _fields(kind: type[Any]) -> tuple[Callable[[Entry], tuple[Any, ...]], list[tuple[str, Any]]]:
    """What returns the values of a kind's fields; the fields, each with what is left out."""
    names = kind.__slots__
    values_of = attrgetter(*names) if len(names) > 1 else lambda entry: (getattr(entry, *names),)
    return values_of, [(name, _ADDED.get(name, _ALWAYS)) for name in names]


def _event_record(event: Event) -> dict[str, Any]:
    record: dict[str, Any]
    match event:
        case Generated(scores, keys, paid, alike):
            record = {"generated": _numbers(scores), "keys": list(keys)}
            record |= {"alike": _numbers(alike)} if alike else {}
        case Verified(verdicts, paid, meanwhile):
            record = {"verified": {str(id): verdict.value for id, verdict in verdicts.items()}}
            record |= {"shared": sorted(event.shared)} if event.shared else {}
            record |= {"repeated": event.repeated} if event.repeated else {}
            if meanwhile is not None:
                record["meanwhile"] = _event_record(meanwhile)
        case Rescored(scores, paid):
            second = {str(id): None if s == -math.inf else s for id, s in scores.items()}
            record = {"rescored": second}
    if event.seconds is not None:
        record["seconds"] = event.seconds
    return {**record, "paid": paid}


def _event(record: dict[str, Any]) -> Event:
    paid = record["paid"]
    seconds = record.get("seconds")
    if paid is not None and not (is_number(paid) and paid >= 0):
        raise ValueError(f"{shown(paid)} cannot be paid")
    if seconds is not None and not (is_number(seconds) and seconds >= 0):
        raise ValueError(f"{shown(seconds)} is no duration")
    if "generated" in record:
        keys = tuple(record["keys"])
        if not all(key is None or isinstance(key, str) for key in keys):
            raise ValueError("a key is a text")
        alike = tuple(map(_score, record.get("alike", ())))
        return Generated(tuple(map(_score, record["generated"])), keys, paid, alike, seconds)
    if "rescored" in record:
        ranked = {CandidateId(int(id)): _score(s) for id, s in record["rescored"].items()}
        return Rescored(ranked, paid, seconds)
    verdicts = {CandidateId(int(id)): Verdict(told) for id, told in record["verified"].items()}
    ahead = record.get("meanwhile")
    meanwhile = None if ahead is None else _event(ahead)
    if not isinstance(meanwhile, Generated | None):
        raise ValueError("only candidates are generated meanwhile")
    shared = frozenset(CandidateId(int(id)) for id in record.get("shared", ()))
    repeated = record.get("repeated", 0)
    if isinstance(repeated, bool) or not isinstance(repeated, int) or repeated < 0:
        raise ValueError(f"{shown(repeated)} is no number of calls")
    return Verified(verdicts, paid, meanwhile, seconds, shared, repeated)


def _numbers(scores: Iterable[float]) -> list[float | None]:
    return [None if score == -math.inf else score for score in scores]


def _score(value: Any) -> float:
    """A recorded score. None is minus infinity, which ranks last."""
    if value is None:
        return -math.inf
    if not is_number(value):
        raise ValueError(f"{shown(value)} is not a score")
    return float(value)


def generators_of(started: Started) -> tuple[str, ...]:
    """The names of the generators of a search; none if there is only one."""
    generators = started.about.get("generators")
    return tuple(map(str, generators)) if isinstance(generators, Mapping | list) else ()


def with_generator(told: Told, names: Sequence[str]) -> Told:
    """A result of a search with these generators, with the name of the one that acted.

    Entries of an older format have no such field. Their reason begins with the name and a colon.
    """
    if told.generator:
        return told
    acted = [name for name in names if told.why.startswith(f"{name}: ")]
    if not acted:
        return told
    name = max(acted, key=len)
    return Told(told.event, told.why.removeprefix(f"{name}: "), name)


def last_start(entries: Iterable[Entry]) -> Started | None:
    """The settings with which a search was started last."""
    started = None
    for entry in entries:
        if isinstance(entry, Started):
            started = entry
    return started


def recorded_prices(costs: Costs) -> list[float]:
    """A price list in the settings of a search: to generate, to verify, to score.

    The price of a failure is the last, if it differs.
    """
    failure = [costs.failure] if costs.has_failure else []
    return [costs.generate, costs.verify, costs.score, *failure]


def price_list(about: Data) -> Costs | None:
    """The price list in the settings of a search; None if there is none, or none that can be."""
    try:
        generate, verify, score, *failure = (float(each) for each in about["costs"])
        return Costs(generate, verify, failure=next(iter(failure), None), score=score)
    except (KeyError, TypeError, ValueError):
        return None


def wanted_conditions(entries: Sequence[Entry]) -> Conditions | None:
    """The conditions under which the last start wants verdicts."""
    started = last_start(entries)
    return None if started is None else started.conditions


def charge_of(entries: Iterable[Entry]) -> float:
    """What the entries add to what was possibly paid."""
    total = 0.0
    for entry in entries:
        if isinstance(entry, Intended):
            total += entry.reserved
        elif isinstance(entry, Settled):
            total -= entry.returned
        elif isinstance(entry, Charged):
            total += entry.amount
    return total
