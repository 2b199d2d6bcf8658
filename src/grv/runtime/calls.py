"""Calls to the outside world: retries, timeouts and how many at once. The only place for them."""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio

from ..core.errors import BackendError, UsageError

_Result = TypeVar("_Result")


@dataclass
class Calls:
    """How calls are made, for one run.

    Attributes:
        attempts: how often a call is tried before its failure counts.
        timeout_seconds: how long one attempt may take.
        concurrency: how many calls are in flight at once, over the whole run.
        first_pause: seconds before the second attempt; doubled each time, up to `longest_pause`.
            A server that says when to come back is believed.
        sleep: how to wait; a test may have its own clock.
    """

    attempts: int = 6
    timeout_seconds: float = 600.0
    concurrency: int = 16
    first_pause: float = 0.5
    longest_pause: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    in_flight: int = field(default=0, init=False)
    retried: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.concurrency < 1:
            raise UsageError("there must be at least one attempt and one call at once")
        if not self.timeout_seconds > 0 or not self.first_pause >= 0:
            raise UsageError(
                f"a call cannot end after {self.timeout_seconds} s,"
                f" or be tried again after {self.first_pause} s"
            )
        self._slots = anyio.Semaphore(self.concurrency)
        self._jitter = random.Random(0)
        self._closed, self._idle = False, anyio.Event()

    async def make(
        self,
        call: Callable[[], Awaitable[_Result]],
        intend: Callable[[], Awaitable[None]] | None = None,
    ) -> _Result:
        """The result of a call, tried as often as is allowed.

        A slot is held while a call is in flight, not while it waits to be tried again. What
        `intend` does is done once, when the call has its slot: one that waits was not made.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                async with self._slots:
                    if self._closed:
                        await anyio.sleep_forever()  # until the run is cancelled
                    self.in_flight += 1
                    try:
                        if intend is not None and attempt == 1:
                            await intend()
                        return await self._timed(call)
                    finally:
                        self.in_flight -= 1
                        if self._closed and not self.in_flight:
                            self._idle.set()
            except BackendError as error:
                if error.final or attempt == self.attempts:
                    raise
                self.retried += 1
                await self.sleep(self._pause(attempt, error.retry_after))
        raise AssertionError("there is at least one attempt")

    async def settle(self, seconds: float) -> None:
        """Begin no more calls, and give those in flight so long to end."""
        self._closed = True
        with anyio.move_on_after(seconds):
            if self.in_flight:
                await self._idle.wait()

    async def _timed(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        try:
            with anyio.fail_after(self.timeout_seconds):
                return await call()
        except TimeoutError as error:
            raise BackendError(f"no answer within {self.timeout_seconds:g} s") from error

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        if retry_after is not None:
            return max(0.0, min(retry_after, self.longest_pause * 10))
        pause = min(math.ldexp(self.first_pause, attempt - 1), self.longest_pause)
        return pause * (0.5 + self._jitter.random())  # so that those who failed together spread out
