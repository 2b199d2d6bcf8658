"""What ledgers in databases have in common: their tables, and how entries are written and read.

Entries are only appended, and sealed (seals.py). Each text is stored once, under a hash of its
content. The tables of searches and accounts are an index: they contain nothing that is not in the
entries, and `check` derives them again.

The promise: when `append` returns, the entries and the charge are on disk, together or not at all.
"""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Literal

from ..core.errors import LedgerError
from ..files import is_number, typed
from .batch import Batch, KnownIndex, PreparedGroup, amount
from .entries import Charged, Data, Entry, Started, charge_of, from_text
from .feed import Feed
from .ledger import NO_CAPS, ROUNDING, Append, Caps, Listener, SearchStanding
from .rows import (
    TOO_LARGE,
    Cursor,
    Database,
    SearchSummary,
    SqlDialect,
    read_rows,
    read_search,
    restored,
)
from .seals import Seals
from .view import SearchView

_AT_ONCE = 500  # parameters of a query
_SUMMARY = tuple(each.name for each in fields(SearchSummary))
_STANDINGS = (
    "SELECT id, searches.paid, outcome, (SELECT MAX(number) FROM entries WHERE search = id)"
    " FROM searches WHERE id IN ({})"
)
_COUNTED = (  # drafts: a row may have several, and its number is that of the last one
    "SELECT search, SUM(count) FROM (SELECT search, kind, number - LAG(number, 1, -1) OVER"
    " (PARTITION BY search ORDER BY number) AS count FROM entries WHERE search IN ({})) counted"
    " WHERE kind = 'made' GROUP BY search"
)
_Last = tuple[str, int, str]  # search, number and seal of an entry
Doing = Literal["waiting for review", "running", "waiting for its turn", "stopped"]


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


@dataclass(frozen=True)
class SoFar:
    """What a search has bought so far: candidates, verifications, and candidates that wait."""

    generated: int
    verified: int
    waiting: int


class _Using:
    """The context in which a thread uses the connection of a ledger.

    A class, because it is entered several times for each request of a server, and a generator takes
    several times as long.
    """

    def __init__(
        self,
        path: str,
        db: Database,
        lock: AbstractContextManager[object],
        failures: tuple[type[Exception], ...],
    ) -> None:
        self._path = path
        self._db = db
        self._lock = lock
        self._failures = failures

    def __enter__(self) -> Database:
        self._lock.__enter__()
        return self._db

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.__exit__(kind, error, traceback)
        path = self._path
        if isinstance(error, LedgerError):
            if not str(error).startswith(path):
                raise LedgerError(f"{path}: {error}", path=path, entry=error.entry) from error
        elif isinstance(error, self._failures):
            raise LedgerError(f"{path}: {first_line(error)}", path=path) from error


