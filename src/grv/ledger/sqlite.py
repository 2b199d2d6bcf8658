"""A ledger in one SQLite file, shared by any number of processes.

Entries are only appended. Each has a seal: a hash over itself and all earlier entries of its
search. Each text is stored once, under a hash of its content with a tag for the algorithm. The
table of searches is an index: it contains nothing that is not in the entries, and `check` derives
it again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from ..core.errors import LedgerError
from ..files import shown, typed
from .entries import Ended, Entry, Failed, Made, Started, from_text, kind_of, to_text
from .migrations import check_format, migrate
from .owners import Owner

_SIZES = (128, 16, 4, 1)  # rows per statement: few sizes, so that prepared statements are reused
_End = tuple[int, str]  # number and seal of a search's last entry
_TAG = "blake2b-16:"  # the algorithm of text hashes; another algorithm would get another tag


@dataclass(frozen=True)
class SearchSummary:
    """A summary of one search. `outcome` is None until it has ended."""

    id: str
    problem: str
    started: float
    ended: float | None
    outcome: str | None
    generated: int | None
    verified: int | None
    total: float | None


class SqliteLedger:
    """A ledger in a file. Several threads and processes can use it at once."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = str(path)
        self._lock = threading.Lock()
        self._owner: Owner | None = None
        self._ends: dict[str, _End] = {}  # of searches we claimed, to which only we append
        if read_only and not Path(path).is_file():
            raise LedgerError(f"{path}: no such ledger", path=self.path)
        try:
            self._db = _connect(self.path, read_only=read_only)
        except sqlite3.Error as error:
            raise LedgerError(f"{path}: not a ledger: {error}", path=self.path) from error

    def close(self) -> None:
        """Release all claims and close the file."""
        with self._reading() as db:
            if self._owner is not None:
                self._owner.close()  # this frees the claims, even if the rows are not deleted
                with suppress(sqlite3.Error):
                    db.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
            db.close()

    def append(self, search: str, entries: Sequence[Entry]) -> None:
        """Append entries to a search. They are durable when this returns."""
        self.append_all([(search, entries)])

    def append_all(self, groups: Sequence[tuple[str, Sequence[Entry]]]) -> None:
        """Append entries to several searches in one transaction, as fast as one append."""
        together: dict[str, list[Entry]] = {}
        for search, entries in groups:
            together.setdefault(search, []).extend(entries)
        with self._reading() as db:
            texts: dict[str, str | bytes] = {}
            with _transaction(db):
                rows = [
                    row
                    for search, each in together.items()
                    for row in _rows(self._end(db, search), search, each, texts)
                ]
                _insert(db, "INSERT OR IGNORE INTO texts VALUES", list(texts.items()))
                _insert(db, "INSERT INTO entries VALUES", rows)
                for search, each in together.items():
                    _index(db, search, each)
            ends = {search: (number, seal) for search, number, *_, seal in rows}
            self._ends |= {search: end for search, end in ends.items() if search in self._ends}

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT number, kind, body, seal FROM entries WHERE search = ? ORDER BY number",
                (search,),
            ).fetchall()
            if [row[0] for row in rows] != list(range(len(rows))):
                raise LedgerError(f"{self.path}: search {search} has gaps", path=self.path)
            seal, entries = "", []
            for number, kind, body, sealed in rows:
                seal = _seal(seal, kind, body)
                if seal != sealed:
                    raise LedgerError(
                        f"{self.path}: search {search}, entry {number}: changed since it was"
                        " written",
                        path=self.path,
                        entry=number,
                    )
                entries.append(self._entry(db, kind, body))
        return entries

    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""
        with self._reading() as db, _transaction(db, durable=False):
            if self._owner is None:
                self._owner = Owner(Path(f"{self.path}.owners"))
            row = db.execute("SELECT owner FROM claims WHERE search = ?", (search,)).fetchone()
            if row is not None and self._owner.is_alive(row[0]):
                return False
            db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (search, self._owner.name))
            self._ends[search] = _end(db, search)
        return True

    def release(self, search: str) -> None:
        """Give up the claim on a search, if we have it."""
        if self._owner is not None:
            with self._reading() as db, _transaction(db, durable=False):
                self._ends.pop(search, None)
                db.execute(
                    "DELETE FROM claims WHERE search = ? AND owner = ?", (search, self._owner.name)
                )

    def searches(self) -> Iterator[SearchSummary]:
        """All searches, oldest first."""
        with self._reading() as db:
            rows = db.execute("SELECT * FROM searches ORDER BY started, id").fetchall()
        return iter([self._summary(row) for row in rows])

    def so_far(self) -> dict[str, tuple[int, int]]:
        """Candidates generated and verified, per search that has no bill yet."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT search, SUM(kind = 'made'), SUM(kind = 'found') FROM entries"
                " WHERE search IN (SELECT id FROM searches WHERE generated IS NULL)"
                " GROUP BY search"
            ).fetchall()
        return {search: (generated, verified) for search, generated, verified in rows}

    def check(self) -> list[str]:
        """The faults of the ledger, one line each; empty if there are none."""
        with self._reading() as db:
            found = [said for (said,) in db.execute("PRAGMA quick_check") if said != "ok"]
            for hash, text in db.execute("SELECT hash, text FROM texts"):
                if not isinstance(text, str | bytes) or hash != _hash(_restored(text)):
                    found.append(f"a text does not match its hash {hash}")
            ids = {str(id) for (id,) in db.execute("SELECT DISTINCT search FROM entries")}
        try:
            listed = {summary.id: summary for summary in self.searches()}
        except LedgerError as error:
            return [*found, str(error)]
        for id in sorted(ids | listed.keys()):
            try:
                expected = _summary(id, self.read(id))
            except LedgerError as error:
                found.append(str(error))
                continue
            if id not in listed or replace(listed[id], started=0, ended=None) != expected:
                found.append(f"search {id} does not match the index")
        return found

    def _end(self, db: sqlite3.Connection, search: str) -> _End:
        return self._ends.get(search) or _end(db, search)

    def _summary(self, row: Sequence[object]) -> SearchSummary:
        """A row of the index; SQLite lets a column hold values of any type."""
        names = [each.name for each in fields(SearchSummary)]
        record = dict(zip(names, row, strict=True))
        try:
            return typed(SearchSummary, {**record, "problem": _restored(record["problem"])})
        except (LedgerError, ValueError) as error:
            message = f"{self.path}: the index of searches is broken: {error}"
            raise LedgerError(message, path=self.path) from error

    def _entry(self, db: sqlite3.Connection, kind: str, body: str) -> Entry:
        entry = from_text(kind, body)
        if isinstance(entry, Made):
            query, hash = "SELECT text FROM texts WHERE hash = ?", entry.text
            row = db.execute(query, (hash,)).fetchone() if hash.isascii() else None
            if row is None:
                message = f"{self.path}: the text {shown(hash)} is missing"
                raise LedgerError(message, path=self.path)
            entry = replace(entry, text=_restored(row[0]))
        return entry

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except LedgerError as error:
                named = str(error).startswith(self.path)
                message = str(error) if named else f"{self.path}: {error}"
                raise LedgerError(message, path=self.path, entry=error.entry) from error
            except (sqlite3.Error, OSError) as error:
                raise LedgerError(f"{self.path}: {error}", path=self.path) from error


def _connect(path: str, *, read_only: bool) -> sqlite3.Connection:
    """Open a ledger and migrate it if needed; with `read_only` the file is not changed."""
    where = f"{Path(path).absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    db = sqlite3.connect(where, uri=True, timeout=60, isolation_level=None, check_same_thread=False)
    try:
        if read_only:
            if not check_format(db, path):
                raise LedgerError(f"{path}: an empty file, not a ledger", path=path)
        else:
            db.execute("PRAGMA synchronous = FULL")  # durable when the commit returns
            migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


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


def _insert(db: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, many per statement: other threads may run between two statements."""
    at = 0
    while at < len(rows):
        count = next(size for size in _SIZES if size <= len(rows) - at)
        some = rows[at : at + count]
        places = f"({', '.join('?' * len(some[0]))})"
        values = [value for row in some for value in row]
        db.execute(f"{statement} {', '.join([places] * count)}", values)
        at += count


