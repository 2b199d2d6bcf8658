"""What a check of kind "sql" runs in the jail: databases, queries, and variants of the data.

The judge sends the text of this file to a jailed process, and calls `answer` there. The process of
a candidate gets databases and the candidate's query, and returns rows. It never sees the reference
query or its rows. Another process gets the reference query, and makes the variants.

A variant has the tables of the database with few rows: some of the original ones, and copies of
them with changed values. It respects the keys and constraints that the schema declares. Values come
from the same column, from the constants in the reference query and their neighbours, and from other
columns of the same type. So a query that is right by accident gives other rows somewhere.
"""

from __future__ import annotations

import datetime
import os
import random
import re
import sqlite3
from typing import Any, NamedTuple

_READ = 5000  # rows of a table that variants are made from
_MOST_VALUES = 3000  # in a variant
_FEWEST_ROWS = 6
_MOST_ROWS = 40  # of a table in a variant
_TRIES = 3  # variants that are made for each one that is kept
_STEPS = 10_000  # of SQLite's machine between two looks at their number
_STEPS_PER_SECOND = 10_000_000
_FILE = "data.duckdb"
# What SQLite may do for a query: read, call functions, and evaluate recursive expressions.
_ALLOWED = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
_FORBIDDEN = (
    "load_extension",
    "readfile",
    "writefile",
    "edit",
    "fts3_tokenizer",
    "writable_schema",
)
_LONGEST_VALUE = 16 << 20
_LONGEST_PATTERN = 1000
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]"
    r"|\d+\.?\d*(?:[eE][-+]?\d+)?|\w+|<=|>=|<>|!=|==|\S",
    re.DOTALL,
)
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(.*)", re.DOTALL)


class QueryError(Exception):
    """A query that the engine refuses, or that takes too much."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: its name.
        is_key: whether it is part of a primary key or alone in a unique constraint.
        may_be_null: whether a variant may leave it empty.
        parent: the table and column that it refers to, if the schema says so.
    """

    name: str
    is_key: bool
    may_be_null: bool
    parent: tuple[str, str] | None


class Table(NamedTuple):
    """A table: how it is made, its columns, and rows of it."""

    name: str
    ddl: str
    columns: list[Column]
    rows: list[list[Any]]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the judge asks for; `error` says why there is nothing."""
    try:
        if request["do"] == "prepare":
            return prepare(request)
        database = _opened(request)
        return {"rows": _rows(database, request, request["query"])}
    except QueryError as error:
        return {"error": str(error)[:500]}
    except MemoryError:
        return {"error": "memory"}


def _opened(request: dict[str, Any]) -> Any:
    """The database of a request, with all its data."""
    try:
        if request["engine"] == "sqlite":
            return _sqlite(request["database"])
        return _duckdb(request["database"], request["memory_mb"])
    except QueryError:
        raise
    except Exception as error:
        raise QueryError(f"the database: {error}") from None


def _sqlite(source: dict[str, Any]) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None)
    if "file" in source:
        database.deserialize(_piece(source["file"]))
    if "script" in source:
        database.executescript(source["script"])
    if "tables" in source:
        database.execute("PRAGMA foreign_keys = OFF")
        for name, ddl, width, rows in source["tables"]:
            database.execute(ddl)
            marks = ",".join("?" * width)
            for row in rows:
                database.execute(f"INSERT OR IGNORE INTO {_quoted(name)} VALUES ({marks})", row)
        _drop_orphans(database)
        for ddl in source["after"]:
            database.execute(ddl)
    return database


def _drop_orphans(database: sqlite3.Connection) -> None:
    """Remove rows that refer to rows which broke a constraint and are not there."""
    for _ in range(_MOST_ROWS):
        orphans = database.execute("PRAGMA foreign_key_check").fetchall()
        if not orphans:
            return
        for table, row, *_ in orphans:
            database.execute(f"DELETE FROM {_quoted(table)} WHERE rowid = ?", [row])


def _piece(place: list[int]) -> bytes:
    """A file of the judge's, from standard input."""
    start, length = place
    parts = []
    while length:
        part = os.pread(0, min(length, 1 << 24), start)
        if not part:
            break
        parts.append(part)
        start += len(part)
        length -= len(part)
    return b"".join(parts)


