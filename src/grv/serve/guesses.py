"""Bounds how many keys an address may guess.

Each address has some wrong keys for free, and gets one more from time to time. Without any left,
its keys are not looked at, so that they tell nothing. A key that was right before is exempt:
an attacker behind the same proxy does not lock out the clients that are known.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from .errors import ApiError

_ADDRESSES = 10_000  # that are remembered; the oldest are forgotten
_KNOWN = 10_000  # keys that were right


class Guesses:
    """Counts wrong keys by address. Any thread may use it.

    Args:
        free: how many wrong keys an address has.
        seconds: how long it takes until it has one more.
        clock: the time, in seconds.
    """

    def __init__(
        self, free: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free = free
        self._seconds = seconds
        self._clock = clock
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()  # wrong keys, and when
        self._known: OrderedDict[bytes, None] = OrderedDict()  # digests of keys that were right
        self._lock = threading.Lock()

    def check(self, address: str, digest: bytes) -> None:
        """Raise an ApiError if an address may not try this key now."""
        with self._lock:
            spent = self._now(_network(address))
            if digest in self._known or spent <= self._free - 1:
                return
        wait = math.ceil((spent - self._free + 1) * self._seconds)
        message = f"too many wrong keys from this address; try again in {wait} s"
        raise ApiError(429, message, code="too_many_keys", retry_after=wait)

    def right(self, digest: bytes) -> None:
        """A key was right."""
        with self._lock:
            self._known[digest] = None
            self._known.move_to_end(digest)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)

    def wrong(self, address: str) -> None:
        """A key was wrong."""
        network = _network(address)
        with self._lock:
            self._spent[network] = (self._now(network) + 1, self._clock())
            self._spent.move_to_end(network)
            if len(self._spent) > _ADDRESSES:
                self._spent.popitem(last=False)

    def _now(self, network: str) -> float:
        spent, at = self._spent.get(network, (0.0, 0.0))
        return max(0.0, spent - (self._clock() - at) / self._seconds)


def _network(address: str) -> str:
    """The address; of IPv6 the network, of which one machine has all addresses."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))
