from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from grv.backends.protocols import Finding
from grv.backends.verdict_store import VerdictStore
from grv.core.errors import UsageError
from grv.core.values import Verdict


def test_verdicts_are_remembered_across_openings(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts")
    assert store.get("check", "key") is None
    store.put("check", "key", Finding(Verdict.FAILED, "wrong answer", {"test": 3}))
    store.close()
    store = VerdictStore(tmp_path / "verdicts")
    found = store.get("check", "key")
    assert found == Finding(Verdict.FAILED, "wrong answer", {"test": 3, "remembered": True})
    assert store.get("other", "key") is None
    store.close()


def test_what_may_be_otherwise_another_time_is_not_remembered(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts")
    for finding in (
        Finding(Verdict.BROKEN, "worker died"),
        Finding(Verdict.FAILED, "timeout"),
        Finding(Verdict.FAILED, "memory"),
    ):
        store.put("check", "key", finding)
        assert store.get("check", "key") is None
    store.close()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(UsageError, match="not a store of verdicts"):
        VerdictStore(tmp_path / "text")
    with sqlite3.connect(tmp_path / "newer") as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(UsageError, match="written by a newer version"):
        VerdictStore(tmp_path / "newer")
