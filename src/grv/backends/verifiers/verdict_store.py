"""A file that remembers verdicts across runs.

A finding belongs to the program that ran, named by its `identity`, and to the conditions under
which it ran. Programs with equal keys share failures, as long as none of them has passed.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from ...conditions import Conditions
from ...core.errors import UsageError
from ...core.values import Verdict
from ...files import LONGEST_LINE, parse_json
from ..protocols import Finding

# Format 1 shared passes by key; its findings are not read. Format 2 recorded neither isolation nor
# judge: its findings count as those of the first judge, not isolated.
_FORMAT = 3
# These reasons depend on the machine, so a later run may differ.
_FLEETING = ("timeout", "memory", "crash", "no answer")


class VerdictStore:
    """A file of verdicts. Several threads and several processes may use it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._errors_named():
            self._database = sqlite3.connect(path, timeout=60, check_same_thread=False)
            self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_LINE)
            try:
                with self._database:
                    self._check_format()
                    self._database.execute("PRAGMA journal_mode=WAL")
                    self._prepare()
            except BaseException:
                self._database.close()
                raise

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError) as exc:
            raise UsageError(f"{self._path}: not a store of verdicts: {exc}") from exc

    def _check_format(self) -> None:
        """Refuse a newer format, and any other database."""
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")}
        if version > _FORMAT and "findings" in tables:
            raise UsageError(f"{self._path}: written by a newer version (format {version})")
        own = {1: "verdicts", 2: "findings", _FORMAT: "findings"}.get(version)
        if tables and own not in tables:
            raise UsageError(
                f"{self._path}: not a store of verdicts but another database; give another file"
            )

    def _prepare(self) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        self._database.execute("DROP TABLE IF EXISTS verdicts")
        if version == 2:
            self._database.execute("DROP INDEX IF EXISTS by_key")
            self._database.execute("ALTER TABLE findings RENAME TO findings_2")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS findings (digest TEXT, judge INTEGER, isolation TEXT,"
            " identity TEXT, key TEXT, verdict TEXT, reason TEXT, evidence TEXT,"
            " PRIMARY KEY (digest, judge, isolation, identity)) WITHOUT ROWID"
        )
        self._database.execute("CREATE INDEX IF NOT EXISTS by_key ON findings (digest, key)")
        if version == 2:
            self._database.execute(
                "INSERT INTO findings SELECT digest, 1, 'unsafe', identity, key, verdict, reason,"
                " evidence FROM findings_2"
            )
            self._database.execute("DROP TABLE findings_2")
        self._database.execute(f"PRAGMA user_version={_FORMAT}")

    def get(self, wanted: Conditions, key: str, identity: str) -> Finding | None:
        """The stored finding on the program, or a failure of one with an equal key; or None."""
        columns = (
            "SELECT judge, isolation, identity, verdict, reason, evidence FROM findings"
            " WHERE digest = ?"
        )
        query = f"{columns} AND identity = ? UNION {columns} AND key = ?"
        values = (wanted.check, identity, wanted.check, key)
        with self._errors_named():
            with self._lock:
                rows = self._database.execute(query, values).fetchall()
            rows = [
                (name, *finding)
                for judge, level, name, *finding in rows
                if Conditions(wanted.check, judge, level).answers_for(wanted)
            ]
            own = [row for row in rows if row[0] == identity]
            alike = rows if all(row[1] == Verdict.FAILED.value for row in rows) else []
            for _, verdict, reason, evidence in own or alike:
                shown = {**parse_json(evidence), "remembered": True}
                return Finding(Verdict(verdict), reason, shown, shared=True)
        return None

    def put(self, given: Conditions, key: str, identity: str, finding: Finding) -> None:
        """Store a finding, unless it is broken or may differ in another run."""
        if finding.verdict is Verdict.BROKEN or finding.reason in _FLEETING:
            return
        where = (given.check, given.judge, given.isolation, identity, key)
        found = (finding.verdict.value, finding.reason, json.dumps(finding.evidence))
        with self._errors_named(), self._lock, self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*where, *found)
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._database.close()
