"""The scratch directory of a worker's runs: measured during a run, emptied after it.

Its content is hostile: trees of any depth, names of any bytes, directories without permissions,
files that were removed but are still open. No symbolic link is ever followed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterable

_MOST_ENTRIES = 1000


def overfull(
    path: str,
    most_bytes: int,
    *,
    is_mount: bool = False,
    processes: Iterable[int] = (),
    most_entries: int = _MOST_ENTRIES,
) -> bool:
    """Whether processes have written more into the directory than they may, or hide their files.

    If the directory is a mount, its file system knows its usage, which includes files without a
    name. Otherwise the tree is walked, and removed files that the processes have open or mapped are
    added.
    """
    if is_mount:
        state = os.statvfs(path)
        used = (state.f_blocks - state.f_bfree) * state.f_frsize
        return used > most_bytes or state.f_files - state.f_ffree - 1 > most_entries
    device = os.stat(path).st_dev
    room = most_bytes - sum(_nameless(process, device) for process in processes)
    return room < 0 or _size(path, room, most_entries) > room


def used_bytes(path: str, *, is_mount: bool) -> int:
    """The size of all files in the directory."""
    if is_mount:
        state = os.statvfs(path)
        return (state.f_blocks - state.f_bfree) * state.f_frsize
    return _size(path, 1 << 62, 1 << 62)


def _nameless(process: int, device: int) -> int:
    """Bytes of removed files that the process still has open or mapped."""
    total = 0
    with contextlib.suppress(OSError):  # the process is gone, or this is not Linux
        for name in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(OSError):
                state = os.stat(f"/proc/{process}/fd/{name}")
                if stat.S_ISREG(state.st_mode) and state.st_dev == device and not state.st_nlink:
                    total += 512 * state.st_blocks
        with open(f"/proc/{process}/maps", "rb") as maps:
            removed = [line for line in maps if line.endswith(b" (deleted)\n") and b" /" in line]
        for line in removed:
            low, _, high = line.split(maxsplit=1)[0].partition(b"-")
            total += int(high, 16) - int(low, 16)
    return total


def _size(path: str, most_bytes: int, most_entries: int) -> int:
    """The size of all files; more than `most_bytes` if that is clear before all are seen."""
    total = 0
    entries = 0
    waiting = [path]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    entries += 1
                    information = entry.stat(follow_symlinks=False)
                    total += 512 * information.st_blocks
                    if total > most_bytes or entries > most_entries:
                        return most_bytes + 1
                    if stat.S_ISDIR(information.st_mode):
                        waiting.append(entry.path)
        except FileNotFoundError:  # the candidate removed it
            continue
        except OSError:  # unreadable, or the path is too long for the kernel
            return most_bytes + 1
    return total


def empty(path: str) -> None:
    """Remove everything in the directory.

    The tree is flattened instead of descended into: entries of inner directories move up to the
    top. So no path is longer than two names, at any depth of the tree.
    """
    names = os.listdir(path)
    numbers = itertools.count()
    taken = set(names)
    while names:
        for name in names:
            place = os.path.join(path, name)
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                os.unlink(place)
                continue
            os.chmod(place, 0o700)
            for inner in os.listdir(place):
                fresh = next(f"{i}" for i in numbers if f"{i}" not in taken)
                source = os.path.join(place, inner)
                if stat.S_ISDIR(os.lstat(source).st_mode):
                    os.chmod(source, 0o700)  # moving a directory needs write permission on it
                os.rename(source, os.path.join(path, fresh))
            os.rmdir(place)
        names = os.listdir(path)
