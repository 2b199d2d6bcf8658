"""Entries as rows of the tables of a database, and back."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from json.encoder import encode_basestring_ascii
from typing import Any, Protocol

from ..core.errors import LedgerError
from ..files import LONGEST_LINE, shown
from .entries import (
    TEXTS,
    TOGETHER,
    Ended,
    Entry,
    Failed,
    Started,
    Told,
    generators_of,
    kind_of,
    row_from_text,
    to_text,
    with_generator,
)
from .seals import Seals

Row = tuple[str, int, str, float, str, str]  # search, number, kind, at, body, seal

# Of a damaged file, SQLite's message may contain bytes of it, which Python cannot always decode.
BROKEN = (sqlite3.Error, UnicodeDecodeError)
_ENTRIES = "SELECT number, kind, at, body, seal FROM entries WHERE search = ? ORDER BY number"
TOO_LARGE = f"more than {LONGEST_LINE >> 20} MB"
_SMALL = LONGEST_LINE // 4  # characters that are never too large: each has at most 4 bytes
_TEXTS_AT_ONCE = 500
_LARGE_ROW = 1 << 20  # characters; several entries are not made one row that is larger
# Rows per statement: few sizes, so that prepared statements are reused.
_SIZES = (128, 64, 32, 16, 8, 4, 2, 1)
_TAG = "blake2b-16:"  # the algorithm of text hashes; another algorithm would get another tag


class Cursor(Protocol):
    """The result of a statement."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All other rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection: what SQLite and PostgreSQL have in common, with `?` for parameters."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        """Execute one statement."""

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object:
        """Execute one statement for each row."""


class SqlDialect:
    """How many values get into one statement. This is how SQLite does it."""

    def stored(self, text: str) -> str | bytes:
        """A text in a form that the database can store."""
        return storable(text)

    def among(self, column: str, values: Sequence[str]) -> tuple[str, Sequence[object]]:
        """A condition that a column has one of the values, and its parameters."""
        return f"{column} IN ({', '.join('?' * len(values))})", values

    def insert(
        self,
        db: Database,
        table: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        conflict: str = "",
    ) -> None:
        """Insert rows, many per statement: other threads may run between two statements."""
        places = f"({', '.join('?' * len(columns))})"
        start = 0
        while start < len(rows):
            count = next(size for size in _SIZES if size <= len(rows) - start)
            values = [value for row in rows[start : start + count] for value in row]
            listed = ", ".join([places] * count)
            statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {listed} {conflict}"
            db.execute(statement, values)
            start += count

    def pay(self, db: Database, paid: Sequence[tuple[str, float]]) -> None:
        """Set what searches have possibly paid, by id."""
        rows = [(amount, search) for search, amount in paid]
        db.executemany("UPDATE searches SET paid = ? WHERE id = ?", rows)


@dataclass(frozen=True)
class SearchSummary:
    """A summary of one search. `outcome` is None until it has ended; `paid` is possibly paid."""

    id: str
    problem: str
    started: float
    ended: float | None
    outcome: str | None
    generated: int | None
    verified: int | None
    total: float | None
    account: str = ""
    paid: float = 0.0


@dataclass(frozen=True, slots=True)
class Unsealed:
    """A row that has no place in its search yet, so no number and no seal."""

    kind: str
    count: int
    at: float
    body: str


def unsealed(
    entries: Sequence[Entry], times: Sequence[float], texts: dict[str, str]
) -> list[Unsealed]:
    """The rows of new entries. Their texts, which have a table of their own, go to `texts`."""
    rows = []
    start = 0
    while start < len(entries):
        count = _together(entries, times, start)
        kind = kind_of(entries[start])
        body = _body(kind, entries[start : start + count], texts)
        while count > 1 and len(body) > _LARGE_ROW:
            count //= 2
            body = _body(kind, entries[start : start + count], texts)
        if len(body) > _SMALL:
            _check_size(body, kind)
        rows.append(Unsealed(kind, count, times[start], body))
        start += count
    return rows


def sealed(end: tuple[int, str], search: str, rows: Sequence[Unsealed], seals: Seals) -> list[Row]:
    """The rows with numbers and seals that continue those of the search."""
    number, seal = end
    complete = []
    for row in rows:
        number += row.count
        seal = seals.entry(seal, search, number, row.at, row.kind, row.body)
        complete.append((search, number, row.kind, row.at, row.body, seal))
    return complete


