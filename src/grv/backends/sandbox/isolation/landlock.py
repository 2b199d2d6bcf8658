"""The files that a candidate may open: its scratch directory, and what its programs need.

Landlock does not cover `stat`: a candidate can see that another file exists, and its size.
"""

from __future__ import annotations

import os
import stat
import sys
import sysconfig
from collections.abc import Iterable

from . import kernel

_EXECUTE = 1
_WRITE_FILE = 2
_READ_FILE = 4
_READ_DIR = 8
_REMOVE_DIR = 1 << 4
_REMOVE_FILE = 1 << 5
_MAKE_DIR = 1 << 7
_MAKE_REGULAR = 1 << 8
_REFER = 1 << 13
_TRUNCATE = 1 << 14

_FILES_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_NETWORK = 0b11  # bind and connect, from version 4 on
_SCOPED = 0b11  # abstract sockets and signals, from version 6 on

_READ = _READ_FILE | _READ_DIR
_OWN = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REGULAR
_OWN |= _REFER | _TRUNCATE
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE  # the others apply to directories

_CGROUPS = "/sys/fs/cgroup"
# Where the kernel says what a control group may use, in both versions of its interface.
_GROUP_LIMITS = (
    "cpu.max",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "memory.max",
    "memory.limit_in_bytes",
)

_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/dev/urandom",
    "/dev/zero",
)


def readable_paths() -> list[str]:
    """Paths that the interpreter reads: its library, installed packages, system libraries."""
    own = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    shared = os.path.join(sys.base_prefix, "lib")  # libpython, and conda's libraries
    found = {os.path.realpath(path) for path in [*own, shared, *_SYSTEM] if os.path.exists(path)}
    return sorted(found)


def system_paths() -> list[str]:
    """Paths that every program reads: system libraries, time zones."""
    return sorted({os.path.realpath(path) for path in _SYSTEM if os.path.exists(path)})


def group_limit_paths() -> list[str]:
    """The files that say what this process's control groups may use, and which groups these are.

    The first of them belongs to this process, so a child must call this itself.
    """
    own = "/proc/self/cgroup"
    try:
        with open(own) as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    folders = set()
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            names = [name for name in path.split("/") if name not in ("", "..")]
            for length in range(len(names) + 1):
                folders.add(os.path.join(_CGROUPS, controller, *names[:length]))
    files = [os.path.join(folder, name) for folder in folders for name in _GROUP_LIMITS]
    return [own, *(path for path in sorted(files) if os.path.exists(path))]


def ruleset(
    version: int,
    readable: Iterable[str],
    scratch: str | None,
    *,
    own: Iterable[str] = (),
    executable: Iterable[str] = (),
) -> int:
    """A file descriptor of the rules.

    Args:
        version: the kernel's Landlock version.
        readable: what is read, with all below it.
        scratch: what is read and written; None for nothing.
        own: further directories that are read and written.
        executable: what is read and started as a program.
    """
    known = max(files for since, files in _FILES_BY_VERSION.items() if since <= version)
    size = 8 if version < 4 else 16 if version < 6 else 24
    network = _NETWORK if version >= 4 else 0
    scoped = _SCOPED if version >= 6 else 0
    rules = kernel.landlock_ruleset(known, network, scoped, size)
    wanted = [(path, _READ) for path in readable]
    wanted += [("/dev/null", _READ_FILE | _WRITE_FILE)]
    wanted += [(scratch, _OWN)] if scratch is not None else []
    wanted += [(path, _OWN) for path in own]
    wanted += [(path, _READ | _EXECUTE) for path in executable]
    for path, access in wanted:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                access &= _OF_A_FILE
            kernel.landlock_allow(rules, place, access & known)
        finally:
            os.close(place)
    return rules
