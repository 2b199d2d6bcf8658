"""Limits of a fake server: calls at once, requests and tokens per minute, and how fast it works.

limits = ServerLimits(at_once=7, seconds=0.1)
with FakeOpenai(limits=limits) as server:
    ...  # the eighth call at once gets status 429
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class LimitReached:
    """Why a request is refused: `of` calls at once, or of requests or tokens per minute.

    `wait` is the seconds after which the same request fits; None if nobody knows.
    """

    of: str
    wait: float | None = None


@dataclass
class Bucket:
    """A limit per minute, which fills steadily.

    Attributes:
        limit: how many there are per minute.
        minute: the seconds of a minute; tests do not have 60.
        left: how many are left.
        time: when that was.
    """

    limit: float
    minute: float
    left: float
    time: float

    def fill(self, now: float) -> None:
        """Add what has flown in."""
        self.left = min(self.limit, self.left + (now - self.time) * self.limit / self.minute)
        self.time = now

    @property
    def reset(self) -> float:
        """The seconds until it is full."""
        return (self.limit - self.left) * self.minute / self.limit


class ServerLimits:
    """What a fake server takes. It refuses the rest, as a provider does.

    Args:
        at_once: the calls that it takes at once, or a function of the number of its answers so far;
            None takes all.
        works: how many of these it works on at once, while the others wait; None works on all.
        seconds: how long an answer takes, or a function of its number from 0.
        requests: the requests per minute; None takes all.
        tokens: the tokens per minute; None takes all. A request counts as its words and the most
            tokens that it allows.
        minute: the seconds of a minute.

    Attributes:
        refused: the number of requests that it refused.
        answered: the number of requests that it answered.
        busiest: the most requests that it had at once.
    """

    def __init__(
        self,
        *,
        at_once: int | Callable[[int], int] | None = None,
        works: int | None = None,
        seconds: float | Callable[[int], float] = 0.0,
        requests: float | None = None,
        tokens: float | None = None,
        minute: float = 60.0,
    ) -> None:
        self._at_once = at_once
        self._seconds = seconds
        self._works = None if works is None else threading.Semaphore(works)
        now = time.monotonic()
        given = {"requests": requests, "tokens": tokens}
        self.buckets = {
            of: Bucket(limit, minute, limit, now)
            for of, limit in given.items()
            if limit is not None
        }
        self.refused = 0
        self.answered = 0
        self.busiest = 0
        self._inside = 0
        self._lock = threading.Lock()

    def admit(self, tokens: float) -> LimitReached | None:
        """Take a request, or say why not."""
        with self._lock:
            reached = self._reached(tokens)
            if reached is not None:
                self.refused += 1
                return reached
            for of, bucket in self.buckets.items():
                bucket.left -= tokens if of == "tokens" else 1
            self._inside += 1
            self.busiest = max(self.busiest, self._inside)
            return None

    def _reached(self, tokens: float) -> LimitReached | None:
        at_once = self._at_once
        most = at_once(self.answered) if callable(at_once) else at_once
        if most is not None and self._inside >= most:
            return LimitReached("calls")
        now = time.monotonic()
        for of, bucket in self.buckets.items():
            bucket.fill(now)
            missing = (tokens if of == "tokens" else 1) - bucket.left
            if missing > 0:
                return LimitReached(of, missing * bucket.minute / bucket.limit)
        return None

    def work(self) -> None:
        """Take the time that an answer takes."""
        with self._lock:
            seconds = self._seconds
            number = self.answered
        duration = seconds(number) if callable(seconds) else seconds
        if self._works is None:
            time.sleep(duration)
            return
        with self._works:
            time.sleep(duration)

    def release(self) -> None:
        """End a request that was taken."""
        with self._lock:
            self._inside -= 1
            self.answered += 1
