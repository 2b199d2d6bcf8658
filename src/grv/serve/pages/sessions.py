"""Who is signed in.

A session is a random name in a cookie. The server knows a hash of it, the hash of the key with
which it began, and when it ends. Signing out forgets it, so a copy of the cookie is worth nothing.
Beside a ledger in a file, sessions are kept in `LEDGER.sessions`: they survive a restart.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ...files import is_number, parse_json, replacing
from ...ledger.address import is_address

AGE = 7 * 24 * 3600  # seconds of a session
_MOST = 20  # sessions of one key; the oldest end
_LARGEST = 4 << 20  # bytes of a file

_Known = dict[str, tuple[str, float]]  # by the hash of a session: hash of its key, and its end


class Sessions:
    """The sessions of a server; with a file, also of its later starts. Any thread may use it.

    Args:
        ledger: the place of a ledger that is open for writing; None to keep nothing.
        clock: the time, in seconds since 1970.
    """

    def __init__(self, ledger: str | None = None, clock: Callable[[], float] = time.time) -> None:
        file = ledger is not None and not is_address(ledger)
        self._path = f"{ledger}.sessions" if file else None
        self._clock = clock
        self._known: _Known = {}
        self._seen: tuple[int, int, int] | None = None  # what the file was when it was read
        self._lock = threading.Lock()

    def begin(self, owner: bytes) -> str:
        """A new session of the owner of a key, by the key's hash."""
        name = secrets.token_urlsafe(32)
        now = self._clock()
        with self._changing() as known:
            own = sorted((end, each) for each, (key, end) in known.items() if key == owner.hex())
            for _, each in own[: max(0, len(own) - _MOST + 1)]:
                del known[each]
            known[_hash(name)] = (owner.hex(), now + AGE)
        return name

    def owner(self, name: str) -> bytes | None:
        """The hash of the key with which a session began; None if there is no such session."""
        with self._lock:
            self._refresh()
            key, end = self._known.get(_hash(name), ("", 0.0))
        return bytes.fromhex(key) if key and self._clock() < end else None

    def end(self, name: str) -> None:
        """End a session, if there is one."""
        if self.owner(name) is None:
            return
        with self._changing() as known:
            known.pop(_hash(name), None)

    def _refresh(self) -> None:
        """Read the file, if another process has changed it."""
        if self._path is None:
            return
        try:
            if _version(os.stat(self._path)) != self._seen:
                with open(self._path, "rb", opener=_opener) as file:
                    self._read(file)
        except OSError:
            return

    def _read(self, file: BinaryIO) -> None:
        self._known = _parsed(file.read(_LARGEST))
        self._seen = _version(os.fstat(file.fileno()))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[_Known]:
        """The sessions, to change them; those that are over are dropped. The file is replaced.

        It is never empty in between: a process that dies here leaves the file as it was.
        """
        with self._lock, self._locked() as file:
            if file is not None:
                self._read(file)
            now = self._clock()
            self._known = {name: each for name, each in self._known.items() if each[1] > now}
            yield self._known
            if file is not None and self._path is not None:
                self._write(self._path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[BinaryIO | None]:
        """The file, which no other process changes meanwhile; None if it cannot be opened.

        Another process may have replaced it while we waited for the lock: then the lock is on a
        file that is gone, and the new one is locked instead.
        """
        while self._path is not None:
            try:
                file = open(self._path, "r+b", opener=_opener)  # noqa: SIM115
            except OSError:  # a folder that cannot be written
                break
            with file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if _is_at(file.fileno(), self._path):
                    yield file
                    return
        yield None

    def _write(self, path: str) -> None:
        with replacing(path, private=True) as temporary, open(temporary, "wb") as file:
            file.write(json.dumps(self._known).encode())
            file.flush()
            os.fsync(file.fileno())
            self._seen = _version(os.fstat(file.fileno()))


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _opener(path: str, flags: int) -> int:
    """Open a file that only its owner reads; no link is followed."""
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _is_at(descriptor: int, path: str) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _version(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _parsed(content: bytes) -> _Known:
    """The sessions in a file; none if it is damaged."""
    try:
        record = parse_json(content or b"{}", finite=True)
        return {
            str(name): (bytes.fromhex(key).hex(), float(end))
            for name, (key, end) in record.items()
            if is_number(end)
        }
    except (AttributeError, TypeError, ValueError):
        return {}
