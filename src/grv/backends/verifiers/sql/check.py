"""Verify a query by its rows: checks of kind "sql".

`{"kind": "sql", "engine": "sqlite", "schema": "CREATE TABLE ...", "reference": "SELECT ..."}`. The
candidate's query must return the same rows as the reference query: as a multiset, and in the same
order if the reference has ORDER BY at its top. It must do so on the database, and on variants of it
(jailed.py), because on one database a wrong query is often right by accident.

Both queries run in the jail, in processes of their own, and can only read. The candidate's process
never has the reference or its rows: these are compared here. `limits` apply to each database.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ....core.errors import UsageError, installing
from ....core.values import Verdict
from ....files import shown
from ....own_code import digest_of_files
from ....text import checksum
from ...protocols import Finding, Problem, Usage
from ...sandbox import plain
from ...sandbox.limits import DEFAULT_LIMITS, End, RunLimits
from ...sandbox.run import Run
from ..answers import code_in, is_close, one_of, required_text, spoken, texts, tolerance_of
from ..checks import WholeTextCheck
from ..programs.checks import call, load, loading
from ..programs.findings import clean, failed, raised, refused, silent
from ..suite import Suite
from ..worker_pair import WorkerPair

ENGINES = ("sqlite", "duckdb")
_VARIANTS = 25
_MOST_VARIANTS = 200
_MOST_ROWS = 100_000  # of a query's answer
_MOST_PAIRED = 300  # rows that are paired one by one if numbers differ a little
_TOLERANCE = 1e-6
_LARGEST = 1 << 30  # bytes of all databases
_TOO_LARGE = f"they have more than {_LARGEST >> 20} MB together"
_PREPARING = 60.0  # seconds at least for the reference on all variants
_ENTRY = "answer"
# How the files of an engine begin: what, and where.
_STARTS = {"sqlite": (b"SQLite format 3\0", 0), "duckdb": (b"DUCK", 8)}
_START = re.compile(r"^[ \t(]*(?:select|with|values)\b", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"--[^\n]*|/\*|'[^']*'|\"[^\"]*\"|\w+")
# The words of which a query has one.
_READING = ("select", "values", "from", "table", "pivot", "unpivot", "describe", "show")
_QUERIES = {"sqlite": ("select", "values"), "duckdb": (*_READING, "desc", "summarize")}
_DUCKDB_MB = 256  # the library itself, and what it reserves before the first query


@dataclass(frozen=True)
class ExpectedRows:
    """A database of a check, and the reference's rows on it."""

    database: Any
    rows: list[list[Any]]
    ordered: bool


