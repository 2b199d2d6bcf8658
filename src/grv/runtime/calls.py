"""Calls to backends: retries, timeouts, outages and concurrency. Backends themselves never retry.

`BackendError.fault` decides what follows a failed attempt. "call" counts as an attempt. "wait" does
not: the call is tried again while the outage lasts, up to `Calls.patience`. "stop" ends the run.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

import anyio

from ..backends import tracing
from ..backends.http.quotas import SAID
from ..core.errors import CALLS_AT_ONCE, BackendError, RunStopped
from .complaints import Complaints
from .lanes import Lanes, Outcome
from .options import Calls
from .outages import Outages, Wait

if TYPE_CHECKING:
    from ..backends.protocols import Draft, Score

GRACE_SECONDS = 10.0  # for calls in flight when a run ends early: they are paid for
_SHORTEST_WAIT = 0.01  # the first pause at least; then it doubles, up to a second
_LONGEST_WAIT = 15.0  # the longest pause in an outage: a server that is back is soon used again

_Result = TypeVar("_Result")


class Attempts(Protocol):
    """Is informed of the attempts of one call.

    An attempt that ends otherwise, because it is cancelled or its process dies, has a `begin` and
    nothing else.
    """

    async def begin(self) -> None:
        """Called before every attempt, when the call has its slot. May raise to prevent it."""

    async def missed(self, error: BackendError) -> None:
        """Called after every attempt that ended without a result, before the pause."""


class Caller:
    """Makes the calls of one run, with the settings of `Calls`.

    A caller that has stopped its run makes no more calls; a new run needs a new one.

    Attributes:
        in_flight: the number of calls in flight.
        retried: the number of retries so far.
        outages: the servers that calls wait for.
        complaints: results without text or score.
        lanes: which calls may start.
    """

    def __init__(
        self,
        calls: Calls | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Callable[[], float] = time.monotonic,
        lanes: Lanes | None = None,
        jitter: random.Random | None = None,
    ) -> None:
        self.calls = calls or Calls()
        self.in_flight = self.retried = 0
        self.outages = Outages(self.calls.patience, clock)
        self.complaints = Complaints()
        # tests replace them
        self._sleep = sleep
        self._clock = clock
        self.lanes = lanes or Lanes(self.calls, clock, sleep)
        self._jitter = jitter or random.Random(0)
        self._closed = False
        self._idle = anyio.Event()
        self._stopped: str | None = None  # why the run is stopped
        self._last_result = -math.inf

    @property
    def waiting(self) -> str:
        """What the calls wait for, in words; empty if they do not wait."""
        return self.outages.waiting

    async def make(
        self,
        call: Callable[[], Awaitable[_Result]],
        attempts: Attempts | None = None,
        backend: object = None,
    ) -> _Result:
        """Make a call, with retries, and return its result.

        A call is in the lane of its backend while it is in flight, not while it pauses or waits.

        Raises:
            BackendError: all attempts failed.
            RunStopped: no call can succeed. The calls in flight had some seconds to end.
        """
        with tracing.calling(attempts, backend) as span:
            result = await self._make(call, attempts, backend)
            span.results(result)
            return result

    async def _make(
        self,
        call: Callable[[], Awaitable[_Result]],
        attempts: Attempts | None,
        backend: object,
    ) -> _Result:
        tried = 0
        wait = None
        while True:
            try:
                result = await self._attempt(call, attempts, backend)
            except BackendError as failed:
                error = failed
            except BaseException:
                _end(wait)
                raise
            else:
                _end(wait, answered=True)
                self._last_result = self._clock()
                return result
            if error.fault == "wait" and self.calls.patience:
                wait = wait or self.outages.enter(error)
                await self._wait(wait, error)
                continue
            _end(wait, answered=True)
            wait = None
            tried += 1
            if error.fault == "stop":
                await self.stop_for(error)
            if error.final or tried == self.calls.attempts:
                raise error
            self.retried += 1
            after = error.retry_after
            longest = self.calls.longest_pause
            if after is not None and after > max(longest, self.calls.patience):
                after = longest  # not for a day, and without a word
            await self._sleep(self._pause(tried, after, longest))

    def another(self) -> Caller:
        """A caller that stops alone, and shares the number of calls at once and the outages."""
        made = Caller(
            self.calls,
            sleep=self._sleep,
            clock=self._clock,
            lanes=self.lanes,
            jitter=self._jitter,
        )
        made.outages = self.outages
        return made

    async def check_drafts(self, drafts: Sequence[Draft]) -> None:
        """Count drafts without text, and stop the run if all are. Record the drafts before."""
        if why := self.complaints.of_drafts(drafts):
            await self.stop(why)

    async def check_scores(self, drafts: Sequence[Draft], scores: Sequence[Score]) -> None:
        """Count missing scores, and stop the run if all are. Record the scores before."""
        if why := self.complaints.of_scores(drafts, scores):
            await self.stop(why)

    async def stop(self, why: str) -> NoReturn:
        """Start no more calls, give those in flight some seconds to end, and raise RunStopped."""
        self._stopped = self._stopped or why
        await self.settle(GRACE_SECONDS)
        raise RunStopped(self._stopped)

    async def stop_for(self, error: BackendError) -> NoReturn:
        """Stop the run because of an error that concerns every call."""
        await self.stop(_advice(error))

    async def settle(self, seconds: float) -> None:
        """Start no more calls, and give those in flight some seconds to end."""
        self._closed = True
        with anyio.move_on_after(seconds):
            if self.in_flight:
                await self._idle.wait()

    async def _attempt(
        self,
        call: Callable[[], Awaitable[_Result]],
        attempts: Attempts | None,
        backend: object,
    ) -> _Result:
        lane = self.lanes.of(backend)
        ticket = await lane.enter()
        is_inside = True

        def leave(outcome: Outcome) -> None:
            nonlocal is_inside
            if is_inside:
                is_inside = False
                lane.leave(ticket, outcome)
                self.lanes.wake()

        try:
            if self._stopped is not None:
                await self.stop(self._stopped)
            if self._closed:
                await anyio.sleep_forever()  # until the run is cancelled
            self.in_flight += 1
            try:
                if attempts is not None:
                    await attempts.begin()
                SAID.set(())
                try:
                    result = await self._timed(call)
                except BackendError as error:
                    lane.learn(ticket, SAID.get())
                    if error.limit:
                        leave(error)  # at once: others must not be refused too
                    if attempts is not None:
                        with anyio.CancelScope(shield=True):
                            await attempts.missed(error)
                    raise
                lane.learn(ticket, SAID.get())
                leave("result")
                return result
            finally:
                self.in_flight -= 1
                if self._closed and not self.in_flight:
                    self._idle.set()
        finally:
            leave(None)

    async def _timed(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        try:
            with anyio.move_on_after(self.calls.call_timeout):
                return await call()
            raise TimeoutError
        except TimeoutError as error:
            raise BackendError(f"no response within {self.calls.call_timeout:g} s") from error

    async def _wait(self, wait: Wait, error: BackendError) -> None:
        """Pause in an outage. If patience is over, end the call, or the run if nothing succeeds."""
        if wait.left <= 0:
            wait.end(answered=False)
            if self._last_result > wait.since:
                raise error  # this call only
            check = f"; {error.hint}" if error.hint else ""
            if error.retry_after is not None and error.retry_after > self.calls.patience:
                check += f"; it asks to come back in {error.retry_after:,.0f} s"
            said = str(error).rstrip(".")
            await self.stop(
                f"{error.backend or 'a backend'}: {said}, for {self.calls.patience:g} s{check}."
                " When the server is back, run the same command again; --patience sets how long to"
                " wait"
            )
        longest = min(_LONGEST_WAIT, self.calls.longest_pause)
        believed = error.retry_after
        if believed is not None and believed > wait.left:
            believed = None  # no call could succeed then; the server may be back sooner
        pause = self._pause(wait.pauses + 1, believed, longest)
        if error.limit == CALLS_AT_ONCE and believed is None and not wait.pauses:
            pause = 0.0  # the lane has fewer calls in flight now, and says when to try again
        floor = math.ldexp(_SHORTEST_WAIT, min(wait.pauses, 7))  # also if the server says 0
        pause = min(max(pause, floor), wait.left)
        is_working = error.limit and self.in_flight  # it takes other calls
        wait.pause(error, pause, silent=bool(is_working))
        try:
            await self._sleep(pause)
        except BaseException:
            wait.end(answered=False)
            raise

    def _pause(self, attempt: int, retry_after: float | None, longest: float) -> float:
        if retry_after is not None:
            return max(0.0, retry_after)
        pause = min(math.ldexp(self.calls.first_pause, min(attempt, 64) - 1), longest)
        return pause * (0.5 + self._jitter.random())  # spreads calls that failed together


def _end(wait: Wait | None, *, answered: bool = False) -> None:
    """End a wait, if there is one."""
    if wait is not None:
        wait.end(answered=answered)


def _advice(error: BackendError) -> str:
    """Why the run stops, and what to do."""
    what = str(error)
    if error.backend and not what.startswith(error.backend):
        what = f"{error.backend}: {what}"
    do = f"{error.hint}, then run" if error.hint else "repair this, then run"
    return f"{what.removesuffix('.')}; {do} the same command again"
