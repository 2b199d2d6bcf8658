"""Lanes: which calls may start now. A call enters the lane of its server, and leaves it at its end.

With a number, the calls of all lanes together are limited. With "auto", each server has a limit of
its own that adapts. Functions of users cannot say that there are too many calls, so theirs is
fixed; a verifier with workers of its own gets as many calls as keep these busy.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable

import anyio

from ..backends.http.quotas import Quota
from ..core.errors import CALLS_AT_ONCE, BackendError
from .adaptive import MOST, AdaptiveLimit, Ticket
from .machine import calls_carried
from .options import Calls
from .rates import Rates

OWN_CALLS = 16  # calls at once of a function, which cannot say that there are too many
_ENOUGH = 0.1  # the part of the time that calls must wait for something to be held back by it


class Slots:
    """A fixed number of calls at once, which lanes share."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_flight = 0


class FixedLimit:
    """The part of fixed slots that one lane may use now."""

    def __init__(self, slots: Slots, reason: str) -> None:
        self._slots = slots
        self._begun = 0
        self.in_flight = 0
        self.reason = reason
        self.refusals = 0

    @property
    def limit(self) -> int:
        """The calls that may be in flight in this lane."""
        return self._slots.most - self._slots.in_flight + self.in_flight

    def begin(self, now: float) -> Ticket:
        """Note that a call begins."""
        self._slots.in_flight += 1
        self.in_flight += 1
        self._begun += 1
        return Ticket(self._begun, now, self.in_flight)

    def end(self, ticket: Ticket) -> None:
        """Note that a call has ended."""
        self._slots.in_flight -= 1
        self.in_flight -= 1

    def succeed(self, ticket: Ticket, now: float) -> None:
        """Note that a call has a result."""
        self.end(ticket)

    def refuse(self, ticket: Ticket) -> None:
        """Note that a call was refused; the number of the user stays."""
        self.refusals += 1
        self.end(ticket)


