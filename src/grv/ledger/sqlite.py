"""A ledger in one SQLite file, shared by any number of processes.

Entries are only appended, and sealed (seals.py). Each text is stored once, under a hash of its
content. The tables of searches and accounts are an index: they contain nothing that is not in the
entries, and `check` derives them again.

The promise: when `append` returns, the entries and the charge are on disk, together or not at all.
It assumes a local file system that keeps what it has synced. The tests kill processes at any point,
fill the disk and flip bits.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path

from ..core.errors import LedgerError
from ..files import is_number, typed
from .batch import Batch
from .entries import Charged, Entry, charge_of
from .feed import Feed
from .ledger import NO_CAPS, ROUNDING, Append, Caps, Listener
from .migrations import check_format, migrate
from .owners import Owner
from .place import alone, check_place, lacks_log
from .rows import (
    BROKEN,
    SearchSummary,
    checked_rows,
    entry_of,
    restored,
)
from .seals import Seals, key_from_environment

_ENTRIES = "SELECT number, kind, at, body, seal FROM entries WHERE search = ? ORDER BY number"


class SqliteLedger:
    """A ledger in a file. Several threads and processes can use it at once.

    Args:
        path: the file.
        read_only: whether the file is only read; it is not changed then.
        key: the key of the seals; that of the environment if None (see seals.py).
        damaged: whether to open a ledger whose write-ahead log is missing, to save the rest.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        key: bytes | None = None,
        damaged: bool = False,
    ) -> None:
        self.path = str(path)
        self.seals = Seals(key_from_environment() if key is None else key)
        self._lock = threading.RLock()
        self._owner: Owner | None = None
        self._feed: Feed | None = None
        if read_only and not Path(path).is_file():
            raise LedgerError(f"{path}: no such ledger", path=self.path)
        if not read_only:
            check_place(self.path)
        try:
            with alone(self.path):
                self._check_log(damaged)
                self._db = _connect(self.path, self.seals, read_only=read_only)
        except BROKEN as error:
            raise LedgerError(f"{path}: not a ledger: {error}", path=self.path) from error
        self._closing = weakref.finalize(self, _close, self._db, self.path, read_only)
        self._check_key()

    def _check_log(self, damaged: bool) -> None:
        if lacks_log(self.path) and not damaged:
            raise LedgerError(
                f"{self.path}: its file {Path(self.path).name}-wal is missing, and with it the"
                " newest entries; put it back, or save the rest with grv runs repair",
                path=self.path,
            )

    def _check_key(self) -> None:
        try:
            (known,) = self._db.execute("SELECT key FROM ledger").fetchone() or ("",)
        except BROKEN as error:
            self._closing()
            raise LedgerError(f"{self.path}: not a ledger: {error}", path=self.path) from error
        if known == self.seals.name:
            return
        self._closing()
        if not known:
            raise LedgerError(
                f"{self.path}: its seals have no key, but one is set: copy it into a new ledger"
                " with grv runs repair, or unset the key",
                path=self.path,
            )
        raise LedgerError(
            f"{self.path}: sealed with {'another' if self.seals.name else 'a'} key: set"
            " GRV_LEDGER_KEY or GRV_LEDGER_KEY_FILE",
            path=self.path,
        )

    def close(self) -> None:
        """Release all claims and close the file."""
        if self._feed is not None:
            self._feed.stop()
        with self._using() as db:
            if self._owner is not None:
                self._owner.close()  # this frees the claims, even if the rows are not deleted
                with suppress(sqlite3.Error):
                    db.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
            self._closing()

    def append(self, search: str, entries: Sequence[Entry], caps: Caps = NO_CAPS) -> None:
        """Append entries to a search; OverBudget if that exceeds a cap."""
        (error,) = self.append_all([Append(search, entries, caps)])
        if error is not None:
            raise error

    def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
        """Append several groups in one transaction; for each, None or why it was not appended."""
        with self._using() as db, _transaction(db):
            batch = Batch(db, self.seals)
            found = [batch.add(group) for group in groups]
            batch.finish()
        if self._feed is not None:
            self._feed.deliver()
        return found

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order; a LedgerError if one was changed."""
        return [entry for entry, _ in self.intact(search)]

    def intact(self, search: str) -> Iterator[tuple[Entry, float]]:
        """The entries of a search with their times; a LedgerError at the first damaged one."""
        with self._using() as db:
            rows = db.execute(_ENTRIES, (search,)).fetchall()
            for kind, at, body in checked_rows(rows, search, self.seals):
                yield entry_of(db, kind, body), at

    def search_ids(self) -> list[str]:
        """The ids of all searches that have entries."""
        with self._using() as db:
            rows = db.execute("SELECT DISTINCT search FROM entries").fetchall()
        return sorted(str(search) for (search,) in rows)

    def paid_by(self, search: str) -> float:
        """What a search has possibly paid."""
        with self._using() as db:
            row = db.execute("SELECT paid FROM searches WHERE id = ?", (search,)).fetchone()
        return float(row[0]) if row is not None and is_number(row[0]) else 0.0

    def restore(self, search: str, entries: Sequence[tuple[Entry, float]], paid: float) -> None:
        """Append the entries of another ledger with their times, and what was paid for them.

        `paid` comes from its index, which may be damaged: the entries charge at least their own.
        """
        with self._using() as db, _transaction(db):
            group, times = [entry for entry, _ in entries], [at for _, at in entries]
            if (more := paid - charge_of(group)) > ROUNDING * paid:
                group.append(Charged(more, "for entries that are lost"))
                times.append(times[-1])
            batch = Batch(db, self.seals)
            if (error := batch.add(Append(search, group), times)) is not None:
                raise error
            batch.finish()

    def possibly_paid(self, account: str = "") -> float:
        """What all searches of an account have possibly paid."""
        with self._using() as db:
            row = db.execute("SELECT paid FROM accounts WHERE name = ?", (account,)).fetchone()
        return float(row[0]) if row is not None else 0.0

    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""
        with self._using() as db, _transaction(db, durable=False):
            if self._owner is None:
                self._owner = Owner(Path(f"{self.path}.owners"))
            row = db.execute("SELECT owner FROM claims WHERE search = ?", (search,)).fetchone()
            if row is not None and self._owner.is_alive(row[0]):
                return False
            db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (search, self._owner.name))
        return True

    def release(self, search: str) -> None:
        """Give up the claim on a search, if we have it."""
        if self._owner is not None:
            with self._using() as db, _transaction(db, durable=False):
                db.execute(
                    "DELETE FROM claims WHERE search = ? AND owner = ?", (search, self._owner.name)
                )

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener for all new entries, until the result is called."""
        with self._lock:
            if self._feed is None:
                self._feed = Feed(self)
        return self._feed.listen(listener)

    def position(self) -> int:
        """The position of the newest entry."""
        with self._using() as db:
            (last,) = db.execute("SELECT MAX(position) FROM entries").fetchone()
        return int(last or 0)

    def since(self, position: int) -> list[tuple[int, str, Entry]]:
        """Position, search and content of all entries after a position, without damaged ones."""
        query = (
            "SELECT position, search, kind, body FROM entries WHERE position > ? ORDER BY position"
        )
        found: list[tuple[int, str, Entry]] = []
        with self._using() as db:
            for at, search, kind, body in db.execute(query, (position,)).fetchall():
                with suppress(LedgerError):  # the reader of the search reports it
                    found.append((at, str(search), entry_of(db, kind, body)))
        return found

    def data_version(self) -> int:
        """A number that changes when another process writes; cheap to ask for."""
        with self._using() as db:
            return int(db.execute("PRAGMA data_version").fetchone()[0])

    def searches(self) -> Iterator[SearchSummary]:
        """All searches, oldest first."""
        with self._using() as db:
            rows = db.execute("SELECT * FROM searches ORDER BY started, id").fetchall()
        return iter([self._summary(row) for row in rows])

    def so_far(self) -> dict[str, tuple[int, int]]:
        """Candidates generated and verified, per search that has no bill yet."""
        with self._using() as db:
            rows = db.execute(
                "SELECT search, SUM(kind = 'made'), SUM(kind = 'found') FROM entries"
                " WHERE search IN (SELECT id FROM searches WHERE generated IS NULL)"
                " GROUP BY search"
            ).fetchall()
        return {search: (generated, verified) for search, generated, verified in rows}

    def check(self) -> list[str]:
        """The faults of the ledger, one line each; empty if there are none."""
        from .checking import faults

        with self._using() as db:
            return faults(db, self.seals)

    def _summary(self, row: Sequence[object]) -> SearchSummary:
        """A row of the index; SQLite lets a column hold values of any type."""
        names = [each.name for each in fields(SearchSummary)]
        record = dict(zip(names, row, strict=True))
        try:
            return typed(SearchSummary, {**record, "problem": restored(record["problem"])})
        except (LedgerError, ValueError) as error:
            message = f"{self.path}: the index of searches is broken: {error}"
            raise LedgerError(message, path=self.path) from error

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except LedgerError as error:
                named = str(error).startswith(self.path)
                message = str(error) if named else f"{self.path}: {error}"
                raise LedgerError(message, path=self.path, entry=error.entry) from error
            except (*BROKEN, OSError) as error:
                raise LedgerError(f"{self.path}: {error}", path=self.path) from error


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
    try:
        version = check_format(db, path)
        if read_only:
            if not version:
                raise LedgerError(f"{path}: an empty file, not a ledger", path=path)
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
    """The ledger in the current format: itself, or a migrated copy in memory."""
    from .migrations import MIGRATIONS

    if check_format(db, path) == len(MIGRATIONS):
        return db
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.backup(copy)
    db.close()
    migrate(copy, path, seals)
    return copy


def _close(db: sqlite3.Connection, path: str, read_only: bool) -> None:
    """Close the connection; the last one switches the write-ahead log off (see place.py)."""
    if read_only:
        _shut(db, read_only)
        return
    with alone(path):
        _shut(db, read_only)


def _shut(db: sqlite3.Connection, read_only: bool) -> None:
    if not read_only:
        with suppress(sqlite3.Error):
            db.execute("PRAGMA busy_timeout = 0")
            db.execute("PRAGMA journal_mode = DELETE")
    db.close()


@contextmanager
def _transaction(db: sqlite3.Connection, *, durable: bool = True) -> Iterator[None]:
    """A transaction. If not durable, it reaches the disk only with the next durable one."""
    if not durable:
        db.execute("PRAGMA synchronous = NORMAL")
        try:
            with _transaction(db):
                yield
        finally:
            db.execute("PRAGMA synchronous = FULL")
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has already ended it
            db.execute("ROLLBACK")
        raise
