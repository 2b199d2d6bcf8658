"""The processes that a process has started, as /proc shows them: theirs, and so on.

The judge and the zygote use it. Numbers are those that /proc shows, which may be others than a
process in a namespace sees.
"""

from __future__ import annotations

import contextlib
import os

_PAGE = os.sysconf("SC_PAGESIZE") if hasattr(os, "sysconf") else 4096
_TICK = 1.0 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(1 << 16)


def fields(number: int | str) -> list[bytes]:
    """The fields of a process's `stat` from its state on; empty if it is gone."""
    try:
        return _read(f"/proc/{number}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def parent(number: int) -> int:
    """The parent of a process; 0 if it is gone."""
    found = fields(number)
    return int(found[1]) if len(found) > 1 else 0


def descendants(number: int | str) -> list[int]:
    """All processes below a process, whose name in /proc is `number`, the nearest first.

    Processes that start or end meanwhile may be missing.
    """
    found: list[int] = []
    waiting: list[int | str] = [number]
    for process in waiting:
        children = _children(process)
        if children is None:
            return _by_parents(number)
        found += children
        waiting += children
    return found


def _children(process: int | str) -> list[int] | None:
    """The children of all threads of a process; None if the kernel does not list them."""
    folder = f"/proc/{process}/task"
    found: list[int] = []
    try:
        threads = os.listdir(folder)
    except OSError:
        return []  # it is gone
    for thread in threads:
        try:
            found += map(int, _read(f"{folder}/{thread}/children").split())
        except FileNotFoundError:
            if os.path.exists(f"{folder}/{thread}/stat"):
                return None
        except OSError:
            continue
    return found


def _by_parents(number: int | str) -> list[int]:
    """The same from the parents of all processes, where the kernel lists no children."""
    root = int(os.readlink("/proc/self")) if number == "self" else int(number)
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            below.setdefault(parent(int(name)), []).append(int(name))
    found: list[int] = []
    waiting = [root]
    for process in waiting:
        children = below.get(process, [])
        found += children
        waiting += children
    return found


def resident_bytes(process: int) -> int:
    """The resident memory of a process; 0 if it is gone."""
    try:
        return int(_read(f"/proc/{process}/statm").split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def threads(process: int) -> int:
    """The number of threads of a process; 0 if it is gone, 1 if it only waits to be buried."""
    found = fields(process)
    return max(1, int(found[17])) if len(found) > 17 else 0


def descriptors(process: int) -> int:
    """The number of files, pipes and sockets that a process has open; 0 if it is gone."""
    try:
        return len(os.listdir(f"/proc/{process}/fd"))
    except OSError:
        return 0


def processor_seconds(processes: list[int], *, with_children: bool = True) -> float:
    """The processor time of processes, and of the children that they have waited for."""
    total = 0
    for process in processes:
        with contextlib.suppress(IndexError, ValueError):
            total += sum(map(int, fields(process)[11 : 15 if with_children else 13]))
    return total * _TICK
