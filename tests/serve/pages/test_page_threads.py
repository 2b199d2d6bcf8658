"""The threads that read for the pages, which all who are signed in share."""

from __future__ import annotations

import threading

import anyio
import pytest

from grv.serve.pages.follower import in_thread

pytestmark = pytest.mark.anyio


async def test_what_one_reads_does_not_keep_another_waiting() -> None:
    go_on = threading.Event()
    try:
        async with anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(in_thread, go_on.wait, "ann")
            await anyio.sleep(0.05)
            with anyio.fail_after(20):
                assert await in_thread(lambda: "read", "bob") == "read"
            go_on.set()
    finally:
        go_on.set()
