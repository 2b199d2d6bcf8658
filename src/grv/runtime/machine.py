"""Whether this machine can carry a run: open files, processes and disk space.

A run that lacks one of them in the middle loses calls that are paid for. So it is checked first.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.errors import UsageError
from .adaptive import FIRST, MOST

# a call may leave two idle connections
_FILES = 64
_FILES_PER_CALL = 3
_FILES_PER_WORKER = 12
# threads of the ledger; a worker's processes and threads
_THREADS = 48
_THREADS_PER_WORKER = 8
# for results that are still to be recorded
_BYTES = 16 << 20
_BYTES_PER_CALL = 256 << 10
_CGROUP = Path("/sys/fs/cgroup")


def calls_carried() -> int:
    """The calls that may be in flight at once with as many open files as this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if soft == resource.RLIM_INFINITY else soft
    return max(1, (most - _FILES) // _FILES_PER_CALL)


def check_machine(concurrency: int | None, workers: int, files: Iterable[str]) -> None:
    """Refuse a run that this machine cannot carry. Raises soft limits if that helps.

    Args:
        concurrency: the number of calls in flight at once; None if it adapts to the machine too.
        workers: the number of verifications at once.
        files: the files that the run writes.

    Raises:
        UsageError: a limit is too low; the message says what to do.
    """
    if concurrency is None:
        wanted = _FILES + _FILES_PER_CALL * MOST + _FILES_PER_WORKER * workers
        _raised(resource.RLIMIT_NOFILE, wanted)
    least = FIRST if concurrency is None else concurrency
    most = MOST if concurrency is None else concurrency
    _check_files(_FILES + _FILES_PER_CALL * least + _FILES_PER_WORKER * workers)
    _check_threads(_THREADS + _THREADS_PER_WORKER * workers)
    folders = [os.path.dirname(os.path.realpath(file)) for file in files]
    _check_space(_BYTES + _BYTES_PER_CALL * most, [*folders, tempfile.gettempdir()])


def _check_files(needed: int) -> None:
    limit = _raised(resource.RLIMIT_NOFILE, needed)
    if limit < needed:
        raise UsageError(
            f"the run may need {needed} open files, and the limit is {limit}: raise it with"
            f" ulimit -n {needed}, or lower --concurrency or --workers"
        )


def _check_threads(needed: int) -> None:
    limits = [_raised(resource.RLIMIT_NPROC, needed)] if os.geteuid() else []  # not for root
    for group in _own_cgroups():
        try:
            most, now = (
                (group / f"pids.{name}").read_text().strip() for name in ("max", "current")
            )
            limits.append(int(most) - int(now))
        except (OSError, ValueError):  # no such file, or no limit: "max"
            continue
    if limits and min(limits) < needed:
        raise UsageError(
            f"the run may need {needed} threads and processes, and the limit is {min(limits)}:"
            " raise it with ulimit -u or in the container's settings, or lower --workers"
        )


def _own_cgroups() -> Sequence[Path]:
    """The control group of this process, and of the container."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ()
    names = {line.rpartition(":")[2].lstrip("/") for line in lines}
    return sorted({_CGROUP, *(_CGROUP / name for name in names), _CGROUP / "pids"})


def _check_space(needed: int, folders: Iterable[str]) -> None:
    for folder in dict.fromkeys(folders):
        try:
            free = shutil.disk_usage(folder).free
        except OSError:
            continue  # the command says so when it opens its files
        if free < needed:
            raise UsageError(
                f"{folder}: {free >> 20} MB are free, and the run may need {needed >> 20} MB before"
                " it can stop safely: free some space, write elsewhere or lower --concurrency"
            )


def _raised(which: int, needed: int) -> int:
    """A limit of this process, raised up to `needed` if it is lower and may be raised."""
    soft, hard = resource.getrlimit(which)
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft == resource.RLIM_INFINITY:
        return needed
    if soft < most:
        resource.setrlimit(which, (most, hard))
        return most
    return soft
