"""How many calls at once a server takes: additive increase, multiplicative decrease.

A pure state machine: it is told when calls begin and how they end, with the time, and says how many
calls may be in flight. It has two states:

climbing    Every result of a call while the limit was reached adds 1 to the limit, which doubles it
            in the time of a call; in a later climb, which begins where the server refused before,
            first 1 in that time, then more and more. A refusal ends that: the server takes as many
            calls as are then in flight. So does a step that brings nothing: if half as many calls
            again do not raise the throughput by at least a quarter of that, calls only wait in the
            server's queue.
holding     The limit stays. Now and then one call more is tried; if the server takes it three
            times, the limit climbs again. A refusal although the limit has held means that the
            server takes fewer calls than before: the limit is multiplied by .7, and by .5 if
            refusals follow each other. After a round of calls without a refusal it climbs again.

Attempts to have more calls in flight need credit. A refusal costs 1, with all others of calls that
began before it was known; each result earns 1 / 100. So refused calls are a small part of all
calls, except where the server changes.

Refusals arrive sooner than results. So the calls still in flight when a refusal arrives are those
that the server took, whatever the order in which it saw them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

FIRST = 8  # calls at once in the beginning
MOST = 256  # calls at once at most
_CREDIT = 6.0  # refusals at first, and at most at once
_EARNED = 0.01  # credit for a result
_PROBE_AFTER = 100  # results between two attempts to have more calls in flight
_PROBES = 3  # calls more that the server takes one after the other, until the limit climbs
_LONGEST_PROBE = 1600  # the same, if such attempts brought nothing several times
_STEP = 1.5  # calls at once are compared with this many times as many
_WORTH = 0.25  # the least gain of throughput, as a part of the gain of calls
_AHEAD = 3.0  # calls at once, as a multiple of those that were worth it
_STRIKES = 2  # comparisons without a gain that end a climb
_SAMPLES = 16  # durations that a comparison needs at least

Bound = Literal["start", "refused", "slower", "most"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call in flight: its number, when it began, and the calls in flight with it."""

    number: int
    began: float
    level: int


class _Sample:
    """Some calls that began one after the other: how many were in flight, and how long they took.

    The last quarter of them is not waited for. That makes durations look shorter, in every sample
    alike.
    """

    def __init__(self, first: int, size: int) -> None:
        self._calls = range(first, first + max(size, _SAMPLES))
        self._ended = 0
        self._levels = 0
        self._seconds = 0.0

    def add(self, ticket: Ticket, now: float) -> None:
        """Add a call that has a result, if it belongs to the sample."""
        if ticket.number in self._calls and not self.is_whole:
            self._ended += 1
            self._levels += ticket.level
            self._seconds += now - ticket.began

    @property
    def is_whole(self) -> bool:
        """Whether enough of its calls have a result."""
        return 4 * self._ended >= 3 * len(self._calls)

    @property
    def level(self) -> float:
        """The calls in flight, on average."""
        return self._levels / self._ended

    @property
    def throughput(self) -> float:
        """Results per second, by Little's law."""
        return self._levels / self._seconds if self._seconds else math.inf


