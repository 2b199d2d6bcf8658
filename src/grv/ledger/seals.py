"""Seals: hashes that show whether a ledger was changed.

The seal of an entry covers the id of its search, its position, time, kind and content, and the seal
of the entry before it. The head of the ledger covers the seals of all entries, in the order of
writing.

Without a key, seals detect damage: a flipped bit, a lost, moved or exchanged row. But a person who
edits the file can compute new seals. With a key, only those who have it can: every other edit is
detected. An older copy of the whole file is not detected in either case.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..core.errors import UsageError

KEY = "GRV_LEDGER_KEY"
KEY_FILE = "GRV_LEDGER_KEY_FILE"
_MOST = 64  # bytes of a key that BLAKE2 takes


class Seals:
    """Makes seals, with a key or without one."""

    def __init__(self, key: bytes = b"") -> None:
        self._key = hashlib.blake2b(key).digest()[:_MOST] if key else b""

    @property
    def name(self) -> str:
        """The name of the key, which does not reveal it; empty without a key."""
        return self._hash("key") if self._key else ""

    def entry(self, before: str, search: str, number: int, at: float, kind: str, body: str) -> str:
        """The seal of an entry that follows the seal `before` in its search."""
        sizes = f"entry {len(before)} {len(search)} {len(kind)} {number} {at.hex()} "
        return self._hash(sizes + before + search + kind + body)

    def head(self, before: str, seal: str) -> str:
        """The head of a ledger after one more entry."""
        return self._hash(f"head {len(before)} {before}{seal}")

    def _hash(self, text: str) -> str:
        """The hash of a text, which must say where its parts end."""
        content = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16, key=self._key).hexdigest()


def key_from_environment() -> bytes:
    """The key in GRV_LEDGER_KEY, or in the file that GRV_LEDGER_KEY_FILE names; empty if none."""
    if text := os.environ.get(KEY):
        return text.encode()
    if path := os.environ.get(KEY_FILE):
        try:
            key = Path(path).read_bytes().strip()
        except OSError as error:
            raise UsageError(f"{KEY_FILE}: {path}: cannot be read: {error.strerror}") from error
        if not key:
            raise UsageError(f"{KEY_FILE}: {path}: the file is empty")
        return key
    return b""