class _Reference:
    """The databases of a check, made once, when the first candidate is judged."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.content = ""
        self.databases: list[ExpectedRows] = []
        self.files = b""


def _databases() -> Suite:
    return Suite("database")


@dataclass(frozen=True)
class SqlCheck(WholeTextCheck):
    """Passes a text with a query that returns the rows of the reference query.

    Attributes:
        engine: "sqlite" or "duckdb".
        reference: the query that is right.
        schema: SQL that makes the tables and their rows; "" if there are files.
        files: the paths of databases, or of files with SQL.
        variants: how many variants of the data the queries run on.
        tolerance: for numbers that are not whole, relative to the reference's.
        limits: what a query may use on one database.
    """

    is_jailed: ClassVar[bool] = True
    is_limited: ClassVar[bool] = True

    engine: str
    reference: str
    schema: str = ""
    files: tuple[str, ...] = ()
    variants: int = _VARIANTS
    tolerance: float = _TOLERANCE
    limits: RunLimits = DEFAULT_LIMITS
    suite: Suite = field(default_factory=_databases, compare=False, repr=False)
    _known: _Reference = field(default_factory=_Reference, compare=False, repr=False)

    @classmethod
    def of(cls, problem: Problem, limits: RunLimits = DEFAULT_LIMITS) -> SqlCheck:
        """The check of a problem; a UsageError names the field that is wrong."""
        record = problem.check
        engine = one_of(record, "engine", ENGINES)
        if engine == "duckdb" and importlib.util.find_spec("duckdb") is None:
            raise UsageError(f"engine duckdb needs DuckDB: {installing('duckdb')}")
        if ("schema" in record) == ("databases" in record):
            raise UsageError("give schema, which is SQL, or databases, which are files")
        schema = required_text(record, "schema") if "schema" in record else ""
        files = texts(record, "databases")
        for number, path in enumerate(files):
            if not Path(path).is_file():
                raise UsageError(f"databases[{number}]: no such file: {shown(path)}")
        if sum(os.path.getsize(path) for path in files) > _LARGEST:  # before they are read
            raise UsageError(f"databases: {_TOO_LARGE}")
        reference = _bare(required_text(record, "reference"))
        if not _is_query(reference, engine):
            raise UsageError(f"reference must be a query, not {shown(reference)}")
        variants = record.get("variants", _VARIANTS)
        is_count = isinstance(variants, int) and not isinstance(variants, bool)
        if not is_count or not 0 <= variants <= _MOST_VARIANTS:
            raise UsageError(f"variants must be from 0 to {_MOST_VARIANTS}, not {shown(variants)}")
        tolerance = tolerance_of(record, _TOLERANCE)
        return cls(engine, reference, schema, files, variants, tolerance, limits)

    def key(self, text: str) -> str | None:
        """Texts with the same query fail together."""
        return f"sql:{checksum(query_in(text))}"

    def identity(self, text: str) -> str:
        """A checksum of the query."""
        return checksum(query_in(text))

    def reading(self, text: str, verdict: Verdict) -> dict[str, str]:
        """The query that passed."""
        return {"answer_value": query_in(text)} if verdict is Verdict.PASSED else {}

    def refutation(self, text: str) -> str | None:
        """A text without a query fails."""
        return None if _is_query(query_in(text), self.engine) else "has no SELECT"

    def content(self) -> str:
        """A checksum of the databases."""
        return digest_of_files(self.files) if self.files else ""

    def worst_seconds(self) -> float:
        """All databases, each with its full limit."""
        return (self.variants + max(1, len(self.files)) + 1) * self.limits.seconds

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""
        started = time.monotonic()
        databases = self._databases(pair)
        if isinstance(databases, Finding):
            return databases
        finding = self._judged(query_in(text), databases, pair, seed)
        evidence = clean(finding.evidence) | {"isolation": str(pair.candidate.in_force)}
        usage = Usage(seconds=time.monotonic() - started)
        return Finding(finding.verdict, finding.reason, evidence, usage)

    def _judged(
        self, query: str, databases: Sequence[ExpectedRows], pair: WorkerPair, seed: int
    ) -> Finding:
        tests = len(databases) + 1
        order = loading(_source(), _ENTRY, self.limits, seed)
        worker = pair.candidate
        stdin = self._known.files
        with worker.run(
            "candidate",
            self._with_engine(self.limits),
            tests=tests,
            stdin=stdin,
            first=order,
            more=self._needs(),
        ) as run:
            if (refusal := load(run, _ENTRY, self.limits)) is not None:
                return refusal
            # The candidate is a query, which keeps nothing: all databases may share a process.
            return self.suite.find(
                len(databases), lambda number: self._one(run, query, databases[number], number)
            )

    def _one(self, run: Run, query: str, expected: ExpectedRows, number: int) -> Finding:
        run.clock.begin()
        reply = self._ask(run, "rows", query, expected.database)
        wrong = self._wrong(run, reply, expected)
        if wrong is None:
            return Finding(Verdict.PASSED)
        return Finding(wrong.verdict, wrong.reason, {"database": number, **wrong.evidence})

    def _wrong(
        self, run: Run, reply: Mapping[str, Any] | End, expected: ExpectedRows
    ) -> Finding | None:
        """What is wrong with a reply; None if it has the expected rows."""
        match reply:
            case End() as end:
                return silent(run, end, self.limits.seconds)
            case {"raised": _}:
                return raised(reply)
            case {"refused": _}:
                return refused(reply)
        content = _content(reply)
        if "error" in content:
            said = str(content["error"])
            return failed("memory" if said == "memory" else "query failed", message=said)
        rows = content.get("rows")
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            return failed("malformed answer")
        if same_rows(expected.rows, rows, self.tolerance, ordered=expected.ordered):
            return None
        return failed(
            "wrong rows",
            expected_rows=len(expected.rows),
            rows=len(rows),
            in_order=expected.ordered,
            first=shown(rows[:1]),
        )

    def _databases(self, pair: WorkerPair) -> list[ExpectedRows] | Finding:
        """The databases with the reference's rows, made anew if a file has changed."""
        content = self.content()
        with self._known.lock:
            if not self._known.databases or self._known.content != content:
                made = self._prepared(pair)
                if isinstance(made, Finding):
                    return made
                self._known.databases = made
                self._known.content = content
            return self._known.databases

    def _prepared(self, pair: WorkerPair) -> list[ExpectedRows] | Finding:
        sources: list[dict[str, Any]] = [{"script": self.schema}] if self.schema else []
        data = bytearray()
        for number, path in enumerate(self.files):
            source = _read(path, f"databases[{number}]", data, self.engine)
            sources.append(source)
        self._known.files = bytes(data)
        seconds = max(_PREPARING, 4 * self.limits.seconds)
        output = max(64.0, 4 * self.limits.output_mb)
        limits = RunLimits(
            seconds,
            memory_mb=self.limits.memory_mb,
            output_mb=output,
            files_mb=self.limits.files_mb,
        )
        found: list[ExpectedRows] = []
        order = loading(_source(), _ENTRY, limits, 0)
        with pair.candidate.run(
            "candidate",
            self._with_engine(limits),
            tests=len(sources) + 1,
            stdin=self._known.files,
            first=order,
            more=self._needs(),
        ) as run:
            if (refusal := load(run, _ENTRY, limits)) is not None:
                return _broken(refusal.reason)
            for number, source in enumerate(sources):
                run.clock.begin()
                more = {"variants": 0 if number else self.variants}
                reply = self._ask(run, "prepare", self.reference, source, **more)
                if isinstance(reply, End):
                    return _broken(silent(run, reply, seconds).reason)
                content = _content(reply)
                if not isinstance(content.get("databases"), list):
                    return _broken(str(content.get("error", "no answer")))
                found += [
                    ExpectedRows(each["database"], each["rows"], each["ordered"])
                    for each in content["databases"]
                ]
        return found

    def _needs(self) -> dict[str, Any]:
        """What the engine needs of the jail: DuckDB stops if it cannot read its cgroup's limits."""
        return {"reads_cgroup": self.engine == "duckdb"}

    def _with_engine(self, limits: RunLimits) -> RunLimits:
        """The limits with room for the engine itself, which the interpreter does not contain."""
        if self.engine != "duckdb":
            return limits
        return limits.with_({"memory_mb": limits.memory_mb + _DUCKDB_MB})

    def _ask(
        self, run: Run, do: str, query: str, database: Any, **more: Any
    ) -> Mapping[str, Any] | End:
        request = {
            "do": do,
            "engine": self.engine,
            "query": query,
            "database": database,
            "seconds": self.limits.seconds,
            "memory_mb": max(16, int(self.limits.memory_mb * 3 // 4)),
            "rows": _MOST_ROWS,
            "nulls": "declared" if self.schema else "present",
        }
        return call(run, {"args": plain.encode([{**request, **more}])})


def _broken(reason: str) -> Finding:
    return Finding(Verdict.BROKEN, str(clean(f"the reference failed: {reason}")))


def _content(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a process returned; empty if it is no record."""
    try:
        content = plain.decode(reply.get("value"))
    except plain.PlainError:
        return {}
    return content if isinstance(content, dict) else {}


@functools.cache
def _source() -> str:
    """The program that runs in the jail."""
    return Path(__file__).with_name("jailed.py").read_text(encoding="utf-8")


def _read(path: str, place: str, data: bytearray, engine: str) -> dict[str, Any]:
    """A file as a source of data; a database is added to `data`."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1 - len(data))
    except OSError as error:
        raise UsageError(f"{place}: {shown(path)}: {error.strerror}") from None
    if len(data) + len(content) > _LARGEST:
        raise UsageError(f"{place}: {_TOO_LARGE}")
    written_by = [
        name for name, (start, at) in _STARTS.items() if content[at : at + len(start)] == start
    ]
    if written_by and engine not in written_by:
        raise UsageError(f"{place}: {shown(path)} is a database of {written_by[0]}, not {engine}")
    if not written_by:
        try:
            return {"script": content.decode("utf-8")}
        except UnicodeDecodeError:
            raise UsageError(f"{place}: {shown(path)} is neither a database nor SQL") from None
    start = len(data)
    data += content
    return {"file": [start, len(content)]}


def query_in(text: str) -> str:
    r"""The query in a text: its last code block of SQL, or what begins like a query.

    >>> query_in("Here it is: ```SELECT 1```;")
    'Here it is: ```SELECT 1```'
    >>> query_in("Sure.\nSELECT a\nFROM t;")
    'SELECT a\nFROM t'
    """
    answer = spoken(text)
    blocks = code_in(answer, ("sql", "sqlite", "sqlite3", "duckdb", "postgresql", "mysql"))
    if blocks:
        return _bare(blocks[-1])
    start = _START.search(answer)
    return _bare(answer if start is None else answer[start.start() :])


def _bare(query: str) -> str:
    return query.strip().rstrip(";").strip()


def _is_query(query: str, engine: str) -> bool:
    """Whether a text has a word that a query must have."""
    wanted = _QUERIES[engine]
    return any(word.lower() in wanted for word in _words(query))


def _words(query: str) -> Iterator[str]:
    """The words, the texts in quotes and the short comments of a query, in linear time."""
    at = 0
    closes = True  # whether a comment may be closed; if one is not, no later one is
    while match := _WORD.search(query, at):
        at = match.end()
        if match[0] != "/*":
            yield match[0]
        elif closes:
            end = query.find("*/", at)
            closes = end >= 0
            at = end + 2 if closes else at


def same_rows(
    expected: list[list[Any]], rows: list[list[Any]], tolerance: float, *, ordered: bool
) -> bool:
    """Whether two lists of rows are the same, as multisets if they are not ordered.

    >>> same_rows([[1, "a"], [2, "b"]], [[2.0, "b"], [1, "a"]], 0.0, ordered=False)
    True
    """
    if len(expected) != len(rows):
        return False
    if not ordered:
        expected = sorted(expected, key=_order)
        rows = sorted(rows, key=_order)
    if all(_same_row(one, other, tolerance) for one, other in zip(expected, rows, strict=True)):
        return True
    if ordered or len(rows) > _MOST_PAIRED:
        return False
    left = [*rows]  # numbers that differ a little may be sorted apart
    for row in expected:
        for place, other in enumerate(left):
            if _same_row(row, other, tolerance):
                del left[place]
                break
        else:
            return False
    return True


def _order(row: list[Any]) -> tuple[tuple[int, Any], ...]:
    return tuple(map(_rank, row))


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, int | float):
        return (1, -math.inf if value != value else value)  # NaN does not equal itself
    if isinstance(value, str):
        return (2, value)
    if isinstance(value, bytes):
        return (3, value)
    return (4, repr(value))


def _same_row(one: list[Any], other: list[Any], tolerance: float) -> bool:
    return len(one) == len(other) and all(
        _same(a, b, tolerance) for a, b in zip(one, other, strict=True)
    )


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        both_missing = one != one and other != other  # NaN
        try:
            return both_missing or is_close(one, other, tolerance)
        except OverflowError:
            return False
    return type(one) is type(other) and bool(one == other)
