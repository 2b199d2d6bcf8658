"""A ledger in a PostgreSQL database, shared by any number of machines. Needs the extra `postgres`.

It has a schema of its own, `grv`, so a database holds one ledger beside anything else. Writers take
turns: each locks the row with the head of the ledger. A claim is an advisory lock of the session,
so it ends with the connection, however that ends. A lost connection is not opened again, because
its claims are lost too: the run stops, and the same command continues it.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..core.errors import LedgerError, LedgerFormatError, UsageError
from .rows import Cursor, Database
from .seals import Seals, key_from_environment
from .tables import TableLedger, first_line

if TYPE_CHECKING:
    import psycopg

FORMAT = 2  # that of SQLite ledgers, see migrations.py
# Not `to_regclass`: a session may remember for a while that there was no schema.
_THERE = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'grv' AND tablename = 'ledger'"
_SETUP = 0x677276  # the advisory lock of processes that create the tables
# libpq: give up a server that does not answer; notice a connection that is dead.
_CONNECT: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "tcp_user_timeout": 60_000,
}
_TABLES = (
    "CREATE SCHEMA IF NOT EXISTS grv",
    "CREATE TABLE grv.entries (position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " search text NOT NULL, number bigint NOT NULL, kind text NOT NULL, at double precision"
    " NOT NULL, body text NOT NULL, seal text NOT NULL, UNIQUE (search, number))",
    "CREATE TABLE grv.texts (hash text PRIMARY KEY, text bytea NOT NULL)",
    "CREATE TABLE grv.searches (id text PRIMARY KEY, problem bytea, started double precision,"
    " ended double precision, outcome text, generated bigint, verified bigint,"
    " total double precision, account text NOT NULL DEFAULT '',"
    " paid double precision NOT NULL DEFAULT 0)",
    "CREATE TABLE grv.accounts (name text PRIMARY KEY, unit text, paid double precision)",
    "CREATE TABLE grv.ledger (count bigint, head text, key text, format integer)",
)


class PostgresLedger(TableLedger):
    """A ledger in a database. Several threads, processes and machines can use it at once.

    Args:
        address: `postgresql://user@host:port/database`. The password may come from `PGPASSWORD` or
            `~/.pgpass`.
        read_only: whether the ledger is only read.
        key: the key of the seals; that of the environment if None (see seals.py).
    """

    def __init__(self, address: str, *, read_only: bool = False, key: bytes | None = None) -> None:
        super().__init__(shown(address), Seals(key_from_environment() if key is None else key))
        self._claimed: set[str] = set()
        self._failures = _failures()
        self._connection = _connect(address, self.path)
        self._closing = weakref.finalize(self, self._connection.close)
        self._db = _Postgres(self._connection)
        try:
            with self._using() as db:
                if read_only:
                    db.execute("SET default_transaction_read_only = on")
                else:
                    _refuse_pooler(self._connection, address, self.path)
                self._check_format(db, read_only)
        except BaseException:
            self._closing()
            raise

    def _check_format(self, db: Database, read_only: bool) -> None:
        """Create the tables if there are none; refuse those of another format or key."""
        if not db.execute(_THERE).fetchone():
            if read_only:
                raise LedgerError(f"{self.path}: no ledger in this database", path=self.path)
            self._create(db)
        row = db.execute("SELECT format, key FROM grv.ledger").fetchone() or (None, "")
        if row[0] != FORMAT:
            raise LedgerFormatError(
                f"{self.path}: a ledger of format {row[0]}; this grv reads {FORMAT}", path=self.path
            )
        self._check_key(str(row[1]))

    def _create(self, db: Database) -> None:
        db.execute("BEGIN")
        try:
            db.execute("SELECT pg_advisory_xact_lock(?)", (_SETUP,))
            if not db.execute(_THERE).fetchone():
                for statement in _TABLES:
                    db.execute(statement)
                row = (0, "", self.seals.name, FORMAT)
                db.execute("INSERT INTO grv.ledger VALUES (?, ?, ?, ?)", row)
            db.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                db.execute("ROLLBACK")
            raise

    @contextmanager
    def _transaction(self, db: Database) -> Iterator[None]:
        db.execute("BEGIN")
        try:
            db.execute("SELECT 1 FROM ledger FOR UPDATE")  # other writers wait here
            yield
            db.execute("COMMIT")
        except BaseException:
            with suppress(Exception):  # the connection may be lost
                db.execute("ROLLBACK")
            raise

    @contextmanager
    def _snapshot(self, db: Database) -> Iterator[None]:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            with suppress(Exception):
                db.execute("ROLLBACK")

    def _stored(self, text: str) -> str | bytes:
        return text.encode("utf-8", "surrogatepass")  # a `text` holds neither NUL nor surrogates

    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""
        with self._using() as db:
            if search in self._claimed:
                return False  # the lock of a session can be taken twice
            (free,) = db.execute("SELECT pg_try_advisory_lock(?)", (_lock_of(search),)).fetchone()
            if free:
                self._claimed.add(search)
            return bool(free)

    def release(self, search: str) -> None:
        """Give up the claim on a search, if we have it."""
        with self._lock:
            if search in self._claimed:
                self._claimed.discard(search)
                with suppress(LedgerError), self._using() as db:  # if lost, it is free already
                    db.execute("SELECT pg_advisory_unlock(?)", (_lock_of(search),))

    def claimed(self, searches: Sequence[str]) -> set[str]:
        """Those of the searches that a live owner has claimed."""
        rows = self.select(
            "SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory'"
            " AND objsubid = 1 AND granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        locks = {int(lock) for (lock,) in rows}
        return {search for search in searches if _lock_of(search) in locks}

    def containing(self, column: str, text: str) -> tuple[str, str | bytes]:
        """A condition that a column contains a text, in the same case."""
        return f"position(? in {column}) > 0", text.encode("utf-8", "surrogatepass")

    def close(self) -> None:
        """Release all claims and close the connection."""
        if self._feed is not None:
            self._feed.stop()
        with self._lock:
            with suppress(LedgerError), self._using() as db:
                db.execute("SELECT pg_advisory_unlock_all()")  # closing does not wait for that
            self._closing()

    def data_version(self) -> int:
        """A number that changes when another process writes; cheap to ask for."""
        with self._using() as db:
            return int(db.execute("SELECT count FROM ledger").fetchone()[0])


class _Postgres:
    """A connection with the interface of SQLite's, for the statements of ledgers."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        given: Any = statement.replace("?", "%s")
        return self._connection.execute(given, values or None)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object:
        given: Any = statement.replace("?", "%s")
        with self._connection.cursor() as cursor:
            cursor.executemany(given, rows)
        return None


