"""The jail of DuckDB's queries: it can read what its control groups may use, and no more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from grv.backends.sandbox import plain
from grv.backends.sandbox.isolation.landlock import group_limit_paths
from grv.backends.sandbox.limits import RunLimits
from grv.backends.sandbox.worker import Worker
from grv.backends.verifiers.programs.checks import call, load, loading

PROGRAM = """
def f(paths):
    opened = []
    for path in paths:
        try:
            open(path, "rb").close()
            opened.append(path)
        except OSError:
            pass
    return opened
"""


def opened(paths: list[str], *, reads_cgroup: bool) -> list[str]:
    limits = RunLimits()
    order = loading(PROGRAM, "f", limits, 0)
    with (
        Worker() as worker,
        worker.run("candidate", limits, first=order, more={"reads_cgroup": reads_cgroup}) as run,
    ):
        assert load(run, "f", limits) is None
        run.clock.begin()
        reply: Any = call(run, {"args": plain.encode([paths])})
        found: list[str] = plain.decode(reply["value"])
        return found


def test_only_the_limits_of_its_own_groups_are_readable() -> None:
    own = group_limit_paths()
    if not own:
        pytest.skip("this system has no control groups")
    others = ["/proc/self/status", "/proc/self/environ", "/proc/1/cgroup", "/etc/passwd"]
    others += [f"/proc/{os.getpid()}/cgroup", "/proc/meminfo", "/sys/fs/cgroup/cgroup.procs"]
    others += [os.path.join(os.path.dirname(path), "cgroup.procs") for path in own[1:]]
    others += [path for path in map(str, Path("/sys/fs/cgroup").glob("*/tasks"))]
    assert opened([*own, *others], reads_cgroup=True) == own
    assert opened([*own, *others], reads_cgroup=False) == []
