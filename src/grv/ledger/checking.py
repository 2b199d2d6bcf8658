"""Checks a whole ledger, and saves what is intact in a damaged one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.errors import LedgerError
from ..core.values import Verdict
from ..files import is_number
from .entries import Ended, Entry, Found, Intended, Made, Started, charge_of
from .ledger import unit_of
from .rows import (
    BROKEN,
    Database,
    SearchSummary,
    hash_of,
    read_search,
    restored,
    summarized,
)
from .seals import Seals

if TYPE_CHECKING:
    from .tables import TableLedger

_CLOSE = 1e-6  # relative: sums of floats in another order


def faults(db: Database, seals: Seals) -> list[str]:
    """All faults of a ledger, one line each. Call it inside a transaction, to see one moment."""
    from .tables import first_line

    messages: list[str] = []
    try:
        messages += _faulty_texts(db)
        messages += _faulty_head(db, seals)
        messages += _faulty_searches(db, seals)
    except BROKEN as error:
        messages.append(f"the file cannot be read: {first_line(error)}")
    return messages


def _faulty_texts(db: Database) -> Iterator[str]:
    for hash, text in db.execute("SELECT hash, text FROM texts"):
        try:
            right = hash == hash_of(restored(text))
        except LedgerError:
            right = False
        if not right:
            yield f"a text does not match its hash {hash}"


def _faulty_head(db: Database, seals: Seals) -> list[str]:
    """Whether entries are missing, or were moved between searches."""
    count = 0
    head = ""
    for (seal,) in db.execute("SELECT seal FROM entries ORDER BY position"):
        count = count + 1
        head = seals.head(head, str(seal))
    recorded = db.execute("SELECT count, head FROM ledger").fetchall()
    if recorded == [(count, head)]:
        return []
    expected = recorded[0][0] if len(recorded) == 1 else "an unknown number of"
    return [f"{count} rows of entries, but {expected} were written, or in another order"]


def _faulty_searches(db: Database, seals: Seals) -> list[str]:
    messages: list[str] = []
    index = {str(row[0]): row for row in db.execute("SELECT * FROM searches")}
    ids = {str(id) for (id,) in db.execute("SELECT DISTINCT search FROM entries")}
    paid: dict[tuple[str, str], float] = {}  # by account and unit
    for id in sorted(ids | index.keys()):
        try:
            entries = list(read_search(db, id, seals))
        except LedgerError as error:
            messages.append(str(error))
            continue
        messages += [f"search {id}: {fault}" for fault in _contradictions([e for e, _ in entries])]
        messages += _faulty_index(id, entries, index.get(id))
        started = [entry for entry, _ in entries if isinstance(entry, Started)]
        if started:
            payer = started[0].account, unit_of(started[-1])
            paid[payer] = paid.get(payer, 0.0) + charge_of(entry for entry, _ in entries)
    if not messages:
        messages += _faulty_accounts(db, paid)
    return messages


def _faulty_accounts(db: Database, paid: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Whether the accounts have what follows from their searches, by account and unit.

    A ledger of format 1 may have searches of two units. Its account counts one of them.
    """
    rows = db.execute("SELECT name, unit, paid FROM accounts").fetchall()
    for name in sorted({name for name, _ in paid} - {row[0] for row in rows}):
        yield f"account {name!r} is missing"
    for name, unit, listed in rows:
        expected = paid.get((name, unit))
        if expected is None:
            yield f"account {name!r}: no search counts in {unit}"
        elif not (is_number(listed) and _close(listed, expected)):
            yield f"account {name!r}: {listed} possibly paid, but {expected} by its searches"


def _faulty_index(
    id: str,
    entries: Sequence[tuple[Entry, float]],
    row: Sequence[object] | None,
) -> list[str]:
    """Whether the index has what follows from the entries."""
    expected = summarized(id, entries)
    if row is None:
        return [f"search {id} is not in the index"]
    try:
        listed = SearchSummary(*row)  # type: ignore[arg-type]  # compared field by field below
        listed = replace(listed, problem=restored(listed.problem))
        paid = float(listed.paid)
    except (LedgerError, TypeError, ValueError):
        return [f"search {id}: its row of the index is broken"]
    charged = charge_of(entry for entry, _ in entries)
    if replace(listed, paid=0.0) != expected or not _close(paid, charged):
        return [f"search {id} does not match the index"]
    return []


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)


def _contradictions(entries: Sequence[Entry]) -> list[str]:
    """What cannot be: an answer without a pass, a bill without its calls."""
    made = {entry.candidate for entry in entries if isinstance(entry, Made)}
    passed = {
        entry.candidate
        for entry in entries
        if isinstance(entry, Found) and entry.verdict is Verdict.PASSED
    }
    asked = sum(
        len(entry.candidates)
        for entry in entries
        if isinstance(entry, Intended) and entry.call == "verify"
    )
    messages = []
    for entry in entries:
        if not isinstance(entry, Ended):
            continue
        if entry.reason == "solved" and entry.answer not in passed:
            messages.append("solved, but its answer has no pass")
        if entry.generated > len(made):
            messages.append(f"a bill of {entry.generated} candidates, of which {len(made)} exist")
        if entry.verified > asked + _never_started(entry, entries):
            messages.append(f"a bill of {entry.verified} verifications, of which {asked} were made")
    return messages


def _never_started(ended: Ended, entries: Sequence[Entry]) -> float:
    """How many billed verifications may have no call: a pass cancels the others of its step."""
    if ended.reason != "solved":
        return 0
    started = [entry for entry in entries if isinstance(entry, Started)]
    width = started[-1].about.get("width") if started else None
    return width - 1 if isinstance(width, int) else math.inf


@dataclass(frozen=True)
class Repaired:
    """What was copied: searches and entries; searches that were known; what is damaged."""

    searches: int
    entries: int
    damaged: tuple[str, ...]
    known: int = 0


def repair(old: TableLedger, new: TableLedger) -> Repaired:
    """Copy everything intact into a new ledger: of a damaged search, the entries before the damage.

    Each search keeps its times. What it has possibly paid counts in the new ledger too. A search
    that the new ledger has already must be the same there.
    """
    searches = entries = known = 0
    there = set(new.search_ids())
    damaged: list[str] = []
    for search in old.search_ids():
        intact: list[tuple[Entry, float]] = []
        paid = 0.0
        try:
            for entry in old.intact(search):
                intact.append(entry)  # noqa: PERF402 - keeps those before the damage
        except LedgerError as error:
            damaged.append(str(error))
            paid = old.paid_by(search)  # also for the entries that are lost
        if search in there:
            if [*new.intact(search)][: len(intact)] != intact:
                raise LedgerError(f"{new.path}: search {search} is another one there")
            known += 1
        elif intact:
            new.restore(search, intact, paid)
            searches = searches + 1
            entries = entries + len(intact)
    return Repaired(searches, entries, tuple(damaged), known)
