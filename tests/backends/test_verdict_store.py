from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from grv.backends.protocols import Finding
from grv.backends.verifiers.verdict_store import VerdictStore
from grv.conditions import LEVELS, Conditions
from grv.core.errors import UsageError
from grv.core.values import Verdict

CHECK = Conditions("check", 1, "jail")
PASSED = Finding(Verdict.PASSED, "all tests passed")
FAILED = Finding(Verdict.FAILED, "wrong answer", {"test": 3})


def test_verdicts_are_remembered_across_openings(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts")
    assert store.get(CHECK, "key", "program") is None
    store.put(CHECK, "key", "program", FAILED)
    store.close()
    store = VerdictStore(tmp_path / "verdicts")
    found = store.get(CHECK, "key", "program")
    assert found == Finding(
        Verdict.FAILED, "wrong answer", {"test": 3, "remembered": True}, shared=True
    )
    assert store.get(Conditions("other", 1, "jail"), "key", "program") is None
    store.close()


def test_equal_keys_share_failures_and_no_passes(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts")
    store.put(CHECK, "wrong", "program", FAILED)
    store.put(CHECK, "right", "program 2", PASSED)
    twin = store.get(CHECK, "wrong", "twin")
    assert twin is not None
    assert twin.verdict is Verdict.FAILED
    assert store.get(CHECK, "right", "twin 2") is None
    found = store.get(CHECK, "right", "program 2")
    assert found is not None
    assert found.verdict is Verdict.PASSED
    store.close()


def test_a_key_with_both_verdicts_is_no_class(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts")
    store.put(CHECK, "key", "right", PASSED)
    store.put(CHECK, "key", "wrong", FAILED)
    assert store.get(CHECK, "key", "another") is None
    for program, verdict in (("right", Verdict.PASSED), ("wrong", Verdict.FAILED)):
        found = store.get(CHECK, "key", program)
        assert found is not None
        assert found.verdict is verdict
    store.close()


def test_findings_of_the_old_format_are_not_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old")) as database, database:
        database.execute(
            "CREATE TABLE verdicts (digest TEXT, key TEXT, verdict TEXT, reason TEXT,"
            " evidence TEXT, PRIMARY KEY (digest, key)) WITHOUT ROWID"
        )
        database.execute("INSERT INTO verdicts VALUES ('check', 'key', 'passed', '', '{}')")
        database.execute("PRAGMA user_version=1")
    database.close()
    store = VerdictStore(tmp_path / "old")
    assert store.get(CHECK, "key", "program") is None
    store.put(CHECK, "key", "program", PASSED)
    store.close()


def test_findings_without_conditions_count_as_not_isolated(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old")) as database, database:
        database.execute(
            "CREATE TABLE findings (digest TEXT, identity TEXT, key TEXT, verdict TEXT,"
            " reason TEXT, evidence TEXT, PRIMARY KEY (digest, identity)) WITHOUT ROWID"
        )
        database.execute("CREATE INDEX by_key ON findings (digest, key)")
        database.execute("INSERT INTO findings VALUES ('check', 'p', 'key', 'passed', '', '{}')")
        database.execute("PRAGMA user_version=2")
    database.close()
    for _ in range(2):  # the second time it has the new format
        store = VerdictStore(tmp_path / "old")
        found = [level for level in LEVELS if store.get(Conditions("check", 1, level), "key", "p")]
        assert found == ["", "unsafe"]
        assert store.get(Conditions("check", 2, "unsafe"), "key", "p") is None
        store.close()


def test_what_may_be_otherwise_another_time_is_not_remembered(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts")
    for finding in (
        Finding(Verdict.BROKEN, "worker died"),
        Finding(Verdict.FAILED, "timeout"),
        Finding(Verdict.FAILED, "memory"),
    ):
        store.put(CHECK, "key", "program", finding)
        assert store.get(CHECK, "key", "program") is None
    store.close()


def test_another_database_is_left_alone(tmp_path: Path) -> None:
    for version in (0, 1, 2):
        path = tmp_path / f"notes-{version}.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE notes (text TEXT)")
            database.execute(f"PRAGMA user_version={version}")
        database.close()
        before = path.read_bytes()
        with pytest.raises(UsageError, match="not a store of verdicts"):
            VerdictStore(path)
        assert path.read_bytes() == before


@pytest.mark.slow
def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "verdicts"
    store = VerdictStore(path)
    store.put(CHECK, "key", "program", FAILED)
    store.close()
    nested, long = "'" + "[" * 100_000 + "'", "zeroblob(70000000)"
    for damage in (
        "verdict = '?'",
        "evidence = '{'",
        "evidence = '3'",
        f"evidence = {nested}",
        f"evidence = {long}",
        "isolation = 'none'",
    ):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"UPDATE findings SET {damage}")
        database.close()
        store = VerdictStore(path)
        with pytest.raises(UsageError, match="verdicts: not a store of verdicts"):
            store.get(CHECK, "key", "program")
        store.close()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(UsageError, match="not a store of verdicts"):
        VerdictStore(tmp_path / "text")
    with closing(sqlite3.connect(tmp_path / "newer")) as database, database:
        database.execute("CREATE TABLE findings (digest TEXT)")
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(UsageError, match="written by a newer version"):
        VerdictStore(tmp_path / "newer")
