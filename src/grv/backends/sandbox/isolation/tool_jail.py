"""The jail of programs in any language, and of the tools that build them.

It differs from the jail of Python programs (jail.py) in three ways. A process may replace itself by
a program, but only by one that it was granted. Tools may start processes, which cannot leave their
process group. And there is no limit on address space, which the Java machine, node and Go reserve
by the gigabyte: the zygote watches resident memory instead (tools.py).
"""

from __future__ import annotations

import functools
import glob
import os
import resource
from collections.abc import Mapping
from typing import Any

from . import kernel, landlock, seccomp
from .jail import MEBIBYTE, Jail, Step

_OPEN_FILES = {"program": 256, "build": 1024, "command": 1024}  # of one process
_STACK = 256 << 20
_SIGNALS_SCOPED = 6  # the Landlock version from which signals do not leave the jail
_MOST_RULES = 32
_LOADERS = ("/lib64/ld-linux*", "/lib/ld-linux*", "/lib/ld-musl*")
BUILT = "built"  # in the box: what was built; only a build writes there
WORK = "work"  # in the box: the scratch directory of each run
GRANTED = ("readable", "executable", "writable")  # what a run says that it may use
# The filter of each kind of run (seccomp.py).
PROFILES = {"build": "tools", "command": "tools", "program": "program"}


class ToolJail(Jail):
    """The jail of one box, in which programs are built and run."""

    def __init__(self, box: str, *, confined: bool, has_own_numbers: bool) -> None:
        super().__init__(os.path.join(box, WORK), readable=box, confined=confined)
        self._built = os.path.join(box, BUILT)
        self._work = os.path.join(box, WORK)
        self._loaders = sorted({os.path.realpath(p) for pat in _LOADERS for p in glob.glob(pat)})
        self._granted: dict[tuple[Any, ...], int] = {}
        self._filters: dict[str, seccomp.Assembled] = {}
        if self.seccomp:
            names = set(PROFILES.values())
            self._filters = {name: seccomp.Assembled(kernel.machine(), name) for name in names}
        if self.landlock and self.landlock < _SIGNALS_SCOPED and not has_own_numbers:
            lacking = f"no process namespace, and Landlock {self.landlock} does not confine them"
            self.missing["signals confined"] = lacking

    def steps(self, limits: Mapping[str, Any]) -> list[Step]:
        """What confines the process that does it, permanently; the filter is last."""
        steps = self._limiting(limits)
        if self.landlock:
            steps.append(kernel.landlock_restricting(self._ruleset(limits)))
        if self.seccomp:
            chosen = self._filters[PROFILES[limits["mode"]]]
            steps.append(functools.partial(_filter, chosen))
        return steps

    def _ruleset(self, limits: Mapping[str, Any]) -> int:
        """The rules of a run. The zygote keeps them: most runs are like an earlier one."""
        builds = limits["mode"] == "build"
        writes = limits["files_mb"] > 0 or builds
        readable = tuple(limits["readable"])
        executable = tuple(limits["executable"])
        writable = tuple(limits["writable"])
        wanted = (builds, writes, readable, executable, writable)
        if wanted not in self._granted:
            while len(self._granted) >= _MOST_RULES:
                os.close(self._granted.pop(next(iter(self._granted))))
            started = [*self._loaders, *executable]
            self._granted[wanted] = landlock.ruleset(
                self.landlock,
                [*landlock.system_paths(), *readable],
                self._work if writes else None,
                own=[self._built, *writable] if builds else writable,
                executable=started if builds else [self._built, *started],
            )
        return self._granted[wanted]

    def _limiting(self, limits: Mapping[str, Any]) -> list[Step]:
        files = max(1, limits["files_mb"]) * MEBIBYTE
        cpu = limits["cpu"]
        open_files = _OPEN_FILES[limits["mode"]]
        wanted = [
            (resource.RLIMIT_CORE, 0, 0),
            (resource.RLIMIT_CPU, cpu, cpu + 1),
            (resource.RLIMIT_FSIZE, files, files),
            (resource.RLIMIT_NOFILE, open_files, open_files),
            (resource.RLIMIT_STACK, _STACK, _STACK),
        ]
        steps: list[Step] = []
        for kind, soft, hard in wanted:
            allowed = resource.getrlimit(kind)[1]
            if allowed != resource.RLIM_INFINITY:
                soft = min(soft, allowed)
                hard = min(hard, allowed)
            steps.append(functools.partial(resource.setrlimit, kind, (soft, hard)))
        return steps


def _filter(chosen: seccomp.Assembled) -> None:
    chosen.fill_in(os.getpid())
    kernel.filtering(chosen.code)()
