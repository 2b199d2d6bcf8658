"""What ledgers in databases have in common: their tables, and how entries are written and read.

Entries are only appended, and sealed (seals.py). Each text is stored once, under a hash of its
content. The tables of searches and accounts are an index: they contain nothing that is not in the
entries, and `check` derives them again.

The promise: when `append` returns, the entries and the charge are on disk, together or not at all.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, fields
from typing import Any

from ..core.errors import LedgerError
from ..files import is_number, typed
from .batch import Batch, amount
from .entries import Charged, Data, Entry, Started, charge_of, from_text
from .feed import Feed
from .ledger import NO_CAPS, ROUNDING, Append, Caps, Listener
from .rows import Database, SearchSummary, read_rows, read_search, restored
from .seals import Seals


@dataclass(frozen=True)
class Totals:
    """Sums over the searches of an account with one outcome, which is None if they go on.

    `within` counts the searches that took at most the seconds of each bucket.
    """

    account: str
    outcome: str | None
    searches: int
    paid: float
    seconds: float
    within: tuple[int, ...]


class TableLedger(ABC):
    """A ledger in a database. Several threads and processes can use it at once.

    Attributes:
        path: where the ledger is, as messages show it.
        seals: makes and checks seals.
    """

    def __init__(self, path: str, seals: Seals) -> None:
        self.path, self.seals = path, seals
        self._lock = threading.RLock()
        self._feed: Feed | None = None

    _db: Database
    _failures: tuple[type[Exception], ...]  # what the database raises

    @contextmanager
    def _using(self) -> Iterator[Database]:
        """The connection, for this thread alone; errors of the database become LedgerErrors."""
        with self._lock:
            try:
                yield self._db
            except LedgerError as error:
                if str(error).startswith(self.path):
                    raise
                message = f"{self.path}: {error}"
                raise LedgerError(message, path=self.path, entry=error.entry) from error
            except self._failures as error:
                raise LedgerError(f"{self.path}: {first_line(error)}", path=self.path) from error

    @abstractmethod
    def _transaction(self, db: Database) -> AbstractContextManager[None]:
        """A durable transaction, during which no other process writes."""

    @abstractmethod
    def _snapshot(self, db: Database) -> AbstractContextManager[None]:
        """One consistent state to read, whatever other processes write meanwhile."""

    @abstractmethod
    def _stored(self, text: str) -> str | bytes:
        """A text in a form that the database can store."""

    @abstractmethod
    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""

    @abstractmethod
    def release(self, search: str) -> None:
        """Give up the claim on a search, if we have it."""

    @abstractmethod
    def claimed(self, searches: Sequence[str]) -> set[str]:
        """Those of the searches that a live owner has claimed."""

    @abstractmethod
    def containing(self, column: str, text: str) -> tuple[str, str | bytes]:
        """A condition that a column of texts contains a text, with one parameter, and its value."""

    @abstractmethod
    def close(self) -> None:
        """Release all claims and close the connection."""

    @abstractmethod
    def data_version(self) -> int:
        """A number that changes when another process writes; cheap to ask for."""

    def append(self, search: str, entries: Sequence[Entry], caps: Caps = NO_CAPS) -> None:
        """Append entries to a search; OverBudget if that exceeds a cap."""
        (error,) = self.append_all([Append(search, entries, caps)])
        if error is not None:
            raise error

    def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
        """Append several groups in one transaction; for each, None or why it was not appended."""
        with self._using() as db, self._transaction(db):
            batch = Batch(db, self.seals, self._stored)
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
            yield from read_search(db, search, self.seals)

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
        group, times = [entry for entry, _ in entries], [at for _, at in entries]
        if (more := paid - charge_of(group)) > ROUNDING * paid:
            group.append(Charged(more, "for entries that are lost"))
            times.append(times[-1])
        with self._using() as db, self._transaction(db):
            batch = Batch(db, self.seals, self._stored)
            if (error := batch.add(Append(search, group), times)) is not None:
                raise error
            batch.finish()

    def possibly_paid(self, account: str | None = "") -> float:
        """What all searches of an account have possibly paid; None is all accounts together."""
        which, values = ("", ()) if account is None else (" WHERE name = ?", (account,))
        with self._using() as db:
            rows = db.execute(f"SELECT paid FROM accounts{which}", values).fetchall()
        return sum((amount(paid) for (paid,) in rows), 0.0)

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
        with self._using() as db:
            rows = db.execute(query, (position,)).fetchall()
            entries = read_rows(db, [(kind, body) for _, _, kind, body in rows])
        return [
            (at, str(search), entry)
            for (at, search, _, _), entry in zip(rows, entries, strict=True)
            if not isinstance(entry, LedgerError)  # the reader of the search reports it
        ]

    def searches(self) -> Iterator[SearchSummary]:
        """All searches, oldest first."""
        with self._using() as db:
            rows = db.execute("SELECT * FROM searches ORDER BY started, id").fetchall()
        return iter(self.summaries(rows))

    def ended_searches(self) -> Sequence[tuple[str, Data]]:
        """The searches that have ended, with their last settings, in the order of their ends."""
        query = (
            "SELECT searches.id, entries.body FROM searches JOIN entries"
            " ON entries.search = searches.id AND entries.kind = 'started'"
            " WHERE searches.outcome IS NOT NULL AND searches.outcome != 'failed'"
            " ORDER BY searches.ended, searches.id, entries.number"
        )
        with self._using() as db:
            rows = db.execute(query).fetchall()
        found: dict[str, Data] = {}
        for search, body in rows:
            with suppress(LedgerError):  # the reader of the search reports it
                entry = from_text("started", str(body))
                if isinstance(entry, Started):
                    found[str(search)] = entry.about
        return list(found.items())

    def so_far(self) -> dict[str, tuple[int, int]]:
        """Candidates generated and verified, per search that has no bill yet."""
        with self._using() as db:
            rows = db.execute(
                "SELECT search, SUM(CASE kind WHEN 'made' THEN 1 ELSE 0 END),"
                " SUM(CASE kind WHEN 'found' THEN 1 ELSE 0 END) FROM entries"
                " WHERE search IN (SELECT id FROM searches WHERE generated IS NULL)"
                " GROUP BY search"
            ).fetchall()
        return {search: (int(generated), int(verified)) for search, generated, verified in rows}

    def totals(self, buckets: Sequence[float]) -> list[Totals]:
        """Sums over the searches, by account and outcome."""
        took = [f"SUM(CASE WHEN ended - started <= {each:g} THEN 1 ELSE 0 END)" for each in buckets]
        columns = ", ".join(["COUNT(*)", "SUM(paid)", "SUM(ended - started)", *took])
        query = f"SELECT account, outcome, {columns} FROM searches GROUP BY account, outcome"
        with self._using() as db:
            rows = db.execute(query).fetchall()
        return [
            Totals(
                str(account), outcome, int(count), amount(paid), float(seconds or 0), tuple(took)
            )
            for account, outcome, count, paid, seconds, *took in rows
        ]

    def results_since(self, position: int, most: int) -> list[tuple[int, str, str]]:
        """Position, kind and body of drafts and verdicts after a position; no bodies of drafts."""
        query = (
            "SELECT position, kind, CASE kind WHEN 'found' THEN body ELSE '' END FROM entries"
            " WHERE position > ? AND kind IN ('made', 'found') ORDER BY position LIMIT ?"
        )
        with self._using() as db:
            return db.execute(query, (position, most)).fetchall()

    def select(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows of a query, for pages that show a ledger."""
        with self._using() as db:
            return db.execute(query, values).fetchall()

    def summaries(self, rows: Iterable[Sequence[object]]) -> list[SearchSummary]:
        """Searches from rows with all columns of the index."""
        return [self._summary(row) for row in rows]

    def check(self) -> list[str]:
        """The faults of the ledger, one line each; empty if there are none."""
        from .checking import faults

        with self._using() as db, self._snapshot(db):
            return [*self._broken(db), *faults(db, self.seals)]

    def _broken(self, db: Database) -> Iterator[str]:
        """What the database itself finds broken."""
        return iter(())

    def _check_key(self, known: object) -> None:
        """Refuse a ledger that was sealed with another key, or without one."""
        if known == self.seals.name:
            return
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

    def _summary(self, row: Sequence[object]) -> SearchSummary:
        """A row of the index; a damaged one may hold values of any type."""
        names = [each.name for each in fields(SearchSummary)]
        record = dict(zip(names, row, strict=True))
        try:
            return typed(SearchSummary, {**record, "problem": restored(record["problem"])})
        except (LedgerError, ValueError) as error:
            message = f"{self.path}: the index of searches is broken: {error}"
            raise LedgerError(message, path=self.path) from error


def first_line(error: Exception) -> str:
    """The first line of what a database says."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
