"""Entries as rows of the tables of a database, and back."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Protocol

from ..core.errors import LedgerError
from ..files import LONGEST_LINE, shown
from .entries import (
    TEXTS,
    Ended,
    Entry,
    Failed,
    Started,
    Told,
    from_text,
    generators_of,
    kind_of,
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


Stored = Callable[[str], str | bytes]  # a text in a form that the database can store


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


def rows_of(
    end: tuple[int, str],
    search: str,
    entries: Sequence[Entry],
    texts: dict[str, str],
    seals: Seals,
    times: Iterable[float] | None = None,
) -> list[Row]:
    """The rows of new entries, with numbers and seals that continue those of the search.

    Their texts, which have a table of their own, are added to `texts`. What is written together has
    one time, unless `times` are given.
    """
    number, seal = end
    rows = []
    moments: Iterable[float] = repeat(time.time()) if times is None else times
    for entry, moment in zip(entries, moments, strict=False):
        kind = kind_of(entry)
        hashes: dict[str, str] = {}
        for name in TEXTS.get(kind, ()):
            if text := getattr(entry, name):
                _check_size(text, kind)
                hashes[name] = hash_of(text)
                texts[hashes[name]] = text
        body = to_text(entry, hashes)
        if len(body) > _SMALL:
            _check_size(body, kind)
        number += 1
        seal = seals.entry(seal, search, number, moment, kind, body)
        rows.append((search, number, kind, moment, body, seal))
    return rows


def _check_size(text: str, kind: str) -> None:
    """Refuse to write what could not be read again."""
    if len(text) <= _SMALL:
        return
    if len(text) > LONGEST_LINE or len(text.encode("utf-8", "surrogatepass")) > LONGEST_LINE:
        raise LedgerError(f"an entry {kind!r} of {TOO_LARGE} cannot be recorded")


def read_rows(db: Database, rows: Sequence[tuple[str, str]]) -> list[Entry | LedgerError]:
    """The entries of rows, of which kind and body are given, with their texts; or what is wrong."""
    results: list[Entry | LedgerError] = []
    hashes: set[str] = set()
    for kind, body in rows:
        try:
            entry = from_text(kind, body)
        except LedgerError as error:
            results.append(error)
            continue
        results.append(entry)
        hashes |= {getattr(entry, name) for name in TEXTS.get(kind, ())}
    texts = _texts(db, sorted(hash for hash in hashes if hash and hash.isascii()))
    return [each if isinstance(each, LedgerError) else _filled(each, texts) for each in results]


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
    rows: list[tuple[str, float, str]] = []
    generators: tuple[str, ...] = ()
    damage: LedgerError | None = None
    try:
        rows.extend(checked_rows(db.execute(_ENTRIES, (search,)).fetchall(), search, seals))
    except LedgerError as error:
        damage = error
    entries = read_rows(db, [(kind, body) for kind, _, body in rows])
    for number, (entry, (_, moment, _)) in enumerate(zip(entries, rows, strict=True)):
        if isinstance(entry, LedgerError):
            message = f"search {search}, entry {number}: {entry}"
            raise LedgerError(message, entry=number) from entry
        if isinstance(entry, Started):
            generators = generators_of(entry)
        elif isinstance(entry, Told) and generators:
            entry = with_generator(entry, generators)
        yield entry, moment
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


def insert(db: Database, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, many per statement: other threads may run between two statements.

    The statement has `{}` in place of its rows.
    """
    start = 0
    while start < len(rows):
        count = next(size for size in _SIZES if size <= len(rows) - start)
        some = rows[start : start + count]
        places = f"({', '.join('?' * len(some[0]))})"
        values = [value for row in some for value in row]
        db.execute(statement.format(", ".join([places] * count)), values)
        start += count


INDEXED = (Started, Ended, Failed)  # the entries that the index of searches has


def index(db: Database, new: Iterable[tuple[Row, Entry]], stored: Stored) -> None:
    """Update the index of searches for new entries."""
    for (search, _, _, moment, *_), entry in new:
        match entry:
            case Started(problem, account=account):
                db.execute(
                    "INSERT INTO searches (id, problem, started, account) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT DO NOTHING",
                    (search, stored(problem), moment, account),
                )
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
    content = json.dumps(text).encode()  # this works for lone surrogates too
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


def checked_rows(
    rows: Iterable[Sequence[object]], search: str, seals: Seals
) -> Iterator[tuple[str, float, str]]:
    """Kind, time and body of the rows of a search, as long as their numbers and seals are right."""
    seal = ""
    for expected, (number, kind, moment, body, sealed) in enumerate(rows):
        if number != expected:
            raise LedgerError(f"search {search} has gaps", entry=expected)
        if body is None:  # PostgreSQL does not send such a value; SQLite refuses it
            raise LedgerError(f"search {search}, entry {expected}: {TOO_LARGE}", entry=expected)
        if not (isinstance(kind, str) and isinstance(moment, float) and isinstance(body, str)):
            raise LedgerError(f"search {search}, entry {expected}: not an entry", entry=expected)
        seal = seals.entry(seal, search, expected, moment, kind, body)
        if seal != sealed:
            message = f"search {search}, entry {expected}: changed since it was written"
            raise LedgerError(message, entry=expected)
        yield kind, moment, body