def _together(entries: Sequence[Entry], times: Sequence[float], start: int) -> int:
    """How many entries from `start` on arrived together, and so become one row."""
    first = type(entries[start])
    end = start + 1
    if first in TOGETHER:
        while end < len(entries) and type(entries[end]) is first and times[end] == times[start]:
            end += 1
    return end - start


def _body(kind: str, entries: Sequence[Entry], texts: dict[str, str]) -> str:
    """The body of a row; the texts of its entries are added to `texts`."""
    if kind not in TEXTS:
        return to_text(*entries)
    return to_text(*entries, hashes=[_hashes(TEXTS[kind], kind, each, texts) for each in entries])


def _hashes(names: Sequence[str], kind: str, entry: Entry, texts: dict[str, str]) -> dict[str, str]:
    """The hashes of an entry's texts by field; the texts are added to `texts`."""
    hashes: dict[str, str] = {}
    for name in names:
        if text := getattr(entry, name):
            if len(text) > _SMALL:
                _check_size(text, kind)
            hashes[name] = hash_of(text)
            texts[hashes[name]] = text
    return hashes


def _check_size(text: str, kind: str) -> None:
    """Refuse to write what could not be read again."""
    if len(text) > LONGEST_LINE or len(text.encode("utf-8", "surrogatepass")) > LONGEST_LINE:
        raise LedgerError(f"an entry {kind!r} of {TOO_LARGE} cannot be recorded")


def read_rows(db: Database, rows: Sequence[tuple[str, str]]) -> list[Sequence[Entry] | LedgerError]:
    """The entries of rows, of which kind and body are given, with their texts; or what is wrong."""
    results: list[Sequence[Entry] | LedgerError] = []
    hashes: set[str] = set()
    for kind, body in rows:
        try:
            entries = row_from_text(kind, body)
        except LedgerError as error:
            results.append(error)
            continue
        results.append(entries)
        for name in TEXTS.get(kind, ()):
            hashes.update([getattr(entry, name) for entry in entries])
    texts = _texts(db, sorted(hash for hash in hashes if hash and hash.isascii()))
    return [row if isinstance(row, LedgerError) else _filled_row(row, texts) for row in results]


def _filled_row(
    entries: Sequence[Entry], texts: dict[str, object]
) -> Sequence[Entry] | LedgerError:
    """The entries of a row with their texts in place of their hashes."""
    filled: list[Entry] = []
    for entry in entries:
        result = _filled(entry, texts)
        if isinstance(result, LedgerError):
            return result
        filled.append(result)
    return filled


def _filled(entry: Entry, texts: dict[str, object]) -> Entry | LedgerError:
    """The entry with its texts in place of their hashes."""
    found: dict[str, Any] = {}  # fields of this entry, by `TEXTS`
    for name in TEXTS.get(kind_of(entry), ()):
        hash = getattr(entry, name)
        if not hash:
            continue
        if hash not in texts:
            return LedgerError(f"the text {shown(hash)} is missing")
        try:
            text = restored(texts[hash])
        except LedgerError as error:
            return error
        if hash_of(text) != hash:
            return LedgerError(f"the text {shown(hash)} was changed")
        found[name] = text
    return replace(entry, **found) if found else entry


def read_search(db: Database, search: str, seals: Seals) -> Iterator[tuple[Entry, float]]:
    """The entries of a search with their times; a LedgerError at the first damaged one.

    Entries are sealed, so those of an older format stay as they are. They are brought to the
    current format here, when they are read.
    """
    rows: list[CheckedRow] = []
    generators: tuple[str, ...] = ()
    damage: LedgerError | None = None
    try:
        rows.extend(checked_rows(db.execute(_ENTRIES, (search,)).fetchall(), search, seals))
    except LedgerError as error:
        damage = error
    results = read_rows(db, [(row.kind, row.body) for row in rows])
    for row, entries in zip(rows, results, strict=True):
        if isinstance(entries, LedgerError):
            message = f"search {search}, entry {row.first}: {entries}"
            raise LedgerError(message, entry=row.first) from entries
        if len(entries) != row.count:
            raise _gaps(search, row.first)
        for entry in entries:
            if isinstance(entry, Started):
                generators = generators_of(entry)
            elif isinstance(entry, Told) and generators:
                entry = with_generator(entry, generators)
            yield entry, row.at
    if damage is not None:
        raise damage


