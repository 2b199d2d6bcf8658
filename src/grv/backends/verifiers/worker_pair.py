"""The two workers of one judging thread."""

from __future__ import annotations

import contextlib

from ..sandbox.limits import Isolation, Limits
from ..sandbox.run import Run, WorkerDied
from ..sandbox.worker import Worker

TEST_SECONDS = 10.0  # for the user's own test, in addition to the candidate's time
_MOST_TESTS = 500  # tests that one process runs before it is replaced


class WorkerPair:
    """The workers of one judging thread: one for candidates, one for tests."""

    def __init__(self, isolation: Isolation = Isolation.JAIL) -> None:
        self.candidate = Worker(isolation)
        self.test = Worker(isolation)
        self._tester: Run | None = None
        self._tested: object = None
        self._tests = 0
        self._ending = contextlib.ExitStack()

    def tester(self, check: object, memory_mb: int) -> Run:
        """A process for the test of a check, ready for a message.

        It is reused for the next candidates of the same check: the test is the user's code, and it
        receives only plain data from candidates. Each message runs in a new namespace.
        """
        fresh = self._tester is None or self._tested is not check or self._tests >= _MOST_TESTS
        if self._tester is None or fresh or not self._tester.is_waiting():
            self.dismiss()
            limits = Limits(TEST_SECONDS, memory_mb=memory_mb)
            self._tester = self._ending.enter_context(
                self.test.run("test", limits, tests=_MOST_TESTS)
            )
            self._tested, self._tests = check, 0
        self._tests += 1
        return self._tester

    def dismiss(self) -> None:
        """End the test's process, if there is one."""
        self._tester = self._tested = None
        with contextlib.suppress(WorkerDied):
            self._ending.close()

    def interrupt(self) -> None:
        """Stop both workers' runs, from another thread."""
        self.candidate.interrupt()
        self.test.interrupt()

    def resume(self) -> None:
        """Clear the interruption."""
        self.candidate.interrupted = self.test.interrupted = False

    def close(self) -> None:
        """End both workers."""
        self.dismiss()
        self.candidate.close()
        self.test.close()
