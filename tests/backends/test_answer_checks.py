"""Checks of kinds text, schema, sql, all and first."""

from __future__ import annotations

import importlib.util
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grv.backends.attacks import answers, suite
from grv.backends.protocols import Draft, Finding, ParkedCall, Problem
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.sql.check import same_rows
from grv.core.errors import UsageError
from grv.core.values import Verdict
from grv.runtime.prices import Meter

pytestmark = pytest.mark.slow
Rows = Callable[[str], list[Any]]  # the rows of a query on the database of the tests
TABLES = """
CREATE TABLE dept (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE emp (id INTEGER PRIMARY KEY, name TEXT NOT NULL, pay INTEGER NOT NULL,
  city TEXT, hired TEXT NOT NULL, dept_id INTEGER NOT NULL REFERENCES dept(id));
INSERT INTO dept VALUES (1, 'Sales'), (2, 'Ops'), (3, 'Legal');
INSERT INTO emp VALUES (1, 'Ann', 100, 'Rome', '2020-01-01', 1),
  (2, 'Bob', 200, 'Oslo', '2021-05-01', 1), (3, 'Cid', 300, 'Rome', '2022-03-01', 2);
"""
# A reference, another right query, and one that the rows above cannot tell from it.
PAIRS = [
    (
        "SELECT name FROM emp WHERE pay > 100",
        "SELECT name FROM emp WHERE NOT pay <= 100",
        "SELECT name FROM emp WHERE pay >= 200",
    ),
    (
        "SELECT DISTINCT city FROM emp WHERE pay >= 200",
        "SELECT city FROM emp WHERE pay >= 200 GROUP BY city",
        "SELECT city FROM emp WHERE pay >= 200",
    ),
    ("SELECT COUNT(*) FROM emp", "SELECT COUNT(id) FROM emp", "SELECT COUNT(city) FROM emp"),
    (
        "SELECT COUNT(DISTINCT name) FROM emp",
        "SELECT COUNT(*) FROM (SELECT name FROM emp GROUP BY name)",
        "SELECT COUNT(name) FROM emp",
    ),
    (
        "SELECT d.name FROM dept d JOIN emp e ON e.dept_id = d.id WHERE e.pay > 250",
        "SELECT d.name FROM emp e, dept d WHERE d.id = e.dept_id AND e.pay > 250",
        "SELECT name FROM dept WHERE id = 2",
    ),
    (
        "SELECT name FROM emp WHERE city = 'Oslo'",
        "SELECT name FROM emp WHERE 'Oslo' = city",
        "SELECT name FROM emp WHERE city LIKE 'Oslo'",
    ),
    (
        "SELECT name FROM emp WHERE hired >= '2021-05-01'",
        "SELECT name FROM emp WHERE NOT hired < '2021-05-01'",
        "SELECT name FROM emp WHERE hired > '2021-01-01'",
    ),
    (
        "SELECT name FROM emp WHERE city LIKE 'R%'",
        "SELECT name FROM emp WHERE substr(city, 1, 1) IN ('R', 'r')",
        "SELECT name FROM emp WHERE city = 'Rome'",
    ),
    (
        "SELECT name FROM emp ORDER BY pay, id",
        "SELECT name FROM emp ORDER BY pay ASC, id ASC",
        "SELECT name FROM emp ORDER BY id",
    ),
    (
        "SELECT d.name, COUNT(e.id) FROM dept d LEFT JOIN emp e ON e.dept_id = d.id GROUP BY d.id",
        "SELECT name, (SELECT COUNT(*) FROM emp WHERE dept_id = dept.id) FROM dept",
        "SELECT d.name, 2 - (d.id - 1) FROM dept d",
    ),
]
# The same with other constants: fifty pairs.
VARIED: list[tuple[tuple[str, str, str], str, Callable[[str, int], str]]] = [
    (PAIRS[0], "pay", lambda q, n: q.replace("100", str(100 + n)).replace("200", str(200 - n))),
    (PAIRS[6], "day", lambda q, n: q.replace("2021-05-01", f"2021-04-{10 + n}")),
    (PAIRS[4], "pay", lambda q, n: q.replace("250", str(250 + n))),
    (PAIRS[1], "city", lambda q, n: q.replace("200", str(200 - n))),
]
ALL_PAIRS = PAIRS + [
    (change(pair[0], number), change(pair[1], number), change(pair[2], number))
    for pair, _, change in VARIED
    for number in range(1, 11)
]


@pytest.fixture(scope="module")
def verifier() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1) as verifier:
        yield verifier


