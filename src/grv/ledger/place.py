"""Where a ledger may be: on a local file system, together with its write-ahead log."""

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
_MODE, _WAL, _FORMAT = slice(18, 20), b"\2\2", slice(60, 64)


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
    best, kind = "", ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount = fields.split()[4].replace("\\040", " ")
        inside = target == mount or target.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, rest.split()[0]
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
