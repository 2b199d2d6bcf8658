"""The writer of a ledger: cancelled callers, and what happens if no thread can be started."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from grv.core.values import Generated
from grv.ledger.entries import Told
from grv.ledger.ledger import Append, MemoryLedger
from grv.runtime.ledger_writer import LedgerWriter, in_ledger_thread

TOLD = Told(Generated((1.0,)))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_without_a_thread_every_writer_is_told_and_later_ones_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = LedgerWriter(MemoryLedger())
    loop = asyncio.get_running_loop()
    start = loop.run_in_executor
    failing = [False, True]  # the first write works; what has arrived meanwhile does not

    def no_thread(*given: object) -> object:
        if failing and failing.pop(0):
            raise RuntimeError("can't start new thread")
        return start(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "run_in_executor", no_thread)
    ended: list[str] = []

    async def write(search: str) -> None:
        try:
            await writer.write(search, [Told(Generated((1.0,)))])
            ended.append("written")
        except RuntimeError as error:
            ended.append(str(error))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for search in ("a", "b", "c"):
                group.start_soon(write, search)
        await write("d")

    assert ended == ["written", *["can't start new thread"] * 2, "written"]


class _HeldLedger(MemoryLedger):
    """A ledger whose writes wait until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.may_go_on = threading.Event()

    def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
        self.begun.set()
        assert self.may_go_on.wait(20)
        return super().append_all(groups)


@pytest.mark.anyio
@pytest.mark.parametrize("before", [True, False])
async def test_what_is_written_is_durable_although_a_scope_was_cancelled(before: bool) -> None:
    ledger = _HeldLedger()
    writer = LedgerWriter(ledger)
    steps: list[str] = []

    async def write() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            if before:
                scope.cancel()
            await writer.write("s", [TOLD])
            steps.append(f"{len(ledger.read('s'))} written")
            await anyio.lowlevel.checkpoint()
            steps.append("not cancelled")

    scopes: list[anyio.CancelScope] = []
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await asyncio.to_thread(ledger.begun.wait, 20)
            scopes[0].cancel()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            assert not steps
            ledger.may_go_on.set()
    assert steps == ["1 written"]


@pytest.mark.anyio
async def test_a_cancelled_task_does_not_wait_for_its_write() -> None:
    ledger = _HeldLedger()
    writer = LedgerWriter(ledger)
    task = asyncio.create_task(writer.write("s", [TOLD]))
    await asyncio.to_thread(ledger.begun.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)
    ledger.may_go_on.set()
    await writer.write("s", [TOLD])
    assert ledger.read("s") == (TOLD, TOLD)


@pytest.mark.anyio
async def test_who_claims_a_search_knows_it_although_a_scope_was_cancelled() -> None:
    ledger = MemoryLedger()
    begun = threading.Event()
    may_go_on = threading.Event()
    claimed: list[bool] = []

    def claim() -> bool:
        begun.set()
        assert may_go_on.wait(20)
        return ledger.claim("s")

    async def take() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            claimed.append(await in_ledger_thread(claim))

    scopes: list[anyio.CancelScope] = []
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(take)
            await asyncio.to_thread(begun.wait, 20)
            scopes[0].cancel()
            may_go_on.set()
    assert claimed == [True]
