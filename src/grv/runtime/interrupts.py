"""Stop a run on a signal without losing calls that are already paid for."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import anyio

from .calls import Caller

_GRACE_SECONDS = 10  # for calls in flight at an interrupt


async def until_interrupted(
    work: Callable[[], Awaitable[None]], caller: Caller, tell: Callable[[str], None]
) -> bool:
    """Run `work` until it ends or a SIGINT or SIGTERM arrives; return whether one arrived.

    Calls in flight are paid for, so the first signal gives them some seconds to end, and `tell`
    reports that. A second signal cancels everything at once.
    """
    interrupted = False

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal interrupted
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                if interrupted:
                    scope.cancel()
                else:
                    interrupted = True
                    group.start_soon(leave, scope)

    async def leave(scope: anyio.CancelScope) -> None:
        if caller.in_flight:
            tell(
                f"waiting up to {_GRACE_SECONDS} s for {caller.in_flight} calls in flight;"
                " interrupt again to stop at once"
            )
        await caller.settle(_GRACE_SECONDS)
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        await work()
        group.cancel_scope.cancel()
    return interrupted
