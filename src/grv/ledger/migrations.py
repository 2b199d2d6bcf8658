"""The migrations of a ledger's tables: numbered functions, each run once, in order."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sqlite3
from collections.abc import Callable, Sequence

from ..core.errors import LedgerError, LedgerFormatError
from .entries import (
    Charged,
    Entry,
    Found,
    Made,
    ScoredAgain,
    Started,
    Told,
    from_text,
    to_text,
)
from .ledger import unit_of
from .pending import pending_calls
from .seals import Seals

Migration = Callable[[sqlite3.Connection, Seals], None]
MIGRATIONS: list[Migration] = []
SAME_TABLES = 2  # ledgers from this format on are read as they are


def _migration(function: Migration) -> Migration:
    MIGRATIONS.append(function)
    return function


@_migration
def m001_entries(connection: sqlite3.Connection, seals: Seals) -> None:
    """Entries, their texts by content, an index of searches, and claims on searches."""
    for statement in (
        "CREATE TABLE entries (search TEXT, number INTEGER, kind TEXT, at REAL, body TEXT,"
        " seal TEXT, PRIMARY KEY (search, number)) WITHOUT ROWID",
        "CREATE TABLE texts (hash TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID",
        "CREATE TABLE searches (id TEXT PRIMARY KEY, problem TEXT, started REAL, ended REAL,"
        " outcome TEXT, generated INTEGER, verified INTEGER, total REAL)",
        "CREATE TABLE claims (search TEXT PRIMARY KEY, owner TEXT) WITHOUT ROWID",
    ):
        connection.execute(statement)


@_migration
def m002_accounts(connection: sqlite3.Connection, seals: Seals) -> None:
    """Positions and a head over all entries; accounts, and what was possibly paid."""
    for statement in (
        "ALTER TABLE entries RENAME TO entries_1",
        "CREATE TABLE entries (position INTEGER PRIMARY KEY, search TEXT, number INTEGER,"
        " kind TEXT, at REAL, body TEXT, seal TEXT, UNIQUE (search, number))",
        "ALTER TABLE searches ADD COLUMN account TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE searches ADD COLUMN paid REAL NOT NULL DEFAULT 0",
        "CREATE TABLE accounts (name TEXT PRIMARY KEY, unit TEXT, paid REAL) WITHOUT ROWID",
        "CREATE TABLE ledger (count INTEGER, head TEXT, key TEXT)",
    ):
        connection.execute(statement)
    count = 0
    head = ""
    ids = connection.execute("SELECT DISTINCT search FROM entries_1 ORDER BY search").fetchall()
    for (search,) in ids:
        rows = _sealed_again(connection, search, seals)
        paid = _charge_earlier(connection, search, rows)
        if paid and all(row[5] for row in rows):
            rows.append(_charged(rows[-1], paid, seals))
        connection.executemany(
            "INSERT INTO entries (search, number, kind, at, body, seal) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
        for row in rows:
            count = count + 1
            head = seals.head(head, row[5])
        _index_times(connection, search, rows)
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?)", (count, head, seals.name))
    connection.execute("DROP TABLE entries_1")


@_migration
def m003_rows(connection: sqlite3.Connection, seals: Seals) -> None:
    """A row may have several entries. The tables stay, and so do rows with one entry."""


_Row = tuple[str, int, str, float, str, str]


def _sealed_again(connection: sqlite3.Connection, search: str, seals: Seals) -> list[_Row]:
    """The entries of a search of format 1 with new seals.

    From the first entry on whose old seal does not match, the new seals are empty: such a search
    stays damaged.
    """
    query = "SELECT number, kind, at, body, seal FROM entries_1 WHERE search = ? ORDER BY number"
    old = seal = ""
    intact = True
    rows: list[_Row] = []
    for expected, (number, kind, moment, body, sealed) in enumerate(
        connection.execute(query, (search,))
    ):
        content = f"{old}\n{kind}\n{body}".encode("utf-8", "surrogatepass")
        old = hashlib.blake2b(content, digest_size=12).hexdigest()
        intact = intact and old == sealed and number == expected and isinstance(moment, float)
        seal = seals.entry(seal, search, number, moment, kind, body) if intact else ""
        rows.append((search, number, kind, moment, body, seal))
    return rows


def _index_times(connection: sqlite3.Connection, search: str, rows: Sequence[_Row]) -> None:
    """The times in the index are now those of the entries."""
    begun = [at for _, _, kind, at, *_ in rows if kind == "started"]
    ended = [at for _, _, kind, at, *_ in rows if kind in ("ended", "failed")]
    query = "UPDATE searches SET started = ?, ended = ? WHERE id = ?"
    times = begun[0] if begun else 0.0, ended[-1] if ended else None
    connection.execute(query, (*times, search))


def _charged(last: _Row, paid: float, seals: Seals) -> _Row:
    """One more row after the last of a search: what it has possibly paid in format 1."""
    search, number, _, moment, _, seal = last
    body = to_text(Charged(paid, "by a grv that did not record reservations"))
    return (
        search,
        number + 1,
        "charged",
        moment,
        body,
        seals.entry(seal, search, number + 1, moment, "charged", body),
    )


def _charge_earlier(connection: sqlite3.Connection, search: str, rows: Sequence[_Row]) -> float:
    """Charge what a search of format 1 has possibly paid, and return it."""
    try:
        entries = [from_text(row[2], row[4]) for row in rows if row[5]]
    except LedgerError:
        return 0.0  # damaged; `check` reports it
    started = next((each for each in reversed(entries) if isinstance(each, Started)), None)
    if started is None:
        return 0.0
    paid = _paid_earlier(started, entries)
    unit = unit_of(started)
    connection.execute("UPDATE searches SET paid = ? WHERE id = ?", (paid, search))
    account = connection.execute("SELECT unit FROM accounts").fetchone()
    if account is None:
        connection.execute("INSERT INTO accounts VALUES ('', ?, ?)", (unit, paid))
    elif account[0] == unit:
        connection.execute("UPDATE accounts SET paid = paid + ?", (paid,))
    return paid


def _paid_earlier(started: Started, entries: Sequence[Entry]) -> float:
    """What was possibly paid at the recorded costs; measured costs as the results say."""
    about = started.about
    if about.get("measured"):
        paid = [each.event.paid for each in entries if isinstance(each, Told)]
        return sum(each for each in paid if each is not None)
    try:
        generate, verify, score = (float(each) for each in about["costs"])
        second = float((about.get("cascade") or (0, 0))[1])
    except (KeyError, TypeError, ValueError, IndexError):
        return 0.0
    pending = pending_calls(entries)
    made = sum(isinstance(each, Made) for each in entries) + pending.lost["generate"]
    verified = sum(isinstance(each, Found) for each in entries) + pending.lost["verify"]
    again = sum(isinstance(each, ScoredAgain) for each in entries) + pending.lost["rescore"]
    return made * (generate + score) + (verified + pending.cancelled) * verify + again * second


def check_format(connection: sqlite3.Connection, path: str) -> int:
    """The number of the last migration; an error if the file is not a ledger or is newer."""
    # Keep this order: a process that creates the tables now commits the number with them.
    used = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if not 0 <= version <= len(MIGRATIONS):
        raise LedgerFormatError(
            f"{path}: written by a newer grv (format {version}; this grv reads {len(MIGRATIONS)})",
            path=path,
        )
    if version == 0 and used:
        raise LedgerError(f"{path}: not a ledger but another database", path=path)
    if _schema(connection) != _expected(version):
        raise LedgerError(f"{path}: not a ledger: its tables are not those of one", path=path)
    return int(version)


_Schema = frozenset[tuple[str, str, str | None]]


def _schema(connection: sqlite3.Connection) -> _Schema:
    """All that the database defines. A view or a trigger would run what its author wrote."""
    return frozenset(connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall())


@functools.cache
def _expected(version: int) -> _Schema:
    """What a ledger of that version defines."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for function in MIGRATIONS[:version]:
            function(connection, Seals())
        return _schema(connection)


def migrate(connection: sqlite3.Connection, path: str, seals: Seals) -> None:
    """Run the missing migrations, in one transaction."""
    if check_format(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        version = check_format(connection, path)  # another process may have migrated
        for number, function in enumerate(MIGRATIONS[version:], version + 1):
            function(connection, seals)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
