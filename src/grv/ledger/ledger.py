"""The interface of a ledger: append, read, and claim searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .entries import Entry


class Ledger(Protocol):
    """Stores the entries of searches."""

    def append(self, search: str, entries: Sequence[Entry]) -> None:
        """Append entries to a search. They are durable when this returns."""
        ...

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order; empty if there is no such search."""
        ...

    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""
        ...

    def release(self, search: str) -> None:
        """Give up the claim on a search."""
        ...


class MemoryLedger:
    """A ledger in memory. Its entries are lost when the process ends."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Entry]] = {}
        self._claimed: set[str] = set()

    def append(self, search: str, entries: Sequence[Entry]) -> None:
        """Append entries to a search."""
        self._entries.setdefault(search, []).extend(entries)

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order."""
        return tuple(self._entries.get(search, ()))

    def claim(self, search: str) -> bool:
        """Claim the search; False if it is already claimed."""
        if search in self._claimed:
            return False
        self._claimed.add(search)
        return True

    def release(self, search: str) -> None:
        """Give up the claim on a search."""
        self._claimed.discard(search)
