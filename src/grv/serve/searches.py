"""The searches of a server: equal requests share one, and the last stream that closes stops it.

A search is that of `grv solve`: the runtime runs it, and the ledger has all that it pays for. What
is here decides only how many run at once, who waits for which, and when one is stopped. A search
that is stopped, or whose process dies, continues when the same request comes again.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from ..backends.protocols import Draft
from ..core.errors import GrvError, LedgerError, RunStopped, UsageError
from ..ledger.entries import Entry, Found, Made, charge_of
from ..ledger.tables import TableLedger
from ..runtime.budget import RunBudget
from ..runtime.calls import GRACE_SECONDS, Caller
from ..runtime.ledger_writer import LedgerWriter, in_ledger_thread
from ..runtime.live_search import LiveSearch
from ..runtime.solution import Solution
from .buffers import Buffer
from .clients import Client
from .completions.requests import CompletionRequest
from .completions.tools import calls_tools
from .errors import ApiError
from .events import Events, place_of


@dataclass(frozen=True)
class ServerBounds:
    """How much a server does at once.

    Attributes:
        searches: the number of searches at once.
        queue: the number of searches of a client that wait for one of these places, if it has all
            of them. Clients do not fill each other's queues.
    """

    searches: int = 64
    queue: int = 256


@dataclass(eq=False)
class RunningSearch:
    """A search of this process.

    Attributes:
        request: the request that started it.
        client: the name of the client that pays.
        caller: makes its calls.
        generated, verified, shared, cost: what it did in this process so far.
        solution: its result, if it has ended.
        error: why it has none.
        holders: the number of requests that wait for it.
        goes_on: whether it goes on without a holder: its client left without closing a stream.
        aside: whether it only waits: for a person, or for another process that runs it.
        kept: what is held until its end: the bytes of its request, if its client has left.
        done: set at its end.
    """

    request: CompletionRequest
    client: str
    caller: Caller
    started: float = field(default_factory=time.monotonic)
    generated: int = 0
    verified: int = 0
    shared: int = 0
    cost: float = 0.0
    solution: Solution | None = None
    error: ApiError | None = None
    holders: int = 0
    goes_on: bool = False
    aside: bool = False
    kept: ExitStack = field(default_factory=ExitStack)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    _changed: anyio.Event | None = None  # if anybody waits for a change

    def go_on(self, buffer: Buffer) -> None:
        """Go on without a holder. The request stays in memory, so its bytes still count."""
        if not self.goes_on and not self.done.is_set():
            buffer.move(self.kept)
        self.goes_on = True

    def count(self, entries: Sequence[Entry]) -> None:
        """Count what was recorded."""
        self.generated += sum(isinstance(each, Made) for each in entries)
        found = [each.shared for each in entries if isinstance(each, Found)]
        self.verified += found.count(False)
        self.shared += found.count(True)
        self.cost += charge_of(entries)
        self.tell()

    @property
    def changed(self) -> anyio.Event:
        """Set at the next change."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

    def tell(self) -> None:
        """Wake all that wait for a change."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    @property
    def progress(self) -> dict[str, Any]:
        """What a stream tells while it waits."""
        return {
            "search": self.request.search,
            "outcome": None,
            "generated": self.generated,
            "verified": self.verified,
            "shared": self.shared,
            "cost": self.cost,
        }


@dataclass(order=True)
class _Turn:
    """A search that waits for a place; the one that has spent least is first."""

    spent: float
    number: int
    begins: anyio.Event = field(compare=False)


class Places:
    """Places for some searches at once. Others wait, and clients share the places fairly.

    The client that has spent least is next, with the search that has cost it least; of clients that
    have spent the same, the one that has the fewest places. A client that
    was away is counted as if it had spent as much as the least of those that are here: what it did
    not use before gives it no right to all places now, and what it spent before does not keep it
    out.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._numbers = itertools.count()
        self._spent: dict[str, float] = {}  # by client
        self._present: Counter[str] = Counter()  # searches that have a place or wait for one
        self._waiting: dict[str, list[_Turn]] = {}  # by client; heaps
        self._held: Counter[str] = Counter()  # places, by client

    def charge(self, client: str, amount: float) -> None:
        """Count what a client spends."""
        self._spent[client] = self._spent.get(client, 0.0) + amount

    @asynccontextmanager
    async def one(self, client: str) -> AsyncIterator[None]:
        """Wait for a place, and have it until the end of the context."""
        if not self._present[client]:
            others = [self._spent[name] for name in +self._present]
            self._spent[client] = max(self._spent.get(client, 0.0), min(others, default=0.0))
        self._present[client] += 1
        try:
            await self._wait(client)
            try:
                yield
            finally:
                self._give_back(client)
        finally:
            self._present[client] -= 1

    async def give_way(self, client: str, spent: float) -> None:
        """Let another search have the place, if one is before this one; then wait for a place.

        The search has a place again when this returns, also if it is cancelled: then it only ends.
        """
        if not self._waiting:
            return
        turn = self._queued(client, spent)
        self._give_back(client)
        try:
            await turn.begins.wait()
        except BaseException:
            if not turn.begins.is_set():
                self._forget(client, turn)
                self._take(client)
            raise

    async def _wait(self, client: str) -> None:
        """Wait for the first place of a search."""
        if self._free > 0:
            self._take(client)
            return
        turn = self._queued(client, 0.0)
        try:
            await turn.begins.wait()
        except BaseException:
            if turn.begins.is_set():
                self._give_back(client)
            else:
                self._forget(client, turn)
            raise

    def _queued(self, client: str, spent: float) -> _Turn:
        turn = _Turn(spent, next(self._numbers), anyio.Event())
        heapq.heappush(self._waiting.setdefault(client, []), turn)
        return turn

    def _forget(self, client: str, turn: _Turn) -> None:
        turns = self._waiting[client]
        turns.remove(turn)
        heapq.heapify(turns)
        if not turns:
            del self._waiting[client]

    def _begin_next(self) -> None:
        """Give a place to the search that is next."""
        client = min(self._waiting, key=lambda name: (self._spent[name], self._held[name]))
        turns = self._waiting[client]
        turn = heapq.heappop(turns)
        if not turns:
            del self._waiting[client]
        self._take(client)
        turn.begins.set()

    @contextmanager
    def left(self, client: str) -> Iterator[None]:
        """Leave a place to others, and return without waiting; the next one waits instead."""
        self._give_back(client)
        try:
            yield
        finally:
            self._take(client)

    def _take(self, client: str) -> None:
        self._free -= 1
        self._held[client] += 1

    def _give_back(self, client: str) -> None:
        self._free += 1
        self._held[client] -= 1
        while self._free > 0 and self._waiting:
            self._begin_next()


