"""Run several tasks at once, each to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

import anyio

from ..core.errors import BackendError
from .budget import OutOfBudget


async def together(tasks: Sequence[Callable[[], Awaitable[object]]]) -> Sequence[Exception]:
    """Run tasks at once and return their backend errors, or that a budget is spent.

    Neither cancels the other tasks: their calls are already paid for.
    """
    failures: list[Exception] = []

    async def run(task: Callable[[], Awaitable[object]]) -> None:
        try:
            await task()
        except (BackendError, OutOfBudget) as error:
            failures.append(error)

    if len(tasks) == 1:
        await run(tasks[0])
        return failures
    try:
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(run, task)
    except BaseExceptionGroup as errors:
        raise_first(errors)
    return failures


def raise_first(errors: BaseExceptionGroup[BaseException]) -> NoReturn:
    """Raise the error that ended a group of tasks: without the group, and with its own cause."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    raise error from error.__cause__ or error.__context__