def found(verifier: CheckVerifier, text: str, **check: Any) -> Finding:
    return verifier.find(Problem("p", check=check), text)


def sql(reference: str, engine: str = "sqlite", **more: Any) -> dict[str, Any]:
    return {"kind": "sql", "engine": engine, "schema": TABLES, "reference": reference, **more}


def in_duckdb(query: str) -> str:
    """The query as DuckDB says it: LIKE looks at case there, and GROUP BY names all columns."""
    return query.replace(" LIKE ", " ILIKE ").replace("GROUP BY d.id", "GROUP BY d.id, d.name")


def judge_pairs(
    verifier: CheckVerifier,
    engine: str,
    pairs: list[tuple[str, str, str]],
    rows: Rows,
    **more: Any,
) -> None:
    """Right queries pass, and wrong ones fail that have the same rows on the database itself."""
    for pair in pairs:
        reference, right, wrong = map(in_duckdb, pair) if engine == "duckdb" else pair
        assert sorted(rows(reference)) == sorted(rows(wrong))
        check = sql(reference, engine=engine, **more)
        assert found(verifier, right, **check).verdict is Verdict.PASSED, right
        assert found(verifier, wrong, **check).verdict is Verdict.FAILED, wrong


def test_fifty_queries_pass_and_near_misses_fail(verifier: CheckVerifier) -> None:
    assert len(ALL_PAIRS) == 50
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(TABLES)
        judge_pairs(verifier, "sqlite", ALL_PAIRS, lambda query: database.execute(query).fetchall())


def rows_of_duckdb() -> Rows:
    duckdb = pytest.importorskip("duckdb", exc_type=ImportError)
    database = duckdb.connect(":memory:")
    database.execute(TABLES)
    return lambda query: database.execute(query).fetchall()


def test_queries_of_duckdb_pass_and_near_misses_fail(verifier: CheckVerifier) -> None:
    judge_pairs(verifier, "duckdb", PAIRS[::3], rows_of_duckdb(), variants=8)


@pytest.mark.soak
def test_fifty_queries_of_duckdb_pass_and_near_misses_fail(verifier: CheckVerifier) -> None:
    judge_pairs(verifier, "duckdb", ALL_PAIRS, rows_of_duckdb())


def test_variants_of_duckdb_keep_the_constraints(verifier: CheckVerifier) -> None:
    """A query that is right only because of a constraint passes on every variant."""
    pytest.importorskip("duckdb", exc_type=ImportError)
    schema = """
    CREATE SEQUENCE ids;
    CREATE TYPE mood AS ENUM ('good', 'bad');
    CREATE TABLE node (id INTEGER PRIMARY KEY DEFAULT nextval('ids'),
      up INTEGER REFERENCES node(id),
      weight DECIMAL(8, 2) NOT NULL CHECK (weight > 0), felt mood NOT NULL, day DATE NOT NULL,
      tags VARCHAR[], UNIQUE (weight, day));
    INSERT INTO node VALUES (1, NULL, 2.5, 'good', '2024-02-29', ['a']);
    INSERT INTO node VALUES (2, 1, 4, 'bad', '2024-03-01', NULL);
    CREATE VIEW heavy AS SELECT * FROM node WHERE weight >= 4;
    """
    reference = (
        "SELECT n.id, weight, felt, day + 1, tags FROM heavy n ORDER BY weight, day, felt, n.id"
    )
    right = (
        "SELECT id, weight, felt, day + INTERVAL 1 DAY, tags FROM node WHERE weight >= 4"
        " AND (up IS NULL OR up IN (SELECT id FROM node)) AND weight > 0 ORDER BY 2, 4, 3, 1"
    ).replace("day + INTERVAL 1 DAY", "(day + INTERVAL 1 DAY)::DATE")
    check = sql(reference, engine="duckdb", variants=12) | {"schema": schema}
    finding = found(verifier, right, **check)
    assert finding.verdict is Verdict.PASSED, finding
    assert finding.evidence["databases"] > 10
    wrong = right.replace("weight >= 4", "id = 2")
    assert found(verifier, wrong, **check).verdict is Verdict.FAILED
    unordered = right.partition(" ORDER BY")[0]
    assert found(verifier, unordered, **check).reason == "wrong rows"


def test_a_database_is_a_file(verifier: CheckVerifier, tmp_path: Path) -> None:
    path = tmp_path / "some file.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(TABLES)
    check = sql(PAIRS[0][0]) | {"databases": [str(path)]}
    del check["schema"]
    assert found(verifier, PAIRS[0][1], **check).verdict is Verdict.PASSED
    before = verifier.conditions(Problem("p", check=check))
    assert found(verifier, PAIRS[0][2], **check).verdict is Verdict.FAILED
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO emp VALUES (9, 'Dan', 900, 'Bern', '2023-01-01', 3)")
    assert verifier.conditions(Problem("p", check=check)) != before


