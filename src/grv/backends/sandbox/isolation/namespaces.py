"""Linux namespaces, made once for a zygote and all its children.

They give an empty network, separate process numbers, and a scratch directory in memory whose size
is bounded and which the kernel removes with the namespace.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
from collections.abc import Callable, Mapping

from . import kernel

# The names and the kernel's flags: CLONE_NEWUSER, CLONE_NEWPID, and so on.
WANTED: Mapping[str, int] = {
    **{"user": 0x10000000, "pid": 0x20000000, "net": 0x40000000},
    **{"ipc": 0x08000000, "uts": 0x04000000, "mount": 0x00020000},
}
_SCRATCH = "size=512m,nr_inodes=4096,mode=700"
# Processes and threads in all. The kernel gives the first 300 numbers out only once.
_MOST_PROCESSES = 300 + 2048
_HAS_NUMBERS = (6, 14)  # the Linux from which a namespace has a highest process number of its own
_TOOL_SCRATCH = "size=1g,nr_inodes=16384,mode=700"


def available(box: str, *, runs_files: bool = False) -> tuple[tuple[str, ...], str]:
    """The namespaces that work here, and a text that says which do not and why.

    If `runs_files`, the scratch directory may contain programs that are started.
    """
    problem = ""
    for without in ((), ("mount",), ("user",), ("user", "mount")):
        if "user" in without and os.getuid() != 0:
            continue  # only root can make the others where user namespaces are disabled
        names = tuple(name for name in WANTED if name not in without)
        failure = kernel.problem_in_child(
            functools.partial(enter, names, box, runs_files=runs_files)
        )
        if not failure:
            return names, f"{', '.join(without)}: {problem}" if without else ""
        problem = problem or failure
    return (), problem


def enter(names: tuple[str, ...], box: str, *, runs_files: bool = False) -> None:
    """Move this process to new namespaces. Only its children get new process numbers."""
    uid = os.getuid()
    gid = os.getgid()
    kernel.unshare(sum(WANTED[name] for name in names))
    if "user" in names:
        # The user keeps its number inside the namespace; no other user has one there.
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{file}", "w") as handle:
                handle.write(text)
    if "mount" in names:
        kernel.mount_private()
        kernel.mount_memory(box, _TOOL_SCRATCH if runs_files else _SCRATCH, runs_files=runs_files)


def become_first(afterwards: Callable[[], None]) -> None:
    """Fork, and continue as the first process of the new process namespace.

    When the first process of a namespace ends, the kernel kills all others in it. The process that
    called this function waits for that end, then calls `afterwards` and exits.
    """
    child = os.fork()
    if child:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        kernel.closing_from(0)()
        _, status = os.waitpid(child, 0)
        afterwards()
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent(0)  # a parent outside the namespace has the number 0
    _bound_processes()


def _bound_processes() -> None:
    """Bound the number of processes in this process namespace, if the kernel can do that.

    The zygote ends a run with too many as soon as it looks. A bomb could take all process numbers
    of the machine before that. An older kernel would change the bound of the whole machine.
    """
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if release is None or (int(release[1]), int(release[2])) < _HAS_NUMBERS:
        return
    with contextlib.suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as file:
        file.write(str(_MOST_PROCESSES))
