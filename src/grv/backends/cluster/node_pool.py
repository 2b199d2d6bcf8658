"""What runs on a node of the cluster: a pool of sandbox workers, as an actor of Ray."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import sys
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from ...core.errors import BackendError, GrvError, UsageError
from ...text import checksum
from ..protocols import Finding, Problem
from ..sandbox.limits import InForce, Isolation, RunLimits
from ..sandbox.run import SandboxDied
from ..sandbox.worker import sweep
from ..verifiers.checks import Check, parse_check
from ..verifiers.engine import Job, LocalEngine, fault
from ..verifiers.suite import TestOrder

KEPT = 256  # problems that a node keeps, so that a check is sent to it once


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How a node verifies: as the same options do on this machine."""

    isolation: Isolation = Isolation.JAIL
    limits: RunLimits = RunLimits()  # noqa: RUF009 (a frozen value)
    attempts: int = 3
    folder: str = ""  # the current directory, if the node has it
    order_tests: TestOrder = TestOrder.LEARNED


@dataclass(frozen=True, slots=True)
class Hello:
    """What a node says of itself: how it confines programs, or why it cannot."""

    version: str
    in_force: InForce | None
    weakness: str = ""


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """One candidate to verify.

    Attributes:
        number: which request it is, of those of the driver.
        check: the checksum of the problem's check, under which the node keeps the problem.
        text: the candidate.
        problem: None if the node should have it.
        seed: that of the first run.
    """

    number: int
    check: str
    text: str
    problem: Problem | None = None
    seed: int = 0

    @property
    def seal(self) -> tuple[int, str, str]:
        """What a reply must repeat: the request's number, and checksums of check and text."""
        return self.number, self.check, checksum(self.text)


@dataclass(frozen=True, slots=True)
class NodeReply:
    """The reply to a request: a finding, an error to raise, or neither if the problem is missing.

    The seal is made from the request as the node received it.
    """

    seal: tuple[int, str, str]
    finding: Finding | None = None
    error: GrvError | None = None


def installed() -> str:
    """What is installed here; nodes must have the same."""
    version = sys.modules[__name__.partition(".")[0]].__version__
    return f"grv {version} on Python {'.'.join(platform.python_version_tuple()[:2])}"


class NodePool:
    """The pool of one node. Ray calls its methods in one event loop.

    Args:
        workers: the number of candidates that run at once.
        settings: how they are verified.
    """

    def __init__(self, workers: int, settings: NodeSettings) -> None:
        sweep()
        if settings.folder:
            with contextlib.suppress(OSError):
                os.chdir(settings.folder)
        self._settings = settings
        self._workers = workers
        self._engine = LocalEngine(workers, settings.isolation, settings.attempts)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="verify")
        self._problems: OrderedDict[str, tuple[Problem, Check]] = OrderedDict()
        self._jobs: dict[int, Job] = {}

    async def hello(self) -> Hello:
        """Try out the isolation."""
        version = installed()
        loop = asyncio.get_running_loop()
        try:
            force = await loop.run_in_executor(self._threads, lambda: self._engine.in_force)
        except (UsageError, SandboxDied) as exc:
            return Hello(version, None, str(exc))
        return Hello(version, force)

    async def judge(self, request: NodeRequest) -> NodeReply:
        """Verify one candidate."""
        seal = request.seal
        if request.problem is not None:
            settings = self._settings
            check = parse_check(request.problem, settings.limits, settings.order_tests)
            self._problems[request.check] = request.problem, check
            if len(self._problems) > KEPT:
                self._problems.popitem(last=False)
        kept = self._problems.get(request.check)
        if kept is None:
            return NodeReply(seal)
        job = self._jobs[request.number] = Job()
        loop = asyncio.get_running_loop()
        work = partial(self._engine.judge, job, *kept, request.text, request.seed)
        try:
            return NodeReply(seal, await loop.run_in_executor(self._threads, work))
        except (UsageError, BackendError) as exc:
            return NodeReply(seal, error=exc)
        except Exception as exc:  # an error with one candidate must not affect others
            return NodeReply(seal, fault(exc))
        finally:
            del self._jobs[request.number]

    async def call_off(self, number: int) -> None:
        """Stop the program of a request."""
        if (job := self._jobs.get(number)) is not None:
            job.call_off()

    async def examine(self, verbose: bool) -> tuple[bool, Sequence[str]]:
        """Run right programs and attacks; whether all is well, and the lines that say so."""
        from ..attacks.examination import examine

        lines: list[str] = []
        loop = asyncio.get_running_loop()
        isolation = self._settings.isolation
        workers = self._workers
        well = await loop.run_in_executor(
            None, lambda: examine(isolation, workers, lines.append, verbose)
        )
        return well, lines

    async def close(self) -> None:
        """End the workers, also those that are busy."""
        for job in self._jobs.values():
            job.call_off()
        await asyncio.get_running_loop().run_in_executor(None, self._engine.close)