def _duckdb(source: dict[str, Any], memory_mb: int) -> Any:
    import duckdb

    config: dict[str, Any] = {
        "threads": 1,
        "memory_limit": f"{memory_mb}MB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if "file" in source:
        with open(_FILE, "wb") as file:
            file.write(_piece(source["file"]))
        database = duckdb.connect(_FILE, read_only=True, config=config)
    else:
        database = duckdb.connect(":memory:", config=config)
    if "script" in source:
        database.execute(source["script"])
    for name, ddl, width, rows in source.get("tables", ()):
        database.execute(ddl)
        marks = ",".join("?" * width)
        for row in rows:
            try:
                database.execute(f"INSERT INTO {_quoted(name)} VALUES ({marks})", row)
            except duckdb.Error:
                continue  # it breaks a constraint
    for ddl in source.get("after", ()):
        database.execute(ddl)
    return database


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(database: Any, request: dict[str, Any], query: str) -> list[list[Any]]:
    """The rows of a query, which can do nothing but read."""
    if isinstance(database, sqlite3.Connection):
        return _sqlite_rows(database, request, query)
    return _duckdb_rows(database, request, query)


def _sqlite_rows(
    database: sqlite3.Connection, request: dict[str, Any], query: str
) -> list[list[Any]]:
    if "\0" in query:
        raise QueryError("a null character")
    for limit, value in (
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _LONGEST_PATTERN),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100),
    ):
        database.setlimit(limit, value)
    database.execute("PRAGMA query_only = ON")
    database.execute(f"PRAGMA hard_heap_limit = {request['memory_mb'] << 20}")
    room = int(request["seconds"] * _STEPS_PER_SECOND)
    taken = 0

    def is_over() -> bool:
        nonlocal taken
        taken += _STEPS
        return taken > room

    def authorize(action: int, one: Any, other: Any, *rest: Any) -> int:
        if action not in _ALLOWED:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and str(other).lower() in _FORBIDDEN:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    database.set_authorizer(authorize)
    database.set_progress_handler(is_over, _STEPS)
    try:
        return _fetched(database.execute(query), request["rows"])
    except sqlite3.Error as error:
        if taken > room:
            raise QueryError("too many steps") from None
        raise QueryError(str(error)) from None
    except (sqlite3.Warning, ValueError, OverflowError) as error:
        raise QueryError(str(error)) from None
    finally:
        database.set_progress_handler(None, 0)
        database.set_authorizer(None)


