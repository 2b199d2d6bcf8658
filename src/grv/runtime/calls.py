"""Calls to backends: retries, timeouts and concurrency. Backends themselves never retry."""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import anyio

from ..core.errors import BackendError
from .options import Calls

_Result = TypeVar("_Result")


class Attempts(Protocol):
    """Is told about the attempts of a call."""

    async def begin(self) -> None:
        """An attempt is about to be made."""
        ...

    async def missed(self, error: BackendError) -> None:
        """An attempt ended without a result."""
        ...


class Caller:
    """Makes the calls of one run, with the settings of `Calls`.

    Attributes:
        in_flight: the number of calls in flight.
        retried: the number of retries so far.
    """

    def __init__(
        self,
        calls: Calls | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.calls = calls or Calls()
        self.in_flight = self.retried = 0
        self._sleep = sleep  # tests replace it
        self._slots = anyio.Semaphore(self.calls.concurrency)
        self._jitter = random.Random(0)
        self._closed, self._idle = False, anyio.Event()

    async def make(
        self,
        call: Callable[[], Awaitable[_Result]],
        attempts: Attempts | None = None,
    ) -> _Result:
        """Make a call, with retries, and return its result.

        A call holds a slot while it is in flight, not while it waits for its next attempt. It tells
        `attempts` about every attempt, before it and after it has failed.
        """
        for attempt in range(1, self.calls.attempts + 1):
            try:
                async with self._slots:
                    if self._closed:
                        await anyio.sleep_forever()  # until the run is cancelled
                    self.in_flight += 1
                    try:
                        if attempts is not None:
                            await attempts.begin()
                        return await self._timed(call)
                    finally:
                        self.in_flight -= 1
                        if self._closed and not self.in_flight:
                            self._idle.set()
            except BackendError as error:
                if attempts is not None:
                    with anyio.CancelScope(shield=True):
                        await attempts.missed(error)
                if error.final or attempt == self.calls.attempts:
                    raise
                self.retried += 1
                await self._sleep(self._pause(attempt, error.retry_after))
        raise AssertionError("there is at least one attempt")

    async def settle(self, seconds: float) -> None:
        """Start no more calls, and give those in flight some seconds to end."""
        self._closed = True
        with anyio.move_on_after(seconds):
            if self.in_flight:
                await self._idle.wait()

    async def _timed(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        try:
            with anyio.fail_after(self.calls.call_timeout):
                return await call()
        except TimeoutError as error:
            raise BackendError(f"no response within {self.calls.call_timeout:g} s") from error

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        if retry_after is not None:
            return max(0.0, min(retry_after, self.calls.longest_pause * 10))
        pause = min(math.ldexp(self.calls.first_pause, attempt - 1), self.calls.longest_pause)
        return pause * (0.5 + self._jitter.random())  # spreads calls that failed together
