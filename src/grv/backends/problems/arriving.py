"""Problems that arrive one by one, as lines on standard input."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import AsyncGenerator

import anyio.to_thread

from ...core.errors import UsageError
from ...files import LONGEST_LINE, json_record
from ..protocols import Problem
from .files import ProblemLines

NAME = "-"  # of standard input, on the command line
_READ = 1 << 16  # bytes at once
_LOOK_SECONDS = 0.2  # between two looks whether the run has ended


async def arriving_problems(descriptor: int, *, checks: bool = True) -> AsyncGenerator[Problem]:
    """The problem of each line, as soon as the line is complete, until the end of the input.

    A thread reads, since input may be slow; it ends soon after the run does.
    """
    lines = ProblemLines(NAME, checks=checks)
    number = 0
    ended = threading.Event()

    def more() -> bytes:
        while not ended.is_set():
            if select.select([descriptor], [], [], _LOOK_SECONDS)[0]:
                return os.read(descriptor, _READ)
        return b""

    rest = b""
    try:
        while True:
            read = await anyio.to_thread.run_sync(more, abandon_on_cancel=True)
            *complete, rest = (rest + read).split(b"\n")
            if not read and rest:
                complete.append(rest)
            if len(rest) > LONGEST_LINE:
                raise UsageError(f"{NAME}:{number + 1}: a line of more than {LONGEST_LINE:,} bytes")
            for line in complete:
                number += 1
                if line.strip():
                    yield lines.problem(number, json_record(line, NAME, number))
            if not read:
                return
    finally:
        ended.set()