def _duckdb_rows(database: Any, request: dict[str, Any], query: str) -> list[list[Any]]:
    import duckdb

    for setting in (
        "SET python_enable_replacements = false",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        try:
            database.execute(setting)
        except duckdb.Error:
            if "lock_configuration" not in str(setting):
                raise QueryError("the engine cannot be confined") from None
    try:
        statements = database.extract_statements(query)
        if len(statements) != 1:
            raise QueryError(f"{len(statements)} statements; one is allowed")
        if statements[0].type != duckdb.StatementType.SELECT:
            raise QueryError("only queries are allowed")
        database.execute("BEGIN TRANSACTION READ ONLY")
        return _fetched(database.execute(statements[0]), request["rows"])
    except duckdb.Error as error:
        raise QueryError(str(error).splitlines()[0] if str(error) else "error") from None
    except (RuntimeError, ValueError) as error:
        raise QueryError(str(error)) from None


def _fetched(cursor: Any, most: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    if cursor.description is None:
        raise QueryError("it returns no rows")
    while part := cursor.fetchmany(1000):
        found += [[_plain(value) for value in row] for row in part]
        if len(found) > most:
            raise QueryError("too many rows")
    return found


def _plain(value: Any) -> Any:
    """A value that can be sent; dates and the like as text."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if type(value).__name__ == "Decimal":
        return float(value)
    return str(value)


def prepare(request: dict[str, Any]) -> dict[str, Any]:
    """The rows of the reference query on the database, and variants with its rows on each."""
    query = request["query"]
    orders = is_ordered(query)
    database = _opened(request)
    tables, after = _described(database, request)
    found = {"database": request["database"], "rows": _rows(database, request, query)}
    databases = []
    whole = all(len(table.rows) < _READ for table in tables)
    again = _again(request, tables, after, None) if whole else found["rows"]
    agrees = _agrees(found["rows"], again)
    if agrees != "not":
        databases.append({**found, "ordered": orders and agrees == "in order"})
    wanted = request["variants"]
    named = {token.strip('"`[]').lower() for token in _TOKEN.findall(query)}
    pools = _Pools(tables, query)
    kept: list[tuple[bool, dict[str, Any]]] = []
    seen: list[Any] = [found["rows"]]
    for number in range(_TRIES * wanted if tables else 0):
        variant = _mutated(tables, named, pools, random.Random(number))
        source = _source(variant, after)
        try:
            rows = _again(request, variant, after, False)
            again = _again(request, variant, after, True)
        except QueryError:
            continue
        agrees = _agrees(rows, again)
        if agrees == "not":  # the reference leaves the answer open
            continue
        is_new = rows not in seen
        seen.append(rows)
        ordered = orders and agrees == "in order"
        kept.append((bool(rows) and is_new, {"database": source, "rows": rows, "ordered": ordered}))
    kept.sort(key=lambda each: not each[0])
    databases += [variant for _, variant in kept[:wanted]]
    if not databases:
        databases.append({**found, "ordered": False})
    return {"databases": databases}


def _again(
    request: dict[str, Any], tables: list[Table], after: list[str], reverse: bool | None
) -> list[list[Any]]:
    """The reference's rows on some tables; in reverse, they are stored and read from the end."""
    source = _source(tables, after)
    backwards = reverse is None or reverse
    if backwards:
        for table in source["tables"]:
            table[3] = table[3][::-1]
    database = _opened({**request, "database": source})
    if backwards and isinstance(database, sqlite3.Connection):
        database.execute("PRAGMA reverse_unordered_selects = ON")
    return _rows(database, request, request["query"])


def _agrees(one: list[list[Any]], other: list[list[Any]]) -> str:
    if one == other:
        return "in order"
    return "in another order" if sorted(map(repr, one)) == sorted(map(repr, other)) else "not"


def _source(tables: list[Table], after: list[str]) -> dict[str, Any]:
    listed = [[each.name, each.ddl, len(each.columns), each.rows] for each in tables]
    return {"tables": listed, "after": after}


def is_ordered(query: str) -> bool:
    """Whether a query orders its rows: whether it has ORDER BY outside all brackets."""
    depth = 0
    before = ""
    for token in _TOKEN.findall(query):
        if token.startswith(("--", "/*")):
            continue
        depth += (token == "(") - (token == ")")
        if depth == 0 and before == "order" and token.lower() == "by":
            return True
        before = token.lower()
    return False


def _described(database: Any, request: dict[str, Any]) -> tuple[list[Table], list[str]]:
    """The tables with some rows, parents first; and what is made after them."""
    read = _sqlite_tables if isinstance(database, sqlite3.Connection) else _duckdb_tables
    try:
        tables, after = read(database, request["nulls"])
    except Exception as error:
        raise QueryError(f"the database: {error}") from None
    names = {table.name for table in tables}
    ordered: list[Table] = []
    while tables:
        done = {table.name for table in ordered} | {None}
        ready = [
            table
            for table in tables
            if all(
                column.parent is None
                or column.parent[0] in done
                or column.parent[0] == table.name
                or column.parent[0] not in names
                for column in table.columns
            )
        ] or tables[:1]
        ordered += ready
        tables = [table for table in tables if table not in ready]
    return ordered, after


def _sqlite_tables(database: sqlite3.Connection, nulls: str) -> tuple[list[Table], list[str]]:
    tables = []
    after = []
    entries = database.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    ).fetchall()
    for kind, name, ddl in entries:
        if kind in ("index", "view"):
            after.append(ddl)
        if kind != "table" or name.startswith("sqlite_"):
            continue
        information = database.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
        parents: dict[str, tuple[str, str]] = {}
        for key in database.execute(f"PRAGMA foreign_key_list({_quoted(name)})").fetchall():
            parents[key[3].lower()] = (key[2], key[4] or "")
        unique = set()
        for index in database.execute(f"PRAGMA index_list({_quoted(name)})").fetchall():
            members = database.execute(f"PRAGMA index_info({_quoted(index[1])})").fetchall()
            if index[2] and len(members) == 1:
                unique.add(members[0][2])
        rows = database.execute(f"SELECT * FROM {_quoted(name)} LIMIT {_READ}").fetchall()
        columns = []
        for place, (_, column, _, not_null, _, key, hidden) in enumerate(information):
            if hidden:
                raise QueryError(f"table {name} has a generated column")
            empty = any(row[place] is None for row in rows)
            may_be_null = not not_null and not key and (nulls == "declared" or empty)
            parent = parents.get(column.lower())
            columns.append(Column(column, bool(key) or column in unique, may_be_null, parent))
        tables.append(Table(name, ddl, columns, [list(row) for row in rows]))
    by_name = {table.name.lower(): table for table in tables}
    return [_with_parents(table, by_name) for table in tables], after


def _with_parents(table: Table, by_name: dict[str, Table]) -> Table:
    """A table whose references name tables and columns as they are written in the schema."""
    columns = []
    for column in table.columns:
        parent = column.parent
        if parent is not None:
            other = by_name.get(parent[0].lower())
            names = [] if other is None else [each.name for each in other.columns]
            keys = [] if other is None else [each.name for each in other.columns if each.is_key]
            wanted = parent[1].lower()
            found = [name for name in names if name.lower() == wanted] or keys[:1]
            parent = None if other is None or not found else (other.name, found[0])
        columns.append(column._replace(parent=parent))
    return table._replace(columns=columns)


def _duckdb_tables(database: Any, nulls: str) -> tuple[list[Table], list[str]]:
    tables = []
    listed = database.execute(
        "SELECT table_name, sql FROM duckdb_tables() WHERE NOT internal ORDER BY table_oid"
    ).fetchall()
    for name, ddl in listed:
        information = database.execute(
            "SELECT column_name, is_nullable FROM duckdb_columns() WHERE table_name = ?"
            " ORDER BY column_index",
            [name],
        ).fetchall()
        constraints = database.execute(
            "SELECT constraint_type, constraint_column_names, constraint_text"
            " FROM duckdb_constraints() WHERE table_name = ?",
            [name],
        ).fetchall()
        keys: set[str] = set()
        parents: dict[str, tuple[str, str]] = {}
        for kind, members, text in constraints:
            if kind == "PRIMARY KEY" or (kind == "UNIQUE" and len(members) == 1):
                keys.update(members)
            refers = re.search(r"REFERENCES\s+\"?([^\s(\"]+)\"?\s*(?:\(\"?([^)\",]+))?", str(text))
            if kind == "FOREIGN KEY" and refers:
                parents[members[0].lower()] = (refers[1], refers[2] or "")
        rows = database.execute(f"SELECT * FROM {_quoted(name)} LIMIT {_READ}").fetchall()
        columns = []
        for place, (column, nullable) in enumerate(information):
            empty = any(row[place] is None for row in rows)
            may_be_null = bool(nullable) and column not in keys
            may_be_null = may_be_null and (nulls == "declared" or empty)
            columns.append(Column(column, column in keys, may_be_null, parents.get(column.lower())))
        tables.append(Table(name, ddl, columns, [[_plain(v) for v in row] for row in rows]))
    by_name = {table.name.lower(): table for table in tables}
    views = database.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
    indexes = database.execute("SELECT sql FROM duckdb_indexes()").fetchall()
    after = [ddl for (ddl,) in (*indexes, *views) if ddl]
    return [_with_parents(table, by_name) for table in tables], after


class _Pools:
    """Where changed values come from."""

    def __init__(self, tables: list[Table], query: str) -> None:
        self._columns: dict[tuple[str, str], list[Any]] = {}
        self._kinds: dict[str, list[Any]] = {}
        self._compared: dict[str, list[Any]] = {}
        self._constants: dict[str, list[Any]] = {}
        for table in tables:
            for place, column in enumerate(table.columns):
                values = list({repr(row[place]): row[place] for row in table.rows}.values())
                values = [value for value in values if value is not None]
                self._columns[table.name, column.name] = values
                for value in values[:50]:
                    self._kinds.setdefault(_kind(value), []).append(value)
        tokens = [t for t in _TOKEN.findall(query) if not t.startswith(("--", "/*"))]
        for place, token in enumerate(tokens):
            near = _neighbours(token)
            for value in near:
                self._constants.setdefault(_kind(value), []).append(value)
            if near:
                for name in tokens[max(0, place - 6) : place] + tokens[place + 1 : place + 4]:
                    plain = name.strip('"`[]').lower()
                    self._compared.setdefault(plain, []).extend(near)

    def value(self, table: Table, column: Column, rng: random.Random, old: Any) -> Any:
        """A new value for a column."""
        own = self._columns[table.name, column.name]
        kind = _kind(own[0]) if own else _kind(old)
        compared = [
            value for value in self._compared.get(column.name.lower(), ()) if _fits(value, kind)
        ]
        chance = rng.random()
        if compared and chance < 0.5:
            return _as_kind(rng.choice(compared), own)
        if column.may_be_null and chance < 0.6:
            return None
        if chance < 0.65 and self._constants.get(kind):
            return _as_kind(rng.choice(self._constants[kind]), own)
        if chance < 0.75 and kind == "number" and isinstance(old, (int, float)):
            return old + rng.choice((-1, 1))
        if chance < 0.8 and self._kinds.get(kind):
            return _as_kind(rng.choice(self._kinds[kind]), own)
        return rng.choice(own) if own else old


def _kind(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return "number"
    if isinstance(value, str):
        return "date" if _DATE.match(value) else "text"
    return type(value).__name__


def _fits(value: Any, kind: str) -> bool:
    return _kind(value) == kind or {_kind(value), kind} == {"text", "date"}


def _as_kind(value: Any, own: list[Any]) -> Any:
    """A number as the column has them: whole, if all of its numbers are."""
    is_whole = bool(own) and all(isinstance(each, int) for each in own)
    return int(value) if is_whole and isinstance(value, float) else value


def _neighbours(token: str) -> list[Any]:
    """A constant of a query and values next to it; empty if the token is none."""
    if token[0].isdigit():
        number = float(token) if re.search(r"[.eE]", token) else int(token[:18])
        return [number, number - 1, number + 1]
    if not token.startswith("'") or len(token) < 2:
        return []
    text = token[1:-1].replace("''", "'")
    date = _DATE.match(text)
    if date is not None:
        try:
            day = datetime.date.fromisoformat(date[1])
            one = datetime.timedelta(days=1)
            return [text, str(day - one) + date[2], str(day + one) + date[2]]
        except (ValueError, OverflowError):
            return [text]
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return [text, *map(str, _neighbours(text.lstrip("-")))]
    bare = text.strip("%_")
    return [bare, f"{bare}x", f"x{bare}", f"x{bare}x", bare.swapcase(), bare[:-1]]


def _mutated(
    tables: list[Table], named: set[str], pools: _Pools, rng: random.Random
) -> list[Table]:
    """The tables with other rows."""
    width = sum(len(table.columns) for table in tables if table.name.lower() in named) or 1
    most = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_VALUES // width))
    found: list[Table] = []
    for table in tables:
        room = most if table.name.lower() in named else _FEWEST_ROWS
        keys = {
            (each.name, column.name): _values(each, column)
            for each in found
            for column in each.columns
        }
        found.append(table._replace(rows=_new_rows(table, keys, pools, rng, room)))
    return found


def _values(table: Table, column: Column) -> list[Any]:
    place = table.columns.index(column)
    return [row[place] for row in table.rows if row[place] is not None]


def _new_rows(
    table: Table,
    keys: dict[tuple[str, str], list[Any]],
    pools: _Pools,
    rng: random.Random,
    room: int,
) -> list[list[Any]]:
    original = table.rows
    if not original:
        return []
    kept = rng.sample(original, min(len(original), rng.randint(1, max(1, room // 2))))
    rows = [list(row) for row in kept]
    while len(rows) < room and rng.random() < 0.97:
        rows.append(list(rng.choice(rows if rng.random() < 0.5 else original)))
    copied = len(kept)
    places = sorted(enumerate(table.columns), key=lambda each: each[1].parent is not None)
    for place, column in places:
        refers = column.parent is not None
        taken = {repr(row[place]) for row in rows[:copied]}
        for number, row in enumerate(rows):
            if refers:
                row[place] = _reference(table, column, row[place], keys, rows, rng)
            elif column.is_key and number >= copied:
                row[place] = _fresh(row[place], number, taken)
            elif not column.is_key and number >= copied and rng.random() < 0.4:
                row[place] = pools.value(table, column, rng, row[place])
        if not refers and not column.is_key and rng.random() < 0.3:
            values = [row[place] for row in rows]
            rng.shuffle(values)
            for row, value in zip(rows, values):
                row[place] = value
    rng.shuffle(rows)
    return rows


def _reference(
    table: Table,
    column: Column,
    old: Any,
    keys: dict[tuple[str, str], list[Any]],
    rows: list[list[Any]],
    rng: random.Random,
) -> Any:
    """A value that refers to a row that is there."""
    assert column.parent is not None
    name, target = column.parent
    if name == table.name:
        place = [each.name for each in table.columns].index(target)
        there = [row[place] for row in rows if row[place] is not None]
    else:
        there = keys.get((name, target), [])
    if column.may_be_null and rng.random() < 0.15:
        return None
    if old in there and rng.random() < 0.6:
        return old
    return rng.choice(there) if there else None


def _fresh(value: Any, number: int, taken: set[str]) -> Any:
    """A key that no other row has."""
    for step in range(1, 10_000):
        fresh: Any = value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            fresh = f"{value}{number}" if step == 1 else f"{value}{number}.{step}"
        else:
            fresh = value + number * 7 + step
        if repr(fresh) not in taken:
            taken.add(repr(fresh))
            return fresh
    return value
