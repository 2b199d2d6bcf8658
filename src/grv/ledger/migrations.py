"""How a ledger's tables came to be: numbered functions, each run once, in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from ..core.errors import LedgerFormatError

Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []


def _migration(function: Migration) -> Migration:
    MIGRATIONS.append(function)
    return function


@_migration
def m001_entries(connection: sqlite3.Connection) -> None:
    """Entries, their texts by content, an index of searches, and who works on which."""
    for statement in (
        "CREATE TABLE entries (search TEXT, number INTEGER, kind TEXT, at REAL, body TEXT,"
        " PRIMARY KEY (search, number)) WITHOUT ROWID",
        "CREATE TABLE texts (hash TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID",
        "CREATE TABLE searches (id TEXT PRIMARY KEY, problem TEXT, started REAL, ended REAL,"
        " outcome TEXT, generated INTEGER, verified INTEGER, total REAL)",
        "CREATE TABLE claims (search TEXT PRIMARY KEY, owner TEXT) WITHOUT ROWID",
    ):
        connection.execute(statement)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the tables up to date; refuse a ledger of a newer version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise LedgerFormatError(
            f"{path}: written by a newer grv (format {version}; this one knows {len(MIGRATIONS)})",
            path=path,
        )
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for number, function in enumerate(MIGRATIONS[version:], version + 1):
            function(connection)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