class Lane:
    """The calls to one server, first come, first served.

    Attributes:
        name: the server; empty if there is none.
        limit: how many calls may be in flight.
        made: the calls that began.
        busiest: the most calls that were in flight.
    """

    def __init__(
        self,
        name: str,
        limit: FixedLimit | AdaptiveLimit,
        patience: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.name = name
        self.limit = limit
        self.made = 0
        self.busiest = 0
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._rates = Rates()
        self._queue: deque[anyio.Event] = deque()
        self._closed_until = -math.inf
        self._closed_for = ""
        self._waits: defaultdict[str, float] = defaultdict(float)  # seconds by what was waited for
        self._busy = 0.0
        self._waits_for = ""  # what the first of the queue waits for, besides the limit
        self._seen: float | None = None

    async def enter(self) -> Ticket:
        """Wait until a call may begin."""
        if self._queue or not self._has_room() or self._pause()[0]:
            await self._turn()
        now = self._clock()
        self._account(now)
        ticket = self.limit.begin(now)
        self._rates.begin(ticket)
        self.made += 1
        self.busiest = max(self.busiest, self.limit.in_flight)
        return ticket

    def leave(self, ticket: Ticket, outcome: BackendError | None, *, has_result: bool) -> None:
        """End a call: with a result, with an error, or with neither if it was cancelled."""
        now = self._clock()
        self._account(now)
        if has_result:
            self.limit.succeed(ticket, now)
        elif outcome is None or not outcome.limit:
            self.limit.end(ticket)
        elif self._closes(outcome, now):
            self.limit.refusals += 1
            self.limit.end(ticket)
        else:
            self.limit.refuse(ticket)

    def learn(self, ticket: Ticket, quotas: Iterable[Quota]) -> None:
        """Note what the server says is left of its limits per minute."""
        self._rates.learn(ticket, quotas)

    def wake(self) -> None:
        """Let the first of the queue look whether it may begin."""
        if self._queue and self._has_room():
            self._queue[0].set()

    def _closes(self, refusal: BackendError, now: float) -> bool:
        """Close the lane for the pause that a refusal asks for, unless fewer calls would help."""
        after = refusal.retry_after
        if after is None or after > self._patience:
            return False
        if refusal.limit == CALLS_AT_ONCE and self.limit.in_flight > 1:
            return False
        self._closed_until = max(self._closed_until, now + after)
        self._closed_for = refusal.limit
        return True

    def _has_room(self) -> bool:
        return self.limit.in_flight < self.limit.limit

    def _pause(self) -> tuple[float, str]:
        """The seconds until the server takes another call, and the limit that is the reason.

        A pause beyond all patience is not waited for here: the call is made, and the server says
        what the matter is.
        """
        now = self._clock()
        closed = self._closed_until - now
        seconds, of = self._rates.wait(now)
        if closed > seconds:
            return closed, self._closed_for
        return (seconds, of) if 0 < seconds <= self._patience else (0.0, "")

    async def _turn(self) -> None:
        """Wait in the queue for the own turn."""
        self._account(self._clock())
        event = anyio.Event()
        self._queue.append(event)
        try:
            while True:
                is_first = self._queue[0] is event
                if is_first and self._has_room():
                    seconds, of = self._pause()
                    if not seconds:
                        return
                    self._account(self._clock())
                    self._waits_for = of
                    await self._sleep(seconds)
                    self._account(self._clock())
                    self._waits_for = ""
                    continue
                await event.wait()
                index = self._queue.index(event)
                event = anyio.Event()
                self._queue[index] = event
        finally:
            self._account(self._clock())
            self._waits_for = ""
            self._queue.remove(event)
            if self._queue:
                self._queue[0].set()

    def _account(self, now: float) -> None:
        """Count the time since the last look for what calls have waited for."""
        since = now if self._seen is None else self._seen
        self._seen = now
        if self.limit.in_flight or self._queue:
            self._busy += now - since
        if self._queue:
            self._waits[self._waits_for or CALLS_AT_ONCE] += now - since

    @property
    def held_back_by(self) -> str:
        """What calls have waited for most of the time, in words."""
        waited = sum(self._waits.values())
        if waited <= _ENOUGH * self._busy:
            return "nothing: there was not enough work"
        of = max(self._waits, key=self._waits.__getitem__)
        if of != CALLS_AT_ONCE:
            return f"{of} per minute"
        if isinstance(self.limit, FixedLimit):
            return self.limit.reason
        limit = self.limit
        match limit.bound:
            case "refused":
                return f"the server's limit (refused at {limit.refused_at} at once)"
            case "slower":
                return f"the server's speed (more than {limit.limit} at once brought nothing)"
            case "most":
                return f"the most calls at once, {limit.limit} (--concurrency N allows more)"
            case "start":
                return f"the start (up to {self.busiest} at once, and the server takes more)"


class Lanes:
    """The lanes of a run, one for each server, and for each kind of function.

    Attributes:
        on_growth: functions to call when more calls may be in flight than before.
    """

    def __init__(
        self,
        calls: Calls,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._calls = calls
        self._clock = clock
        self._sleep = sleep
        self._slots = None if calls.concurrency is None else Slots(calls.concurrency)
        self._lanes: dict[str, Lane] = {}
        self.on_growth: list[Callable[[], None]] = []
        self._room = OWN_CALLS

    @property
    def room(self) -> int:
        """How many calls may be in flight, as far as is known now."""
        if self._slots is not None:
            return self._slots.most
        limits = [lane.limit.limit for lane in self._lanes.values() if lane.name]
        return max([OWN_CALLS, *limits])

    def of(self, backend: object) -> Lane:
        """The lane of a backend, by its attribute `server`."""
        server = getattr(backend, "server", None)
        name = server if isinstance(server, str) else ""
        key = name or f" {type(backend).__name__}"
        if key not in self._lanes:
            limit = self._limit(name, backend)
            patience = self._calls.patience
            self._lanes[key] = Lane(name, limit, patience, self._clock, self._sleep)
        return self._lanes[key]

    def _limit(self, name: str, backend: object) -> FixedLimit | AdaptiveLimit:
        if self._slots is not None:
            return FixedLimit(self._slots, f"your --concurrency {self._slots.most}")
        if name:
            return AdaptiveLimit(most=min(MOST, calls_carried()))
        workers = getattr(backend, "workers", None)
        if isinstance(workers, int):
            most = max(OWN_CALLS, 2 * workers)
            return FixedLimit(Slots(most), f"the verifier ({workers} at once)")
        return FixedLimit(Slots(OWN_CALLS), f"{OWN_CALLS} calls at once of your own function")

    def wake(self) -> None:
        """Let calls begin, after one has ended."""
        for lane in self._lanes.values():
            lane.wake()
        if self.on_growth and self._slots is None and self.room > self._room:
            self._room = self.room
            for tell in self.on_growth:
                tell()

    def summary(self) -> list[str]:
        """What held back the calls of each lane with a server, one line each."""
        lanes = [lane for lane in self._lanes.values() if lane.name and lane.made]
        return [
            f"{lane.name}: {lane.made:,} calls, at most {lane.busiest} at once,"
            f" {lane.limit.refusals:,} refused; held back by {lane.held_back_by}"
            for lane in lanes
        ]
