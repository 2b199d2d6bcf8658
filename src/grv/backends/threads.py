"""Blocking calls, each in a thread of its own.

Not a pool: how many run at once is the runtime's business, and a call that never comes back must
not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread(function: Callable[[], _Result]) -> _Result:
    """The function's result. When cancelled, nobody waits for it any more, but it goes on."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], _Result]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: Callable[[], _Result]) -> None:
        if not ended.done():  # cancelled meanwhile
            ended.set_result(outcome)

    def work() -> None:
        outcome = _outcome(functools.partial(context.run, function))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is there to be told
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name="grv call", daemon=True).start()
    return (await ended)()


def _outcome(function: Callable[[], _Result]) -> Callable[[], _Result]:
    """What returns or raises what the function does; a future cannot carry every exception."""
    try:
        result = function()
    except BaseException as raised:
        error = raised

        def fail() -> _Result:
            raise error

        return fail
    return lambda: result