class Searches:
    """Starts, joins and stops searches on one ledger, inside the context `open`.

    Args:
        ledger: records what is paid for.
        total: the most that all searches on the ledger may cost.
        bounds: how many searches run at once.
        events: is told how searches end.
        detailed: whether clients learn why a backend failed. The reason may name addresses.

    Attributes:
        lost: why the ledger can be used no more; None if it can.
        ledger_lost: set if `lost` is.
    """

    def __init__(
        self,
        ledger: TableLedger,
        total: float,
        bounds: ServerBounds,
        events: Events,
        *,
        detailed: bool,
    ) -> None:
        self.ledger = ledger
        self._bounds = bounds
        self._events = events
        self._detailed = detailed
        self._writer = LedgerWriter(ledger, self._written)
        self._total = RunBudget(total, self._writer)
        self._places = Places(bounds.searches)
        self._running: dict[tuple[str, str, str], RunningSearch] = {}
        self._by_id: defaultdict[str, list[RunningSearch]] = defaultdict(list)
        self._unfinished = 0  # running or stopping
        self._busy: Counter[str] = Counter()  # by client, without those that only wait
        self._closed = False
        self._ended = anyio.Event()
        self.lost: LedgerError | None = None
        self.ledger_lost = anyio.Event()
        self._group: anyio.abc.TaskGroup

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run searches until the end of the context."""
        async with anyio.create_task_group() as self._group:
            yield
            self._group.cancel_scope.cancel()

    def budget(self, client: Client) -> RunBudget:
        """The budget of a client, within the total."""
        return self._total.of_account(client.name, client.budget)

    @property
    def running(self) -> int:
        """The number of searches that run or wait."""
        return self._unfinished

    def is_running(self, search: str) -> bool:
        """Whether a search runs in this process."""
        return search in self._by_id

    @contextmanager
    def hold(self, request: CompletionRequest, client: Client) -> Iterator[RunningSearch]:
        """The search of a request, running; without a holder it is stopped, unless it goes on.

        Raises:
            ApiError: the server is full, or shuts down.
        """
        running = self._start(request, client)
        running.holders += 1
        try:
            yield running
        finally:
            running.holders -= 1
            self._stop_if_idle(running)

    def _stop_if_idle(self, running: RunningSearch) -> None:
        """Stop a search that no request waits for. An equal request continues it later."""
        needed = running.holders or (running.goes_on and not running.aside)
        if not needed and not running.done.is_set():
            self._stop(running)

    async def so_far(self, running: RunningSearch, client: Client) -> Solution:
        """What a search has found that has not ended."""
        request = running.request
        caller = Caller(running.caller.calls)  # it makes no calls, and must not wait for a slot
        budget = self.budget(client)
        return await LiveSearch(
            request.problem, request.config, self._writer, caller, budget
        ).so_far()

    def _start(self, request: CompletionRequest, client: Client) -> RunningSearch:
        key = request.key
        if (known := self._running.get(key)) is not None:
            return known
        if self._closed:
            raise _closing()
        busy = self._busy[client.name]
        if busy >= self._bounds.searches + self._bounds.queue:
            message = f"{busy} searches run or wait already; try again later"
            raise ApiError(429, message, code="queue_full", retry_after=2)
        running = RunningSearch(request, client.name, request.profile.caller.another())
        self._running[key] = running
        self._by_id[request.search].append(running)
        self._unfinished += 1
        self._busy[client.name] += 1
        self._group.start_soon(self._run, running, client)
        return running

    def _stop(self, running: RunningSearch) -> None:
        """Cancel a search. What it has paid for is on record."""
        if self._running.get(running.request.key) is running:
            del self._running[running.request.key]  # the next request starts it again
        running.scope.cancel()

    async def _run(self, running: RunningSearch, client: Client) -> None:
        try:
            with running.scope:
                async with self._places.one(client.name):
                    running.solution = await self._find(running, client)
        except GrvError as error:
            running.error = self.failure(error)
        except Exception as error:  # a mistake in one search must not end the others
            self._events("bug", error=type(error).__name__, place=place_of(error))
            running.error = ApiError(500, "this is a bug in grv", code="bug")
        finally:
            self._end(running, client)

    async def _find(self, running: RunningSearch, client: Client) -> Solution:
        """The solution; or the model's first response, if that calls tools.

        Both are steps of one search on the ledger: what the first one paid for is not paid again.
        """
        request = running.request
        first = LiveSearch(
            request.problem,
            request.turn or request.config,
            self._writer,
            running.caller,
            self.budget(client),
            outside=partial(self._stand_aside, running),
            give_way=partial(self._give_way, running),
        )
        solution = await first.find()
        if request.turn is None:
            return solution
        record = await in_ledger_thread(first.read, live=False)
        made = record.made.get(0)
        draft = (
            None if made is None else Draft("", usage=made.usage, broken=made.broken, log=made.log)
        )
        if calls_tools(draft):
            return replace(solution, draft=draft)
        return await replace(first, config=request.config).find()

    async def _give_way(self, running: RunningSearch) -> None:
        """After a verdict, let the searches go on that have spent less."""
        await self._places.give_way(running.client, running.cost)

    @contextmanager
    def _stand_aside(self, running: RunningSearch) -> Iterator[None]:
        """Leave the place of a search while it only waits. Without a holder it is stopped."""
        running.aside = True
        self._busy[running.client] -= 1
        self._stop_if_idle(running)
        try:
            with self._places.left(running.client):
                yield
        finally:
            running.aside = False
            self._busy[running.client] += 1

    def _end(self, running: RunningSearch, client: Client) -> None:
        if running.solution is None and running.error is None:
            running.error = _closing()
        key = running.request.key
        search = running.request.search
        if self._running.get(key) is running:
            del self._running[key]
        self._by_id[search].remove(running)
        if not self._by_id[search]:
            del self._by_id[search]
        self._unfinished -= 1
        self._busy[running.client] -= 1
        running.kept.close()
        running.done.set()
        running.tell()
        if not self._unfinished:
            self._ended.set()
        self._events(
            "search",
            client=client.name or None,
            model=running.request.profile.name,
            search=search,
            outcome=running.solution.outcome if running.solution is not None else None,
            generated=running.generated,
            verified=running.verified,
            shared=running.shared,
            cost=running.cost,
            seconds=round(time.monotonic() - running.started, 3),
        )

    def failure(self, error: GrvError) -> ApiError:
        """What to say about a search that could not continue. Clients learn no addresses."""
        reason = f": {error}" if self._detailed else ""
        if isinstance(error, RunStopped):
            message = f"the model's server cannot be used{reason}"
            return ApiError(503, message, code="model_unavailable", retry_after=10)
        if isinstance(error, LedgerError):
            self._events("ledger failed", damaged=error.entry is not None)
            if error.entry is not None:
                return ApiError(500, f"the search is damaged{reason}", code="damaged")
            self._group.start_soon(self._try_ledger)
            message = f"the ledger cannot be used{reason}"
            return ApiError(503, message, code="ledger_unavailable", retry_after=10)
        if isinstance(error, UsageError):  # as for a plan that asks for too much at once
            message = f"the search cannot be made{reason}"
            return ApiError(400, message, code="invalid_value", param="grv")
        return ApiError(500, f"the search failed{reason}", code="search_failed")

    async def _try_ledger(self) -> None:
        """Find out whether the ledger is lost. A full disk still lets it be read."""
        try:
            await anyio.to_thread.run_sync(self.ledger.possibly_paid)
        except LedgerError as error:
            self.lost = error
            self.ledger_lost.set()

    def _written(self, search: str, entries: Sequence[Entry]) -> None:
        runs = self._by_id.get(search, ())
        for running in runs:
            running.count(entries)
        for client in {running.client for running in runs}:
            self._places.charge(client, charge_of(entries))

    async def close(self, grace: float) -> None:
        """Start no more searches; give those that run some seconds to end, then park them.

        Calls in flight are paid for, so they get some more seconds; their results are recorded.
        """
        self._closed = True
        with anyio.move_on_after(grace):
            await self._wait()
        async with anyio.create_task_group() as group:
            for running in [each for some in self._by_id.values() for each in some]:
                group.start_soon(running.caller.settle, min(GRACE_SECONDS, max(grace, 1.0)))
        self.stop()
        await self._wait()

    def stop(self) -> None:
        """Stop all searches at once."""
        self._closed = True
        for running in [each for some in self._by_id.values() for each in some]:
            self._stop(running)

    async def _wait(self) -> None:
        while self._unfinished:
            self._ended = anyio.Event()
            await self._ended.wait()


def _closing() -> ApiError:
    return ApiError(
        503,
        "the server is shutting down; the same request continues where it stopped",
        code="shutting_down",
        retry_after=2,
    )
