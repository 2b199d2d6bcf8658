"""The private directory of a worker's runs: measured while one goes on, emptied after it.

Its content is hostile: trees of any depth, names of any bytes, directories without permissions,
files that were removed but are still open. Symbolic links are never followed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat

_MOST_ENTRIES = 1000


def overfull(path: str, most_bytes: int, *, is_mount: bool = False, process: int = 0) -> bool:
    """Whether a process has put more into the directory than it may, or hides what it has put.

    A file system of its own knows what it holds, whether that has a name or not. Otherwise the tree
    is walked, and what has no name any more is looked for in the process.
    """
    if is_mount:
        state = os.statvfs(path)
        used = (state.f_blocks - state.f_bfree) * state.f_frsize
        return used > most_bytes or state.f_files - state.f_ffree - 1 > _MOST_ENTRIES
    room = most_bytes - _nameless(process, os.stat(path).st_dev)
    return room < 0 or _is_larger(path, room)


def _nameless(process: int, device: int) -> int:
    """Bytes of files that were removed and that the process still has open, or in its memory."""
    total = 0
    with contextlib.suppress(OSError):  # it is gone, or this is not Linux
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


def _is_larger(path: str, most_bytes: int) -> bool:
    total, entries, waiting = 0, 0, [path]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    entries += 1
                    information = entry.stat(follow_symlinks=False)
                    total += 512 * information.st_blocks
                    if total > most_bytes or entries > _MOST_ENTRIES:
                        return True
                    if stat.S_ISDIR(information.st_mode):
                        waiting.append(entry.path)
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError:  # unreadable, or a path longer than the kernel takes
            return True
    return False


def empty(path: str) -> None:
    """Remove all that is in the directory.

    Directories are flattened rather than descended into: their entries are moved up to the top,
    so that no path is longer than two names, however deep the tree.
    """
    numbers = itertools.count()
    taken = set(os.listdir(path))
    while names := os.listdir(path):
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
                    os.chmod(source, 0o700)  # to move a directory is to write to it
                os.rename(source, os.path.join(path, fresh))
            os.rmdir(place)