def _texts(db: Database, hashes: Sequence[str]) -> dict[str, object]:
    """Texts by hash, as they are stored."""
    texts: dict[str, object] = {}
    for start in range(0, len(hashes), _TEXTS_AT_ONCE):
        some = hashes[start : start + _TEXTS_AT_ONCE]
        places = ", ".join("?" * len(some))
        texts |= dict(db.execute(f"SELECT hash, text FROM texts WHERE hash IN ({places})", some))
    return texts


INDEXED = (Started, Ended, Failed)  # the entries that the index of searches has
_STARTED = ("id", "problem", "started", "account")


def index(db: Database, new: Sequence[tuple[str, float, Entry]], dialect: SqlDialect) -> None:
    """Update the index of searches for new entries, each with its search and time."""
    started = [
        (search, dialect.stored(entry.problem), moment, entry.account)
        for search, moment, entry in new
        if isinstance(entry, Started)
    ]
    dialect.insert(db, "searches", _STARTED, started, "ON CONFLICT DO NOTHING")
    for search, moment, entry in new:
        match entry:
            case Ended(_, _, generated, verified, total):
                db.execute(
                    "UPDATE searches SET ended = ?, outcome = ?, generated = ?, verified = ?,"
                    " total = ? WHERE id = ?",
                    (moment, entry.outcome, generated, verified, total, search),
                )
            case Failed():
                db.execute(
                    "UPDATE searches SET ended = ?, outcome = 'failed' WHERE id = ?",
                    (moment, search),
                )


def summarized(id: str, entries: Iterable[tuple[Entry, float]]) -> SearchSummary:
    """The correct row of the index, from the entries and their times; without what was paid."""
    summary = SearchSummary(id, "", 0.0, None, None, None, None, None)
    begun = False
    for entry, moment in entries:
        match entry:
            case Started(problem, account=account) if not begun:
                begun = True
                summary = replace(summary, problem=problem, started=moment, account=account)
            case Ended(_, _, generated, verified, total):
                summary = replace(summary, ended=moment, outcome=entry.outcome)
                summary = replace(summary, generated=generated, verified=verified, total=total)
            case Failed():
                summary = replace(summary, ended=moment, outcome="failed")
    return summary


def hash_of(text: str) -> str:
    """The name of a text in the ledger."""
    content = encode_basestring_ascii(text).encode()  # this works for lone surrogates too
    return _TAG + hashlib.blake2b(content, digest_size=16).hexdigest()


def storable(text: str) -> str | bytes:
    """The text in a form that SQLite can store; it refuses lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def restored(stored: object) -> str:
    """The text that was stored; a `LedgerError` if it is none."""
    try:
        if isinstance(stored, bytes):
            return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise LedgerError("a text is not UTF-8") from error
    if stored is None:
        raise LedgerError(f"a text of {TOO_LARGE}")
    if not isinstance(stored, str):
        raise LedgerError(f"a text is none: {shown(stored)}")
    return stored


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row whose seal is right: the number of its first entry, and of how many it should be."""

    first: int
    count: int
    kind: str
    at: float
    body: str


def checked_rows(
    rows: Iterable[Sequence[object]], search: str, seals: Seals
) -> Iterator[CheckedRow]:
    """The rows of a search, as long as their numbers and seals are right."""
    seal = ""
    first = 0
    for number, kind, moment, body, sealed in rows:
        if not isinstance(number, int) or number < first:
            raise _gaps(search, first)
        if body is None:  # PostgreSQL does not send such a value; SQLite refuses it
            raise LedgerError(f"search {search}, entry {first}: {TOO_LARGE}", entry=first)
        if not (isinstance(kind, str) and isinstance(moment, float) and isinstance(body, str)):
            raise LedgerError(f"search {search}, entry {first}: not an entry", entry=first)
        if number > first and not body.startswith("["):
            raise _gaps(search, first)
        seal = seals.entry(seal, search, number, moment, kind, body)
        if seal != sealed:
            message = f"search {search}, entry {first}: changed since it was written"
            raise LedgerError(message, entry=first)
        yield CheckedRow(first, number + 1 - first, kind, moment, body)
        first = number + 1


def _gaps(search: str, entry: int) -> LedgerError:
    return LedgerError(f"search {search} has gaps", entry=entry)
