"""Tasks that run together."""

from __future__ import annotations

import anyio
import pytest

from grv.runtime.tasks import raise_first, together

pytestmark = pytest.mark.anyio


async def no_memory() -> None:
    try:
        raise MemoryError
    except MemoryError as error:
        raise ImportError("a library says it in its own way") from error


async def test_an_error_keeps_its_cause_when_it_leaves_a_group() -> None:
    with pytest.raises(ImportError) as caught:
        await together([no_memory, no_memory])
    assert isinstance(caught.value.__cause__, MemoryError)


async def test_an_error_keeps_its_cause_through_groups_of_groups() -> None:
    async def outer() -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(no_memory)
        except BaseExceptionGroup as errors:
            raise_first(errors)

    with pytest.raises(ImportError) as caught:
        await together([outer, outer])
    assert isinstance(caught.value.__cause__, MemoryError)
