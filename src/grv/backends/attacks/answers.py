"""Attacks on checks of texts, JSON and queries: they exhaust the judge, write, or get out."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LIMITS = {"seconds": 1, "memory_mb": 256}
_TABLES = (
    "CREATE TABLE t (a INTEGER NOT NULL, b TEXT NOT NULL);INSERT INTO t VALUES (1,'x'),(2,'y')"
)
_TREE = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
_DOUBLING: dict[str, Any] = {
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)},
        "d40": {"type": "string"},
    },
}


@dataclass(frozen=True, slots=True)
class AnswerAttack:
    """A text that must fail, quickly.

    Attributes:
        name: what it does, in a few words.
        check: the check that it attacks.
        text: the candidate. `@FILE@` becomes a file with a secret.
    """

    name: str
    check: Mapping[str, Any]
    text: str


def _text(name: str, text: str, **rules: Any) -> AnswerAttack:
    return AnswerAttack(name, {"kind": "text", **rules, "limits": _LIMITS}, text)


def _json(name: str, schema: Mapping[str, Any], text: str) -> AnswerAttack:
    return AnswerAttack(name, {"kind": "schema", "schema": schema, "limits": _LIMITS}, text)


def _query(name: str, text: str, engine: str = "sqlite") -> AnswerAttack:
    check = {"kind": "sql", "engine": engine, "schema": _TABLES, "variants": 3}
    reference = "SELECT 'breached', count(*) FROM t"
    return AnswerAttack(name, {**check, "reference": reference, "limits": _LIMITS}, text)


def _duck(name: str, text: str) -> AnswerAttack:
    return _query(f"{name}, DuckDB", text, "duckdb")


_TEXTS = (
    _text("catastrophic expression", "a" * 200_000, matches=["(a+)+b"]),
    _text("expression with many states", "a" * 2_000_000, matches=["(?:a?){400}a{400}b"]),
    _text("combining marks", "\u0301\u0323" * 200_000, equals="x", normalise=["unicode"]),
    _text("digits without end", "1," * 1_000_000, number=3),
    _text("text longer than the limit", "x" * 9_000_000, contains_all=["x"]),
)
_SCHEMAS = (
    _json("lists without end", _TREE, "[" * 500_000),
    _json("objects without end", _TREE, '{"a":' * 200_000),
    _json("beginnings of JSON", _TREE, "[{" * 500_000),
    _json("catastrophic pattern", {"pattern": "(a+)+b"}, f'"{"a" * 200_000}"'),
    _json("schema that doubles", _DOUBLING, '"x"'),
    _json("equal items", {"uniqueItems": True}, f"[{','.join(map(str, range(50_000)))},1]"),
    _json("field named twice", {"type": "object"}, '{"a": 1, "a": 2}'),
)
_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"
_QUERIES = (
    _query("endless recursion", _ENDLESS.format("'breached', max(x)")),
    _query("rows without end", _ENDLESS.format("'breached', x")),
    _query("attach", "SELECT 1; ATTACH '@FILE@' AS other"),
    _query("attach first", "ATTACH '@FILE@' AS other; SELECT 'breached', 2"),
    _query("pragma", "PRAGMA writable_schema = ON; SELECT 'breached', 2"),
    _query("load_extension", "SELECT 'breached', load_extension('@FILE@')"),
    _query("readfile", "SELECT 'breached', length(readfile('@FILE@'))"),
    _query("writing", "INSERT INTO t SELECT 3, 'z' RETURNING 'breached', 2"),
    _query("memory", "SELECT 'breached', length(group_concat(hex(zeroblob(9000000)))) FROM t"),
    _query("large pattern", f"SELECT 'breached', 'a' LIKE '{'%a' * 20_000}'"),
    _query("COPY TO", "COPY (SELECT 'breached', 2) TO '@FILE@'"),
)
_FOUND = "SELECT 'breached', CASE WHEN count(*) > 0 THEN 2 END FROM {}"
_DUCKS = (
    _duck("reading a file", _FOUND.format("read_text('@FILE@')")),
    _duck("reading a table", _FOUND.format("read_csv('@FILE@', header = false)")),
    _duck("reading JSON", _FOUND.format("read_json('@FILE@')")),
    _duck("file as a table", _FOUND.format("'@FILE@'")),
    _duck("listing files", _FOUND.format("glob('@FILE@*')")),
    _duck("variables of the program", _FOUND.format("request")),
    _duck("environment", "SELECT 'breached', length(getenv('HOME')) * 0 + 2"),
    _duck("COPY TO", "COPY (SELECT 'breached', 2) TO '@FILE@'"),
    _duck("COPY in a query", _FOUND.format("query('COPY t TO ''@FILE@''')")),
    _duck("EXPORT", "EXPORT DATABASE '@FILE@x'; SELECT 'breached', 2"),
    _duck("attach", "ATTACH '@FILE@' AS other; SELECT 'breached', 2"),
    _duck("attach memory", "ATTACH ':memory:' AS other; SELECT 'breached', 2"),
    _duck("extension", "INSTALL httpfs; LOAD httpfs; SELECT 'breached', 2"),
    _duck("file as an extension", "LOAD '@FILE@'; SELECT 'breached', 2"),
    _duck("external access", "SET enable_external_access = true; SELECT 'breached', 2"),
    _duck("more memory", "SET memory_limit = '64GB'; SELECT 'breached', 2"),
    _duck(
        "writing in a query",
        "WITH new AS (INSERT INTO t SELECT 3, 'z' RETURNING a) SELECT 'breached', 2 FROM new",
    ),
    _duck("secrets", "SELECT 'breached', 2 + count(*) FROM duckdb_secrets()"),
    _duck("prepared", "PREPARE p AS COPY t TO '@FILE@'; EXECUTE p; SELECT 'breached', 2"),
    _duck("endless recursion", _ENDLESS.format("'breached', max(x) * 0 + 2")),
    _duck("rows without end", "SELECT 'breached', range FROM range(1000000000000)"),
    _duck("memory", "SELECT 'breached', len(list(range)) * 0 + 2 FROM range(100000000)"),
    _duck("long value", "SELECT 'breached', length(repeat(b, 1000000000)) * 0 + 2 FROM t"),
    _duck("nesting", f"SELECT 'breached', {'(' * 100_000}2{')' * 100_000}"),
    _duck("joins without end", "SELECT 'breached', count(*) * 0 + 2 FROM t" + ", t" * 60),
    _duck("sleeping", "SELECT 'breached', 2 FROM (SELECT sleep_ms(100000))"),
)


def attacks() -> Iterator[AnswerAttack]:
    """Those on the kinds whose libraries are installed here."""
    has_expressions = importlib.util.find_spec("re2") is not None
    if has_expressions:
        yield from _TEXTS
    if has_expressions and importlib.util.find_spec("jsonschema") is not None:
        yield from _SCHEMAS
    yield from _QUERIES
    if importlib.util.find_spec("duckdb") is not None:
        yield from _DUCKS
