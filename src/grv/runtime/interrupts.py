"""Stop a run on a signal without losing calls that are already paid for."""

from __future__ import annotations

import errno
import logging
import os
import signal
import termios
from collections.abc import Awaitable, Callable

import anyio

from .calls import GRACE_SECONDS, Caller

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def until_interrupted(
    work: Callable[[], Awaitable[None]], caller: Caller, tell: Callable[[str], None]
) -> bool:
    """Run `work` until it ends or a signal arrives; return whether one arrived.

    The signals are SIGINT, SIGTERM and SIGHUP; `nohup` switches the last one off. Calls in flight
    are paid for, so the first signal gives them some seconds to end, and `tell` reports that. A
    second signal cancels everything at once.
    """
    _silence_event_loop()
    interrupted = False
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    hangup = before[signal.SIGHUP] is not signal.SIG_IGN
    watched = _SIGNALS if hangup else _SIGNALS[:2]

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal interrupted
        with anyio.open_signal_receiver(*watched) as signals:
            async for _ in signals:
                _detach()
                if interrupted:
                    scope.cancel()
                else:
                    interrupted = True
                    group.start_soon(leave, scope)

    async def leave(scope: anyio.CancelScope) -> None:
        if caller.in_flight:
            tell(
                f"waiting up to {GRACE_SECONDS:g} s for {caller.in_flight} calls in flight;"
                " interrupt again to stop at once"
            )
        await caller.settle(GRACE_SECONDS)
        scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(watch, group.cancel_scope)
            await work()
            group.cancel_scope.cancel()
    finally:
        for number in watched[1:]:  # the event loop restores the default instead
            signal.signal(number, before[number])
    return interrupted


def _silence_event_loop() -> None:
    """Keep the event loop from printing tracebacks of its own.

    If a connection breaks inside the loop, for example for lack of memory, the loop prints a
    traceback and closes the connection. The call that used it then fails, and is reported.
    """
    if not os.environ.get("GRV_DEBUG"):
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def _detach() -> None:
    """Discard output to a terminal that is gone: writing to it would fail."""
    for descriptor in (1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
