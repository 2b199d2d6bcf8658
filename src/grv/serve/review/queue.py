"""The candidates that wait for a person, those first whose review saves most money.

The expected saving of a review is

    chance that the candidate passes x cost of finding another answer

A pass ends the search. Without it, the search pays for more candidates and verifications until one
passes: (candidate + verification) / pass rate. The pass rate is that of the verdicts so far of
people on this ledger. The chance of a candidate is the pass rate of those that had a similar score,
drawn towards the common one while there are few.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...backends.verifiers.checks import records_in
from ...backends.verifiers.human import HumanCheck
from ...core.errors import LedgerError, UsageError
from ...core.values import Verdict
from ...files import parse_json, shown
from ...ledger.entries import Found, Scored, Started, from_text, last_start, price_list
from ...ledger.tables import TableLedger
from ...ledger.view import SearchView
from ..pages.store import Store

_ITEM = re.compile(r"([\x21-\x7e]{1,100}):([0-9]{1,9})")
_NEIGHBOURS = 20  # verdicts on candidates with the nearest scores
_WEIGHT = 4.0  # of the common pass rate, in verdicts
_HISTORY = 20_000  # the newest entries whose verdicts of people count
_SEARCHES = 500  # the newest searches with such verdicts whose scores are read


@dataclass(frozen=True, order=True)
class ItemId:
    """A candidate of a search."""

    search: str
    candidate: int

    @property
    def claim(self) -> str:
        """The name under which the ledger knows who reviews it."""
        return f"review {self.search} {self.candidate}"

    @classmethod
    def parse(cls, text: str) -> ItemId:
        """The inverse of `str`."""
        match = _ITEM.fullmatch(text)
        if match is None:
            raise UsageError(f"{shown(text)} is no candidate: expected SEARCH:NUMBER")
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.search}:{self.candidate}"


@dataclass(frozen=True)
class ReviewItem:
    """What a reviewer sees of a candidate: neither its score nor other verdicts."""

    id: ItemId
    problem: str
    prompt: str
    text: str
    check: HumanCheck


@dataclass(frozen=True)
class PassRates:
    """How often people passed candidates, by score."""

    scored: Sequence[tuple[float, bool]] = field(default_factory=tuple)  # sorted
    passed: int = 0
    all: int = 0

    @property
    def common(self) -> float:
        """The pass rate of all; one half counts as two verdicts."""
        return (self.passed + 1) / (self.all + 2)

    def of(self, score: float | None) -> float:
        """The chance that a candidate with this score passes."""
        if score is None:
            return self.common
        at = bisect_left(self.scored, (score, False))
        near = sorted(
            self.scored[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS],
            key=lambda each: abs(each[0] - score),
        )[:_NEIGHBOURS]
        passed = sum(verdict for _, verdict in near)
        return (passed + _WEIGHT * self.common) / (len(near) + _WEIGHT)


class Queue:
    """The candidates of unfinished searches that wait for a person."""

    def __init__(self, ledger: TableLedger) -> None:
        self.ledger = ledger
        self._store = Store(ledger)

    def waiting(self) -> list[ItemId]:
        """All that wait, in the order of their expected savings."""
        waiting = self._waiting()
        entries = self._store.entries_of([*waiting], "started", "scored")
        checks = self._store.texts(
            started.check for some in entries.values() if (started := last_start(some))
        )
        rates = self._rates() if waiting else PassRates()
        found: list[tuple[float, ItemId]] = []
        for search, some in entries.items():
            started = last_start(some)
            if started is None or not for_people(checks.get(started.check, "")):
                continue
            scores = {each.candidate: each.score for each in some if isinstance(each, Scored)}
            another = _price(started) / rates.common
            found += [
                (-rates.of(scores.get(id)) * another, ItemId(search, id)) for id in waiting[search]
            ]
        return [item for _, item in sorted(found)]

    def _waiting(self) -> dict[str, set[int]]:
        """The open candidates, by search."""
        searches = dict.fromkeys([*self._store.unfinished(), *self._continued()])
        kinds = ("started", "parked", "found", "ended", "failed")
        entries = self._store.entries_of([*searches], *kinds)
        found = {search: SearchView(some).open_to_review for search, some in entries.items()}
        return {search: some for search, some in found.items() if some}

    def _continued(self) -> list[str]:
        """Searches that had ended, and have new candidates that wait."""
        rows = self.ledger.select(
            "SELECT DISTINCT entries.search FROM entries JOIN searches ON searches.id = search"
            " WHERE position > ? AND kind = 'parked' AND outcome IS NOT NULL",
            (self.ledger.position() - _HISTORY,),
        )
        return [str(search) for (search,) in rows]

    def item(self, id: ItemId) -> ReviewItem | None:
        """What a reviewer sees; None if there is no such candidate."""
        view = SearchView(self.ledger.read(id.search))
        if view.started is None or not is_reviewed(view, id.candidate):
            return None
        text = view.made[id.candidate].text
        return ReviewItem(id, view.started.problem, view.prompt, text, check_of(view))

    def problems(self, searches: Iterable[str]) -> dict[str, str]:
        """The name of the problem of each search."""
        entries = self._store.entries_of([*dict.fromkeys(searches)], "started")
        found = {search: last_start(some) for search, some in entries.items()}
        return {search: each.problem for search, each in found.items() if each is not None}

    def _rates(self) -> PassRates:
        """The newest verdicts of people, with the scores of their candidates."""
        given = {
            id: found.verdict is Verdict.PASSED
            for id, found in reviews(self.ledger)
            if found.verdict is not Verdict.BROKEN
        }
        searches = list(dict.fromkeys(id.search for id in given))[-_SEARCHES:]
        pairs = [
            (each.score, given[id])
            for search, some in self._store.entries_of(searches, "scored").items()
            for each in some
            if isinstance(each, Scored) and each.score is not None
            if (id := ItemId(search, each.candidate)) in given
        ]
        return PassRates(tuple(sorted(pairs)), sum(given.values()), len(given))


def reviews(ledger: TableLedger) -> list[tuple[ItemId, Found]]:
    """The newest verdicts of people, oldest first."""
    rows = ledger.select(
        "SELECT search, body FROM entries WHERE position > ? AND kind = 'found' ORDER BY position",
        (ledger.position() - _HISTORY,),
    )
    found = []
    for search, body in rows:
        try:
            entry = from_text("found", body)
        except LedgerError:
            continue  # damaged: grv runs check reports it
        if isinstance(entry, Found) and entry.reviewer:
            found.append((ItemId(str(search), entry.candidate), entry))
    return found


def for_people(check: str) -> bool:
    """Whether people verify by this check; without one, the user's own verifier parks calls."""
    return bool(_of_person(_record(check)).get("kind", "human") == "human")


def check_of(view: SearchView) -> HumanCheck:
    """The check of a search; without one, the note of the call that was parked."""
    try:
        record = _record("" if view.started is None else view.started.check)
        return HumanCheck.parse(_of_person(record))
    except UsageError:
        notes = [step.why for step in view.steps if step.kind == "parked" and step.why]
        return HumanCheck(notes[-1] if notes else "Is this answer right?")


def _of_person(check: Mapping[str, Any]) -> Mapping[str, Any]:
    """The check that a person decides: the last one, if there are several."""
    return [*records_in(check)][-1]


def _record(check: str) -> Mapping[str, Any]:
    try:
        record = parse_json(check) if check else {}
    except ValueError:
        return {"kind": "unknown"}
    return record if isinstance(record, dict) else {"kind": "unknown"}


def _price(started: Started) -> float:
    """What a candidate and its verification cost, by the price list of the search."""
    costs = price_list(started.about)
    return 1.0 if costs is None else costs.of(1, 1)


def is_reviewed(view: SearchView, candidate: int) -> bool:
    """Whether a search has this candidate and parked it, and people verify by its check."""
    known = candidate in view.made and candidate in view.asked
    return view.started is not None and known and for_people(view.started.check)
