"""Who is alive: a process that works on searches holds a lock on a file of its own.

The system drops the lock however the process ends, so a claim of somebody dead is known at once and
never has to time out.
"""

from __future__ import annotations

import fcntl
import os
import re
import uuid
from pathlib import Path

_NAME = re.compile("[0-9a-f]{32}")


class Owner:
    """This process, for as long as the object is open."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.name = uuid.uuid4().hex
        self._file = (folder / self.name).open("wb")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Be dead."""
        self._path(self.name).unlink(missing_ok=True)
        self._file.close()

    def is_alive(self, name: str) -> bool:
        """Whether the owner of that name still works.

        The name comes from the ledger. One that we could not have given is nobody's, and no file of
        that name is touched.
        """
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            return False
        try:
            file = os.open(self._path(name), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        self._path(name).unlink(missing_ok=True)
        return False

    def _path(self, name: str) -> Path:
        return self._folder / name
