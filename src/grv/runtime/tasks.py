"""Run several tasks at once, each to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from ..core.errors import BackendError
from .spending import OutOfBudget


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
        raise first_error(errors) from errors
    return failures


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended a group of tasks, without the group."""
    inner = errors.exceptions[0]
    return first_error(inner) if isinstance(inner, BaseExceptionGroup) else inner
