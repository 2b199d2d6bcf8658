"""Builds a program in the jail, once, and says what the tools said."""

from __future__ import annotations

import dataclasses
from typing import Any

from ....text import checksum
from ...protocols import Finding
from ...sandbox.isolation.tool_jail import BUILT, WORK
from ...sandbox.limits import End, ExitStatus, Isolation, RunLimits
from ...sandbox.run import Run
from ...sandbox.tool_worker import Step, ToolWorker
from ..programs.findings import failed, silent
from .toolchains import BuildPlan

# What a build may use; more if the check's own limits are larger.
BUILDING = RunLimits(seconds=30.0, memory_mb=2048, output_mb=1.0, files_mb=256, threads=256)
_SAID = 900  # characters of the tools' messages that are kept


def build(worker: ToolWorker, plan: BuildPlan, source: str, limits: RunLimits) -> Finding | None:
    """Build a program; the finding if that fails, None if it can be run.

    What was built stays until another program is built: no run can change it. Without a jail one
    could, so it is built anew.
    """
    _ = worker.in_force  # a new zygote has built nothing
    name = checksum(repr((plan, source)))
    if worker.has_built == name and worker.isolation is not Isolation.UNSAFE:
        return None
    allowed = _larger(BUILDING, limits)
    steps = plan.build or (Step(()),)  # without a build, the file is only written
    for number, step in enumerate(steps):
        files = {**plan.files, plan.source: source} if number == 0 else {}
        with worker.step(
            "build", step, allowed, files=files, joins=True, clears=number == 0
        ) as run:
            finding = ended(worker, run, allowed, "does not compile", test="while building")
        if finding is not None:
            return finding
    worker.has_built = name
    return None


def ended(
    worker: ToolWorker, run: Run, limits: RunLimits, reason: str, **evidence: Any
) -> Finding | None:
    """Wait for the end of a run; the finding if it did not end with exit code 0."""
    status = wait(run)
    shown = said(worker, run) | evidence
    if isinstance(status, End):
        return silent(run, status, limits.seconds, **shown)
    if status.exit_code == 0:
        return None
    if status.exit_code is None or status.cause:
        return silent(run, End.CLOSED, limits.seconds, **shown)
    return failed(reason, exit_code=status.exit_code, **shown)


def wait(run: Run) -> ExitStatus | End:
    """Read what a run prints until it ends; how it ended, or why it did not."""
    end = run.drain()
    return run.wait_for_end() if end is End.CLOSED else end


def said(worker: ToolWorker, run: Run) -> dict[str, str]:
    """What a run has printed, as evidence. The folders of the jail are left out: they change."""
    shown = {}
    for name, printed in (("messages", bytes(run.output)), ("stderr", run.errors)):
        text = printed.decode("utf-8", "replace")
        for folder in (BUILT, WORK):
            text = text.replace(f"{worker.path(folder)}/".replace("//", "/"), "")
        if text:
            shown[name] = _start_and_end(text)
    return shown


def _start_and_end(text: str) -> str:
    if len(text) <= _SAID:
        return text
    return f"{text[: _SAID // 2]}\n...\n{text[-_SAID // 2 :]}"


def _larger(one: RunLimits, other: RunLimits) -> RunLimits:
    """The larger of each limit."""
    changes = {}
    for item in dataclasses.fields(RunLimits):
        values = (getattr(one, item.name), getattr(other, item.name))
        if None not in values:
            changes[item.name] = max(values)
    return one.with_(changes)
