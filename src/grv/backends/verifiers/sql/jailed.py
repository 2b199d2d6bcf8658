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

import contextlib
import datetime
import decimal
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


class SqlColumn(NamedTuple):
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


class SqlTable(NamedTuple):
    """A table: how it is made for a variant, its columns, and rows of it."""

    name: str
    ddl: str
    columns: list[SqlColumn]
    rows: list[list[Any]]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the judge asks for; `error` says why there is nothing."""
    try:
        if request["do"] == "prepare":
            return prepare(request)
        return {"rows": _opened(request, request["database"]).rows(request, request["query"])}
    except QueryError as error:
        return {"error": str(error)[:500]}
    except MemoryError:
        return {"error": "memory"}


def _opened(
    request: dict[str, Any], source: dict[str, Any], *, backwards: bool = False
) -> Sqlite | DuckDB:
    """The database of a source, with all its data; backwards, it prefers the last rows."""
    engine: type[Sqlite | DuckDB] = DuckDB if request["engine"] == "duckdb" else Sqlite
    return engine(source, request["memory_mb"], backwards=backwards)


class Sqlite:
    """A database in the memory of this process.

    Args:
        source: the tables with their rows, a script that makes them, or a file of the judge's.
        memory_mb: what a query may take.
        backwards: whether rows are stored and read from the end where no order is given.
    """

    def __init__(self, source: dict[str, Any], memory_mb: int, *, backwards: bool) -> None:
        self._memory_mb = memory_mb
        self._database = sqlite3.connect(":memory:", isolation_level=None)
        try:
            self._fill(source, backwards)
        except sqlite3.Error as error:
            raise QueryError(f"the database: {error}") from None

    def _fill(self, source: dict[str, Any], backwards: bool) -> None:
        database = self._database
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
            self._drop_orphans()
            for ddl in source["after"]:
                database.execute(ddl)
        if backwards:
            database.execute("PRAGMA reverse_unordered_selects = ON")

    def _drop_orphans(self) -> None:
        """Remove rows that refer to rows which broke a constraint and are not there."""
        for _ in range(_MOST_ROWS):
            orphans = self._database.execute("PRAGMA foreign_key_check").fetchall()
            if not orphans:
                return
            for table, row, *_ in orphans:
                self._database.execute(f"DELETE FROM {_quoted(table)} WHERE rowid = ?", [row])

    def rows(self, request: dict[str, Any], query: str) -> list[list[Any]]:
        """The rows of a query, which can do nothing but read."""
        if "\0" in query:
            raise QueryError("a null character")
        database = self._database
        for limit, value in (
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _LONGEST_PATTERN),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100),
        ):
            database.setlimit(limit, value)
        database.execute("PRAGMA query_only = ON")
        database.execute(f"PRAGMA hard_heap_limit = {self._memory_mb << 20}")
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

    def tables(self, nulls: str) -> tuple[list[SqlTable], list[str]]:
        """The tables with some of their rows, and what is made after them."""
        try:
            return self._tables(nulls)
        except sqlite3.Error as error:
            raise QueryError(f"the database: {error}") from None

    def _tables(self, nulls: str) -> tuple[list[SqlTable], list[str]]:
        database = self._database
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
                columns.append(
                    SqlColumn(column, bool(key) or column in unique, may_be_null, parent)
                )
            tables.append(SqlTable(name, ddl, columns, [list(row) for row in rows]))
        return tables, after

    def accepted(self, tables: list[SqlTable]) -> list[SqlTable]:
        """The tables of a variant; a row that breaks a constraint is left out when it is made."""
        return tables


# What DuckDB may not do: open files, load extensions, start threads, look at this program.
_DUCKDB: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "1",
    "async_threads": "0",
}
# Types whose values Python gives and takes as they are. Others are read as texts.
_KEPT_TYPES = re.compile(
    r"BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL.*|VARCHAR|BLOB"
)


class DuckDB:
    """As `Sqlite`. A file is copied to the scratch directory first, and only read there.

    Variants have no constraints: their rows were checked against those of the schema when the
    variants were made (`accepted`). DuckDB counts no steps; the judge limits its time.
    """

    def __init__(self, source: dict[str, Any], memory_mb: int, *, backwards: bool) -> None:
        import duckdb

        self._duckdb = duckdb
        self._memory_mb = memory_mb
        self._definitions: dict[str, str] = {}
        self._sequences: list[str] = []
        try:
            self.database = self._connected(source)
            self._fill(source)
        except duckdb.Error as error:
            raise QueryError(f"the database: {_first_line(error)}") from None

    def _connected(self, source: dict[str, Any]) -> Any:
        if "file" not in source:
            return self._connection(":memory:", read_only=False)
        path = os.path.abspath("database.duckdb")
        try:
            with open(path, "wb") as file:
                file.write(_piece(source["file"]))
        except OSError as error:
            raise QueryError(f"the database: {error.strerror}; raise limits.files_mb") from None
        return self._connection(path, read_only=True)

    def _connection(self, path: str, *, read_only: bool) -> Any:
        config = _DUCKDB | {"memory_limit": f"{self._memory_mb}MB"}
        return self._duckdb.connect(path, read_only=read_only, config=config)

    def _fill(self, source: dict[str, Any]) -> None:
        if "script" in source:
            self.database.execute(source["script"])
        if "tables" in source:
            for name, ddl, width, rows in source["tables"]:
                self.database.execute(ddl)
                self.insert(name, width, rows)
            for ddl in source["after"]:
                self.database.execute(ddl)

    def insert(self, name: str, width: int, rows: list[list[Any]]) -> None:
        """Add rows to a table: all of them, or none and an error."""
        if not rows:
            return
        marks = f"({','.join('?' * width)})"
        values = ",".join([marks] * len(rows))
        flat = [value for row in rows for value in row]
        self.database.execute(f"INSERT INTO {_quoted(name)} VALUES {values}", flat)

    def rows(self, request: dict[str, Any], query: str) -> list[list[Any]]:
        """The rows of a query, which can do nothing but read."""
        duckdb = self._duckdb
        try:
            kinds = [each.type for each in duckdb.extract_statements(query)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise QueryError("it is not one query that only reads")
            self.database.execute("SET lock_configuration = true")
            self.database.execute("BEGIN TRANSACTION READ ONLY")
            return _fetched(self.database.execute(query), request["rows"])
        except duckdb.OutOfMemoryException:
            raise QueryError("memory") from None
        except (duckdb.Error, ValueError, OverflowError, RuntimeError) as error:
            raise QueryError(_first_line(error)) from None

    def tables(self, nulls: str) -> tuple[list[SqlTable], list[str]]:
        """The tables with some of their rows, and what is made after them."""
        try:
            return self._tables(nulls)
        except self._duckdb.Error as error:
            raise QueryError(f"the database: {_first_line(error)}") from None

    def _asked(self, query: str, *values: Any) -> list[Any]:
        return list(self.database.execute(query, list(values)).fetchall())

    def _tables(self, nulls: str) -> tuple[list[SqlTable], list[str]]:
        tables = []
        self._sequences = [str(row[0]) for row in self._asked("SELECT sql FROM duckdb_sequences()")]
        for schema, name, definition in self._asked(
            "SELECT schema_name, table_name, sql FROM duckdb_tables() ORDER BY table_oid"
        ):
            if schema != "main":
                raise QueryError(f"table {name} is in the schema {schema}, not in main")
            if re.search(r"\bGENERATED\s+ALWAYS\b", definition, re.IGNORECASE):
                raise QueryError(f"table {name} has a generated column")
            self._definitions[name] = definition
            tables.append(self._table(name, nulls))
        views = self._asked("SELECT sql FROM duckdb_views() WHERE NOT internal ORDER BY view_oid")
        return tables, [str(row[0]) for row in views]

    def _table(self, name: str, nulls: str) -> SqlTable:
        parents: dict[str, tuple[str, str]] = {}
        keys = set()
        for kind, members, parent, targets in self._asked(
            "SELECT constraint_type, constraint_column_names, referenced_table,"
            " referenced_column_names FROM duckdb_constraints() WHERE table_name = ?",
            name,
        ):
            if kind == "FOREIGN KEY":
                parents |= {one: (parent, two) for one, two in zip(members, targets, strict=False)}
            if kind == "PRIMARY KEY" or (kind == "UNIQUE" and len(members) == 1):
                keys |= set(members)
        described = self._asked(
            "SELECT column_name, data_type, is_nullable FROM duckdb_columns()"
            " WHERE table_name = ? AND schema_name = 'main' ORDER BY column_index",
            name,
        )
        read = [
            _quoted(column) if _KEPT_TYPES.fullmatch(kind) else f"{_quoted(column)}::VARCHAR"
            for column, kind, _ in described
        ]
        rows = [
            [_plain(value) for value in row]
            for row in self._asked(f"SELECT {', '.join(read)} FROM {_quoted(name)} LIMIT {_READ}")
        ]
        columns = []
        for place, (column, _, is_nullable) in enumerate(described):
            empty = any(row[place] is None for row in rows)
            may_be_null = is_nullable and column not in keys and (nulls == "declared" or empty)
            columns.append(SqlColumn(column, column in keys, may_be_null, parents.get(column)))
        types = ", ".join(f"{_quoted(column)} {kind}" for column, kind, _ in described)
        return SqlTable(name, f"CREATE TABLE {_quoted(name)} ({types})", columns, rows)

    def accepted(self, tables: list[SqlTable]) -> list[SqlTable]:
        """The tables without the rows that break a constraint of the schema."""
        try:
            return self._accepted(tables)
        except self._duckdb.Error as error:
            raise QueryError(f"the database: {_first_line(error)}") from None

    def _accepted(self, tables: list[SqlTable]) -> list[SqlTable]:
        checked = DuckDB({}, self._memory_mb, backwards=False)
        execute = checked.database.execute
        for ddl in self._sequences:
            execute(ddl)
        found = []
        for table in tables:
            execute(self._definitions[table.name])
            marks = ",".join("?" * len(table.columns))
            kept = []
            waiting = table.rows
            with contextlib.suppress(self._duckdb.Error):  # most variants break no constraint
                checked.insert(table.name, len(table.columns), table.rows)
                kept = table.rows
                waiting = []
            while waiting:  # a row may refer to a later one of its table
                refused = []
                for row in waiting:
                    try:
                        execute(f"INSERT INTO {_quoted(table.name)} VALUES ({marks})", row)
                        kept.append(row)
                    except self._duckdb.Error:
                        refused.append(row)
                waiting = refused if len(refused) < len(waiting) else []
            found.append(table._replace(rows=kept))
        return found


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


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
    """A value that can be sent."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def prepare(request: dict[str, Any]) -> dict[str, Any]:
    """The rows of the reference query on the database, and variants with its rows on each."""
    query = request["query"]
    orders = is_ordered(query)
    database = _opened(request, request["database"])
    tables, after = _described(database, request)
    found = {"database": request["database"], "rows": database.rows(request, query)}
    databases = []
    whole = all(len(table.rows) < _READ for table in tables)
    again = _again(request, tables, after, backwards=True) if whole else found["rows"]
    agrees = _agrees(found["rows"], again)
    if agrees != "not":
        databases.append({**found, "ordered": orders and agrees == "in order"})
    wanted = request["variants"]
    named = {token.strip('"`[]').lower() for token in _TOKEN.findall(query)}
    pools = _Pools(tables, query)
    good: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []  # on which the reference has no rows, or none that are new
    seen: list[Any] = [found["rows"]]
    for number in range(_TRIES * wanted if tables else 0):
        if len(good) == wanted:
            break
        try:
            variant = database.accepted(_mutated(tables, named, pools, random.Random(number)))
            source = _source(variant, after)
            rows = _again(request, variant, after, backwards=False)
            again = _again(request, variant, after, backwards=True)
        except QueryError:
            continue
        agrees = _agrees(rows, again)
        if agrees == "not":  # the reference leaves the answer open
            continue
        is_new = rows not in seen
        seen.append(rows)
        ordered = orders and agrees == "in order"
        chosen = good if rows and is_new else others
        chosen.append({"database": source, "rows": rows, "ordered": ordered})
    databases += [*good, *others][:wanted]
    if not databases:
        databases.append({**found, "ordered": False})
    return {"databases": databases}


