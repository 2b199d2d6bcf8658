"""Where a ledger may be: on a local file system, together with its write-ahead log.

A ledger stays where it was opened. SQLite goes on with files that were deleted, moved or replaced;
another process would start from other files, and spend the same budget again. `OpenFiles` notices.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.errors import LedgerError

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"}
_NETWORK |= {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse"}
# In the header of an SQLite file: whether it has a write-ahead log, and the format of the ledger.
_MODE = slice(18, 20)
_WAL = b"\2\2"
_FORMAT = slice(60, 64)
# The last bytes of a rollback journal that names a file.
_NAMED = bytes.fromhex("d9d505f920a163d7")


def check_place(path: str) -> None:
    """Refuse a ledger on a network file system: locks and shared memory do not work there."""
    kind = _file_system(path)
    if kind in _NETWORK:
        raise LedgerError(
            f"{path}: on a network file system ({kind}), where processes cannot lock a file"
            " reliably; put the ledger on a local disk",
            path=path,
        )


def _file_system(path: str) -> str:
    """The kind of the file system that a path is on; empty if unknown."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    target = os.path.realpath(path)
    best = ""
    kind = ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount = fields.split()[4].replace("\\040", " ")
        inside = target == mount or target.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best = mount
            kind = rest.split()[0]
    return kind


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Keep other processes from opening or closing a ledger meanwhile: its log comes and goes then.

    Locks the folder. Does not wait for ever: an abandoned ledger may be closed at any moment, also
    while its own thread opens another one.
    """
    folder = -1
    with suppress(OSError):  # what cannot be locked cannot be opened, and SQLite reports it
        folder = os.open(Path(path).absolute().parent, os.O_RDONLY)
    until = time.monotonic() + 5
    while folder >= 0 and time.monotonic() < until:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            time.sleep(0.005)
    try:
        yield
    finally:
        if folder >= 0:
            os.close(folder)


def lacks_log(path: str) -> bool:
    """Whether the file needs a write-ahead log that is not there.

    grv switches the log off when the last process closes a ledger, so a file that says it has one
    was in use when its processes died, or still is. Then the newest entries are in the log.
    """
    if os.path.exists(f"{path}-wal"):
        return False  # nor open the file: closing it would give up the locks of this process
    try:
        with open(path, "rb") as file:
            header = file.read(100)
    except OSError:
        return False
    if int.from_bytes(header[_FORMAT], "big") == 1:
        return False  # format 1 did not switch the log off
    return header[_MODE] == _WAL


def lost_ledger(path: str) -> bool:
    """Whether there is a write-ahead log without its ledger. SQLite would delete it."""
    log = f"{path}-wal"
    return not os.path.exists(path) and os.path.exists(log) and os.path.getsize(log) > 0


def names_a_file(path: str) -> bool:
    """Whether the rollback journal of a ledger names another file. SQLite would delete that file.

    A journal names the one of a transaction over several databases. A ledger has no such
    transactions, so somebody else wrote it.
    """
    try:
        with open(f"{path}-journal", "rb", opener=_waiting_for_nobody) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - len(_NAMED)))
            return file.read(len(_NAMED)) == _NAMED
    except OSError:
        return False  # there is none, or SQLite opens it neither: a link, a pipe, a folder


def _waiting_for_nobody(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


_Identity = tuple[int, int]  # the device, and the number of the file on it


class OpenFiles:
    """The files that a ledger was opened with: itself, its write-ahead log and the log's index.

    Make it while the ledger is open, and no other process opens or closes it (see `alone`). `given`
    is the path by which others find the ledger; it may be a link to `path`.
    """

    def __init__(self, path: str, given: str) -> None:
        parts = [f"{path}{part}" for part in ("", "-wal", "-shm")]
        self._paths = [os.path.abspath(each) for each in (*parts, given)]
        self._opened = [_identity(each) for each in self._paths]
        self._size = os.path.getsize(self._paths[0])

    def lost(self) -> str:
        """The first file that is not the one any more that was opened; empty if all are."""
        for path, opened in zip(self._paths, self._opened, strict=True):
            if _identity(path) != opened:
                return path
        size = os.path.getsize(self._paths[0])
        if size < self._size:  # a ledger only grows: something else was written over it
            return self._paths[0]
        self._size = size
        return ""


def _identity(path: str) -> _Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def new_beside(path: str) -> str:
    """A new, empty file beside a ledger, for a copy of it."""
    number = 1
    while True:
        name = f"{path}.saved-{number}"
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return name
        except FileExistsError:
            number += 1
