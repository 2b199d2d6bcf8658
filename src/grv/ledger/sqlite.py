"""A ledger in one SQLite file, shared by any number of processes of one machine.

It assumes a local file system that keeps what it has synced. The tests kill processes at any point,
fill the disk, flip bits, and delete, move and replace the files under a running process.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ..core.errors import LedgerError
from ..files import LONGEST_LINE, error_line
from .batch import KnownIndex
from .migrations import SAME_TABLES, check_format, migrate
from .owners import Owner, is_alive
from .place import (
    OpenFiles,
    alone,
    check_place,
    lacks_log,
    lost_ledger,
    names_a_file,
    new_beside,
)
from .rows import BROKEN, Database
from .seals import Seals, key_from_environment
from .tables import TableLedger

_FOLLOWS = "schedule "  # a claim on it, with its name and the owner, is no claim on a search
_AROUND = 64 << 10  # bytes of a row beside its largest value


class SqliteLedger(TableLedger):
    """A ledger in a file. Several threads and processes can use it at once.

    Args:
        path: the file.
        read_only: whether the file is only read; it is not changed then.
        key: the key of the seals; that of the environment if None (see seals.py).
        damaged: whether to open a ledger whose write-ahead log is missing, to save the rest.
    """

    _db: sqlite3.Connection
    _failures = (*BROKEN, OSError)

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        key: bytes | None = None,
        damaged: bool = False,
    ) -> None:
        named_path = path
        if os.path.islink(path):  # the log and the owners are beside the file itself
            path = os.path.realpath(path)
        super().__init__(str(path), Seals(key_from_environment() if key is None else key))
        self._owner: Owner | None = None
        self._files: OpenFiles | None = None
        self._version = -1  # of the data, as other connections have written it
        self._saved = ""  # a copy of the ledger, made after its file was lost
        if read_only and not Path(path).is_file():
            raise LedgerError(f"{path}: no such ledger", path=self.path)
        if os.path.exists(path) and not os.path.isfile(path):  # to open a pipe is to wait
            raise LedgerError(f"{path}: cannot be a ledger: it is not a file", path=self.path)
        if not read_only:
            check_place(self.path)
        try:
            with alone(self.path):
                self._check_log(damaged)
                self._db = _connect(self.path, self.seals, read_only=read_only)
                try:
                    self._files = None if read_only else OpenFiles(self.path, str(named_path))
                except BaseException:
                    _shut(self._db, read_only)
                    raise
        except (*BROKEN, OSError) as error:
            raise LedgerError(f"{path}: {_why(error)}", path=self.path) from error
        self._closing = weakref.finalize(self, _close, self._db, self.path, self._files)
        try:
            with self._using() as db:
                (recorded_key,) = db.execute("SELECT key FROM ledger").fetchone() or ("",)
                self._check_key(recorded_key)
                self._note_last(db)
        except BaseException:
            self._closing()
            raise

    def _check_log(self, damaged: bool) -> None:
        if names_a_file(self.path):
            raise LedgerError(
                f"{self.path}: its file {Path(self.path).name}-journal names another file, which"
                " SQLite would delete: grv did not write it; remove it",
                path=self.path,
            )
        if lacks_log(self.path) and not damaged:
            raise LedgerError(
                f"{self.path}: its file {Path(self.path).name}-wal is missing, and with it the"
                " newest entries; put it back, or save the rest with grv runs repair",
                path=self.path,
            )
        if lost_ledger(self.path):
            raise LedgerError(
                f"{self.path}: it is gone, but its file {Path(self.path).name}-wal is there: put"
                " the ledger back, or delete that file to start a new ledger",
                path=self.path,
            )

    def _check_place(self) -> None:
        """Refuse to go on with files that other processes do not see."""
        if self._files is None:
            return
        if lost := self._files.lost():
            saved = self._save()
            kept = f"; all that was recorded is in {saved}" if saved else ""
            raise LedgerError(
                f"{lost}: deleted, moved or replaced while this process used it{kept}; put the"
                " ledger back, then run the same command again",
                path=self.path,
            )
        if self._owner is not None and self._owner.is_lost():
            raise LedgerError(
                f"{self.path}.owners: deleted, moved or replaced while this process used it, so"
                " that others may take its searches; run the same command again",
                path=self.path,
            )

    def _save(self) -> str:
        """Copy the ledger to a new file beside its path; its name, or empty if that fails."""
        try:
            self._saved = self._saved or new_beside(self.path)
            with closing(sqlite3.connect(self._saved)) as copy:
                self._db.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # the copy has no log
        except (sqlite3.Error, OSError):
            return ""
        return self._saved

    def close(self) -> None:
        """Release all claims and close the file."""
        if self._feed is not None:
            self._feed.stop()
        with self._using() as db:
            if self._owner is not None:
                self._owner.close()  # this frees the claims, even if the rows are not deleted
                with suppress(*BROKEN):
                    db.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
            if self._files is not None and self._closing.alive and self._files.lost():
                self._save()  # again, with the results of calls that were in flight
            self._closing()

    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""
        with self._using() as db:
            self._check_place()
            owner = self._as_owner()
            with self._transaction(db, durable=False):
                row = db.execute("SELECT owner FROM claims WHERE search = ?", (search,)).fetchone()
                if row is not None and owner.is_alive(row[0]):
                    return False
                db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (search, owner.name))
        return True

    def release(self, search: str) -> None:
        """Give up the claim on a search, if we have it."""
        if self._owner is not None:
            with self._using() as db, self._transaction(db, durable=False):
                db.execute(
                    "DELETE FROM claims WHERE search = ? AND owner = ?", (search, self._owner.name)
                )

    def _release_within(self, db: Database, searches: Sequence[str]) -> bool:
        if self._owner is not None:
            rows = [(search, self._owner.name) for search in searches]
            db.executemany("DELETE FROM claims WHERE search = ? AND owner = ?", rows)
        return True

    def _as_owner(self) -> Owner:
        """This process, as others see it."""
        if self._owner is None:
            self._owner = Owner(Path(f"{self.path}.owners"))
        return self._owner

    def _follow(self, db: Database, schedule: str) -> str | None:
        self._check_place()
        owner = self._as_owner()
        with self._transaction(db, durable=False):
            query = "SELECT search, owner FROM claims WHERE search LIKE ?"
            for note, other in db.execute(query, (f"{_FOLLOWS}%",)).fetchall():
                followed = str(note).removeprefix(_FOLLOWS).rpartition(" ")[0]
                if followed != schedule and owner.is_alive(other):
                    return followed
            note = f"{_FOLLOWS}{schedule} {owner.name}"
            db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (note, owner.name))
        return None

    def _leave(self, db: Database, schedule: str) -> None:
        if self._owner is not None:
            note = f"{_FOLLOWS}{schedule} {self._owner.name}"
            with self._transaction(db, durable=False):
                db.execute("DELETE FROM claims WHERE search = ?", (note,))

    def claimed(self, searches: Sequence[str]) -> set[str]:
        """Those of the searches that a live owner has claimed."""
        wanted = set(searches)
        folder = Path(f"{self.path}.owners")
        rows = self.select("SELECT owner, search FROM claims")
        owners = {owner for owner, search in rows if search in wanted}
        alive = {owner for owner in owners if is_alive(folder, owner)}
        return {search for owner, search in rows if owner in alive and search in wanted}

    def is_followed(self) -> bool:
        """Whether a live process follows a schedule, by which searches wait for their turn."""
        folder = Path(f"{self.path}.owners")
        rows = self.select("SELECT owner FROM claims WHERE search LIKE ?", (f"{_FOLLOWS}%",))
        return any(is_alive(folder, owner) for (owner,) in rows)

    def containing(self, column: str, text: str) -> tuple[str, str | bytes]:
        """A condition that a column contains a text; ASCII letters match in any case."""
        return f"instr(lower(CAST({column} AS TEXT)), lower(?)) > 0", text

    def rest(self) -> None:
        """Take less memory while nothing is read or written: pages are read again when needed."""
        with self._using() as db:
            db.execute("PRAGMA shrink_memory")

    def data_version(self) -> int:
        """A number that changes when another process writes; cheap to ask for."""
        with self._using() as db:
            return int(db.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def _transaction(self, db: Database, *, durable: bool = True) -> Iterator[None]:
        """A transaction. If not durable, it reaches the disk only with the next durable one."""
        if not durable:
            db.execute("PRAGMA synchronous = NORMAL")
            try:
                with self._transaction(db):
                    yield
            finally:
                db.execute("PRAGMA synchronous = FULL")
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk has already ended it
                db.execute("ROLLBACK")
            raise

    def _known_index(self, db: Database) -> KnownIndex:
        """That of our last transaction, if no other connection has written since.

        It is forgotten here: the transaction may fail.
        """
        (version,) = db.execute("PRAGMA data_version").fetchone()
        known = self._known if version == self._version else KnownIndex()
        self._known = KnownIndex()
        self._version = version
        return known

    @contextmanager
    def _snapshot(self, db: Database) -> Iterator[None]:
        db.execute("BEGIN")
        try:
            yield
        finally:
            db.execute("ROLLBACK")

    def _broken(self, db: Database) -> Iterator[str]:
        rows = db.execute("PRAGMA quick_check").fetchall()
        return (str(said) for (said,) in rows if said != "ok")


def open_for_repair(path: str | Path) -> SqliteLedger:
    """Open a damaged ledger to read it: with the key of the environment, or without one.

    Its write-ahead log may be missing.
    """
    try:
        return SqliteLedger(path, read_only=True, damaged=True)
    except LedgerError:
        return SqliteLedger(path, read_only=True, damaged=True, key=b"")


def _connect(path: str, seals: Seals, *, read_only: bool) -> sqlite3.Connection:
    """Open a ledger and migrate it if needed; with `read_only` the file is not changed."""
    how = "rwc" if not read_only else "ro&immutable=1" if lacks_log(path) else "ro"
    where = f"{Path(path).absolute().as_uri()}?mode={how}"
    db = sqlite3.connect(where, uri=True, timeout=60, isolation_level=None, check_same_thread=False)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_LINE + _AROUND)
    try:
        version = check_format(db, path)
        if read_only:
            if not version:
                raise LedgerError(f"{path}: an empty file; nothing is recorded yet", path=path)
            db = _current(db, path, seals)
        else:
            db.execute("PRAGMA synchronous = FULL")  # durable when the commit returns
            db.execute("PRAGMA journal_mode = WAL")
            migrate(db, path, seals)
            if version != check_format(db, path):
                db.execute("PRAGMA wal_checkpoint")  # the file without its log has the format too
    except BaseException:
        _shut(db, read_only)
        raise
    return db


def _current(db: sqlite3.Connection, path: str, seals: Seals) -> sqlite3.Connection:
    """The ledger in a format that can be read: itself, or a migrated copy in memory."""
    if check_format(db, path) >= SAME_TABLES:
        return db
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        db.backup(copy)
        db.close()
        migrate(copy, path, seals)
    except BaseException:
        copy.close()
        raise
    return copy


def _close(db: sqlite3.Connection, path: str, files: OpenFiles | None) -> None:
    """Close the connection; the last one switches the write-ahead log off (see place.py)."""
    if files is None:
        _shut(db, read_only=True)
        return
    with alone(path):
        if files.lost():
            # SQLite would delete the log by its name, which may be that of another ledger now. So
            # this connection stays open until the process ends.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))
            return
        _shut(db, read_only=False)


def _shut(db: sqlite3.Connection, read_only: bool) -> None:
    if not read_only:
        with suppress(*BROKEN):
            db.execute("PRAGMA busy_timeout = 0")
            db.execute("PRAGMA journal_mode = DELETE")
    db.close()


_OTHER_FILE = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def _why(error: Exception) -> str:
    """Why a ledger cannot be opened: it is none, or the disk is full, or it may not be written."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return "not a ledger" if isinstance(error, UnicodeDecodeError) else error_line(error)
    if code & 0xFF in _OTHER_FILE:
        return f"not a ledger: {error}"
    return f"cannot be opened: {error}"
