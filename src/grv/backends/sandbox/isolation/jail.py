"""The jail: the zygote prepares its steps, and each child takes them before it says "ready".

A forked child copies every page of memory that it touches, and Python code touches many to look up
names. So the zygote looks up all that a step needs.
"""

from __future__ import annotations

import functools
import os
import resource
from collections.abc import Callable, Mapping
from typing import Any

from . import kernel, landlock, seccomp

MEBIBYTE = 1 << 20
Step = Callable[[], object]  # raises OSError or ValueError if it fails
_OPEN_FILES = 128
_STACK = 1 << 30
_LIMITED = (
    resource.RLIMIT_CORE,
    resource.RLIMIT_CPU,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_AS,
)


class Jail:
    """The jail of a zygote's children.

    Args:
        scratch: the directory that they can write to.
        readable: another directory that they can read.
        confined: whether there is a jail at all, or only limits.

    Attributes:
        landlock: the kernel's Landlock version, 0 if Landlock does not work here.
        seccomp: the architecture of the filter, "" if seccomp does not work here.
        missing: each piece that does not work here, with the reason.
    """

    def __init__(self, scratch: str, *, readable: str, confined: bool) -> None:
        self.landlock = 0
        self.seccomp = ""
        self.missing: dict[str, str] = {}
        self._filter: seccomp.Assembled | None = None
        self._install: kernel.Prepared | None = None
        self._rules: dict[bool, int] = {}
        self._restrict: dict[bool, kernel.Prepared] = {}
        self._scratch = scratch
        self._readable = [*landlock.readable_paths(), readable]
        self._bare = _address_space() if kernel.is_linux else 0
        self._limits: Mapping[str, Any] = {}
        self._steps: list[Step] = []
        self._allowed = {kind: resource.getrlimit(kind)[1] for kind in _LIMITED}
        if not confined:
            return
        if not kernel.is_linux:
            self.missing = {"landlock": "this is not Linux", "seccomp": "this is not Linux"}
            return
        try:
            version = kernel.landlock_version()
            self._rules = {
                may_write: landlock.ruleset(version, self._readable, scratch if may_write else None)
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
            self.missing["landlock"] = problem
            self.landlock = 0
            self._rules = {}
        if self.seccomp and (problem := _tried(self._confine_calls, _keep_priority)):
            self.missing["seccomp"] = problem
            self.seccomp = ""
            self._filter = None

    def steps(self, limits: Mapping[str, Any]) -> list[Step]:
        """What confines the process that does it, permanently.

        The process must have given up new privileges. The filter is last: it forbids the others.
        """
        if limits != self._limits:
            steps = self._limiting(limits)
            if self._rules:
                may_write = limits["files_mb"] > 0
                with_group = functools.partial(self._confine_but_for_group, may_write=may_write)
                reads_group = limits.get("reads_cgroup", False)
                steps.append(with_group if reads_group else self._restrict[may_write])
            if self._filter is not None:
                steps.append(self._confine_calls)
            self._limits = limits
            self._steps = steps
        return self._steps

    def rehearse(self) -> None:
        """Do as much of a step as does not confine this process."""
        if self._filter is not None:
            self._filter.fill_in(os.getpid())

    def _confine_files(self) -> None:
        self._restrict[True]()

    def _confine_but_for_group(self, *, may_write: bool) -> None:
        """As the prepared rules, but with the limits of this process's control groups readable."""
        readable = [*self._readable, *landlock.group_limit_paths()]
        scratch = self._scratch if may_write else None
        kernel.landlock_restricting(landlock.ruleset(self.landlock, readable, scratch))()

    def _confine_calls(self) -> None:
        assert self._filter is not None
        assert self._install is not None
        self._filter.fill_in(os.getpid())
        self._install()

    def _limiting(self, limits: Mapping[str, Any]) -> list[Step]:
        steps: list[Step] = []
        files = max(1, limits["files_mb"]) * MEBIBYTE
        cpu = limits["cpu"]
        wanted = [
            (resource.RLIMIT_CORE, 0, 0),
            (resource.RLIMIT_CPU, cpu, cpu + 1),
            (resource.RLIMIT_FSIZE, files, files),
            (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
        ]
        if kernel.is_linux:  # other systems refuse or ignore a limit on address space
            space = self._bare + limits["memory_mb"] * MEBIBYTE
            wanted.append((resource.RLIMIT_AS, space, space))
        for kind, soft, hard in wanted:
            allowed = self._allowed[kind]
            if allowed != resource.RLIM_INFINITY:
                soft = min(soft, allowed)
                hard = min(hard, allowed)
            steps.append(functools.partial(resource.setrlimit, kind, (soft, hard)))
        return steps


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
