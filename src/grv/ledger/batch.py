"""Appends groups of entries to the tables of a ledger, inside one transaction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..core.errors import LedgerError
from ..files import is_number, shown
from .entries import Ended, Entry, Failed, Started
from .ledger import Append, OverBudget, check_unit, unit_of
from .rows import INDEXED, Database, Row, Stored, index, insert, rows_of
from .seals import Seals

_ROUNDED = 1e-6
_FIRST = (-1, "")  # what the first entry of a search follows
_MOST_KNOWN = 10_000  # searches that are remembered
_LARGEST = 2**62  # numbers above it leave no room for more
_COLUMNS = "(search, number, kind, at, body, seal)"
_INDEXED = "SELECT id, account, searches.paid FROM searches WHERE id IN ({})"
_LAST = (
    "SELECT search, number, seal FROM entries JOIN (SELECT search AS ended, MAX(number) AS last"
    " FROM entries WHERE search IN ({}) GROUP BY search) ends ON search = ended AND number = last"
)
_AT_ONCE = 128  # searches that are read with one statement
_ACCOUNT = (
    "INSERT INTO accounts VALUES (?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET unit = excluded.unit, paid = excluded.paid"
)


@dataclass(slots=True)
class _Search:
    """The end of a search: number and seal of its last entry; its account, and what it has paid."""

    end: tuple[int, str]
    account: str
    paid: float


@dataclass
class _Account:
    """The unit of an account, and what was possibly paid."""

    unit: str
    paid: float


@dataclass
class KnownIndex:
    """What a ledger has read of its index, or written to it. Searches that have ended are left out.

    It is right until somebody else writes.

    Attributes:
        searches: by id.
        accounts: by name.
        is_complete: whether all accounts are among them.
        head: the number of entries, and the head over them; None if it was not read.
    """

    searches: dict[str, _Search] = field(default_factory=dict)
    accounts: dict[str, _Account] = field(default_factory=dict)
    is_complete: bool = False
    head: tuple[int, str] | None = None


class Batch:
    """The groups of one transaction. Ends, sums and the head are read and written once.

    `read` reads what is there of their searches, before `add`. `finish` writes what was added. If
    it succeeds, `known` is right after the transaction.
    """

    def __init__(self, db: Database, seals: Seals, stored: Stored, known: KnownIndex) -> None:
        self.known = known
        self._db = db
        self._seals = seals
        self._stored = stored
        self._rows: list[Row] = []
        self._indexed: list[tuple[Row, Entry]] = []  # the rows that the index has
        self._texts: dict[str, str] = {}
        self._indexes: dict[str, tuple[str, float]] = {}  # account and amount, as read
        self._ends: dict[str, tuple[int, str]] = {}  # number and seal of the last entry, as read
        # those whose sums have changed
        self._paying: dict[str, _Search] = {}
        self._charged: dict[str, _Account] = {}

    @property
    def last(self) -> tuple[str, int, str] | None:
        """Search, number and seal of the last entry that was added; None if there is none."""
        if not self._rows:
            return None
        search, number, *_, seal = self._rows[-1]
        return search, number, seal

    def read(self, searches: Iterable[str]) -> None:
        """Read the ends and sums of these searches, as far as they are not known."""
        unread = [id for id in dict.fromkeys(searches) if id not in self.known.searches]
        for start in range(0, len(unread), _AT_ONCE):
            some = unread[start : start + _AT_ONCE]
            places = ", ".join("?" * len(some))
            for id, account, paid in self._db.execute(_INDEXED.format(places), some).fetchall():
                self._indexes[id] = str(account), amount(paid)
            for id, *end in self._db.execute(_LAST.format(places), some).fetchall():
                self._ends[id] = link(end)

    def add(self, group: Append, times: Sequence[float] | None = None) -> Exception | None:
        """Add a group, unless its unit or a cap forbids it; `times` are those of its entries.

        Returns:
            None, or why the group was not added.
        """
        id = group.search
        search = self._search(group)
        charge = group.charge
        try:
            account = self._account(search.account)
            unit = _unit(account, group.entries)
            total = self._total(unit) if math.isfinite(group.caps.total) else 0.0
            group.caps.check(charge, account=account.paid, search=search.paid, total=total)
            texts: dict[str, str] = {}
            rows = rows_of(search.end, id, group.entries, texts, self._seals, times)
        except (OverBudget, LedgerError) as error:
            return error
        self._texts |= texts
        if rows:
            search.end = rows[-1][1], rows[-1][5]
        if charge:
            search.paid += charge
            self._paying[id] = search
        if charge or unit != account.unit or search.account not in self.known.accounts:
            account.paid += charge
            account.unit = unit
            self._charged[search.account] = account
        self.known.searches[id] = search
        self.known.accounts[search.account] = account
        self._rows += rows
        self._indexed += [
            (row, entry)
            for row, entry in zip(rows, group.entries, strict=True)
            if isinstance(entry, INDEXED)
        ]
        return None

    def finish(self) -> None:
        """Write the entries, their texts, the index and the head."""
        texts = [(hash, self._stored(text)) for hash, text in self._texts.items()]
        insert(self._db, "INSERT INTO texts VALUES {} ON CONFLICT DO NOTHING", texts)
        insert(self._db, f"INSERT INTO entries {_COLUMNS} VALUES {{}}", self._rows)
        index(self._db, self._indexed, self._stored)
        paid = [(each.paid, search) for search, each in self._paying.items()]
        self._db.executemany("UPDATE searches SET paid = ? WHERE id = ?", paid)
        accounts = [(name, each.unit, each.paid) for name, each in self._charged.items()]
        self._db.executemany(_ACCOUNT, accounts)
        count, head = self.known.head or self._head()
        for row in self._rows:
            head = self._seals.head(head, row[5])
        count += len(self._rows)
        self._db.execute("UPDATE ledger SET count = ?, head = ?", (count, head))
        self.known.head = count, head
        for row, entry in self._indexed:
            if isinstance(entry, Ended | Failed):  # nothing follows, as a rule
                self.known.searches.pop(row[0], None)
        if len(self.known.searches) > _MOST_KNOWN:
            self.known.searches.clear()

    def _head(self) -> tuple[int, str]:
        heads = self._db.execute("SELECT count, head FROM ledger").fetchall()
        if len(heads) != 1:
            raise LedgerError(f"the ledger is broken: it has {len(heads)} heads instead of one")
        return link(heads[0])

    def _search(self, group: Append) -> _Search:
        if group.search in self.known.searches:
            return self.known.searches[group.search]
        end = self._ends.get(group.search, _FIRST)
        if group.search in self._indexes:
            return _Search(end, *self._indexes[group.search])
        started = (each for each in group.entries if isinstance(each, Started))
        account = next((each.account for each in started), "")
        return _Search(end, account, 0.0)

    def _account(self, name: str) -> _Account:
        account = self.known.accounts.get(name)
        if account is None:
            query = "SELECT unit, paid FROM accounts WHERE name = ?"
            unit, paid = self._db.execute(query, (name,)).fetchone() or ("", 0.0)
            account = _Account(str(unit), amount(paid))
        return account

    def _total(self, unit: str) -> float:
        """What all accounts have possibly paid, if they have this unit."""
        accounts = self.known.accounts
        if not self.known.is_complete:
            rows = self._db.execute("SELECT name, unit, paid FROM accounts").fetchall()
            for name, other, paid in rows:
                accounts.setdefault(str(name), _Account(str(other), amount(paid)))
            self.known.is_complete = True
        for each in accounts.values():
            check_unit(each.unit, unit or each.unit)
        return sum([each.paid for each in accounts.values()])


def _unit(account: _Account, entries: Sequence[Entry]) -> str:
    """The unit of the account after these entries, which must have the same one."""
    unit = account.unit
    for entry in entries:
        if isinstance(entry, Started):
            check_unit(unit, unit_of(entry))
            unit = unit_of(entry)
    return unit


def link(row: Sequence[object]) -> tuple[int, str]:
    """A number and a seal to continue from; SQLite lets a column hold values of any type."""
    number, seal = row
    if not (isinstance(number, int) and number < _LARGEST and isinstance(seal, str)):
        raise LedgerError(f"the ledger is broken: nothing can follow {shown((number, seal))}")
    return number, seal


def amount(value: object) -> float:
    """An amount of the index; SQLite lets a column hold values of any type.

    A sum of floats may be a little below zero. A negative amount would give its budget to others.
    """
    if not is_number(value) or value < -_ROUNDED:
        raise LedgerError(f"the index is broken: {shown(value)} is not an amount")
    return float(value)
