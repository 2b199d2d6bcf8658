"""Appends groups of entries to the tables of a ledger, inside one transaction."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..core.errors import LedgerError
from ..files import is_number, shown
from .entries import Ended, Entry, Failed, Started
from .ledger import Append, OverBudget, check_unit, unit_of
from .rows import (
    INDEXED,
    Cursor,
    Database,
    Row,
    SqlDialect,
    Unsealed,
    index,
    sealed,
    unsealed,
)
from .seals import Seals

_ROUNDED = 1e-6
_FIRST = (-1, "")  # what the first entry of a search follows
_MOST_KNOWN = 10_000  # searches that are remembered
_LARGEST = 2**62  # numbers above it leave no room for more
_ENTRY = ("search", "number", "kind", "at", "body", "seal")
_TEXT = ("hash", "text")
_INDEXED = "SELECT id, account, searches.paid FROM searches WHERE "
_LAST = (
    "SELECT search, number, seal FROM entries JOIN (SELECT search AS ended, MAX(number) AS last"
    " FROM entries WHERE {} GROUP BY search) ends ON search = ended AND number = last"
)
_AT_ONCE = 128  # searches that are read with one statement
_ACCOUNT = ("name", "unit", "paid")
_REPLACED = "ON CONFLICT (name) DO UPDATE SET unit = excluded.unit, paid = excluded.paid"


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

    def set_accounts(self, rows: Iterable[Sequence[object]]) -> None:
        """Know all accounts: name, unit and what was possibly paid of each."""
        self.accounts = {str(name): _Account(str(unit), amount(paid)) for name, unit, paid in rows}
        self.is_complete = True


class PreparedGroup:
    """A group with its rows, which are made before the transaction: others wait for its end.

    Args:
        group: the entries, and what may be paid.
        times: those of the entries; by default, what is written together has one time.
    """

    def __init__(self, group: Append, times: Sequence[float] | None = None) -> None:
        self.group = group
        self.texts: dict[str, str] = {}
        self.rows: list[Unsealed] = []
        self.error: LedgerError | None = None
        moments = times or [time.time()] * len(group.entries)
        try:
            self.rows = unsealed(group.entries, moments, self.texts)
        except LedgerError as error:
            self.error = error
        self.indexed = [
            (group.search, moment, entry)
            for moment, entry in zip(moments, group.entries, strict=True)
            if isinstance(entry, INDEXED)
        ]


class Batch:
    """The groups of one transaction. Ends, sums and the head are read and written once.

    `ask` asks for what is there of their searches, `read` reads it, before `add`. `finish` writes
    what was added. If it succeeds, `known` is right after the transaction.
    """

    def __init__(self, db: Database, seals: Seals, dialect: SqlDialect, known: KnownIndex) -> None:
        self.known = known
        self._db = db
        self._seals = seals
        self._dialect = dialect
        self._asked: list[tuple[Cursor, Cursor]] = []  # index and ends of searches
        self._rows: list[Row] = []
        self._indexed: list[tuple[str, float, Entry]] = []  # with search and time
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

    def ask(self, searches: Iterable[str]) -> None:
        """Ask for the ends and sums of these searches, as far as they are not known."""
        unread = [id for id in dict.fromkeys(searches) if id not in self.known.searches]
        for start in range(0, len(unread), _AT_ONCE):
            some = unread[start : start + _AT_ONCE]
            id_is_one, values = self._dialect.among("id", some)
            indexed = self._db.execute(_INDEXED + id_is_one, values)
            search_is_one, values = self._dialect.among("search", some)
            self._asked.append((indexed, self._db.execute(_LAST.format(search_is_one), values)))

    def read(self) -> None:
        """Read what was asked for."""
        for indexed, ends in self._asked:
            for id, account, paid in indexed.fetchall():
                self._indexes[id] = str(account), amount(paid)
            for id, *end in ends.fetchall():
                self._ends[id] = link(end)
        self._asked.clear()

    def add(self, prepared: PreparedGroup) -> Exception | None:
        """Add a group, unless its unit or a cap forbids it.

        Returns:
            None, or why the group was not added.
        """
        group = prepared.group
        id = group.search
        search = self._search(group)
        charge = group.charge
        try:
            account = self._account(search.account)
            unit = _unit(account, group.entries)
            total = self._total(unit) if math.isfinite(group.caps.total) else 0.0
            group.caps.check(charge, account=account.paid, search=search.paid, total=total)
        except (OverBudget, LedgerError) as error:
            return error
        if prepared.error is not None:
            return prepared.error
        rows = sealed(search.end, id, prepared.rows, self._seals)
        self._texts |= prepared.texts
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
        self._indexed += prepared.indexed
        return None

    def finish(self) -> None:
        """Write the entries, their texts, the index and the head."""
        db = self._db
        insert = self._dialect.insert
        texts = [(hash, self._dialect.stored(text)) for hash, text in self._texts.items()]
        insert(db, "texts", _TEXT, texts, "ON CONFLICT DO NOTHING")
        insert(db, "entries", _ENTRY, self._rows)
        index(db, self._indexed, self._dialect)
        self._dialect.pay(db, [(search, each.paid) for search, each in self._paying.items()])
        accounts = [(name, each.unit, each.paid) for name, each in self._charged.items()]
        insert(db, "accounts", _ACCOUNT, accounts, _REPLACED)
        count, head = self.known.head or self._head()
        for row in self._rows:
            head = self._seals.head(head, row[5])
        count += len(self._rows)
        db.execute("UPDATE ledger SET count = ?, head = ?", (count, head))
        self.known.head = count, head
        for search, _, entry in self._indexed:
            if isinstance(entry, Ended | Failed):  # nothing follows, as a rule
                self.known.searches.pop(search, None)
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
