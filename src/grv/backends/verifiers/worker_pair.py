"""The workers of one judging thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from ..sandbox.limits import Isolation, RunLimits
from ..sandbox.run import Run, SandboxDied
from ..sandbox.tool_worker import ToolWorker
from ..sandbox.worker import Worker
from .suite import StageMemory

TEST_SECONDS = 10.0  # for the user's own test, in addition to the candidate's time


class WorkerPair:
    """The workers of one judging thread: for candidates and tests, in Python and in any language.

    Each starts when it is first used.

    Attributes:
        isolation: how strictly candidates are confined, with or without containers.
        candidate: runs candidates in Python.
        test: runs tests in Python.
        tools: builds and runs candidates in any language.
        checker: builds and runs what judges them. No candidate is ever in its box.
        is_called_off: set if what runs elsewhere must stop.
        memory: the stages that the candidate in work has passed.
    """

    def __init__(self, isolation: Isolation = Isolation.JAIL) -> None:
        self.isolation = isolation
        self.is_called_off = threading.Event()
        level = isolation.of_processes
        self.candidate = Worker(level)
        self.test = Worker(level)
        self.tools = ToolWorker(level)
        self.checker = ToolWorker(level)
        self.memory = StageMemory()
        self._spare: Run | None = None  # a process for the next test
        self._spare_mb = 0
        self._ending = contextlib.ExitStack()

    @contextlib.contextmanager
    def tester(self, memory_mb: int) -> Iterator[Run]:
        """A new process for one test of one candidate, which is ready for a message.

        It is forked from the clean zygote while candidates before it run, and ends with the test:
        nothing that a test leaves behind affects another candidate.
        """
        run = self._spare
        self._spare = None
        if run is None or self._spare_mb != memory_mb or not self._is_ready(run):
            self._dismiss()
            run = self._start(memory_mb, wait=True)
        try:
            yield run
        finally:
            self._dismiss()
            with contextlib.suppress(SandboxDied):
                self._spare = self._start(memory_mb, wait=False)
                self._spare_mb = memory_mb

    def _start(self, memory_mb: int, *, wait: bool) -> Run:
        limits = RunLimits(TEST_SECONDS, memory_mb=memory_mb)
        return self._ending.enter_context(self.test.run("test", limits, wait=wait))

    def _is_ready(self, run: Run) -> bool:
        try:
            run.wait_until_ready()
        except SandboxDied:
            return False
        return run.is_waiting()

    def _dismiss(self) -> None:
        """End the test's process, if there is one."""
        self._spare = None
        with contextlib.suppress(SandboxDied):
            self._ending.close()

    @property
    def workers(self) -> tuple[Worker, ...]:
        """All workers."""
        return (self.candidate, self.test, self.tools, self.checker)

    def interrupt(self) -> None:
        """Stop the workers' runs, from another thread."""
        self.is_called_off.set()
        for worker in self.workers:
            worker.interrupt()

    def resume(self) -> None:
        """Clear the interruption."""
        self.is_called_off.clear()
        for worker in self.workers:
            worker.interrupted = False

    def close(self) -> None:
        """End the workers."""
        self._dismiss()
        for worker in self.workers:
            worker.close()
