"""The attempts of a search whose candidates are runs of agents: what each did, cost and came to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..backends.protocols import Draft, Generator, Problem
from ..core.values import Verdict
from ..ledger.entries import Entry, Found, Intended, last_start
from ..ledger.tables import TableLedger
from ..ledger.view import RecordedCandidate, SearchView
from .prices import Meter, meters_of

ACCEPTED = "accepted"
REFUTED = "refuted"
_NEWEST = 100  # searches of a ledger that say what agents cost
_VERDICTS = {Verdict.PASSED: ACCEPTED, Verdict.FAILED: "failed", Verdict.BROKEN: "not decided"}


@dataclass(frozen=True)
class AttemptRow:
    """One attempt.

    Attributes:
        number: from 1, in the order in which attempts began.
        agent: its name.
        verdict: accepted, failed, refuted (nothing was run), no candidate, not decided, waiting for
            a person, or not verified.
        reason: why.
        seconds: how long the agent ran.
        verify_seconds: how long its verification ran.
        dollars: what the agent cost; None if nobody says.
        score: its score; None if it has none.
        diff: what it changed; empty if nothing.
        branch: the branch that has it; empty if there is none.
    """

    number: int
    agent: str
    verdict: str
    reason: str
    seconds: float
    verify_seconds: float
    dollars: float | None
    score: float | None
    diff: str
    branch: str = ""

    def as_data(self) -> dict[str, Any]:
        """The row as JSON data, without its diff: the branch has that."""
        data = asdict(self)
        del data["diff"]
        return data


def spoken(verdict: Verdict) -> str:
    """A verdict on an attempt, for people."""
    return _VERDICTS[verdict]


def reason_of(found: Found) -> str:
    """Why a verdict was given, with the test that decided it, if there is one."""
    test = found.evidence.get("test")
    return f"{found.reason}: {test}" if isinstance(test, str) and test else found.reason


def attempt_numbers(entries: Iterable[Entry]) -> dict[int, int]:
    """The numbers of attempts by candidate, in the order in which they began."""
    numbers: dict[int, int] = {}
    for entry in entries:
        if isinstance(entry, Intended) and entry.call == "generate":
            for candidate in entry.candidates:
                numbers.setdefault(candidate, len(numbers) + 1)
    return numbers


def attempt_rows(
    entries: Sequence[Entry], meters: Mapping[str, Meter], names: Mapping[str, str]
) -> list[AttemptRow]:
    """The finished attempts of a search.

    Args:
        entries: what the ledger has of the search.
        meters: what computes the dollars, by the name of the generator.
        names: the names of agents by those of generators.
    """
    numbers = attempt_numbers(entries)
    view = SearchView(entries)
    rows = []
    for candidate in view.candidates:
        verdict, reason = _outcome(candidate, numbers)
        usage = candidate.made.usage
        meter = meters.get(candidate.generator, Meter())
        found = candidate.verdict
        agent = names.get(candidate.generator, candidate.generator)
        row = AttemptRow(
            numbers.get(candidate.id, candidate.id + 1),
            agent,
            verdict,
            reason.removeprefix(f"{agent}: "),
            usage.seconds,
            0.0 if found is None or found.shared else found.usage.seconds,
            meter.price("generate", usage),
            candidate.score,
            candidate.text,
        )
        rows.append(row)
    return sorted(rows, key=lambda row: row.number)


def _outcome(candidate: RecordedCandidate, numbers: Mapping[int, int]) -> tuple[str, str]:
    """What became of an attempt, and why."""
    if candidate.dropped:
        return "no candidate", candidate.made.broken
    if candidate.refuted:
        return REFUTED, candidate.score_reason
    if candidate.verdict is not None:
        return _VERDICTS[candidate.verdict.verdict], reason_of(candidate.verdict)
    if candidate.waiting:
        return "waiting for a person", ""
    if candidate.passed is False and candidate.label_from is not None:
        return "failed", f"equal to attempt {numbers[candidate.label_from]}"
    return "not verified", ""


def mean_dollars(ledger: TableLedger) -> dict[str, float]:
    """What an attempt has cost on average, by the `generator` in the settings of its agent.

    Only the newest searches of the ledger count.
    """
    amounts: defaultdict[str, list[float]] = defaultdict(list)
    for summary in list(ledger.searches())[-_NEWEST:]:
        entries = ledger.read(summary.id)
        started = last_start(entries)
        if started is None:
            continue
        named = started.about.get("generators")
        agents = {name: str(about.get("generator")) for name, about in (named or {}).items()}
        agents.setdefault("", str(started.about.get("generator")))
        for row in attempt_rows(entries, meters_of(started.about), agents):
            if row.dollars:
                amounts[row.agent].append(row.dollars)
    return {agent: sum(paid) / len(paid) for agent, paid in amounts.items()}


class AttemptLimit:
    """How many attempts a search may begin, with all its agents together; None is any number."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._begun = 0

    def count(self, begun: int) -> None:
        """Count attempts that began before."""
        self._begun += begun

    def take(self) -> bool:
        """Count one more attempt; False if there are no more."""
        if self._most is not None and self._begun >= self._most:
            return False
        self._begun += 1
        return True


class LimitedGenerator:
    """A generator that ends when all attempts of its search are used up."""

    batch: int | None = 1

    def __init__(self, generator: Generator, limit: AttemptLimit) -> None:
        self.generator = generator
        self._limit = limit

    def __repr__(self) -> str:
        return repr(self.generator)

    @property
    def notices(self) -> Sequence[str]:
        """What the user should hear once."""
        lines: Sequence[str] = getattr(self.generator, "notices", ())
        return lines

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """A draft; none if all attempts are used up."""
        if not self._limit.take():
            return []
        return await self.generator.generate(problem, 1, first=first)
