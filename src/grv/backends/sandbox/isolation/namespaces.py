"""Namespaces, once for a zygote and all its children.

An empty network, process numbers of their own, and a scratch directory in memory that is bounded
and goes away by itself.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping

from . import kernel

WANTED: Mapping[str, int] = {
    "user": kernel.CLONE_NEWUSER,
    "pid": kernel.CLONE_NEWPID,
    "net": kernel.CLONE_NEWNET,
    "ipc": kernel.CLONE_NEWIPC,
    "uts": kernel.CLONE_NEWUTS,
    "mount": kernel.CLONE_NEWNS,
}
_SCRATCH = "size=512m,nr_inodes=4096,mode=700"


def available(box: str) -> tuple[tuple[str, ...], str]:
    """The namespaces that can be had here, and which cannot and why; tried in a child."""
    problem = ""
    for without in ((), ("mount",), ("user",), ("user", "mount")):
        if "user" in without and os.getuid() != 0:
            continue  # root may do without, where user namespaces are switched off
        names = tuple(name for name in WANTED if name not in without)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                enter(names, box)
            except OSError as exc:
                os.write(writing, str(exc).encode()[:200])
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            failure = pipe.read().decode(errors="replace")
        os.waitpid(child, 0)
        if not failure:
            return names, f"{', '.join(without)}: {problem}" if without else ""
        problem = problem or failure
    return (), problem


def enter(names: tuple[str, ...], box: str) -> None:
    """Move this process to new namespaces; that of processes holds for its children only."""
    uid, gid = os.getuid(), os.getgid()
    flags = 0
    for name in names:
        flags |= WANTED[name]
    kernel.unshare(flags)
    if "user" in names:
        # Inside, the user keeps the number it had, and nobody else has one.
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{file}", "w") as handle:
                handle.write(text)
    if "mount" in names:
        kernel.mount_private()
        kernel.mount_memory(box, _SCRATCH)


def become_first(afterwards: Callable[[], None]) -> None:
    """Go on as the first process of the new namespace, while the one that called waits for it.

    When the first process of a namespace ends, the kernel kills all others in it. Then the one that
    waited does what is to be done afterwards.
    """
    child = os.fork()
    if child:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        kernel.close_from(0)
        _, status = os.waitpid(child, 0)
        afterwards()
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent(0)  # a parent outside has no number in here
