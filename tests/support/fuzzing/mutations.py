"""Spoilt copies of valid files: by bytes, by the structure of JSON, TOML, CSV, SQLite, Parquet."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

RAW = "@RAW@"  # stands for a text of JSON that Python's own encoder would not write
DEEP = "[" * 5000 + "]" * 5000


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


NASTY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3.5,
    -0.0,
    1e308,
    -1e308,
    1e-320,
    2**31,
    2**53,
    2**63,
    -(2**63),
    10**30,
    10**400,
    "",
    " ",
    "x" * 3000,
    "\x00",
    "\x1b[2Jfake",
    "a\nb",
    "\u202eevil",
    "\ud800",
    *words("x 0 1 -5 nan p0 math passed None =1+1 ../../x /etc/passwd é"),
    [],
    {},
    [[]],
    [None],
    [1, "a", None],
    {"": {}},
    {"a": [1]},
    [0] * 50,
    [["x"]] * 3,
    f"{RAW}NaN",
    f"{RAW}Infinity",
    f"{RAW}-1e400",
    RAW + "9" * 5000,
    RAW + DEEP,
    RAW + '{"a":1,"a":2}',
)
_KEYS = ("", "more", "kind", "check", "limits", "repeat", "\x1b")
_CELLS = (*words("x nan -1 1e999 =1 '=1 0_1 é 1,2"), "9" * 5000, '"', '"a\nb"', "\x00", "")
_TOML = (
    *words('"" "x" -1 0 1e999 nan true [] {} [[1]] ["a",3] 2020-01-01 10 1.5 "1,10" "/"'),
    "9" * 5000,
    "[" * 3000,
    '"\\u0000"',
    '"\\u001b[2J"',
    "{a = 1}",
)
_SQL = (None, "", "x", -1, 0, 1e300, 2**62, b"\xff", "{}", "[]", "\x1b[2J", "../x")


def nasty(random: Random) -> Any:
    """A value that nobody expects."""
    return random.choice(NASTY)


def spoilt_bytes(content: bytes, random: Random) -> bytes:
    """Bytes that are changed, lost, doubled or in another encoding."""
    at = random.randrange(len(content) + 1)
    to = min(len(content), at + random.choice((1, 1, 2, 8, 100, 5000)))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: content[:at],
        lambda: content[:at] + content[to:],
        lambda: content[:to] + content[at:],
        lambda: content[:at] + random.randbytes(to - at) + content[to:],
        lambda: content[:at] + b"\x00" * random.choice((1, 3, 4096)) + content[at:],
        lambda: (
            content[:at] + random.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\r", b"\n", b'"', b"}"))
        ),
        lambda: content[:at] + bytes([random.randrange(256)]) + content[at + 1 :],
        lambda: b"",
        lambda: b"\xef\xbb\xbf" + content,
        lambda: content.decode("latin-1").encode("utf-16"),
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: content.rstrip(b"\n"),
        lambda: content * 2,
        lambda: random.randbytes(random.choice((1, 100, 5000))),
    )
    return random.choice(ways)()


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value of JSON data."""
    found = [path]
    if isinstance(data, dict):
        for key, value in data.items():
            found += _places(value, (*path, key))
    elif isinstance(data, list):
        for at, value in enumerate(data[:6]):
            found += _places(value, (*path, at))
    return found


def spoilt_json(data: Any, random: Random) -> Any:
    """JSON data with one value replaced, lost or added."""
    data = json.loads(json.dumps(data))
    path = random.choice(_places(data)[1:] or [()])
    if not path:
        return nasty(random)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    match random.randrange(8):
        case 0:
            del inner[path[-1]]
        case 1 if isinstance(inner, dict):
            inner[random.choice(("", "more", "kind", "check", "limits", "repeat", "\x1b"))] = nasty(
                random
            )
        case 2 if isinstance(inner, dict):
            inner[f"{path[-1]}x"] = inner.pop(path[-1])
        case 3:
            inner[path[-1]] = [inner[path[-1]]] * random.choice((1, 2, 300))
        case 4 if isinstance(inner[path[-1]], int | float):
            inner[path[-1]] *= random.choice((-1, 0, 10, 1e9, 1e300, 0.5))
        case _:
            inner[path[-1]] = nasty(random)
    return data


def json_text(data: Any) -> str:
    """JSON, with raw texts where there are any."""
    text = json.dumps(data)
    while (start := text.find(f'"{RAW}')) >= 0:
        value, end = json.JSONDecoder().raw_decode(text, start)
        text = text[:start] + value[len(RAW) :] + text[end:]
    return text


def spoilt_lines(content: bytes, random: Random) -> bytes:
    """JSON lines with one line spoilt, lost, doubled or moved."""
    lines = content.decode().splitlines()
    at = random.randrange(len(lines))
    match random.randrange(8):
        case 0:
            lines.insert(random.randrange(len(lines) + 1), lines[at])
        case 1:
            del lines[at]
        case 2:
            lines.insert(at, random.choice(("", "{}", "[]", "null", "3", '"x"', "{", DEEP)))
        case _:
            lines[at] = json_text(spoilt_json(json.loads(lines[at]), random))
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")


