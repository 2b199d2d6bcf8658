"""The migrations of a ledger's tables: numbered functions, each run once, in order."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Callable

from ..core.errors import LedgerError, LedgerFormatError

Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []


def _migration(function: Migration) -> Migration:
    MIGRATIONS.append(function)
    return function


@_migration
def m001_entries(connection: sqlite3.Connection) -> None:
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
            function(connection)
        return _schema(connection)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Run the missing migrations."""
    if check_format(connection, path) == len(MIGRATIONS):
        return
    connection.execute("PRAGMA journal_mode = WAL")  # stored in the file; outside transactions only
    connection.execute("BEGIN EXCLUSIVE")
    try:
        version = check_format(connection, path)  # another process may have migrated
        for number, function in enumerate(MIGRATIONS[version:], version + 1):
            function(connection)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