def _end(db: sqlite3.Connection, search: str) -> _End:
    last = "SELECT number, seal FROM entries WHERE search = ? ORDER BY number DESC LIMIT 1"
    return db.execute(last, (search,)).fetchone() or (-1, "")


def _rows(
    end: _End, search: str, entries: Sequence[Entry], texts: dict[str, str | bytes]
) -> Iterator[tuple[str, int, str, float, str, str]]:
    """The rows of new entries, with numbers and seals that continue those of the search.

    Their texts, which have a table of their own, are added to `texts`.
    """
    number, seal = end
    for entry in entries:
        if isinstance(entry, Made):
            hash = _hash(entry.text)
            texts[hash] = _storable(entry.text)
            entry = replace(entry, text=hash)
        kind, body = kind_of(entry), to_text(entry)
        number, seal = number + 1, _seal(seal, kind, body)
        yield (search, number, kind, time.time(), body, seal)


def _index(db: sqlite3.Connection, search: str, entries: Iterable[Entry]) -> None:
    for entry in entries:
        match entry:
            case Started(problem):
                db.execute(
                    "INSERT OR IGNORE INTO searches (id, problem, started) VALUES (?, ?, ?)",
                    (search, _storable(problem), time.time()),
                )
            case Ended(reason, _, generated, verified, total):
                db.execute(
                    "UPDATE searches SET ended = ?, outcome = ?, generated = ?, verified = ?,"
                    " total = ? WHERE id = ?",
                    (time.time(), reason, generated, verified, total, search),
                )
            case Failed():
                db.execute(
                    "UPDATE searches SET ended = ?, outcome = 'failed' WHERE id = ?",
                    (time.time(), search),
                )


def _summary(id: str, entries: Sequence[Entry]) -> SearchSummary:
    """The correct row of the index, without the times."""
    summary = SearchSummary(id, "", 0, None, None, None, None, None)
    for entry in entries:
        match entry:
            case Started(problem):
                summary = replace(summary, problem=problem)
            case Ended(reason, _, generated, verified, total):
                summary = replace(
                    summary, outcome=reason, generated=generated, verified=verified, total=total
                )
            case Failed():
                summary = replace(summary, outcome="failed")
    return summary


def _hash(text: str) -> str:
    content = json.dumps(text).encode()  # this works for lone surrogates too
    return _TAG + hashlib.blake2b(content, digest_size=16).hexdigest()


def _seal(before: str, kind: str, body: str) -> str:
    """A hash over an entry and all before it, so that changes and omissions are detected."""
    content = f"{before}\n{kind}\n{body}".encode()
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def _storable(text: str) -> str | bytes:
    """The text in a form that SQLite can store; it refuses lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _restored(stored: object) -> str:
    """The stored text, or a `LedgerError` if the value is not text."""
    try:
        if isinstance(stored, bytes):
            return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise LedgerError("a text is not UTF-8") from error
    if not isinstance(stored, str):
        raise LedgerError(f"not a text: {shown(stored)}")
    return stored
