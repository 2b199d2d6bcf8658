"""Owners of claims: each process that works on searches holds a lock on a file of its own.

The operating system releases the lock when the process ends, however it ends. So a claim of a dead
process is detected at once, without a timeout.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import uuid
from pathlib import Path

from ..core.errors import LedgerError

_NAME = re.compile("[0-9a-f]{32}")
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # to open a pipe is to wait


class Owner:
    """This process as an owner of claims, until `close`."""

    def __init__(self, folder: Path) -> None:
        if folder.is_symlink():  # files of another folder would be made and deleted
            raise LedgerError(f"{folder}: a link, which grv does not follow: remove it")
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.name = uuid.uuid4().hex
        self._file = (folder / self.name).open("wb")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Release the lock; the owner then counts as dead."""
        self._path(self.name).unlink(missing_ok=True)
        self._file.close()

    def is_lost(self) -> bool:
        """Whether other processes cannot see that this one is alive: its file is gone."""
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), self._path(self.name).stat())
        except OSError:
            return True

    def is_alive(self, name: str) -> bool:
        """Whether the owner of this name still runs.

        The name comes from the ledger. A name that grv could not have given has no owner, and no
        file of that name is touched.
        """
        alive = is_alive(self._folder, name)
        if alive is False:
            self._path(name).unlink(missing_ok=True)
        return bool(alive)

    def _path(self, name: str) -> Path:
        return self._folder / name


def is_alive(folder: Path, name: object) -> bool | None:
    """Whether the owner of this name still runs; None if it has no file."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        return None
    try:
        file = os.open(folder / name, _READING)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link
            return None
        raise  # too many open files, say: the owner may be alive
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
