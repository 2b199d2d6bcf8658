"""Blocking calls, each in a thread of its own.

Not a pool: how many run at once is the runtime's business, and a call that never comes back must
not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread(function: Callable[[], _Result]) -> _Result:
    """The function's result. When cancelled, nobody waits for it any more, but it goes on."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: _Result | None, error: BaseException | None) -> None:
        if future.done():  # cancelled meanwhile
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is there to be told
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="grv call", daemon=True).start()
    return await future
