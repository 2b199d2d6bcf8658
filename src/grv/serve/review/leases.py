"""Leases: an item belongs to one reviewer while the page is open.

Only the queue and `Desk.open` grant a lease (desk.py), and a verdict needs one.

A lease is a claim in the ledger, as on searches: two servers, or a server and `grv review`, never
hold one item. A claim ends with its process. Inside a server, the page of a reviewer says every few
seconds that it is still open; otherwise the item returns to the queue.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ...core.errors import LedgerError
from ...ledger.entries import Found
from ...ledger.tables import TableLedger
from .queue import ItemId

SILENCE = 20.0  # seconds without a word from the page
LONGEST = 4 * 3600.0  # seconds of a lease, even if its page is open
_MOST = 8  # leases of one reviewer: more would keep items from others


@dataclass
class Lease:
    """An item in the hands of a reviewer.

    Attributes:
        id: what is leased.
        reviewer: to whom.
        secret: what the page has to show.
        granted: when it was granted.
        heard: when the page was last heard of.
        corrects: the verdict that may be corrected; None if there is none yet.
        used: whether a verdict is being written. A lease is for one verdict.
    """

    id: ItemId
    reviewer: str
    secret: str
    granted: float
    heard: float
    corrects: Found | None = None
    used: bool = False


class Leases:
    """The leases of one server."""

    def __init__(
        self,
        ledger: TableLedger,
        *,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._silence = silence
        self._clock = clock
        self._leases: dict[ItemId, Lease] = {}
        self._lock = threading.RLock()
        self._sweeping = False

    def take(
        self, reviewer: str, wanted: Iterable[ItemId], *, corrects: Found | None = None
    ) -> Lease | None:
        """Lease the first item that is free; None if there is none, or the reviewer has many."""
        with self._lock:
            self.expire()
            if sum(each.reviewer == reviewer for each in self._leases.values()) >= _MOST:
                return None
            for id in wanted:
                if id not in self._leases and self._ledger.claim(id.claim):
                    now = self._clock()
                    secret = secrets.token_urlsafe(16)
                    lease = Lease(id, reviewer, secret, now, now, corrects)
                    self._leases[id] = lease
                    self._sweep()
                    return lease
        return None

    def _sweep(self) -> None:
        """Look for silent pages from time to time: other servers wait for their items."""
        if not self._sweeping and math.isfinite(self._silence):
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

    def held(self, id: ItemId, secret: str, reviewer: str) -> Lease | None:
        """The lease of this reviewer with this secret, which is renewed; None if it is over."""
        with self._lock:
            self.expire()
            lease = self._leases.get(id)
            if lease is None or lease.used or lease.reviewer != reviewer:
                return None
            given = secret.encode("utf-8", "surrogatepass")
            if not secrets.compare_digest(lease.secret.encode(), given):
                return None
            lease.heard = self._clock()
            return lease

    @contextlib.contextmanager
    def using(self, id: ItemId, secret: str, reviewer: str) -> Iterator[Lease | None]:
        """The lease, for its one verdict: it is over at the end. None if there is no such lease."""
        with self._lock:
            lease = self.held(id, secret, reviewer)
            if lease is not None:
                lease.used = True
        try:
            yield lease
        finally:
            if lease is not None:
                self.end(lease)

    def end(self, lease: Lease) -> None:
        """Return an item to the queue."""
        with self._lock:
            if self._leases.get(lease.id) is lease:
                del self._leases[lease.id]
                self._ledger.release(lease.id.claim)

    def expire(self) -> None:
        """Return the items of pages that are silent, or open for too long."""
        with self._lock:
            now = self._clock()
            for lease in [*self._leases.values()]:
                silent = lease.heard < now - self._silence
                if (silent or lease.granted < now - LONGEST) and not lease.used:
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
