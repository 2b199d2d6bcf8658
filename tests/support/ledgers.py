"""Ledgers that somebody has changed."""

from __future__ import annotations

import sqlite3

from grv.ledger.seals import Seals


def reseal(db: sqlite3.Connection, seals: Seals | None = None) -> None:
    """Give all entries of a ledger seals that fit, as an attacker without its key can."""
    seals = seals or Seals()
    query = "SELECT position, search, number, at, kind, body FROM entries ORDER BY position"
    ends: dict[str, str] = {}
    count, head = 0, ""
    for position, search, number, at, kind, body in db.execute(query).fetchall():
        seal = seals.entry(ends.get(search, ""), search, number, at, kind, body)
        ends[search], count, head = seal, count + 1, seals.head(head, seal)
        db.execute("UPDATE entries SET seal = ? WHERE position = ?", (seal, position))
    db.execute("UPDATE ledger SET count = ?, head = ?", (count, head))