def shown(address: str) -> str:
    """An address without password and options, for messages."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        known = conninfo_to_dict(address)
    except ProgrammingError:
        return "postgresql://..."
    user = f"{known['user']}@" if known.get("user") else ""
    port = f":{known['port']}" if known.get("port") else ""
    return f"postgresql://{user}{known.get('host', '')}{port}/{known.get('dbname', '')}"


def has_password(address: str) -> bool:
    """Whether an address contains a password."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return bool(conninfo_to_dict(address).get("password"))
    except ProgrammingError as error:
        raise UsageError("not an address: expected postgresql://user@host:port/database") from error


def _connect(address: str, path: str) -> psycopg.Connection:
    import psycopg

    try:
        connection = psycopg.connect(address, autocommit=True, application_name="grv", **_CONNECT)
        connection.execute("SET search_path TO grv")
        connection.execute("SET synchronous_commit TO on")  # durable when the commit returns
    except psycopg.Error as error:
        raise LedgerError(f"{path}: {first_line(error)}", path=path) from error
    return connection


def _refuse_pooler(connection: psycopg.Connection, address: str, path: str) -> None:
    """Refuse a pooler that gives each transaction another session: claims would not hold.

    A pooler reports a process id of its own. If it is one, ask for the real id over a second
    connection: two connections with the same one share a session.
    """
    query = "SELECT pg_backend_pid()"
    if connection.execute(query).fetchone() == (connection.info.backend_pid,):
        return
    lock = _lock_of("whether sessions are shared")
    connection.execute("SELECT pg_advisory_lock_shared(%s)", (lock,))
    with _connect(address, path) as other:
        same = other.execute(query).fetchone() == connection.execute(query).fetchone()
        own = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        kept = connection.execute(own).fetchone() == (1,)
    if same or not kept:
        raise LedgerError(
            f"{path}: a pooler in transaction mode, in which claims do not hold; use session mode"
            " or the address of the database itself",
            path=path,
        )
    connection.execute("SELECT pg_advisory_unlock_shared(%s)", (lock,))


def _lock_of(search: str) -> int:
    """The number of the advisory lock of a search."""
    content = f"grv {search}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)


def _failures() -> tuple[type[Exception], ...]:
    import psycopg

    return (psycopg.Error,)
