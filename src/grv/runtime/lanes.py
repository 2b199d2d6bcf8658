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
from typing import Literal

import anyio

from ..backends.http.quotas import Quota
from ..core.errors import CALLS_AT_ONCE, BackendError
from .adaptive import MOST, AdaptiveLimit, Ticket
from .machine import calls_carried
from .options import Calls
from .rates import Rates

OWN_CALLS = 16  # calls at once of a function, which cannot say that there are too many
Outcome = Literal["result"] | BackendError | None  # how a call ended; None if it was cancelled
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


class _Waiter:
    """A call that waits until it may begin; then it has its ticket."""

    __slots__ = ("event", "ticket")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.ticket: Ticket | None = None


class Lane:
    """The calls to one server, first come, first served.

    Attributes:
        name: the server; empty if there is none.
        limit: how many calls may be in flight.
        made: the calls that began.
        answered: the calls that ended with a result.
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
        self.answered = 0
        self.busiest = 0
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._rates = Rates()
        self._queue: deque[_Waiter] = deque()
        self._closed_until = -math.inf
        self._closed_for = ""
        self._waits: defaultdict[str, float] = defaultdict(float)  # seconds by what was waited for
        self._busy = 0.0
        self._waits_for = ""  # what the first of the queue waits for, besides the limit
        self._seen: float | None = None

    async def enter(self) -> Ticket:
        """Wait until a call may begin."""
        if not self._queue and self._has_room() and not self._pause()[0]:
            return self._begin()
        self._account()
        waiter = _Waiter()
        self._queue.append(waiter)
        try:
            self.admit()
            while waiter.ticket is None:
                await waiter.event.wait()
                if waiter.ticket is None:  # it is the first, and the server wants a pause
                    waiter.event = anyio.Event()
                    await self._sleep(self._pause()[0])
                    self.admit()
        except BaseException:
            if waiter.ticket is None:
                self._account()
                self._queue.remove(waiter)
            else:
                self.leave(waiter.ticket, None)
            self.admit()
            raise
        return waiter.ticket

    def leave(self, ticket: Ticket, outcome: Outcome) -> None:
        """End a call: with a result, with an error, or with neither if it was cancelled."""
        self._account()
        if outcome == "result":
            self.answered += 1
            self.limit.succeed(ticket, self._clock())
        elif outcome is None or not outcome.limit:
            self.limit.end(ticket)
        else:
            self._close(outcome)
            if self._rates.knows(outcome.limit):
                self.limit.refusals += 1
                self.limit.end(ticket)
            else:
                self.limit.refuse(ticket)

    def admit(self) -> None:
        """Let those who wait begin, as far as there is room."""
        while self._queue and self._has_room():
            seconds, of = self._pause()
            self._account()
            self._waits_for = of
            waiter = self._queue[0]
            if seconds:
                waiter.event.set()
                return
            self._queue.popleft()
            waiter.ticket = self._begin()
            waiter.event.set()
        self._waits_for = ""

    def _begin(self) -> Ticket:
        self._account()
        ticket = self.limit.begin(self._clock())
        self._rates.begin(ticket)
        self.made += 1
        self.busiest = max(self.busiest, self.limit.in_flight)
        return ticket

    def learn(self, ticket: Ticket, quotas: Iterable[Quota]) -> None:
        """Note what the server says is left of its limits per minute."""
        self._rates.learn(ticket, quotas)

    def _close(self, refusal: BackendError) -> None:
        """Close the lane for the pause that a refusal asks for, unless fewer calls would do."""
        after = refusal.retry_after
        if after is None or after > self._patience:
            return
        if refusal.limit == CALLS_AT_ONCE and self.limit.in_flight > 1:
            return
        self._closed_until = max(self._closed_until, self._clock() + after)
        self._closed_for = refusal.limit

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

    def _account(self) -> None:
        """Count the time since the last look for what calls have waited for."""
        now = self._clock()
        since = now if self._seen is None else self._seen
        self._seen = now
        if self.limit.in_flight or self._queue:
            self._busy += now - since
        if self._queue:
            self._waits[self._waits_for or CALLS_AT_ONCE] += now - since

    @property
    def held_back_by(self) -> str:
        """What calls have waited for most of the time, in words."""
        if not self.answered:
            return "the server: it has answered no call"
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
            lane.admit()
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