def test_databases_that_are_too_large_are_refused_before_they_are_read(
    verifier: CheckVerifier, tmp_path: Path
) -> None:
    path = tmp_path / "hole.sqlite"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    check = sql(PAIRS[0][0]) | {"databases": [str(path)]}
    del check["schema"]
    with pytest.raises(UsageError, match="databases: they have more than 1024 MB together"):
        verifier.conditions(Problem("p", check=check))


def test_a_file_of_duckdb_is_only_read(verifier: CheckVerifier, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", exc_type=ImportError)
    path = tmp_path / "some.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(TABLES)
    content = path.read_bytes()
    check = sql(PAIRS[0][0], engine="duckdb", variants=5) | {"databases": [str(path)]}
    del check["schema"]
    assert found(verifier, PAIRS[0][1], **check).verdict is Verdict.PASSED
    assert found(verifier, PAIRS[0][2], **check).verdict is Verdict.FAILED
    assert path.read_bytes() == content
    mixed = check | {"engine": "sqlite"}
    with pytest.raises(UsageError, match="is a database of duckdb, not sqlite"):
        found(verifier, PAIRS[0][1], **mixed)
    small = check | {"limits": {"files_mb": 0}}
    assert "raise limits.files_mb" in found(verifier, PAIRS[0][1], **small).reason


def test_duckdb_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"engine duckdb needs DuckDB: pip install .*\[duckdb\]"):
        parse_check(Problem("p", check=sql("SELECT 1", engine="duckdb")))


def test_a_reference_that_fails_is_broken(verifier: CheckVerifier) -> None:
    finding = found(verifier, "SELECT 1", **sql("SELECT a FROM nowhere"))
    assert finding.verdict is Verdict.BROKEN
    assert "no such table: nowhere" in finding.reason


def test_rows_are_compared_as_multisets_within_a_tolerance() -> None:
    assert same_rows([[1.0], [2.0]], [[2.0000001], [1.0]], 1e-6, ordered=False)
    assert not same_rows([[1], [2]], [[2], [1]], 1e-6, ordered=True)
    assert not same_rows([[1], [1], [2]], [[1], [2], [2]], 1e-6, ordered=False)
    assert not same_rows([[1]], [["1"]], 1e-6, ordered=False)
    assert not same_rows([[10**400]], [[1.5]], 1e-6, ordered=False)


@pytest.mark.parametrize(
    ("rules", "right", "wrong"),
    [
        ({"equals": "yes"}, "yes", "yes!"),
        ({"equals": "Yes.", "normalise": ["case", "punctuation", "space"]}, " YES ", "no"),
        ({"contains_any": ["a", "b"]}, "xbx", "x"),
        ({"number": 1234.5}, "It costs 1,234.50.", "1234.5 or 3"),
        ({"number": 3, "tolerance": 0.1}, "3.2", "3.4"),
        ({"matches": ["^a+$"]}, "aaa", "aab"),
        ({"contains_all": ["x"]}, "<think>y</think>x", "<think>x</think>y"),
    ],
)
def test_rules_of_texts(
    verifier: CheckVerifier, rules: dict[str, Any], right: str, wrong: str
) -> None:
    assert found(verifier, right, kind="text", **rules).verdict is Verdict.PASSED
    assert found(verifier, wrong, kind="text", **rules).verdict is Verdict.FAILED


