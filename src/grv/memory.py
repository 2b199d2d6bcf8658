"""What reading a large file takes: said, or refused, before it is read."""

from __future__ import annotations

import warnings
from pathlib import Path

from .core.errors import LogError

# The peak and the time per value of a table, measured on 2,000,000 rows with five columns.
_BYTES = 40
_SECONDS = 1e-6
_NOTICED = 2 << 30  # bytes of memory above which it is said what a file takes
MOST_COLUMNS = 1000
_CGROUP = Path("/sys/fs/cgroup")


def expect(path: str, rows: int, columns: int) -> None:
    """Say what reading a table takes, if that is much; refuse it if there is no room.

    Raises:
        LogError: reading it needs more memory than is free.
    """
    needed = bytes_of(rows * columns)
    free = free_memory()
    if free is not None and needed > free:
        raise LogError(
            f"{rows:,} rows: reading them needs about {gigabytes(needed)} of memory, and"
            f" {gigabytes(free)} are free; divide the file by problems",
            path=path,
        )
    if needed > _NOTICED:
        minutes = max(1, round(rows * columns * _SECONDS / 60))
        warnings.warn(
            f"{path}: {rows:,} rows; reading them takes about {gigabytes(needed)} of memory and"
            f" {minutes} min",
            stacklevel=2,
        )


def check_room(path: str, rows: int, size: int) -> None:
    """Refuse to read on if the rows so far, of this size in bytes, leave hardly any memory.

    What is made of them at the end takes about half as much again.
    """
    free = free_memory()
    if free is not None and 2 * free < rows * size:
        raise LogError(
            f"{rows:,} rows so far take most of the memory, {gigabytes(free)} are free; divide the"
            " file by problems",
            path=path,
        )


def check_columns(path: str, columns: int) -> None:
    """Refuse a table that is so wide that opening it takes minutes."""
    if columns > MOST_COLUMNS:
        raise LogError(
            f"{columns:,} columns; the limit is {MOST_COLUMNS:,}: keep those that the log needs",
            path=path,
        )


def bytes_of(values: int) -> int:
    """About how much memory a table takes while it is read."""
    return values * _BYTES


def gigabytes(size: float) -> str:
    """A size, for a message."""
    return f"{size / (1 << 30):.1f} GB"


def free_memory() -> int | None:
    """The memory that this process can still use; None if the system does not say."""
    found = [_of_machine(), _of_group("memory.max", "memory.current")]
    found.append(_of_group("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
    known = [each for each in found if each is not None]
    return min(known) if known else None


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(sizes[0]) << 10 if sizes else None


def _of_group(most: str, now: str) -> int | None:
    try:
        return int((_CGROUP / most).read_text()) - int((_CGROUP / now).read_text())
    except (OSError, ValueError):  # no such file, or no limit: "max"
        return None
