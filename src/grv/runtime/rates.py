"""When the next call fits into a server's limits per minute, by what its responses say is left.

A limit is a bucket that fills steadily. A response says how much was left when its call began, or
later: what other calls have taken since is estimated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..backends.http.quotas import Quota
from .adaptive import Ticket

_MINUTE = 60.0
_DAY = 86_400.0  # a bucket fills in a day at most, whatever a server says
_SHORTEST_RESET = 0.5  # seconds; a shorter one says too little about how fast a bucket fills
_RESERVE = 0.05  # the part of a limit that is left: calls arrive in another order than they begin
_FADES = 0.98  # what earlier calls took counts that much less with each call


@dataclass(slots=True)
class _Bucket:
    """One limit, as a call has last seen it."""

    number: int
    time: float
    left: float
    limit: float
    rate: float  # what flows in per second
    taken: float  # by calls, as far as was seen
    calls: float

    least: float  # what a call takes at least

    @property
    def share(self) -> float:
        """What a call takes."""
        seen = self.taken / self.calls if self.calls else 0.0
        return min(self.limit, max(self.least, seen))

    def level(self, begun: int, now: float) -> float:
        """What is left now, if `begun` calls have begun."""
        spent = (begun - self.number) * self.share
        return min(self.limit, self.left - spent + self.rate * (now - self.time))


class Rates:
    """The limits per minute of one server."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}
        self._begun = 0

    def begin(self, ticket: Ticket) -> None:
        """Note that a call begins."""
        self._begun = ticket.number

    def learn(self, ticket: Ticket, quotas: Iterable[Quota]) -> None:
        """Note what the response to a call says is left."""
        for quota in quotas:
            if quota.limit is None or quota.limit < 1:
                continue  # nobody knows how fast it fills
            before = self._buckets.get(quota.of)
            if before is not None and ticket.number <= before.number:
                continue  # an older call that took longer
            rate = quota.limit / _MINUTE if before is None else before.rate
            used = quota.limit - quota.remaining
            if quota.reset is not None and quota.reset >= _SHORTEST_RESET and used > 0:
                rate = max(used / quota.reset, quota.limit / _DAY)
            taken = 0.0
            calls = 0.0
            if before is not None:
                new = ticket.number - before.number
                filled = before.left + before.rate * (ticket.began - before.time)
                taken = before.taken * _FADES**new + min(quota.limit, filled) - quota.remaining
                calls = before.calls * _FADES**new + new
            self._buckets[quota.of] = _Bucket(
                ticket.number,
                ticket.began,
                quota.remaining,
                quota.limit,
                rate,
                taken,
                calls,
                1.0 if quota.of == "requests" else 0.0,
            )

    def knows(self, of: str) -> bool:
        """Whether responses say what is left of a limit."""
        return of in self._buckets

    def wait(self, now: float) -> tuple[float, str]:
        """The seconds until the next call fits into all limits, and the limit that takes longest.

        0 seconds and no limit if it fits now.
        """
        longest = 0.0
        of = ""
        for name, bucket in self._buckets.items():
            needed = min(bucket.limit, bucket.share + _RESERVE * bucket.limit)
            missing = needed - bucket.level(self._begun, now)
            if missing > 0 and missing / bucket.rate > longest:
                longest = missing / bucket.rate
                of = name
        return longest, of
