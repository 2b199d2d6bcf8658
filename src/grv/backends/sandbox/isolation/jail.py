"""The jail of one run: prepared once by the zygote, put on by each child before it says "ready"."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping
from typing import Any

from . import kernel, landlock, seccomp

_MEBIBYTE = 1 << 20
_OPEN_FILES = 128
_STACK = 1 << 30
_LIMITED = (
    *(resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE),
    *(resource.RLIMIT_NOFILE, resource.RLIMIT_AS),
)


class Jail:
    """What keeps the children of a zygote in; `landlock` and `seccomp` are what is on."""

    def __init__(self, scratch: str, *, confined: bool) -> None:
        self.landlock, self.seccomp = 0, ""
        self.missing: dict[str, str] = {}
        self._filter: seccomp.Assembled | None = None
        self._rules: dict[bool, int] = {}
        self._allowed = {kind: resource.getrlimit(kind)[1] for kind in _LIMITED}
        self._bare = _address_space() if kernel.is_linux else 0
        if not confined:
            return
        if not kernel.is_linux:
            self.missing = {"landlock": "this is not Linux", "seccomp": "this is not Linux"}
            return
        try:
            version = kernel.landlock_version()
            paths = landlock.readable_paths()
            self._rules = {
                may_write: landlock.ruleset(version, paths, scratch if may_write else None)
                for may_write in (True, False)
            }
            self.landlock = version
        except OSError as exc:
            self.missing["landlock"] = str(exc)
        try:
            self._filter = seccomp.Assembled(kernel.machine())
            self.seccomp = kernel.machine()
        except OSError as exc:
            self.missing["seccomp"] = str(exc)
        self._try_out()

    def _try_out(self) -> None:
        """Count as on only what, in a child, refuses what it should."""
        if self.landlock and (problem := _tried(self._confine_files, _list_the_root)):
            self.missing["landlock"], self.landlock, self._rules = problem, 0, {}
        if self.seccomp and (problem := _tried(self._confine_calls, _keep_priority)):
            self.missing["seccomp"], self.seccomp, self._filter = problem, "", None

    def put_on(self, limits: Mapping[str, Any]) -> None:
        """Bind this process, for good. The order matters: the filter forbids what comes before."""
        self._limit(limits)
        if not kernel.is_linux:
            return
        kernel.no_new_privileges()
        if self._rules:
            self._confine_files(may_write=limits["files_mb"] > 0)
        if self._filter is not None:
            self._confine_calls()

    def _confine_files(self, may_write: bool = True) -> None:
        kernel.landlock_restrict(self._rules[may_write])
        for descriptor in self._rules.values():
            os.close(descriptor)

    def _confine_calls(self) -> None:
        assert self._filter is not None
        kernel.install_filter(self._filter.for_process(os.getpid()))

    def _limit(self, limits: Mapping[str, Any]) -> None:
        files = max(1, limits["files_mb"]) * _MEBIBYTE
        cpu = limits["cpu"]
        wanted = [
            (resource.RLIMIT_CORE, 0, 0),
            (resource.RLIMIT_CPU, cpu, cpu + 1),
            (resource.RLIMIT_FSIZE, files, files),
            (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
        ]
        if kernel.is_linux:  # elsewhere a limit on address space is refused, or not kept
            space = self._bare + limits["memory_mb"] * _MEBIBYTE
            wanted.append((resource.RLIMIT_AS, space, space))
        for kind, soft, hard in wanted:
            allowed = self._allowed[kind]
            if allowed != resource.RLIM_INFINITY:
                soft, hard = min(soft, allowed), min(hard, allowed)
            resource.setrlimit(kind, (soft, hard))


def _list_the_root() -> None:
    os.listdir("/")


def _keep_priority() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))


def _tried(confine: Callable[[], None], forbidden: Callable[[], None]) -> str:
    """Why a piece of the jail is not on; "" where a child that has it on is refused something."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, _problem(confine, forbidden).encode()[:500])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        problem = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return problem or (f"the child that tried it ended with {status}" if status else "")


def _problem(confine: Callable[[], None], forbidden: Callable[[], None]) -> str:
    try:
        kernel.no_new_privileges()
        forbidden()  # allowed so far, or its refusal would say nothing
        confine()
    except OSError as exc:
        return str(exc)
    try:
        forbidden()
    except PermissionError:
        return ""
    return "what it forbids is not refused"


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def widen_stack() -> bool:
    """Raise the main thread's stack limit for the next program; whether that changed anything.

    The kernel lays out memory around the limit that it finds when a program starts, so the zygote
    raises it and starts itself anew.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
    except (OSError, ValueError):
        return False
    return True
