"""Appends groups of entries to the tables of a ledger, inside one transaction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.errors import LedgerError
from ..files import is_number, shown
from .entries import Entry, Started, charge_of
from .ledger import Append, OverBudget, check_unit, unit_of
from .rows import Database, Row, Stored, index, insert, rows_of
from .seals import Seals

_ROUNDED = 1e-6
_FIRST = (-1, "")  # what the first entry of a search follows
_LARGEST = 2**62  # numbers above it leave no room for more
_COLUMNS = "(search, number, kind, at, body, seal)"
_LAST = "SELECT number, seal FROM entries WHERE search = ? ORDER BY number DESC LIMIT 1"
_INDEXED = (
    "SELECT account, searches.paid, number, seal FROM searches LEFT JOIN entries ON search = id"
    " WHERE id = ? ORDER BY number DESC LIMIT 1"
)
_ACCOUNT = (
    "INSERT INTO accounts VALUES (?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET unit = excluded.unit, paid = excluded.paid"
)


@dataclass
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


class Batch:
    """The groups of one transaction. Ends, sums and the head are read and written once.

    `finish` writes what was added.
    """

    def __init__(self, db: Database, seals: Seals, stored: Stored) -> None:
        self._db = db
        self._seals = seals
        self._stored = stored
        self._searches: dict[str, _Search] = {}
        self._accounts: dict[str, _Account] = {}
        self._all_accounts = False  # whether all of them were read
        self._rows: list[Row] = []
        self._entries: list[Entry] = []
        self._texts: dict[str, str] = {}

    @property
    def last(self) -> tuple[str, int, str] | None:
        """Search, number and seal of the last entry that was added; None if there is none."""
        if not self._rows:
            return None
        search, number, *_, seal = self._rows[-1]
        return search, number, seal

    def add(self, group: Append, times: Sequence[float] | None = None) -> Exception | None:
        """Add a group, unless its unit or a cap forbids it; `times` are those of its entries.

        Returns:
            None, or why the group was not added.
        """
        search = self._search(group)
        charge = charge_of(group.entries)
        try:
            account = self._account(search.account, group.entries)
            total = self._total(account) if math.isfinite(group.caps.total) else 0.0
            group.caps.check(charge, account=account.paid, search=search.paid, total=total)
            texts: dict[str, str] = {}
            rows = rows_of(search.end, group.search, group.entries, texts, self._seals, times)
        except (OverBudget, LedgerError) as error:
            return error
        self._texts |= texts
        if rows:
            search.end = rows[-1][1], rows[-1][5]
        search.paid += charge
        account.paid += charge
        self._searches[group.search] = search
        self._accounts[search.account] = account
        self._rows += rows
        self._entries += group.entries
        return None

    def finish(self) -> None:
        """Write the entries, their texts, the index and the head."""
        texts = [(hash, self._stored(text)) for hash, text in self._texts.items()]
        insert(self._db, "INSERT INTO texts VALUES {} ON CONFLICT DO NOTHING", texts)
        insert(self._db, f"INSERT INTO entries {_COLUMNS} VALUES {{}}", self._rows)
        index(self._db, self._rows, self._entries, self._stored)
        paid = [(each.paid, search) for search, each in self._searches.items()]
        self._db.executemany("UPDATE searches SET paid = ? WHERE id = ?", paid)
        accounts = [(name, each.unit, each.paid) for name, each in self._accounts.items()]
        self._db.executemany(_ACCOUNT, accounts)
        heads = self._db.execute("SELECT count, head FROM ledger").fetchall()
        if len(heads) != 1:
            raise LedgerError(f"the ledger is broken: it has {len(heads)} heads instead of one")
        count, head = _link(heads[0])
        for row in self._rows:
            count = count + 1
            head = self._seals.head(head, row[5])
        self._db.execute("UPDATE ledger SET count = ?, head = ?", (count, head))

    def _search(self, group: Append) -> _Search:
        if group.search in self._searches:
            return self._searches[group.search]
        row = self._db.execute(_INDEXED, (group.search,)).fetchone()
        if row is not None:
            end = _FIRST if row[2] is None else _link(row[2:])
            return _Search(end, str(row[0]), amount(row[1]))
        end = _link(self._db.execute(_LAST, (group.search,)).fetchone() or _FIRST)
        started = (each for each in group.entries if isinstance(each, Started))
        account = next((each.account for each in started), "")
        return _Search(end, account, 0.0)

    def _account(self, name: str, entries: Sequence[Entry]) -> _Account:
        """The account, if its unit is that of the entries."""
        account = self._accounts.get(name)
        if account is None:
            query = "SELECT unit, paid FROM accounts WHERE name = ?"
            unit, paid = self._db.execute(query, (name,)).fetchone() or ("", 0.0)
            account = _Account(str(unit), amount(paid))
        for entry in entries:
            if isinstance(entry, Started):
                check_unit(account.unit, unit := unit_of(entry))
                account.unit = unit
        return account

    def _total(self, account: _Account) -> float:
        """What all accounts have possibly paid, if they have the unit of this one."""
        if not self._all_accounts:
            rows = self._db.execute("SELECT name, unit, paid FROM accounts").fetchall()
            for name, unit, paid in rows:
                self._accounts.setdefault(str(name), _Account(str(unit), amount(paid)))
            self._all_accounts = True
        for other in self._accounts.values():
            check_unit(other.unit, account.unit or other.unit)
        return sum(other.paid for other in self._accounts.values())


def _link(row: Sequence[object]) -> tuple[int, str]:
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