def _again(
    request: dict[str, Any], tables: list[SqlTable], after: list[str], *, backwards: bool
) -> list[list[Any]]:
    """The reference's rows on some tables."""
    source = _source(tables, after)
    if backwards:
        for table in source["tables"]:
            table[3] = table[3][::-1]
    return _opened(request, source, backwards=backwards).rows(request, request["query"])


def _agrees(one: list[list[Any]], other: list[list[Any]]) -> str:
    if one == other:
        return "in order"
    return "in another order" if sorted(map(repr, one)) == sorted(map(repr, other)) else "not"


def _source(tables: list[SqlTable], after: list[str]) -> dict[str, Any]:
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


def _described(
    database: Sqlite | DuckDB, request: dict[str, Any]
) -> tuple[list[SqlTable], list[str]]:
    """The tables with some rows, parents first; and what is made after them."""
    tables, after = database.tables(request["nulls"])
    by_name = {table.name.lower(): table for table in tables}
    tables = [_with_parents(table, by_name) for table in tables]
    names = {table.name for table in tables}
    ordered: list[SqlTable] = []
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


def _with_parents(table: SqlTable, by_name: dict[str, SqlTable]) -> SqlTable:
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


class _Pools:
    """Where changed values come from."""

    def __init__(self, tables: list[SqlTable], query: str) -> None:
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

    def value(self, table: SqlTable, column: SqlColumn, rng: random.Random, old: Any) -> Any:
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
    tables: list[SqlTable], named: set[str], pools: _Pools, rng: random.Random
) -> list[SqlTable]:
    """The tables with other rows."""
    width = sum(len(table.columns) for table in tables if table.name.lower() in named) or 1
    most = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_VALUES // width))
    found: list[SqlTable] = []
    for table in tables:
        room = most if table.name.lower() in named else _FEWEST_ROWS
        keys = {
            (each.name, column.name): _values(each, column)
            for each in found
            for column in each.columns
        }
        found.append(table._replace(rows=_new_rows(table, keys, pools, rng, room)))
    return found


def _values(table: SqlTable, column: SqlColumn) -> list[Any]:
    place = table.columns.index(column)
    return [row[place] for row in table.rows if row[place] is not None]


def _new_rows(
    table: SqlTable,
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
            for row, value in zip(rows, values, strict=True):
                row[place] = value
    rng.shuffle(rows)
    return rows


def _reference(
    table: SqlTable,
    column: SqlColumn,
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
