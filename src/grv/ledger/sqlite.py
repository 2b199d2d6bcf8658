"""A ledger in one SQLite file, shared by any number of processes.

Entries are only ever added. Texts are kept once, under a hash of their content that is tagged with
its algorithm. The table of searches is an index: it says nothing that the entries do not, and
`check` derives it again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import LedgerError
from .entries import Ended, Entry, Failed, Made, Started, from_text, kind_of, to_text
from .migrations import migrate
from .owners import Owner

_TAG = "blake2b-16:"  # how texts are hashed; another way would get another tag


@dataclass(frozen=True)
class SearchSummary:
    """One search, at a glance. `outcome` is None while it is not over."""

    id: str
    problem: str
    started: float
    ended: float | None
    outcome: str | None
    generated: int | None
    verified: int | None
    total: float | None


class SqliteLedger:
    """A ledger in a file. Safe to use from several threads and processes at once."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = str(path)
        self._lock = threading.Lock()
        self._owner: Owner | None = None
        self._numbers: dict[str, int] = {}  # next entry of the searches that are ours
        if read_only and not Path(path).is_file():
            raise LedgerError(f"{path}: there is no such ledger", path=self.path)
        try:
            self._db = sqlite3.connect(
                self.path, timeout=60, isolation_level=None, check_same_thread=False
            )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # durable when the commit returns
            migrate(self._db, self.path)
        except sqlite3.Error as error:
            raise LedgerError(f"{path}: not a ledger: {error}", path=self.path) from error

    def close(self) -> None:
        """Let go of all claims and of the file."""
        with self._lock:
            if self._owner is not None:
                self._db.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
                self._owner.close()
            self._db.close()

    def append(self, search: str, entries: Sequence[Entry]) -> None:
        """Write entries behind those that are there; durable when it returns."""
        self.append_all([(search, entries)])

    def append_all(self, groups: Sequence[tuple[str, Sequence[Entry]]]) -> None:
        """Write entries of several searches in one go, which costs as much as one append."""
        numbers: dict[str, int] = {}
        with self._transaction() as db:
            for search, entries in groups:
                number = numbers.get(search, self._next_number(db, search))
                rows = [self._row(db, search, number + i, e) for i, e in enumerate(entries)]
                db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", rows)
                self._index(db, search, entries)
                numbers[search] = number + len(entries)
        self._numbers |= numbers  # only what is committed counts

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT number, kind, body FROM entries WHERE search = ? ORDER BY number", (search,)
            ).fetchall()
            if [number for number, _, _ in rows] != list(range(len(rows))):
                raise LedgerError(f"{self.path}: search {search} has gaps", path=self.path)
            entries = [self._entry(db, kind, body) for _, kind, body in rows]
        self._numbers[search] = len(entries)
        return entries

    def claim(self, search: str) -> bool:
        """Make the search ours until `release`; False while it is somebody else's who lives."""
        with self._transaction() as db:
            if self._owner is None:
                self._owner = Owner(Path(f"{self.path}.owners"))
            row = db.execute("SELECT owner FROM claims WHERE search = ?", (search,)).fetchone()
            if row is not None and self._owner.is_alive(row[0]):
                return False
            db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (search, self._owner.name))
        self._numbers.pop(search, None)  # somebody else may have written since
        return True

    def release(self, search: str) -> None:
        """Let go of a search."""
        with self._transaction() as db:
            db.execute("DELETE FROM claims WHERE search = ?", (search,))

    def searches(self) -> Iterator[SearchSummary]:
        """All searches, oldest first."""
        with self._reading() as db:
            rows = db.execute("SELECT * FROM searches ORDER BY started, id").fetchall()
        return (SearchSummary(*row) for row in rows)

    def check(self) -> list[str]:
        """What is wrong with the ledger, a line each; nothing if all is well."""
        found = []
        with self._reading() as db:
            for hash, text in db.execute("SELECT hash, text FROM texts"):
                if hash != _hash(text):
                    found.append(f"a text is not what its hash {hash} says")
            ids = [
                id for (id,) in db.execute("SELECT DISTINCT search FROM entries ORDER BY search")
            ]
        listed = {summary.id: summary for summary in self.searches()}
        for id in ids:
            try:
                entries = self.read(id)
            except LedgerError as error:
                found.append(str(error))
                continue
            if id not in listed or replace(listed[id], started=0, ended=None) != _summary(
                id, entries
            ):
                found.append(f"search {id} is not what the index says")
        return found

    def _row(
        self, db: sqlite3.Connection, search: str, number: int, entry: Entry
    ) -> tuple[str, int, str, float, str]:
        if isinstance(entry, Made):
            hash = _hash(entry.text)
            db.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (hash, entry.text))
            entry = replace(entry, text=hash)
        return (search, number, kind_of(entry), time.time(), to_text(entry))

    def _entry(self, db: sqlite3.Connection, kind: str, body: str) -> Entry:
        entry = from_text(kind, body)
        if isinstance(entry, Made):
            row = db.execute("SELECT text FROM texts WHERE hash = ?", (entry.text,)).fetchone()
            if row is None:
                raise LedgerError(f"{self.path}: the text {entry.text} is gone", path=self.path)
            entry = replace(entry, text=row[0])
        return entry

    def _index(self, db: sqlite3.Connection, search: str, entries: Iterable[Entry]) -> None:
        for entry in entries:
            match entry:
                case Started(problem):
                    db.execute(
                        "INSERT OR IGNORE INTO searches (id, problem, started) VALUES (?, ?, ?)",
                        (search, problem, time.time()),
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

    def _next_number(self, db: sqlite3.Connection, search: str) -> int:
        if search not in self._numbers:
            query = "SELECT COALESCE(MAX(number) + 1, 0) FROM entries WHERE search = ?"
            (self._numbers[search],) = db.execute(query, (search,)).fetchone()
        return self._numbers[search]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except sqlite3.Error as error:
                raise LedgerError(f"{self.path}: {error}", path=self.path) from error


def _summary(id: str, entries: Sequence[Entry]) -> SearchSummary:
    """What the index should say, without the times."""
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
    content = json.dumps(text).encode()  # also texts with lone surrogates have one
    return _TAG + hashlib.blake2b(content, digest_size=16).hexdigest()
