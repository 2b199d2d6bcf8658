"""Edits of a ledger by a person without its key: of rows, and of bytes."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from .ledgers import reseal

SEARCHES = 5  # of the ledger, named s0, s1 ...

# What an edit changed: the searches that may differ now; None if any may.
Touched = set[str] | None
Edit = Callable[[sqlite3.Connection, random.Random], Touched]


def _rows(db: sqlite3.Connection) -> list[tuple[int, str, int]]:
    return db.execute("SELECT position, search, number FROM entries ORDER BY position").fetchall()


def change_column(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Replace a column of an entry, by itself changed a little, by junk, or by another row's."""
    position, search, _ = chance.choice(_rows(db))
    name = chance.choice(["kind", "at", "body", "seal", "number", "search"])
    other = chance.choice(_rows(db))[0]
    (old,) = db.execute(f"SELECT {name} FROM entries WHERE position = ?", (other,)).fetchone()
    new = chance.choice([old, None, b"\xff\x00", -1, 2**62, 1.5, "", "junk \x00", f"{old} "])
    touched = {search, str(new)}
    with suppress(sqlite3.IntegrityError):
        db.execute(f"UPDATE entries SET {name} = ? WHERE position = ?", (new, position))
    return touched


def change_time(db: sqlite3.Connection, chance: random.Random) -> Touched:
    position, search, _ = chance.choice(_rows(db))
    change = chance.choice([1e-6, -1.0, 3600.0])
    db.execute("UPDATE entries SET at = at + ? WHERE position = ?", (change, position))
    return {search}


