"""Gives memory back to the system after a load.

The allocator of the C library keeps what is free in as many arenas as there are threads, and gives
back only the end of one of them. So a server uses few arenas, and trims them when nobody asks
anything. Python's own allocator gives back a megabyte when nothing in it is used. So caches are
small, and their values move together in that moment. Without glibc, only this is done.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

import anyio
import anyio.to_thread

IDLE_SECONDS = 2.0  # without a request, until memory is given back
_ARENAS = 1  # threads hold Python's lock most of the time, so they do not wait for each other here
_LARGE = 128 << 10  # bytes of what is given back as soon as it is free, such as a long request
# Parameters of `mallopt`.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8


def use_few_arenas() -> None:
    """Let all threads that start from now on share an arena, and large texts have none."""
    mallopt = _from_glibc("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)  # fixed: by itself it grows with what was freed
        mallopt(_M_TRIM_THRESHOLD, _LARGE)


def give_back(rest: Callable[[], None]) -> None:
    """Give back what is free, and what `rest` frees."""
    gc.collect()
    rest()
    trim = _from_glibc("malloc_trim")
    if trim is not None:
        trim(0)


async def give_back_when_idle(
    answered: Callable[[], int], busy: Callable[[], bool], rest: Callable[[], None]
) -> None:
    """Give memory back each time when requests were answered, and then none for some seconds.

    Args:
        answered: how many requests have been answered so far.
        busy: whether one is being answered.
        rest: called in a thread before memory is given back, to free more.
    """
    given_back = 0
    while True:
        before = answered()
        await anyio.sleep(IDLE_SECONDS)
        if answered() == before != given_back and not busy():
            await anyio.to_thread.run_sync(give_back, rest)
            given_back = before


def _from_glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library, if that is glibc."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return None
    function: Callable[..., int] = getattr(library, name)
    return function
