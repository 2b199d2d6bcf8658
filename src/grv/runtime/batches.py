"""The batches of a run: what all open searches ask for at a time is sent as one batch.

Theory of operation
-------------------
A search that needs drafts hands in a call and waits, outside of the gate, as it waits for a
person's verdict. When nothing else of the run goes on, the calls of that time are a *round*: they
are sent as one batch for each generator. Each call follows these steps, and each is recorded in the
ledger of its search before the next one is taken:

1. It gets a ticket: the name of the batch and the id of its request. It records the attempt with
   the ticket (`Intended`, `Parked`), or leaves the batch if the budget does not cover it.
2. The batch is sent when all its calls have done so. Then the calls record the server's id of it.
3. When the batch is over, each call takes its part. Drafts are recorded with what they cost. A part
   without an answer is not billed: its reserve is returned, and the call is part of the next round.

A process may die at any of these moments. The next one finds the ticket on record, and hands in the
call with it: then the batch is looked up, by its id or by its name, and never sent again. A batch
that the server does not have was not sent: its calls are part of the next round.

A batch that no call waits for any more is cancelled, if searches have dropped it. An interrupted
run does not drop its batches: the same command finds them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ..backends.generators.batches import (
    MISSING,
    BatchedGenerator,
    BatchPart,
    BatchState,
    BatchTicket,
    UndecidedBatch,
    new_name,
    pauses,
    request_id,
)
from ..backends.generators.dialect import Prepared
from ..backends.protocols import Draft, Problem
from ..core.errors import BackendError
from ..text import counted
from .calls import Caller
from .prices import Meter

_JSON = json.JSONEncoder()
_AROUND = 200  # bytes of a batch for each request besides its body
_MOMENT = 0.05  # seconds between two looks whether anything else goes on

Park = Callable[[BatchTicket], Awaitable[None]]


@dataclass
class BatchReport:
    """What the batches of a run did.

    Attributes:
        batches: how many were sent.
        found: how many of an earlier process were found again.
        requests: how many requests those had that were sent.
        unanswered: how many parts had no answer.
        cancelled: how many batches were cancelled.
        dollars: what the drafts cost, if all prices are known.
        list_dollars: what they would have cost alone.
        seconds: how long the run has waited for batches.
    """

    batches: int = 0
    found: int = 0
    requests: int = 0
    unanswered: int = 0
    cancelled: int = 0
    dollars: float = 0.0
    list_dollars: float = 0.0
    seconds: float = 0.0

    def add(self, drafts: Sequence[Draft], meter: Meter) -> None:
        """Count what drafts cost; NaN if nobody knows it."""
        for draft in drafts:
            alone = replace(draft.usage, price_share=1.0)
            for_batch = meter.price("generate", draft.usage)
            for_alone = meter.price("generate", alone)
            self.dollars += math.nan if for_batch is None else for_batch
            self.list_dollars += math.nan if for_alone is None else for_alone

    def lines(self, wait_price: float, *, measured: bool) -> list[str]:
        """What the batches did and what the wait was worth; nothing if there were none."""
        if not self.batches and not self.found:
            return []
        words = f"batches: {self.batches} sent with {counted(self.requests, 'request')}"
        if self.found:
            words += f", {self.found} found again"
        if self.unanswered:
            words += f", {counted(self.unanswered, 'request')} without an answer asked again"
        if self.cancelled:
            words += f", {self.cancelled} cancelled"
        saved = self.list_dollars - self.dollars
        worth = f"the run waited {self.seconds:,.0f} s for them"
        if not math.isnan(saved):
            worth += f", which saved {saved:.4g} of {self.list_dollars:.4g} dollars"
            if self.seconds:
                worth += f" ({3600 * saved / self.seconds:.4g} an hour)"
        if wait_price:
            price = wait_price * self.seconds
            worth += f"; at --wait-price {wait_price:g} the wait cost {price:.4g}"
            worth += " dollars" if measured else ""
        return [f"{words}; {worth}"]


def ticket_of(data: Mapping[str, Any]) -> BatchTicket:
    """A ticket as a ledger has it."""
    names = [each.name for each in fields(BatchTicket)]
    return BatchTicket(**{name: str(data.get(name, "")) for name in names})


_News = BatchTicket | BatchPart | Exception


@dataclass(eq=False)
class BatchCall:
    """A call for drafts that a batch answers.

    Attributes:
        generator: asks the model.
        problem: the problem.
        n: the number of drafts.
        first: the number of drafts made before.
        meter: computes what the drafts cost.
        ticket: where the answer is, if it was asked for already.
    """

    generator: BatchedGenerator
    problem: Problem
    n: int
    first: int
    meter: Meter
    ticket: BatchTicket | None = None
    _prepared: Prepared | None = None
    _has_left: bool = False
    _is_parked: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        streams: tuple[MemoryObjectSendStream[_News], MemoryObjectReceiveStream[_News]]
        streams = anyio.create_memory_object_stream(math.inf)
        self._send, self._news = streams

    @property
    def has_left(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._has_left

    async def part(self, park: Park) -> BatchPart:
        """Wait for the answer; `park` records each ticket."""
        try:
            async for news in self._news:
                match news:
                    case BatchPart():
                        return news
                    case Exception():
                        raise news
                    case BatchTicket():
                        await park(news)
                        self.ticket = news
                        self._is_parked.set()
            raise AssertionError  # the stream is not closed
        finally:
            self._has_left = True
            self._is_parked.set()
            self._news.close()
            self._send.close()

    def tell(self, news: _News) -> None:
        """Tell the one who waits."""
        if not self._has_left:
            self._send.send_nowait(news)

    def prepare(self) -> Prepared:
        """The request."""
        self._prepared = self.generator.generator.prepared(self.problem, self.n, self.first)
        return self._prepared

    @property
    def request(self) -> tuple[str, Mapping[str, Any]]:
        """The id and the body of the request, which has a ticket."""
        assert self.ticket is not None
        assert self._prepared is not None
        return self.ticket.request, self._prepared.body

    async def parked(self) -> bool:
        """Wait until the ticket is on record; whether it is."""
        await self._is_parked.wait()
        return self.ticket is not None and not self._has_left

    def drafts(self, part: BatchPart) -> Sequence[Draft]:
        """The drafts of a part; an error if it has none."""
        return self.generator.drafts(part, self.problem, self._prepared, self.n)


@dataclass(eq=False)
class _Batch:
    """A batch that was sent, perhaps by an earlier process.

    Attributes:
        calls: those that take a part of it.
        is_own: whether all its requests are calls of this process.
        parts: what it has for each request; None before it is over.
    """

    name: str
    generator: BatchedGenerator
    calls: list[BatchCall]
    is_own: bool
    id: str = ""
    parts: dict[str, BatchPart] | None = None
    is_cancelled: bool = False


class Batches:
    """Collects the calls of a run and sends them in batches.

    Args:
        caller: makes the requests, with retries.
        is_idle: whether nothing of the run goes on besides what waits here.
        report: counts what happens.
    """

    def __init__(self, caller: Caller, is_idle: Callable[[], bool], report: BatchReport) -> None:
        self._caller = caller
        self._is_idle = is_idle
        self._report = report
        self._asked: list[BatchCall] = []
        self._batches: dict[str, _Batch] = {}  # those of this process, and those found again
        self._group: anyio.abc.TaskGroup | None = None
        self._changed = anyio.Event()
        self._open = 0  # batches that are not over
        self._since = 0.0  # when the first of them was sent

    async def run(self) -> None:
        """Send batches until this is cancelled."""
        async with anyio.create_task_group() as self._group:
            while True:
                while not self._asked:
                    await self._changed.wait()
                    self._changed = anyio.Event()
                await self._round_is_complete()
                calls = [call for call in self._asked if not call.has_left]
                self._asked.clear()
                for part in _divided(calls):
                    self._group.start_soon(self._send, part)

    async def drafts(self, call: BatchCall, park: Park) -> Sequence[Draft]:
        """The drafts of a call, from the next batch, or from that of its ticket.

        `park` records a ticket: before the batch is sent, and when its id is known.

        Raises:
            BackendError: the batch has no answer to this call.
        """
        if call.ticket is None:
            self._asked.append(call)
            self._changed.set()
        else:
            self._find(call, call.ticket)
        part = await call.part(park)
        try:
            drafts = call.drafts(part)
        except BackendError:
            self._report.unanswered += 1
            raise
        self._report.add(drafts, call.meter)
        return drafts

    async def cancel_dropped(self) -> None:
        """Cancel the batches that no call waits for any more."""
        for batch in list(self._batches.values()):
            is_dropped = batch.is_own and all(call.has_left for call in batch.calls)
            if batch.id and batch.parts is None and is_dropped and not batch.is_cancelled:
                batch.is_cancelled = True
                self._report.cancelled += 1
                with anyio.CancelScope(shield=True):
                    await self._cancel(batch)

    async def _cancel(self, batch: _Batch) -> None:
        """Cancel a batch; if it cannot be cancelled, it is over or soon will be."""
        try:
            await batch.generator.interface.cancel(batch.id)
        except BackendError:
            return

    async def _round_is_complete(self) -> None:
        """Wait until all searches of the run wait or have ended."""
        looks = 0
        while looks < 2:
            await anyio.sleep(_MOMENT)
            looks = looks + 1 if self._is_idle() else 0

    async def _send(self, calls: Sequence[BatchCall]) -> None:
        """Send one batch and distribute its parts."""
        generator = calls[0].generator
        interface = generator.interface
        name = new_name()
        before = await self._caller.make(interface.newest, backend=generator)
        tickets = [
            BatchTicket(name, request_id(name, number), before) for number in range(len(calls))
        ]
        for call, ticket in zip(calls, tickets, strict=True):
            try:
                call.prepare()
            except BackendError as error:
                call.tell(error)
            else:
                call.tell(ticket)
        live = [call for call in calls if await call.parked()]
        requests = dict(call.request for call in live)
        if not requests:
            return
        batch = _Batch(name, generator, live, is_own=True)
        self._batches[name] = batch
        with self._waiting():
            batch.id = await self._created(batch, tickets[0], requests)
            self._report.batches += 1
            self._report.requests += len(requests)
            if self._report.batches == 1:
                self._caller.complaints.inform(
                    "the first batch was sent; a batch may take up to a day. You may stop the run:"
                    " the same command finds its batches again"
                )
            for call in live:
                assert call.ticket is not None
                call.tell(replace(call.ticket, id=batch.id))
            await self._finish(batch)
        del self._batches[name]

    async def _created(
        self, batch: _Batch, ticket: BatchTicket, requests: Mapping[str, Mapping[str, Any]]
    ) -> str:
        """The id of a batch that is sent now. If the response is lost, it is looked up first."""
        interface = batch.generator.interface
        is_tried = False

        async def create() -> str:
            nonlocal is_tried
            if is_tried:
                id = await self._looked_up(batch, ticket)
                if id is not None:
                    return id
            try:
                return await interface.create(batch.name, requests)
            except BackendError as error:
                is_tried = is_tried or not error.unpaid
                raise

        return await self._caller.make(create, backend=batch.generator)

    def _find(self, call: BatchCall, ticket: BatchTicket) -> None:
        """Hand in a call whose request was sent by an earlier process."""
        batch = self._batches.get(ticket.batch)
        if batch is None:
            batch = _Batch(ticket.batch, call.generator, [call], is_own=False, id=ticket.id)
            self._batches[ticket.batch] = batch
            assert self._group is not None  # `run` is running
            self._group.start_soon(self._found, batch, ticket)
        elif batch.parts is None:
            batch.calls.append(call)
        else:
            call.tell(batch.parts.get(ticket.request, MISSING))

    async def _found(self, batch: _Batch, ticket: BatchTicket) -> None:
        """Look up a batch of an earlier process and distribute its parts."""
        with self._waiting():
            id = batch.id or await self._looked_up(batch, ticket)
            if id is None:
                self._distribute(batch, {})
                return
            batch.id = id
            self._report.found += 1
            await self._finish(batch)

    async def _looked_up(self, batch: _Batch, ticket: BatchTicket) -> str | None:
        """The id of a batch by its name; None if it was not sent."""
        interface = batch.generator.interface
        is_settled = False

        async def find() -> str | None:
            return await interface.find(ticket)

        for pause in pauses(batch.generator.poll):
            try:
                id = await self._caller.make(find, backend=batch.generator)
            except UndecidedBatch:
                await anyio.sleep(pause)
                continue
            if id is not None or is_settled:
                return id
            is_settled = True
            await anyio.sleep(batch.generator.settle)  # the request may be on its way
        raise AssertionError  # there is always another pause

    async def _finish(self, batch: _Batch) -> None:
        """Wait for the end of a batch and distribute its parts."""
        interface = batch.generator.interface

        async def look() -> BatchState:
            return await interface.state(batch.id)

        for pause in pauses(batch.generator.poll):
            state = await self._caller.make(look, backend=batch.generator)
            if state.is_over:
                break
            await anyio.sleep(pause)
        if state.failure:
            for call in batch.calls:
                call.tell(batch.generator.failed(state))
            batch.parts = {}
            return

        async def parts() -> dict[str, BatchPart]:
            return {request: part async for request, part in interface.parts(state)}

        self._distribute(batch, await self._caller.make(parts, backend=batch.generator))

    def _distribute(self, batch: _Batch, parts: dict[str, BatchPart]) -> None:
        batch.parts = parts
        for call in batch.calls:
            if call.ticket is not None:
                call.tell(parts.get(call.ticket.request, MISSING))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Measure the time in which the run waits for at least one batch."""
        if not self._open:
            self._since = time.monotonic()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._report.seconds += time.monotonic() - self._since


def _divided(calls: Sequence[BatchCall]) -> Iterator[list[BatchCall]]:
    """The calls in parts that are one batch each: of one generator, within the server's limits."""
    parts: dict[int, list[BatchCall]] = {}
    sizes: dict[int, int] = {}
    for call in calls:
        interface = call.generator.interface
        place = id(call.generator)
        part = parts.setdefault(place, [])
        size = sizes.get(place, 0) + len(_JSON.encode(_body(call))) + _AROUND
        if part and (len(part) == interface.most_requests or size > interface.most_bytes):
            yield part
            parts[place] = part = []
            size -= sizes[place]
        part.append(call)
        sizes[place] = size
    yield from (part for part in parts.values() if part)


def _body(call: BatchCall) -> Mapping[str, Any]:
    """The body of a call's request; empty if it cannot be written, which `_send` reports."""
    try:
        return call.prepare().body
    except BackendError:
        return {}
