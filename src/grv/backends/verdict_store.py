"""Verdicts remembered across runs, by check and key, in a file that the user names."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from pathlib import Path

from ..core.errors import UsageError
from ..core.values import Verdict
from .protocols import Finding

_FORMAT = 1
# What hangs on the load of the machine may be otherwise another time.
_FLEETING = ("timeout", "memory", "crash", "no answer")


class VerdictStore:
    """A file of verdicts; safe to use from several threads, and from several processes."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(path, timeout=60, check_same_thread=False)
            with self._database:
                self._database.execute("PRAGMA journal_mode=WAL")
                (version,) = self._database.execute("PRAGMA user_version").fetchone()
                if version not in (0, _FORMAT):
                    raise UsageError(f"{path}: written by a newer version (format {version})")
                self._database.execute(f"PRAGMA user_version={_FORMAT}")
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS verdicts (digest TEXT, key TEXT, verdict TEXT, "
                    "reason TEXT, evidence TEXT, PRIMARY KEY (digest, key)) WITHOUT ROWID"
                )
        except sqlite3.Error as exc:
            raise UsageError(f"{path}: not a store of verdicts: {exc}") from exc

    def get(self, digest: str, key: str) -> Finding | None:
        """The finding on record, None where there is none."""
        query = "SELECT verdict, reason, evidence FROM verdicts WHERE digest = ? AND key = ?"
        with self._lock:
            row = self._database.execute(query, (digest, key)).fetchone()
        if row is None:
            return None
        return Finding(Verdict(row[0]), row[1], json.loads(row[2]) | {"remembered": True})

    def put(self, digest: str, key: str, finding: Finding) -> None:
        """Remember a finding that holds for good; others are passed over."""
        if finding.verdict is Verdict.BROKEN or finding.reason in _FLEETING:
            return
        row = (digest, key, finding.verdict.value, finding.reason, json.dumps(finding.evidence))
        with self._lock, self._database:
            self._database.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._database.close()
