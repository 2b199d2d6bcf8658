"""Calls to a server in virtual time: what a limit of calls at once comes to, without waiting."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from grv.runtime.adaptive import Ticket


class Limited(Protocol):
    """What says how many calls may be in flight."""

    limit: int

    def begin(self, now: float) -> Ticket: ...
    def end(self, ticket: Ticket) -> None: ...
    def succeed(self, ticket: Ticket, now: float) -> None: ...
    def refuse(self, ticket: Ticket) -> None: ...


class Fixed:
    """Always the same number of calls."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def begin(self, now: float) -> Ticket:
        return Ticket(0, now, 0)

    def end(self, ticket: Ticket) -> None: ...
    def succeed(self, ticket: Ticket, now: float) -> None: ...
    def refuse(self, ticket: Ticket) -> None: ...


@dataclass
class Course:
    """What happened: the seconds until the last call had a result, refusals, most in flight."""

    seconds: float = 0.0
    calls: int = 0
    refused: int = 0
    busiest: int = 0
    highest: int = 0

    @property
    def share(self) -> float:
        """The part of the attempts that was refused."""
        return self.refused / (self.calls + self.refused)


def run(
    limit: Limited,
    calls: int,
    *,
    takes: Callable[[int], int],
    works: int = 1 << 30,
    spread: float = 0.5,
    refusing: float = 0.01,
    pause: float = 0.05,
    seed: int = 0,
) -> Course:
    """Make calls of about a second each, as many at once as the limit says.

    Args:
        limit: what is tried.
        calls: the number of calls that need a result.
        takes: how many calls the server takes at once, given the number of results so far; it
            refuses more.
        works: how many of them it works on at once; the others wait there.
        spread: the spread of durations: the standard deviation of their logarithm.
        refusing: the seconds until a refusal arrives.
        pause: the seconds until a refused call is tried again.
        seed: of the durations.
    """
    random_ = random.Random(seed)
    course = Course()
    now = 0.0
    todo = calls
    ready = 0  # refused calls that may be tried again
    in_flight = 0
    accepted = 0
    working = 0
    queue: deque[Ticket] = deque()
    events: list[tuple[float, int, str, Ticket | None]] = []
    number = 0

    def later(seconds: float, what: str, ticket: Ticket | None) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (now + seconds, number, what, ticket))

    def work(ticket: Ticket) -> None:
        nonlocal working
        working += 1
        later(random_.lognormvariate(-spread * spread / 2, spread), "done", ticket)

    while course.calls < calls:
        while todo + ready and in_flight < limit.limit:
            if ready:
                ready -= 1
            else:
                todo -= 1
            in_flight += 1
            ticket = limit.begin(now)
            course.busiest = max(course.busiest, in_flight)
            course.highest = max(course.highest, limit.limit)
            if accepted >= takes(course.calls):
                later(refusing, "refused", ticket)
                continue
            accepted += 1
            if working < works:
                work(ticket)
            else:
                queue.append(ticket)
        now, _, what, given = heapq.heappop(events)
        if what == "again":
            ready += 1
            continue
        assert given is not None
        in_flight -= 1
        if what == "refused":
            course.refused += 1
            limit.refuse(given)
            later(pause, "again", None)
            continue
        course.calls += 1
        accepted -= 1
        working -= 1
        limit.succeed(given, now)
        if queue:
            work(queue.popleft())
    course.seconds = now
    return course
