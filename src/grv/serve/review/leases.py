"""Leases: an item belongs to one reviewer while the page is open.

A lease is a claim in the ledger, as on searches: two servers, or a server and `grv review`, never
hold one item. A claim ends with its process. Inside a server, the page of a reviewer says every few
seconds that it is still open; otherwise the item returns to the queue.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...core.errors import LedgerError
from ...ledger.tables import TableLedger
from .queue import ItemId

SILENCE = 20.0  # seconds without a word from the page


@dataclass
class Lease:
    """An item in the hands of a reviewer.

    Attributes:
        id: what is leased.
        reviewer: to whom.
        secret: what the page has to show.
        granted: when it was granted.
        heard: when the page was last heard of.
    """

    id: ItemId
    reviewer: str
    secret: str
    granted: float
    heard: float


class Leases:
    """The leases of one server."""

    def __init__(
        self,
        ledger: TableLedger,
        *,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger, self._silence, self._clock = ledger, silence, clock
        self._leases: dict[ItemId, Lease] = {}
        self._lock = threading.RLock()
        self._sweeping = False

    def take(self, reviewer: str, wanted: Iterable[ItemId]) -> Lease | None:
        """Lease the first item that is free; None if there is none."""
        with self._lock:
            self.expire()
            for id in wanted:
                if id not in self._leases and self._ledger.claim(id.claim):
                    now = self._clock()
                    lease = Lease(id, reviewer, secrets.token_urlsafe(16), now, now)
                    self._leases[id] = lease
                    self._sweep()
                    return lease
        return None

    def _sweep(self) -> None:
        """Look for silent pages from time to time: other servers wait for their items."""
        if not self._sweeping:
            self._sweeping = True
            timer = threading.Timer(self._silence / 2, self._swept)
            timer.daemon = True
            timer.start()

    def _swept(self) -> None:
        with self._lock:
            self._sweeping = False
            with contextlib.suppress(LedgerError):  # the ledger is closed, and its claims are over
                self.expire()
            if self._leases:
                self._sweep()

    def held(self, id: ItemId, secret: str) -> Lease | None:
        """The lease with this secret, which is renewed; None if it is over."""
        with self._lock:
            self.expire()
            lease = self._leases.get(id)
            if lease is None or not secrets.compare_digest(lease.secret.encode(), secret.encode()):
                return None
            lease.heard = self._clock()
            return lease

    def end(self, lease: Lease) -> None:
        """Return an item to the queue."""
        with self._lock:
            if self._leases.get(lease.id) is lease:
                del self._leases[lease.id]
                self._ledger.release(lease.id.claim)

    def expire(self) -> None:
        """Return the items of pages that are silent."""
        with self._lock:
            oldest = self._clock() - self._silence
            for lease in [each for each in self._leases.values() if each.heard < oldest]:
                self.end(lease)

    @property
    def count(self) -> int:
        """The number of items in the hands of reviewers of this server."""
        with self._lock:
            self.expire()
            return len(self._leases)

    def age(self, lease: Lease) -> float:
        """Seconds since a lease was granted."""
        return self._clock() - lease.granted
