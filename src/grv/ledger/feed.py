"""Reports new entries of a ledger to listeners, also those that other processes write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from ..core.errors import LedgerError
from .entries import Entry
from .ledger import Listener, Listeners

INTERVAL = 0.25  # seconds between two looks for entries of other processes


class EntrySource(Protocol):
    """A ledger whose entries have positions."""

    def position(self) -> int:
        """The position of the newest entry."""
        ...

    def since(self, position: int) -> Sequence[tuple[int, str, Entry]]:
        """Position, search and content of all entries after a position."""
        ...

    def data_version(self) -> int:
        """A number that changes when another process writes."""
        ...


class Feed:
    """Reports the entries after its start, in order, each once."""

    def __init__(self, source: EntrySource) -> None:
        self._source = source
        self._last = source.position()
        self._listeners = Listeners()
        self._lock = threading.RLock()  # a listener may append, or stop
        self._delivering = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Report to the listener until the result is called."""
        with self._lock:
            stop = self._listeners.add(listener)
            if self._thread is None:
                self._thread = threading.Thread(target=self._poll, name="grv-feed", daemon=True)
                self._thread.start()
        return stop

    def deliver(self) -> None:
        """Report what is new."""
        with self._lock:
            if self._delivering:
                return  # a listener has appended; the loop below reports it next
            self._delivering = True
            try:
                while self._listeners and (new := self._source.since(self._last)):
                    self._report(new)
                if not self._listeners:
                    self._last = self._source.position()
            finally:
                self._delivering = False

    def _report(self, new: Sequence[tuple[int, str, Entry]]) -> None:
        for position, search, entry in new:
            self._last = position
            self._listeners.tell(search, (entry,))

    def stop(self) -> None:
        """Report nothing more."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _poll(self) -> None:
        version = -1
        while not self._stopped.wait(INTERVAL):
            try:
                seen = self._source.data_version()
                if seen != version:
                    version = seen
                    self.deliver()
            except LedgerError:
                continue  # a damaged entry, or a busy file: the reader of the search reports it