def test_json_is_found_and_the_passed_part_is_named(verifier: CheckVerifier) -> None:
    check = {"kind": "schema", "schema": {"type": "object", "required": ["a"]}}
    finding = found(verifier, 'So: {"a": 1}, see [2].', **check)
    assert finding.verdict is Verdict.PASSED
    assert finding.evidence["answer_value"] == '{"a": 1}'
    for text in ("none", '{"b": 1}', '{"a": 1, "a": 2}', '{"a": NaN}'):
        assert found(verifier, text, **check).verdict is Verdict.FAILED
    fields = {"kind": "schema", "fields": {"/a/0": 1}}
    assert found(verifier, '```json\n{"a": [1.0]}\n```', **fields).verdict is Verdict.PASSED
    assert found(verifier, '{"a": [true]}', **fields).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "text"}, "check: no rule"),
        ({"kind": "text", "equal": "x"}, r"check.equal: no such field; did you mean equals\?"),
        ({"kind": "text", "matches": ["("]}, "matches: .* is no expression of RE2"),
        ({"kind": "schema"}, "give schema, fields or both"),
        ({"kind": "schema", "schema": {"$ref": "http://x/"}}, r"\$ref may lead only to"),
        ({"kind": "schema", "schema": {"$ref": "#"}}, "leads back to itself"),
        ({"kind": "schema", "fields": {"a": 1}}, "no JSON pointer"),
        (sql("SELECT 1") | {"engine": "oracle"}, "engine must be one of sqlite, duckdb"),
        (sql("SELECT 1") | {"variants": -1}, "variants must be from 0 to 200"),
        (sql("DROP TABLE emp"), "reference must be a query"),
        ({"kind": "all", "checks": [{"kind": "math"}]}, r"checks\[0\]: a check of kind 'math'"),
        ({"kind": "all", "checks": [{"kind": "all"}]}, r"checks\[0\].kind must not be all"),
        ({"kind": "first", "checks": [{"kind": "math", "answer": "1", "cost": -1}]}, "cost must"),
    ],
)
def test_a_wrong_record_names_the_field(record: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"^problem p, .*{message}") as caught:
        parse_check(Problem("p", check=record))
    assert "\n" not in str(caught.value)


GROUP = {
    "kind": "first",
    "checks": [
        {"kind": "text", "contains_none": ["import"], "cost": 0.5},
        {"kind": "stdin", "tests": [{"input": "3", "output": "6"}], "cost": 2},
    ],
}


def test_each_check_is_billed_for_itself() -> None:
    with CheckVerifier(workers=1, refute=False) as verifier:
        for text, names, dollars in (
            ("print(2 * int(input()))", ["text", "stdin"], 2.5),
            ("print(1)", ["text", "stdin"], 2.5),
            ("import os", ["text"], 0.5),
        ):
            finding = found(verifier, text, **GROUP)
            assert [stage.name for stage in finding.stages] == names
            assert sum(stage.cost or 0 for stage in finding.stages) == finding.usage.dollars
            assert Meter().cost("verify", finding.usage) == dollars
        finding = found(verifier, "print(1)", **GROUP, repeat=2)
        assert sum(stage.cost or 0 for stage in finding.stages) == finding.usage.dollars == 5


def test_what_fails_a_check_of_texts_is_refuted_for_nothing(verifier: CheckVerifier) -> None:
    finding = found(verifier, "import os", **GROUP)
    assert finding.shared
    assert finding.reason.startswith("refuted: text: contains a phrase")


def test_a_person_decides_last(verifier: CheckVerifier) -> None:
    human = {"kind": "human", "question": "Is it good?"}
    check = {"kind": "first", "checks": [{"kind": "text", "contains_all": ["a"]}, human]}
    job = Problem("p", check=check)
    with pytest.raises(ParkedCall, match="Is it good"):
        verifier.prepare(job).how.judge("a", verifier.engine.pairs[0])  # type: ignore[attr-defined]
    assert verifier.find(job, "b").verdict is Verdict.FAILED
    turned = {"kind": "first", "checks": [human, {"kind": "text", "contains_all": ["a"]}]}
    with pytest.raises(UsageError, match="a person decides last"):
        parse_check(Problem("p", check=turned))


def test_a_command_inside_a_group_must_be_allowed(verifier: CheckVerifier) -> None:
    check = {"kind": "all", "checks": [{"kind": "command", "argv": ["true"]}]}
    with pytest.raises(UsageError, match="--allow-commands"):
        found(verifier, "x", **check)


@pytest.mark.parametrize("attack", [*answers.attacks()], ids=lambda attack: attack.name)
def test_an_attack_on_a_check_of_answers_is_held(attack: answers.AnswerAttack) -> None:
    with suite.Surroundings() as around, CheckVerifier(workers=1, refute=False) as verifier:
        finding = verifier.find(Problem("p", check=attack.check), around.fill(attack.text))
        assert finding.verdict is Verdict.FAILED, finding
        assert around.damage() == []


@pytest.mark.parametrize("text", ["/* " * 500_000, "'/* \"/* " * 200_000, "-- /*\n" * 200_000])
def test_what_is_not_closed_in_a_query_takes_no_longer_to_read(
    verifier: CheckVerifier, text: str
) -> None:
    problem = Problem("p", check=sql("SELECT 1"))
    started = time.process_time()
    assert verifier.refutation(problem, Draft(text)) == "has no SELECT"
    assert verifier.refutation(problem, Draft(f"{text}\nSELECT 1")) is None
    assert time.process_time() - started < 5