class TableLedger(ABC):
    """A ledger in a database. Several threads and processes can use it at once.

    Attributes:
        path: where the ledger is, as messages show it.
        seals: makes and checks seals.
        charged: what was charged through this object, and so by this process.
    """

    def __init__(self, path: str, seals: Seals) -> None:
        self.path = path
        self.seals = seals
        self.charged = 0.0
        self._last: _Last | None = None  # an entry that must stay; None before the first one
        self._lock = threading.RLock()
        self._feed: Feed | None = None
        self._known = KnownIndex()  # of the last transaction
        self._followed: Counter[str] = Counter()  # schedules that runs of this process follow

    _db: Database
    _dialect = SqlDialect()
    _failures: tuple[type[Exception], ...]  # what the database raises
    _taken: tuple[type[Exception], ...] = ()  # those that say that a number is taken

    def _using(self) -> AbstractContextManager[Database]:
        """The connection, for this thread alone; errors of the database become LedgerErrors."""
        return _Using(self.path, self._db, self._lock, self._failures)

    @abstractmethod
    def _transaction(self, db: Database) -> AbstractContextManager[None]:
        """A durable transaction, during which no other process writes."""

    @abstractmethod
    def _snapshot(self, db: Database) -> AbstractContextManager[None]:
        """One consistent state to read, whatever other processes write meanwhile."""

    @abstractmethod
    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""

    @abstractmethod
    def release(self, search: str) -> None:
        """Give up the claim on a search, if we have it."""

    def _release_within(self, db: Database, searches: Sequence[str]) -> bool:
        """Give up claims in the open transaction; False if this ledger cannot."""
        return False

    @abstractmethod
    def claimed(self, searches: Sequence[str]) -> set[str]:
        """Those of the searches that a live owner has claimed."""

    @abstractmethod
    def is_followed(self) -> bool:
        """Whether a live process follows a schedule, by which searches wait for their turn."""

    def doing(self, searches: Iterable[str], in_review: Container[str]) -> dict[str, Doing]:
        """What searches without an outcome do; `in_review` has those that wait for a person.

        A search that waits for its turn has no claim, so nothing says which run it is in. If a live
        process follows a schedule, the searches that nobody has claimed wait.
        """
        ids = list(searches)
        running = self.claimed(ids)
        idle: Doing = "waiting for its turn" if ids and self.is_followed() else "stopped"
        return {
            id: "waiting for review" if id in in_review else "running" if id in running else idle
            for id in ids
        }

    @abstractmethod
    def containing(self, column: str, text: str) -> tuple[str, str | bytes]:
        """A condition that a column of texts contains a text, with one parameter, and its value."""

    @abstractmethod
    def close(self) -> None:
        """Release all claims and close the connection."""

    def rest(self) -> None:  # noqa: B027 - a database server keeps its pages itself
        """Take less memory while nothing is read or written."""

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
        prepared = [PreparedGroup(group) for group in groups]
        return self._append(lambda db: prepared)

    def append_after(
        self, search: str, decide: Callable[[Sequence[Entry]], Sequence[Entry]]
    ) -> None:
        """Append what `decide` makes of the entries so far. No other process writes meanwhile.

        If `decide` raises, nothing is appended.
        """

        def decided(db: Database) -> Sequence[PreparedGroup]:
            recorded = [entry for entry, _ in read_search(db, search, self.seals)]
            return [PreparedGroup(Append(search, decide(recorded)))]

        with self._lock:
            self._known.searches.pop(search, None)  # others may have added to it
            (error,) = self._append(decided)
        if error is not None:
            raise error

    def _append(
        self, groups_of: Callable[[Database], Sequence[PreparedGroup]]
    ) -> Sequence[Exception | None]:
        """Append the groups that `groups_of` returns inside the transaction."""
        with self._using() as db:
            try:
                batch, groups, errors = self._write(db, groups_of)
            except self._taken:  # somebody has added to a search whose end was known
                batch, groups, errors = self._write(db, groups_of)
            self._known = batch.known
            self._last = batch.last or self._last
            charges = [
                prepared.group.charge
                for prepared, error in zip(groups, errors, strict=True)
                if error is None
            ]
            self.charged += sum(charges)
            if any(charge > 0 for charge in charges):
                self._check_place()  # after the commit: now the others see what is reserved
        if self._feed is not None:
            self._feed.deliver()
        return errors

    def _write(
        self, db: Database, groups_of: Callable[[Database], Sequence[PreparedGroup]]
    ) -> tuple[Batch, Sequence[PreparedGroup], Sequence[Exception | None]]:
        """One transaction. All its questions are asked before the first answer is read."""
        with self._transaction(db):
            last = self._ask_last(db)
            batch = Batch(db, self.seals, self._dialect, self._known_index(db))
            groups = groups_of(db)
            batch.ask(prepared.group.search for prepared in groups)
            self._check_last(last)
            self._renew(batch.known)
            batch.read()
            errors = [batch.add(group) for group in groups]
            batch.finish()
            released = [
                prepared.group
                for prepared, error in zip(groups, errors, strict=True)
                if prepared.group.releases and error is None
            ]
            if released and not self._release_within(db, [group.search for group in released]):
                released = []
        for group in released:
            group.released = True
        return batch, groups, errors

    def _known_index(self, db: Database) -> KnownIndex:
        """What is known of the index inside this transaction; it is known again after it."""
        return KnownIndex()

    def _renew(self, known: KnownIndex) -> None:  # noqa: B027 - SQLite says what is still right
        """Read again what others may have changed of what is known."""

    def _note_last(self, db: Database) -> None:
        """Remember the newest entry: whatever others write, it must stay."""
        query = "SELECT search, number, seal FROM entries ORDER BY position DESC LIMIT 1"
        row = db.execute(query).fetchone()
        self._last = None if row is None else (row[0], row[1], row[2])

    def _ask_last(self, db: Database) -> Cursor | None:
        """Ask for the entry that must stay; None if there is none."""
        if self._last is None:
            return None
        search, number, _ = self._last
        return db.execute(
            "SELECT seal FROM entries WHERE search = ? AND number = ?", (search, number)
        )

    def _check_last(self, found: Cursor | None) -> None:
        """Refuse to write if an entry is gone that was there: the ledger is another one now."""
        if found is None or self._last is None:
            return
        if found.fetchone() != (self._last[2],):
            raise LedgerError(
                "replaced by another ledger, or by an older copy, while this process used it; put"
                " the right one back, then run the same command again"
            )

    def _check_place(self) -> None:  # noqa: B027 - a database stays at its address
        """Refuse to spend if the ledger is not the one any more that other processes open."""

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

    def standings(self, searches: Sequence[str]) -> Sequence[SearchStanding]:
        """How far each of these searches is."""
        standings: dict[str, SearchStanding] = {}
        for first in range(0, len(searches), _AT_ONCE):
            some = searches[first : first + _AT_ONCE]
            with self._using() as db:
                rows = db.execute(_STANDINGS.format(", ".join("?" * len(some))), some).fetchall()
            for search, paid, outcome, last in rows:
                entries = int(last) + 1 if is_number(last) else 0
                ended = outcome if isinstance(outcome, str) else None
                standings[str(search)] = SearchStanding(entries, amount(paid), ended)
        return [standings.get(search, SearchStanding()) for search in searches]

    def follow(self, schedule: str) -> str | None:
        """Note that this process follows a schedule; or return another one that is followed."""
        with self._using() as db:
            if self._followed:
                other = next((each for each in self._followed if each != schedule), None)
            else:
                other = self._follow(db, schedule)
            if other is None:
                self._followed[schedule] += 1
            return other

    def leave(self, schedule: str) -> None:
        """Follow a schedule no more."""
        with self._using() as db:
            self._followed = +(self._followed - Counter([schedule]))
            if not self._followed:
                self._leave(db, schedule)

    @abstractmethod
    def _follow(self, db: Database, schedule: str) -> str | None:
        """Note it for other processes; or return the schedule that one of them follows."""

    @abstractmethod
    def _leave(self, db: Database, schedule: str) -> None:
        """Take back the note."""

    def restore(self, search: str, entries: Sequence[tuple[Entry, float]], paid: float) -> None:
        """Append the entries of another ledger with their times, and what was paid for them.

        `paid` comes from its index, which may be damaged: the entries charge at least their own.
        """
        group = [entry for entry, _ in entries]
        times = [at for _, at in entries]
        if (more := paid - charge_of(group)) > ROUNDING * paid:
            group.append(Charged(more, "for entries that are lost"))
            times.append(times[-1])
        with self._using() as db, self._transaction(db):
            self._known = KnownIndex()
            batch = Batch(db, self.seals, self._dialect, KnownIndex())
            batch.ask([search])
            batch.read()
            if (error := batch.add(PreparedGroup(Append(search, group), times))) is not None:
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
            results = read_rows(db, [(kind, body) for _, _, kind, body in rows])
        return [
            (at, str(search), entry)
            for (at, search, _, _), entries in zip(rows, results, strict=True)
            if not isinstance(entries, LedgerError)  # the reader of the search reports it
            for entry in entries
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
        return list(_settings(rows).items())

    def oldest_first(self) -> list[str]:
        """The ids of all searches, in the order of `searches`."""
        return [str(id) for (id,) in self.select("SELECT id FROM searches ORDER BY started, id")]

    def settings(self) -> dict[str, Data]:
        """The last settings of each search that has begun."""
        query = "SELECT search, body FROM entries WHERE kind = 'started' ORDER BY search, number"
        return _settings(self.select(query))

    def scored_searches(self) -> set[str]:
        """The searches with a score of a candidate."""
        rows = self.select("SELECT DISTINCT search FROM entries WHERE kind = 'scored'")
        return {str(search) for (search,) in rows}

    def open_at_end(self, search: str, most: int) -> Sequence[tuple[str, Data, int]]:
        """The searches that had begun and not ended when another one ended last."""
        query = (
            "SELECT search, MAX(number) + 1 FROM entries WHERE search != ? AND position <"
            " (SELECT MAX(position) FROM entries WHERE search = ? AND kind = 'ended')"
            " GROUP BY search HAVING SUM(CASE WHEN kind = 'ended' THEN 1 ELSE 0 END) = 0"
            " ORDER BY MIN(position) LIMIT ?"
        )
        with self._using() as db:
            counts = db.execute(query, (search, search, most)).fetchall()
        settings: dict[str, Data] = {}
        for first in range(0, len(counts), _AT_ONCE):
            some = [str(name) for name, _ in counts[first : first + _AT_ONCE]]
            places = ", ".join("?" * len(some))
            starts = (
                f"SELECT search, body FROM entries WHERE search IN ({places})"
                " AND kind = 'started' ORDER BY search, number"
            )
            settings |= _settings(self.select(starts, some))
        return [
            (str(name), settings[str(name)], int(count))
            for name, count in counts
            if str(name) in settings
        ]

    def so_far(self, searches: Sequence[str] | None = None) -> dict[str, SoFar]:
        """What searches have bought so far; by default those that have no bill yet."""
        if searches is None:
            with self._using() as db:
                rows = db.execute("SELECT id FROM searches WHERE generated IS NULL").fetchall()
            searches = [str(id) for (id,) in rows]
        made = Counter[str]()
        entries: dict[str, list[Entry]] = {search: [] for search in searches}
        for first in range(0, len(searches), _AT_ONCE):
            some = searches[first : first + _AT_ONCE]
            places = ", ".join("?" * len(some))
            with self._using() as db:
                counts = db.execute(
                    _COUNTED.format(places),
                    some,
                ).fetchall()
                rows = db.execute(
                    f"SELECT search, kind, body FROM entries WHERE search IN ({places})"
                    " AND kind IN ('started', 'parked', 'found') ORDER BY search, number",
                    some,
                ).fetchall()
            made.update({str(search): int(count) for search, count in counts})
            for search, kind, body in rows:
                with suppress(LedgerError):  # the reader of the search reports it
                    entries[str(search)].append(from_text(kind, body))
        views = {search: SearchView(some) for search, some in entries.items()}
        return {
            search: SoFar(made[search], view.tally.verifications, len(view.waiting))
            for search, view in views.items()
        }

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

    def results_since(self, position: int, most: int) -> list[tuple[int, str, str, str]]:
        """Position, search, kind and body of starts and results after a position."""
        query = (
            "SELECT position, search, kind, body FROM entries WHERE position > ? AND kind IN"
            " ('started', 'made', 'scored', 'scoredagain', 'found') ORDER BY position LIMIT ?"
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
        record = dict(zip(_SUMMARY, row, strict=True))
        try:
            summary = typed(SearchSummary, {**record, "problem": restored(record["problem"])})
            amount(summary.paid)
            amount(summary.total or 0)
            return summary
        except (LedgerError, ValueError) as error:
            message = f"{self.path}: the index of searches is broken: {error}"
            raise LedgerError(message, path=self.path) from error


def _settings(starts: Iterable[Sequence[Any]]) -> dict[str, Data]:
    """The last settings of each search, from the search and the body of each start."""
    settings: dict[str, Data] = {}
    for search, body in starts:
        with suppress(LedgerError):  # the reader of the search reports it
            entry = from_text("started", str(body))
            if isinstance(entry, Started):
                settings[str(search)] = entry.about
    return settings


def first_line(error: Exception) -> str:
    """The first line of what a database says."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG:
        return f"a record of {TOO_LARGE}"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
