"""The private directory of a worker's runs: measured while one goes on, emptied after it.

Its content is hostile: trees of any depth, names of any bytes, directories without permissions.
Symbolic links are never followed.
"""

from __future__ import annotations

import itertools
import os
import stat

_MOST_ENTRIES = 1000


def overfull(path: str, most_bytes: int) -> bool:
    """Whether the directory holds more than it may, or hides what it holds."""
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
