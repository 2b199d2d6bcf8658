"""Several calls at once, each to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from ..core.errors import BackendError


async def together(jobs: Sequence[Callable[[], Awaitable[object]]]) -> Sequence[BackendError]:
    """Run jobs at once, each to its end: what is in flight is paid for, whoever else fails."""
    failures: list[BackendError] = []

    async def run(job: Callable[[], Awaitable[object]]) -> None:
        try:
            await job()
        except BackendError as error:
            failures.append(error)

    if len(jobs) == 1:
        await run(jobs[0])
        return failures
    try:
        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(run, job)
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    return failures


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended a group of tasks, as it was raised."""
    inner = errors.exceptions[0]
    return first_error(inner) if isinstance(inner, BaseExceptionGroup) else inner
