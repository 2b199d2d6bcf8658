"""The jail: the zygote prepares it once, and each child applies it before it says "ready"."""

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
    """The jail of a zygote's children.

    Attributes:
        landlock: the kernel's Landlock version, 0 if Landlock does not work here.
        seccomp: the architecture of the filter, "" if seccomp does not work here.
        missing: each piece that does not work here, with the reason.
    """

    def __init__(self, scratch: str, *, confined: bool) -> None:
        self.landlock, self.seccomp = 0, ""
        self.missing: dict[str, str] = {}
        self._filter: seccomp.Assembled | None = None
        self._install: kernel.Prepared | None = None
        self._rules: dict[bool, int] = {}
        self._restrict: dict[bool, kernel.Prepared] = {}
        self._bare = _address_space() if kernel.is_linux else 0
        self._allowed = {kind: resource.getrlimit(kind)[1] for kind in _LIMITED}
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
            self._restrict = {
                may_write: kernel.landlock_restricting(rules)
                for may_write, rules in self._rules.items()
            }
            self.landlock = version
        except OSError as exc:
            self.missing["landlock"] = str(exc)
        try:
            self._filter = seccomp.Assembled(kernel.machine())
            self._install = kernel.filtering(self._filter.code)
            self.seccomp = kernel.machine()
        except OSError as exc:
            self.missing["seccomp"] = str(exc)
        self._try_out()

    def _try_out(self) -> None:
        """Count a piece as working only if a child that has it is refused something."""
        if self.landlock and (problem := _tried(self._confine_files, lambda: os.listdir("/"))):
            self.missing["landlock"], self.landlock, self._rules = problem, 0, {}
        if self.seccomp and (problem := _tried(self._confine_calls, _keep_priority)):
            self.missing["seccomp"], self.seccomp, self._filter = problem, "", None

    def apply(self, limits: Mapping[str, Any]) -> None:
        """Confine this process, permanently. The filter is last: it forbids the other steps."""
        self._limit(limits)
        if not kernel.is_linux:
            return
        kernel.no_new_privileges()
        if self._rules:
            self._confine_files(may_write=limits["files_mb"] > 0)
        if self._filter is not None:
            self._confine_calls()

    def _confine_files(self, may_write: bool = True) -> None:
        self._restrict[may_write]()
        for descriptor in self._rules.values():
            os.close(descriptor)

    def _confine_calls(self) -> None:
        assert self._filter is not None
        assert self._install is not None
        self._filter.fill_in(os.getpid())
        self._install()

    def _limit(self, limits: Mapping[str, Any]) -> None:
        files = max(1, limits["files_mb"]) * _MEBIBYTE
        cpu = limits["cpu"]
        wanted = [
            (resource.RLIMIT_CORE, 0, 0),
            (resource.RLIMIT_CPU, cpu, cpu + 1),
            (resource.RLIMIT_FSIZE, files, files),
            (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
        ]
        if kernel.is_linux:  # other systems refuse or ignore a limit on address space
            space = self._bare + limits["memory_mb"] * _MEBIBYTE
            wanted.append((resource.RLIMIT_AS, space, space))
        for kind, soft, hard in wanted:
            allowed = self._allowed[kind]
            if allowed != resource.RLIM_INFINITY:
                soft, hard = min(soft, allowed), min(hard, allowed)
            resource.setrlimit(kind, (soft, hard))


def _keep_priority() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))


def _tried(confine: Callable[[], None], forbidden: Callable[[], object]) -> str:
    """Why a piece of the jail does not work; "" if it makes the kernel refuse `forbidden`."""

    def attempt() -> str:
        kernel.no_new_privileges()
        forbidden()  # must work without the piece, or its refusal would prove nothing
        confine()
        try:
            forbidden()
        except PermissionError:
            return ""
        return "what it forbids is not refused"

    return kernel.problem_in_child(attempt)


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def widen_stack() -> bool:
    """Raise the stack limit for the main thread of the next program; whether it changed.

    The kernel arranges a program's memory around the limit that holds when the program starts. So
    the zygote raises the limit and then starts itself again.
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