def change_body(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Replace one character of an entry."""
    position, search, _ = chance.choice(_rows(db))
    (body,) = db.execute("SELECT body FROM entries WHERE position = ?", (position,)).fetchone()
    at = chance.randrange(len(body))
    body = body[:at] + chance.choice('0179ae"{}[], \x00\u20ac') + body[at + 1 :]
    db.execute("UPDATE entries SET body = ? WHERE position = ?", (body, position))
    return {search}


def delete_rows(db: sqlite3.Connection, chance: random.Random) -> Touched:
    rows = chance.sample(_rows(db), chance.choice([1, 1, 2, 10]))
    db.executemany("DELETE FROM entries WHERE position = ?", [(row[0],) for row in rows])
    return {search for _, search, _ in rows}


def truncate_search(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Delete the last entries of a search."""
    _, search, number = chance.choice(_rows(db))
    db.execute("DELETE FROM entries WHERE search = ? AND number >= ?", (search, number))
    return {search}


def truncate_ledger(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Delete the last entries of all searches."""
    position, *_ = chance.choice(_rows(db))
    touched = {search for at, search, _ in _rows(db) if at >= position}
    db.execute("DELETE FROM entries WHERE position >= ?", (position,))
    return touched


def duplicate_row(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Copy a row to the end of its search, or of another."""
    position, search, _ = chance.choice(_rows(db))
    to = chance.choice([search, f"s{chance.randrange(SEARCHES)}", "new"])
    db.execute(
        "INSERT INTO entries (search, number, kind, at, body, seal) SELECT ?,"
        " (SELECT COALESCE(MAX(number), -1) + 1 FROM entries WHERE search = ?),"
        " kind, at, body, seal FROM entries WHERE position = ?",
        (to, to, position),
    )
    return {to}


def swap_rows(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Exchange all or some columns of two rows, of one search or of two."""
    one, other = chance.sample(_rows(db), 2)
    names = chance.choice(
        [["kind", "at", "body", "seal"], ["body"], ["at"], ["kind", "body"], ["seal"]]
    )
    columns = ", ".join(names)
    query = f"SELECT {columns} FROM entries WHERE position = ?"
    values = [db.execute(query, (row[0],)).fetchone() for row in (one, other)]
    change = f"UPDATE entries SET {', '.join(f'{name} = ?' for name in names)} WHERE position = ?"
    db.execute(change, (*values[1], one[0]))
    db.execute(change, (*values[0], other[0]))
    return {one[1], other[1]}


def reorder_positions(db: sqlite3.Connection, chance: random.Random) -> Touched:
    one, other = chance.sample(_rows(db), 2)
    for old, new in ((one[0], -1), (other[0], one[0]), (-1, other[0])):
        db.execute("UPDATE entries SET position = ? WHERE position = ?", (new, old))
    return set()


def swap_searches(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Give a search the rows of another."""
    one, other = chance.sample(range(SEARCHES), 2)
    for table, name in (("entries", "search"), ("searches", "id")):
        if table == "entries" or chance.random() < 0.5:
            for old, new in ((f"s{one}", "-"), (f"s{other}", f"s{one}"), ("-", f"s{other}")):
                db.execute(f"UPDATE {table} SET {name} = ? WHERE {name} = ?", (new, old))
    return {f"s{one}", f"s{other}"}


def drop_search(db: sqlite3.Connection, chance: random.Random) -> Touched:
    search = f"s{chance.randrange(SEARCHES)}"
    db.execute("DELETE FROM entries WHERE search = ?", (search,))
    if chance.random() < 0.7:
        db.execute("DELETE FROM searches WHERE id = ?", (search,))
    return {search}


def change_index(db: sqlite3.Connection, chance: random.Random) -> Touched:
    """Change what the index says of a search, or of all."""
    names = ["id", "problem", "started", "ended", "outcome", "generated", "verified", "total"]
    name = chance.choice([*names, "account", "paid"])
    value = chance.choice([None, 0, 1, -5.5, 1e300, float("inf"), "", "solved", "failed", b"\xff"])
    where = chance.choice(["", f" WHERE id = 's{chance.randrange(SEARCHES)}'"])
    with suppress(sqlite3.IntegrityError):
        db.execute(f"UPDATE searches SET {name} = ?{where}", (value,))
    return set()


def change_accounts(db: sqlite3.Connection, chance: random.Random) -> Touched:
    statement = chance.choice(
        [
            "UPDATE accounts SET paid = 0",
            "UPDATE accounts SET paid = paid - 1",
            "UPDATE accounts SET paid = NULL",
            "UPDATE accounts SET paid = 'much'",
            "UPDATE accounts SET paid = 1e999",
            "UPDATE accounts SET unit = 'dollars'",
            "UPDATE accounts SET name = 'another'",
            "INSERT INTO accounts VALUES ('another', 'dollars', 5)",
            "DELETE FROM accounts",
            "UPDATE accounts SET paid = 0; UPDATE searches SET paid = 0",
            "UPDATE accounts SET paid = paid + 5;"
            " UPDATE searches SET paid = paid + 5 WHERE id = 's0'",
        ]
    )
    db.executescript(statement)
    return set()


def change_ledger_row(db: sqlite3.Connection, chance: random.Random) -> Touched:
    statement = chance.choice(
        [
            "UPDATE ledger SET count = count - 1",
            "UPDATE ledger SET count = NULL",
            "UPDATE ledger SET head = ''",
            "UPDATE ledger SET head = x'00'",
            "UPDATE ledger SET key = ''",
            "UPDATE ledger SET key = 7",
            "DELETE FROM ledger",
            "INSERT INTO ledger SELECT * FROM ledger",
            "INSERT INTO ledger VALUES (0, '', '')",
        ]
    )
    db.executescript(statement)
    return set()


def change_texts(db: sqlite3.Connection, chance: random.Random) -> Touched:
    hashes = [row[0] for row in db.execute("SELECT hash FROM texts ORDER BY hash")]
    one, other = chance.sample(hashes, 2)
    match chance.randrange(4):
        case 0:
            db.execute("DELETE FROM texts WHERE hash = ?", (one,))
        case 1:
            new = chance.choice(["better", None, b"\xff", 7, ""])
            db.execute("UPDATE texts SET text = ? WHERE hash = ?", (new, one))
        case 2:
            query = "SELECT text FROM texts WHERE hash = ?"
            db.execute(f"UPDATE texts SET text = ({query}) WHERE hash = ?", (other, one))
        case _:
            db.execute("UPDATE texts SET hash = ? WHERE hash = ?", (f"{one}0", one))
    return {
        str(search)
        for search, body in db.execute("SELECT search, body FROM entries")
        if isinstance(body, str) and (one in body or other in body)
    }


def drop_table(db: sqlite3.Connection, chance: random.Random) -> Touched:
    table = chance.choice(["entries", "texts", "searches", "accounts", "ledger", "claims"])
    db.execute(f"DROP TABLE {table}")
    return set() if table in ("searches", "accounts", "claims") else None


EDITS: tuple[Edit, ...] = (
    change_column,
    change_time,
    change_body,
    delete_rows,
    truncate_search,
    truncate_ledger,
    duplicate_row,
    swap_rows,
    reorder_positions,
    swap_searches,
    drop_search,
    change_index,
    change_accounts,
    change_ledger_row,
    change_texts,
    drop_table,
)


def edit_rows(path: Path, chance: random.Random) -> tuple[str, Touched]:
    """Change rows; half of the time, seal everything again without the key."""
    edit = chance.choice(EDITS)
    name = edit.__name__
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = MEMORY")
        touched = edit(db, chance)
        if chance.random() < 0.5:
            name, touched = f"{name}, resealed", None
            with suppress(sqlite3.Error, AttributeError, TypeError):  # it stops at a broken row
                reseal(db)
    return name, touched


def edit_bytes(path: Path, chance: random.Random) -> tuple[str, Touched]:
    """Flip bits, overwrite a stretch, exchange two pages, or cut the file."""
    content = bytearray(path.read_bytes())
    match chance.randrange(6):
        case 0:
            name = "cut the file"
            del content[chance.randrange(len(content)) :]
        case 1:
            name = "overwrite"
            at, size = chance.randrange(len(content)), chance.choice([4, 100, 4096])
            content[at : at + size] = chance.randbytes(len(content[at : at + size]))
        case 2:
            name = "swap pages"
            one, other = (4096 * chance.randrange(len(content) // 4096) for _ in "12")
            page = content[one : one + 4096]
            content[one : one + 4096] = content[other : other + 4096]
            content[other : other + 4096] = page
        case _:
            name = "flip bits"
            for _ in range(chance.choice([1, 1, 1, 3])):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return name, None
