"""A ledger in a PostgreSQL database, shared by any number of machines. Needs the extra `postgres`.

It has a schema of its own, `grv`, so a database holds one ledger beside anything else. Writers take
turns: each locks the row with the head of the ledger. A claim is an advisory lock of the session,
so it ends with the connection, however that ends. A lost connection is not opened again, because
its claims are lost too: the run stops, and the same command continues it.

The database may belong to another person. Nothing is read from tables that are not exactly those
that grv creates (postgres_tables.py). If they belong to a role that has other rights than ours,
they are only read, and only if we have no right that their owner could use: an owner can exchange
tables at any moment, and so run code with the rights of who reads them. They are checked again in
every transaction, under a lock, so that this is noticed.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..core.errors import LedgerError, LedgerFormatError, UsageError
from .address import settings_of
from .batch import KnownIndex, link
from .postgres_tables import (
    COLUMNS,
    CREATE,
    CREATE_SCHEMA,
    LOCK,
    SESSION,
    are_there,
    check_tables,
    foreign_owner,
    other_right,
    statement_for,
)
from .rows import Cursor, Database, SqlDialect
from .seals import Seals, key_from_environment
from .tables import TableLedger, first_line

if TYPE_CHECKING:
    import psycopg

FORMAT = 3  # that of SQLite ledgers, see migrations.py
_SAME_TABLES = (2, FORMAT)  # formats whose rows can all be read; only the newest one is written
_SETUP = 0x677276  # the advisory lock of processes that create the tables
_FOLLOWING = 0x677277  # the advisory lock of a process that begins to follow a schedule
_SCHEDULE = 0x677278  # the first part of the locks of those that follow one
_SCHEDULES = (  # that are followed
    "SELECT DISTINCT objid::bigint FROM pg_locks WHERE locktype = 'advisory'"
    " AND objsubid = 2 AND classid::bigint = ? AND granted AND database ="
    " (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_PATIENCE = 60  # seconds for a lock that processes of grv hold for a moment only
_UNPREPARED = ("BEGIN", "COMMIT")
_LOCKED = "55P03"  # the error code of a lock that did not come free in time


class PostgresLedger(TableLedger):
    """A ledger in a database. Several threads, processes and machines can use it at once.

    Args:
        address: `postgresql://user@host:port/database`. The password may come from `PGPASSWORD` or
            `~/.pgpass`, if it is named.
        read_only: whether the ledger is only read.
        key: the key of the seals; that of the environment if None (see seals.py).
        named: whether the operator named this address (see address.py).
    """

    _db: _Postgres
    # What the current transaction has asked for: the head, and accounts that others have changed.
    _locked: Cursor
    _accounts: Cursor

    def __init__(
        self,
        address: str,
        *,
        read_only: bool = False,
        key: bytes | None = None,
        named: bool = True,
    ) -> None:
        super().__init__(shown(address), Seals(key_from_environment() if key is None else key))
        self._claimed: set[str] = set()
        self._owner = ""  # of the tables, if it is a role that has other rights than ours
        self._failures, self._taken = _errors()
        self._dialect = _PostgresDialect()
        self._connection = _connect(address, self.path, named=named)
        self._closing = weakref.finalize(self, self._connection.close)
        self._db = _Postgres(self._connection)
        try:
            with self._using() as db:
                if read_only:
                    db.execute("SET default_transaction_read_only = on")
                else:
                    _refuse_pooler(self._connection, address, self.path, named=named)
                self._check_format(db, read_only)
        except BaseException:
            self._closing()
            raise

    def _check_format(self, db: Database, read_only: bool) -> None:
        """Create the tables if there are none; refuse those of another format or key."""
        if not are_there(db):
            if read_only:
                raise LedgerError(f"{self.path}: no ledger in this database", path=self.path)
            self._create(db)
        check_tables(db)
        self._owner = foreign_owner(db)
        if self._owner and not read_only:
            raise self._refused_to_write(self._owner)
        if self._owner and (right := other_right(db)):
            raise self._refused(
                self._owner,
                f"who could run code as you, and your role {right}; read it as {self._owner}, or as"
                " a role that has only SELECT on the tables of grv",
            )
        with self._using():
            self._check_head(db, read_only)

    def _refused(self, owner: str, why: str) -> LedgerError:
        """The error about tables of a foreign owner."""
        return LedgerError(f"{self.path}: its tables belong to {owner}, {why}", path=self.path)

    def _refused_to_write(self, owner: str) -> LedgerError:
        return self._refused(
            owner,
            "who could run code as you when you write; if you trust"
            f" {owner}, let a superuser GRANT that role to yours",
        )

    def _check_head(self, db: Database, read_only: bool) -> None:
        """Refuse a ledger of another format or key."""
        row = db.execute("SELECT format, key FROM ledger").fetchone() or (None, "")
        if row[0] not in _SAME_TABLES:
            raise LedgerFormatError(
                f"{self.path}: a ledger of format {row[0]}; this grv reads {FORMAT}", path=self.path
            )
        self._check_key(row[1])
        if not read_only:
            if row[0] != FORMAT:
                db.execute("UPDATE ledger SET format = ?", (FORMAT,))
            self._note_last(db)

    @contextmanager
    def _using(self) -> Iterator[Database]:
        """The connection; tables of a foreign owner are locked and checked first."""
        with super()._using() as db:
            if not self._owner or self._in_transaction:
                yield db
                return
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                db.execute(LOCK)
                check_tables(db)
                yield db
            finally:
                with suppress(Exception):  # the connection may be lost
                    db.execute("ROLLBACK")

    @property
    def _in_transaction(self) -> bool:
        return self._connection.info.transaction_status != 0  # libpq: idle

    def _create(self, db: Database) -> None:
        db.execute("BEGIN")
        try:
            self._wait_for(db, "pg_advisory_xact_lock", _SETUP)
            if not are_there(db):
                db.execute(CREATE_SCHEMA)
                if owner := foreign_owner(db, tables=0):  # the schema may have been there
                    raise self._refused_to_write(owner)
                for statement in CREATE:
                    db.execute(statement)
                row = (0, "", self.seals.name, FORMAT)
                db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", row)
            db.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                db.execute("ROLLBACK")
            raise

    def _wait_for(self, db: Database, function: str, number: int) -> None:
        """Take a lock. Any role of the database may hold it, also one without rights on a ledger.

        Raises:
            LedgerError: another session keeps it.
        """
        db.execute(f"SET lock_timeout TO '{_PATIENCE}s'")
        try:
            db.execute(f"SELECT {function}(?)", (number,))
        except self._failures as error:
            if getattr(error, "sqlstate", None) != _LOCKED:
                raise
            raise LedgerError(
                f"{self.path}: another session has held the advisory lock {number} for"
                f" {_PATIENCE} s, and no process of grv does; its pid is in pg_locks, where objid"
                f" is {number}",
                path=self.path,
            ) from error
        finally:
            with suppress(*self._failures):  # a transaction that has failed takes the setting back
                db.execute("RESET lock_timeout")

    @contextmanager
    def _transaction(self, db: Database) -> Iterator[None]:
        """A pipeline: it waits for the server when results are read, and at its end."""
        try:
            with self._db.pipeline():
                db.execute("BEGIN")
                self._locked = db.execute("SELECT count, head FROM grv.ledger FOR UPDATE")
                yield
                db.execute("COMMIT")
        except BaseException:
            with suppress(Exception):  # the connection may be lost
                db.execute("ROLLBACK")
            raise

    def _known_index(self, db: Database) -> KnownIndex:
        """What our last transaction knew, and a question for accounts that others have changed.

        Ends and sums of searches stay known when others write: who adds to a search takes its next
        number, and nobody can take it again. It is forgotten here: the transaction may fail.
        """
        known = self._known
        self._known = KnownIndex()
        head = "" if known.head is None else known.head[1]
        self._accounts = db.execute(
            "SELECT name, unit, paid FROM accounts"
            " WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE head = ?)",
            (head,),
        )
        return known

    def _renew(self, known: KnownIndex) -> None:
        heads = self._locked.fetchall()  # other writers wait there
        head = link(heads[0]) if len(heads) == 1 else None
        if head is None or head != known.head:
            known.set_accounts(self._accounts.fetchall())
        known.head = head

    @contextmanager
    def _snapshot(self, db: Database) -> Iterator[None]:
        if self._in_transaction:
            yield
            return
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            with suppress(Exception):
                db.execute("ROLLBACK")

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

    def _follow(self, db: Database, schedule: str) -> str | None:
        self._wait_for(db, "pg_advisory_lock", _FOLLOWING)  # one process after the other
        try:
            own = _number_of(schedule)
            rows = db.execute(_SCHEDULES, (_SCHEDULE,)).fetchall()
            if any(int(number) != own for (number,) in rows):
                return ""  # the locks are numbers, not names
            db.execute("SELECT pg_advisory_lock_shared(?::int, ?::int)", (_SCHEDULE, own))
        finally:
            with suppress(*self._failures):  # the connection may be lost
                db.execute("SELECT pg_advisory_unlock(?)", (_FOLLOWING,))
        return None

    def _leave(self, db: Database, schedule: str) -> None:
        values = (_SCHEDULE, _number_of(schedule))
        db.execute("SELECT pg_advisory_unlock_shared(?::int, ?::int)", values)

    def claimed(self, searches: Sequence[str]) -> set[str]:
        """Those of the searches that a live owner has claimed."""
        rows = self.select(
            "SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory'"
            " AND objsubid = 1 AND granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        locks = {int(lock) for (lock,) in rows}
        return {search for search in searches if _lock_of(search) in locks}

    def is_followed(self) -> bool:
        """Whether a live process follows a schedule, by which searches wait for their turn."""
        return bool(self.select(_SCHEDULES, (_SCHEDULE,)))

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


class _PostgresDialect(SqlDialect):
    """Values get into a statement as columns, in binary form: so there are few statements."""

    def stored(self, text: str) -> str | bytes:
        """The text as bytes: a `text` holds neither NUL nor surrogates."""
        return text.encode("utf-8", "surrogatepass")

    def among(self, column: str, values: Sequence[str]) -> tuple[str, Sequence[object]]:
        """A condition that a column has one of the values, and its parameters."""
        return f"{column} = ANY(%b::text[])", [[*values]]

    def insert(
        self,
        db: Database,
        table: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        conflict: str = "",
    ) -> None:
        """Insert rows with one statement, in their order."""
        if rows:
            values = [[*column] for column in zip(*rows, strict=True)]
            db.execute(_insertion(table, tuple(columns), conflict), values)

    def pay(self, db: Database, paid: Sequence[tuple[str, float]]) -> None:
        """Set what searches have possibly paid, by id."""
        if paid:
            ids, amounts = zip(*paid, strict=True)
            db.execute(
                "UPDATE searches SET paid = changed.amount FROM"
                " unnest(%b::text[], %b::double precision[]) AS changed (search, amount)"
                " WHERE id = changed.search",
                ([*ids], [*amounts]),
            )


@functools.cache
def _insertion(table: str, columns: tuple[str, ...], conflict: str) -> str:
    """The statement that inserts rows, given as columns."""
    described = (each.partition(" default ")[0] for each in COLUMNS[table])
    types = {name: type for name, _, type in (each.partition(" ") for each in described)}
    given = ", ".join(f"%b::{types[column]}[]" for column in columns)
    listed = ", ".join(columns)
    return f"INSERT INTO {table} ({listed}) SELECT * FROM unnest({given}) {conflict}"


class _Postgres:
    """A connection with the interface of SQLite's, for the statements of ledgers."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._is_pipeline = False

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """Inside it, a statement is sent at once, and waited for when its rows are fetched."""
        self._is_pipeline = True
        try:
            with self._connection.pipeline():
                yield
        finally:
            self._is_pipeline = False

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        query: Any = statement_for(statement)
        # psycopg prepares what it has executed some times. If a pipeline fails then, psycopg does
        # not notice that the statement was not prepared, unless it was prepared at its first use.
        prepare = statement not in _UNPREPARED if self._is_pipeline else None
        return self._connection.execute(query, values or None, prepare=prepare)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object:
        query: Any = statement_for(statement)
        with self._connection.cursor() as cursor:
            cursor.executemany(query, rows)
        return None


