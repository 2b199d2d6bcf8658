"""The writer of a ledger: what happens if no thread can be started."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from grv.core.values import Generated
from grv.ledger.entries import Told
from grv.ledger.ledger import MemoryLedger
from grv.runtime.ledger_writer import LedgerWriter


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
