"""Servers that are out of service: what a run waits for, and since when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.errors import BackendError
from ..text import shortened

_SILENT_SECONDS = 1.0  # a shorter outage is not reported
_LONGEST_REASON = 60  # characters of a server's message


@dataclass
class _Outage:
    """One server that calls wait for."""

    place: str
    since: float
    reason: str = ""
    calls: int = 0
    reported: bool = False
    is_over: bool = False


class Outages:
    """The current outages of a run.

    An outage starts when a call waits for a server, and ends when no call waits for it any more.
    An outage of more than a second is reported twice: when it starts and when it is over.

    Attributes:
        tell: reports one line. By default it does nothing.
    """

    def __init__(self, patience: float, clock: Callable[[], float]) -> None:
        self.patience = patience
        self.clock = clock
        self.tell: Callable[[str], None] = lambda line: None
        self._current: dict[str, _Outage] = {}

    @property
    def waiting(self) -> str:
        """The longest current outage in words; empty if there is none."""
        reported = [outage for outage in self._current.values() if outage.reported]
        if not reported:
            return ""
        longest = min(reported, key=lambda outage: outage.since)
        return (
            f"waiting for {longest.place}: {longest.reason},"
            f" since {self.clock() - longest.since:.0f} s, up to {self.patience:g} s"
        )

    def enter(self, error: BackendError) -> Wait:
        """Start the wait of a call that failed with this error."""
        place = error.place or error.backend or "the server"
        return Wait(self, self._current.setdefault(place, _Outage(place, self.clock())))

    def leave(self, outage: _Outage) -> None:
        """End an outage."""
        self._current.pop(outage.place, None)
        if outage.reported and outage.is_over:
            seconds = self.clock() - outage.since
            self.tell(f"{outage.place} answers again, after {seconds:.0f} s")


class Wait:
    """The wait of one call: a row of attempts that all found the server out of service.

    Attributes:
        since: when it started.
        pauses: the number of pauses so far.
    """

    def __init__(self, outages: Outages, outage: _Outage) -> None:
        self._outages = outages
        self._outage = outage
        self.since = outages.clock()
        self.pauses = 0
        outage.calls += 1

    @property
    def left(self) -> float:
        """The seconds until patience ends."""
        return self.since + self._outages.patience - self._outages.clock()

    def pause(self, error: BackendError, seconds: float, *, silent: bool = False) -> None:
        """Note that the call pauses, after this error; it is `silent` if that is no outage."""
        self.pauses += 1
        outage = self._outage
        outage.reason = shortened(str(error).rstrip("."), _LONGEST_REASON)
        age = self._outages.clock() - outage.since
        if not silent and not outage.reported and age + seconds >= _SILENT_SECONDS:
            outage.reported = True
            self._outages.tell(self._outages.waiting)

    def end(self, *, answered: bool) -> None:
        """End the wait; `answered` says whether the server answered."""
        outage = self._outage
        outage.calls -= 1
        outage.is_over = outage.is_over or answered
        if not outage.calls:
            self._outages.leave(outage)