def spoilt_record(content: bytes, random: Random) -> bytes:
    """A file of one JSON record with a value spoilt."""
    return json_text(spoilt_json(json.loads(content), random)).encode("utf-8", "surrogatepass")


def spoilt_table(content: bytes, random: Random) -> bytes:
    """CSV, or a matrix, with a cell spoilt."""
    text = content.decode()
    mark = "\t" if "\t" in text else "," if "," in text else " "
    rows = [line.split(mark) for line in text.splitlines()]
    row = random.choice(rows)
    row[random.randrange(len(row))] = random.choice(_CELLS)
    if random.randrange(5) == 0:
        row.append("more")
    return "\n".join(mark.join(row) for row in rows).encode()


def spoilt_toml(content: bytes, random: Random) -> bytes:
    """TOML with the value or the name of a line spoilt."""
    lines = content.decode().splitlines()
    at = random.randrange(len(lines))
    name, equals, _ = lines[at].partition(" = ")
    if equals and random.randrange(4):
        lines[at] = f"{name} = {random.choice(_TOML)}"
    else:
        extra = (f"more = {random.choice(_TOML)}", "[more]", "[[runs]]", "=", "[other]")
        lines.insert(at, random.choice(extra))
    return "\n".join(lines).encode()


def spoil_sqlite(path: Path, random: Random) -> None:
    """A database with a row, the schema, or some bytes spoilt."""
    if random.randrange(3) == 0:
        path.write_bytes(spoilt_bytes(path.read_bytes(), random))
        return
    with closing(sqlite3.connect(path)) as db, db:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = [name for (name,) in db.execute(query)]
        table = random.choice(tables)
        if table == "entries" and random.randrange(3):
            _spoil_entry(db, random)
            return
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        column = random.choice(columns)
        value = random.choice(_SQL)
        statements = (
            f"UPDATE OR IGNORE {table} SET {column} = ?",
            f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid % 2",
        )
        try:
            db.execute(random.choice(statements), (value,))
        except sqlite3.Error:
            others = (f"DELETE FROM {table}", f"DROP TABLE {table}", "PRAGMA user_version = 7")
            db.execute(random.choice(others))


def _spoil_entry(db: sqlite3.Connection, random: Random) -> None:
    """An entry of a ledger with a value spoilt, and seals that fit."""
    from support.ledgers import reseal

    rows = db.execute("SELECT position, kind, body FROM entries").fetchall()
    position, kind, body = random.choice(rows)
    body = json_text(spoilt_json(json.loads(body), random))
    kind = random.choice((kind, kind, kind, "made", "ended", "nothing"))
    query = "UPDATE entries SET kind = ?, body = ? WHERE position = ?"
    db.execute(query, (kind, body, position))
    reseal(db)


def spoil_parquet(path: Path, random: Random) -> None:
    """A Parquet file with bytes spoilt, or with a column of another type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if random.randrange(2):
        path.write_bytes(spoilt_bytes(path.read_bytes(), random))
        return
    table = pq.read_table(path)
    at, rows = random.randrange(table.num_columns), table.num_rows
    values: Any = random.choice(
        (
            [None] * rows,
            ["x"] * rows,
            [-1] * rows,
            [float("nan")] * rows,
            [b"\xff"] * rows,
            [[1]] * rows,
            [{"a": 1}] * rows,
            [2**63 - 1] * rows,
            [True] * rows,
            [1e308] * rows,
            pa.array([2**62] * rows, pa.timestamp("ns")),
            pa.array([10**9] * rows, pa.duration("s")),
        )
    )
    name = random.choice((table.column_names[at], "", "passed", "score2", "\x1b"))
    pq.write_table(table.set_column(at, name, [values]), path)


def spoil(path: Path, random: Random) -> None:
    """Change a file, by what its name says that it is; by bytes where it is that no more."""
    content = path.read_bytes()
    try:
        _spoil(path, random)
    except Exception:  # of any library that reads the file
        path.write_bytes(spoilt_bytes(content, random))


def _spoil(path: Path, random: Random) -> None:
    name, content = path.name, path.read_bytes()
    if name.endswith((".ledger", ".cache")):
        spoil_sqlite(path, random)
        return
    if name.endswith(".parquet"):
        spoil_parquet(path, random)
        return
    zipped = name.endswith(".gz") and random.randrange(3) > 0
    if zipped:
        content, name = gzip.decompress(content), name.removesuffix(".gz")
    ways = {".jsonl": spoilt_lines, ".json": spoilt_record, ".toml": spoilt_toml}
    ways |= {".csv": spoilt_table, ".tsv": spoilt_table, ".txt": spoilt_table}
    way = ways.get(Path(name).suffix, spoilt_bytes) if random.randrange(4) else spoilt_bytes
    content = way(content, random)
    path.write_bytes(gzip.compress(content) if zipped else content)
