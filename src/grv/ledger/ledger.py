"""The ledger as everybody else sees it: append and read, and whose search it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .entries import Entry


class Ledger(Protocol):
    """Where entries are kept, search by search."""

    def append(self, search: str, entries: Sequence[Entry]) -> None:
        """Write entries behind those that are there; durable when it returns."""
        ...

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order; none where there is no such search."""
        ...

    def claim(self, search: str) -> bool:
        """Make the search ours until `release`; False while it is somebody else's who lives."""
        ...

    def release(self, search: str) -> None:
        """Let go of a search."""
        ...


class MemoryLedger:
    """A ledger that is gone with its process."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Entry]] = {}
        self._claimed: set[str] = set()

    def append(self, search: str, entries: Sequence[Entry]) -> None:
        """Write entries behind those that are there."""
        self._entries.setdefault(search, []).extend(entries)

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order."""
        return tuple(self._entries.get(search, ()))

    def claim(self, search: str) -> bool:
        """Make the search ours, unless it is already being worked on."""
        if search in self._claimed:
            return False
        self._claimed.add(search)
        return True

    def release(self, search: str) -> None:
        """Let go of a search."""
        self._claimed.discard(search)