def shown(address: str) -> str:
    """An address without password and options, for messages."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parameters = conninfo_to_dict(address)
    except ProgrammingError:
        return "postgresql://..."
    user = f"{parameters['user']}@" if parameters.get("user") else ""
    port = f":{parameters['port']}" if parameters.get("port") else ""
    return f"postgresql://{user}{parameters.get('host', '')}{port}/{parameters.get('dbname', '')}"


def has_password(address: str) -> bool:
    """Whether an address contains a password."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return bool(conninfo_to_dict(address).get("password"))
    except ProgrammingError as error:
        raise UsageError("not an address: expected postgresql://user@host:port/database") from error


def _connect(address: str, path: str, *, named: bool) -> psycopg.Connection:
    import psycopg

    try:
        settings = settings_of(address, path, named=named) | {"application_name": "grv"}
        connection = psycopg.connect(**settings, autocommit=True)
        for name, value in SESSION.items():
            setting: Any = f"SET {name} TO {value}"
            connection.execute(setting)
    except psycopg.Error as error:
        raise LedgerError(f"{path}: {first_line(error)}", path=path) from error
    return connection


def _refuse_pooler(connection: psycopg.Connection, address: str, path: str, *, named: bool) -> None:
    """Refuse a pooler that gives each transaction another session: claims would not hold.

    A pooler reports a process id of its own. If it is one, ask for the real id over a second
    connection: two connections with the same one share a session.
    """
    query = "SELECT pg_backend_pid()"
    if connection.execute(query).fetchone() == (connection.info.backend_pid,):
        return
    lock = _lock_of("whether sessions are shared")
    connection.execute("SELECT pg_advisory_lock_shared(%s)", (lock,))
    with _connect(address, path, named=named) as other:
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


def _number_of(schedule: str) -> int:
    """The number of a schedule in the locks of those that follow it; not negative."""
    content = schedule.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=4).digest(), "big") >> 1


def _errors() -> tuple[tuple[type[Exception], ...], tuple[type[Exception], ...]]:
    """What the database raises; and what it raises if a number of a search is taken."""
    import psycopg

    return (psycopg.Error,), (psycopg.errors.UniqueViolation,)
