"""Reads what the pages show from the tables of a ledger. Nothing here writes.

Every query is bounded: a page of rows, sums that the database computes over the index of searches,
or the newest part of the entries. So a ledger of 100,000 searches opens as fast as a small one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...core.errors import LedgerError
from ...ledger.entries import Entry, row_from_text
from ...ledger.rows import SearchSummary, restored
from ...ledger.tables import TableLedger
from ...ledger.view import SearchView

PAGE = 50  # searches per page
TEXTS = 1000  # the newest searches whose texts are looked through
UNFINISHED = 5000  # the newest unfinished searches of which it is known whether they run
_HASH = re.compile(r'"(blake2b-16:[0-9a-f]{32})"')
_AT_ONCE = 500  # parameters of a query

Show = Literal["all", "unfinished", "solved", "judged", "unsolved", "failed"]
Sort = Literal["newest", "cost", "ended"]
_SHOWN: Mapping[Show, str] = {
    "all": "1 = 1",
    "unfinished": "outcome IS NULL",
    "solved": "outcome = 'solved'",
    "judged": "outcome = 'judged'",
    "unsolved": "outcome IS NOT NULL AND outcome NOT IN ('solved', 'judged', 'failed')",
    "failed": "outcome = 'failed'",
}
_SORTED: Mapping[Sort, str] = {
    "newest": "started DESC, id DESC",
    "cost": "paid DESC, id DESC",
    "ended": "COALESCE(ended, 1e300) DESC, id DESC",
}


@dataclass(frozen=True)
class Filter:
    """Which searches are shown, and in which order.

    Attributes:
        show: those with this outcome.
        account: those of this account; None is all.
        text: those whose problem or id contains it.
        texts: whether to look for it in prompts and candidates too.
        sort: the order.
        page: the number of the page, from 0.
    """

    show: Show = "all"
    account: str | None = None
    text: str = ""
    texts: bool = False
    sort: Sort = "newest"
    page: int = 0


@dataclass(frozen=True)
class Listed:
    """A search in a list.

    Attributes:
        summary: what the index says of it.
        status: the outcome; for a search without one, what it does.
        waiting: how many of its candidates wait for a person.
    """

    summary: SearchSummary
    status: str
    waiting: int


class Store:
    """Queries on a ledger, which should be a connection of its own, only for reading."""

    def __init__(self, ledger: TableLedger) -> None:
        self.ledger = ledger

    def version(self) -> tuple[int, int]:
        """A value that changes with every new entry."""
        return self.ledger.data_version(), self.ledger.position()

    def changed_since(self, position: int, most: int) -> list[str]:
        """The searches with entries after a position, newest first; at most `most` entries back."""
        rows = self.ledger.select(
            "SELECT search FROM entries WHERE position > ? ORDER BY position DESC LIMIT ?",
            (position, most),
        )
        return list(dict.fromkeys(str(search) for (search,) in rows))

    def accounts(self) -> list[tuple[str, str, float]]:
        """Name and unit of each account, and what it has possibly paid."""
        rows = self.ledger.select("SELECT name, unit, paid FROM accounts ORDER BY name")
        return [(str(name), str(unit), float(paid)) for name, unit, paid in rows]

    def page(self, wanted: Filter) -> tuple[list[Listed], int]:
        """A page of searches, and the number of all that the filter admits."""
        where, values = self._where(wanted)
        (count,) = self.ledger.select(f"SELECT COUNT(*) FROM searches WHERE {where}", values)[0]
        rows = self.ledger.select(
            f"SELECT * FROM searches WHERE {where} ORDER BY {_SORTED[wanted.sort]}"
            " LIMIT ? OFFSET ?",
            (*values, PAGE, PAGE * wanted.page),
        )
        return self._listed(self.ledger.summaries(rows)), int(count)

    def one(self, search: str) -> Listed | None:
        """One search; None if there is no such search."""
        rows = self.ledger.select("SELECT * FROM searches WHERE id = ?", (search,))
        found = self._listed(self.ledger.summaries(rows))
        return found[0] if found else None

    def entries(self, search: str) -> tuple[list[tuple[Entry, float]], str]:
        """The entries of a search with their times, up to the first damaged one; and the damage."""
        found: list[tuple[Entry, float]] = []
        try:
            for each in self.ledger.intact(search):
                found.append(each)  # noqa: PERF402 - keeps those before the damage
        except LedgerError as error:
            return found, str(error)
        return found, ""

    def unfinished(self) -> list[str]:
        """The newest searches without an outcome."""
        rows = self.ledger.select(
            "SELECT id FROM searches WHERE outcome IS NULL ORDER BY started DESC LIMIT ?",
            (UNFINISHED,),
        )
        return [str(id) for (id,) in rows]

    def entries_of(self, searches: Sequence[str], *kinds: str) -> dict[str, list[Entry]]:
        """The entries of these kinds, by search, with hashes in place of texts."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for search, kind, body in self._rows_of(searches, kinds):
            try:
                found[search] += row_from_text(kind, body)
            except LedgerError:
                continue  # damaged: the page of the search says so
        return found

    def waiting(self, searches: Sequence[str]) -> dict[str, set[int]]:
        """The candidates of these searches that wait for a verdict from outside."""
        found: dict[str, set[int]] = {}
        for search, entries in self.entries_of(searches, "started", "parked", "found").items():
            waiting = SearchView(entries).waiting
            if waiting:
                found[search] = waiting
        return found

    def texts(self, hashes: Iterable[str]) -> dict[str, str]:
        """Texts by their hashes, as entries of `entries_of` have them."""
        wanted = sorted({hash for hash in hashes if hash})
        found = dict[str, str]()
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            places = ", ".join("?" * len(some))
            query = f"SELECT hash, text FROM texts WHERE hash IN ({places})"
            found |= {str(hash): restored(text) for hash, text in self.ledger.select(query, some)}
        return found

    def _rows_of(
        self, searches: Sequence[str], kinds: Sequence[str]
    ) -> Iterable[tuple[str, str, str]]:
        wanted = ", ".join("?" * len(kinds))
        for at in range(0, len(searches), _AT_ONCE):
            some = searches[at : at + _AT_ONCE]
            places = ", ".join("?" * len(some))
            yield from self.ledger.select(
                f"SELECT search, kind, body FROM entries WHERE search IN ({places})"
                f" AND kind IN ({wanted}) ORDER BY search, number",
                (*some, *kinds),
            )

    def _listed(self, summaries: Sequence[SearchSummary]) -> list[Listed]:
        """What the index does not say: whether searches run, and how far they are."""
        going = [each.id for each in summaries if each.generated is None]
        counts = self.ledger.so_far(going)
        in_review = {id for id, so_far in counts.items() if so_far.waiting}
        doing = self.ledger.doing(going, in_review)
        listed = []
        for each in summaries:
            waiting = 0
            if each.id in counts:
                so_far = counts[each.id]
                waiting = so_far.waiting
                each = replace(each, generated=so_far.generated, verified=so_far.verified)
            listed.append(Listed(each, each.outcome or doing[each.id], waiting))
        return listed

    def _where(self, wanted: Filter) -> tuple[str, list[object]]:
        parts = [_SHOWN[wanted.show]]
        values = list[object]()
        if wanted.account is not None:
            parts.append("account = ?")
            values.append(wanted.account)
        if wanted.text:
            named, value = self.ledger.containing("problem", wanted.text)
            ids = [wanted.text]
            if wanted.texts:
                ids += self._with_text(wanted.text, " AND ".join(parts), values)
            parts.append(f"({named} OR id IN ({', '.join('?' * len(ids))}))")
            values += [value, *ids]
        return " AND ".join(parts), values

    def _with_text(self, text: str, where: str, values: Sequence[object]) -> list[str]:
        """The newest searches whose prompt or candidates contain a text."""
        query = f"SELECT id FROM searches WHERE {where} ORDER BY {_SORTED['newest']} LIMIT ?"
        ids = [str(id) for (id,) in self.ledger.select(query, (*values, TEXTS))]
        by_hash: dict[str, set[str]] = defaultdict(set)
        for search, _, body in self._rows_of(ids, ("started", "made")):
            for hash in _HASH.findall(body):
                by_hash[hash].add(search)
        hashes = list(by_hash)
        found = set[str]()
        contained, value = self.ledger.containing("text", text)
        for at in range(0, len(hashes), _AT_ONCE):
            some = hashes[at : at + _AT_ONCE]
            places = ", ".join("?" * len(some))
            query = f"SELECT hash FROM texts WHERE hash IN ({places}) AND {contained}"
            for (hash,) in self.ledger.select(query, (*some, value)):
                found |= by_hash[str(hash)]
        return [id for id in ids if id in found][: _AT_ONCE - 1]