class AdaptiveLimit:
    """Finds how many calls at once a server takes.

    Attributes:
        limit: the calls that may be in flight.
        in_flight: the calls in flight.
        refusals: the calls that were refused so far.
        bound: what keeps the limit from rising: "refused" by the server, "slower" if more calls
            brought nothing, "most" if it is as high as it may be; "start" if nothing was found yet.
        refused_at: the calls in flight at the last refusal that showed the server's limit, the
            refused one included; 0 if there was none.
    """

    def __init__(self, first: int = FIRST, most: int = MOST) -> None:
        self.limit = min(first, most)
        self.in_flight = 0
        self.refusals = 0
        self.bound: Bound = "start"
        self.refused_at = 0
        self._most = most
        self._begun = 0
        self._credit = _CREDIT
        self._climbs = True
        self._ceiling = 0  # the calls that the server takes, while the limit holds
        self._probe = 0  # the number of the call by which one more is tried
        self._taken = 0  # calls in a row that the server took when one more was tried
        self._growth = 0.0  # of the limit, below 1
        self._pace = 1.0  # what a result adds to the limit
        self._changed = 0  # the number of the first call after the limit was lowered
        self._is_exact = False  # whether the ceiling is known, not guessed
        self._quiet = 0  # results since the last refusal
        self._held = 0  # results since the limit holds, or since more was tried
        self._probe_after = _PROBE_AFTER
        self._ahead = _AHEAD
        self._worth = float(self.limit)  # the calls at once that were worth it
        self._reference = _Sample(1, self.limit)
        self._current: _Sample | None = None
        self._strikes = 0  # samples in a row in which more calls brought nothing

    def begin(self, now: float) -> Ticket:
        """Note that a call begins."""
        self.in_flight += 1
        self._begun += 1
        if not self._climbs and self.in_flight > self._ceiling and not self._probe:
            self._probe = self._begun
            self.limit = self._ceiling
        return Ticket(self._begun, now, self.in_flight)

    def end(self, ticket: Ticket) -> None:
        """Note that a call ended in a way that says nothing about the server's limit."""
        self.in_flight -= 1
        if ticket.number == self._probe:
            self._probe = 0

    def succeed(self, ticket: Ticket, now: float) -> None:
        """Note that a call has a result."""
        is_full = self.in_flight >= self.limit
        self.in_flight -= 1
        self._credit = min(_CREDIT, self._credit + _EARNED)
        self._quiet += 1
        self._held += 1
        self._reference.add(ticket, now)
        if self._current is not None:
            self._current.add(ticket, now)
        if ticket.number == self._probe:  # the server took one more
            self._taken_more()
        elif not is_full:  # there was not enough work to learn from
            return
        elif not self._climbs:
            self._hold()
        elif not self._brings_nothing():
            self._raise()

    def refuse(self, ticket: Ticket) -> None:
        """Note that the server refused a call because it has too many."""
        self.in_flight -= 1
        self.refusals += 1
        quiet = self._quiet
        self._quiet = 0
        self._credit = max(-1.0, self._credit - 1)
        if ticket.number == self._probe:  # one more was tried
            self._lower(self._ceiling, exact=True)
        elif ticket.number < self._changed:  # it began before the limit was lowered
            self._lower(self.in_flight, exact=self._is_exact)
        elif self._climbs:
            self._lower(self.in_flight, exact=True)
        else:
            factor = 0.7 if quiet > self.limit else 0.5
            self._lower(int(min(self.limit, self.in_flight + 1) * factor), exact=False)

    def _lower(self, limit: int, *, exact: bool) -> None:
        """Hold a lower limit; it is `exact` if the server takes that many calls."""
        self._keep(max(1, min(limit, self.limit)), exact=exact)
        self._probe_after = _PROBE_AFTER if exact else self.limit
        self.bound = "refused"
        self.refused_at = self.limit + 1 if exact else self.in_flight + 1

    def _keep(self, limit: int, *, exact: bool) -> None:
        self.limit = limit
        self._ceiling = limit
        self._is_exact = exact
        self._climbs = False
        self._changed = self._begun + 1
        self._held = 0
        self._probe = 0
        self._taken = 0
        self._reference = _Sample(self._changed, limit)

    def _hold(self) -> None:
        """Try one call more, if that was not done for long; or climb after a guess."""
        if self._probe or self._held < self._probe_after:
            return
        if not self._is_exact:
            self._climb()
        elif self._credit >= 1:
            self._held = 0
            self.limit = min(self._ceiling + 1, self._most)

    def _taken_more(self) -> None:
        """Climb, if this is not the first time: another call may have ended just before."""
        self._probe = 0
        self._taken += 1
        if self._taken < _PROBES:
            self.limit = min(self._ceiling + 1, self._most)
        else:
            self._climb()

    def _climb(self) -> None:
        self._climbs = True
        self._worth = self.limit
        self._ahead = 2.0 if self.bound == "slower" else _AHEAD
        self._current = None
        self._strikes = 0
        self._probe = 0
        self._pace = 1 / self.limit
        self._raise()

    def _raise(self) -> None:
        if self.limit >= self._most:
            self.bound = "most"
        elif self.limit < self._ahead * self._worth:
            self._growth += self._pace
            self._pace = min(1.0, self._pace * (1 + 1 / self.limit))
            self.limit += int(self._growth)
            self._growth %= 1.0

    def _brings_nothing(self) -> bool:
        """Compare calls with those when fewer were in flight; whether more bring nothing."""
        reference = self._reference
        if not reference.is_whole:
            return False
        if self._current is None:
            if self.limit >= _STEP * reference.level:
                self._current = _Sample(self._begun + 1, self.limit // 2)
            return False
        current = self._current
        if not current.is_whole:
            return False
        self._current = None
        gain = current.throughput / reference.throughput - 1
        if gain >= _WORTH * (current.level / reference.level - 1):
            self._worth = current.level
            self._reference = current
            self._strikes = 0
            return False
        self._strikes += 1
        if self._strikes < _STRIKES:
            return False
        is_again = self.bound == "slower"
        # So many calls, if each took as long as those of the reference, would bring as much.
        self._keep(math.ceil(reference.level * (1 + max(0.0, gain))), exact=False)
        self._probe_after = min(2 * self._probe_after, _LONGEST_PROBE) if is_again else _PROBE_AFTER
        self.bound = "slower"
        return True
