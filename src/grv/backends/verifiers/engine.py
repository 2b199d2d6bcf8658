"""Where candidates are run: what an engine does, and the engine that runs them on this machine."""

from __future__ import annotations

import functools
import operator
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ...core.errors import UsageError, VerifierError
from ...core.values import Verdict
from ...files import error_line
from ..protocols import Finding, ParkedCall, Problem, Usage
from ..sandbox.limits import InForce, Isolation
from ..sandbox.run import SandboxDied
from .checks import Check
from .programs.findings import clean
from .suite import StageMemory
from .worker_pair import WorkerPair

_WAIT = 0.1  # seconds to wait for a free pair before checking for cancellation
_MOST_LOSSES = 3  # workers that one candidate may lose before its verdict is broken
CALLED_OFF = Finding(Verdict.BROKEN, "called off")


class NoWorkers(VerifierError):
    """There is nowhere to run a candidate at the moment. This says nothing about the candidate."""


class Interruptible(Protocol):
    """What runs a candidate, as far as it concerns another thread that calls it off."""

    def resume(self) -> None:
        """Clear the interruption."""

    def interrupt(self) -> None:
        """Stop the run."""


@dataclass(slots=True)
class Job:
    """One candidate in work; another thread may call it off."""

    running: Interruptible | None = None
    called_off: bool = False
    memory: StageMemory = field(default_factory=StageMemory)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, running: Interruptible) -> None:
        """Note what runs the candidate now."""
        with self._lock:
            running.resume()
            self.running = running
            if self.called_off:
                running.interrupt()

    def stop(self) -> None:
        """Note that nothing runs it now."""
        with self._lock:
            self.running = None

    def call_off(self) -> None:
        """Stop the candidate's run, now or when it starts."""
        with self._lock:
            self.called_off = True
            if self.running is not None:
                self.running.interrupt()


class Engine(Protocol):
    """Runs candidates. Any thread may call `judge`, several at once."""

    @property
    def workers(self) -> int:
        """The number of candidates that run at once. It may change."""
        ...

    @property
    def slots(self) -> int:
        """The number of calls of `judge` that are useful at once. It may change."""
        ...

    @property
    def isolation(self) -> Isolation:
        """The level at which programs run; there are no verdicts if it cannot be had."""
        ...

    @property
    def in_force(self) -> InForce:
        """How programs are confined; a UsageError if the level cannot be had."""
        ...

    def judge(self, job: Job, problem: Problem, check: Check, text: str, seed: int = 0) -> Finding:
        """The finding on a text. `check` is that of the problem, `seed` that of the first run."""
        ...

    def folders(self) -> list[Path]:
        """The directories that its workers use now on this machine."""
        ...

    def close(self) -> None:
        """End everything, also what is busy. Calls of `judge` return."""


class LocalEngine:
    """Runs candidates in worker processes of this machine.

    Args:
        workers: the number of candidates that run at once.
        isolation: how strictly programs are confined.
        attempts: the number of attempts until a verdict is broken.
    """

    def __init__(self, workers: int, isolation: Isolation, attempts: int = 3) -> None:
        if workers < 1 or attempts < 1:
            raise UsageError("workers and attempts must be at least 1")
        self.workers = self.slots = workers
        self.isolation = isolation.of_processes
        self._attempts = attempts
        self._free: queue.LifoQueue[WorkerPair] = queue.LifoQueue()
        self.pairs = [WorkerPair(isolation) for _ in range(workers)]
        for pair in reversed(self.pairs):
            self._free.put(pair)
        self._closed = False

    @property
    def in_force(self) -> InForce:
        """How programs are confined; a UsageError if this machine lacks the level."""
        return self.pairs[0].candidate.in_force

    def judge(self, job: Job, problem: Problem, check: Check, text: str, seed: int = 0) -> Finding:
        """The finding of as many runs as the check wants."""
        findings: list[Finding] = []
        for number in range(check.repeat):
            finding = self._try(job, check, text, seed + number)
            if finding.verdict is Verdict.BROKEN:
                return finding
            findings.append(finding)
        first = findings[0]
        usage = functools.reduce(operator.add, (finding.usage for finding in findings))
        stages = [stage.as_data() for finding in findings for stage in finding.stages]
        ran = {"stages": stages} if stages else {}
        verdicts = [finding.verdict for finding in findings]
        if len(set(verdicts)) > 1:
            evidence = {"verdicts": [verdict.value for verdict in verdicts], **ran}
            return Finding(Verdict.FAILED, "disagreement", evidence, usage)
        return replace(first, usage=usage, evidence={**first.evidence, **ran})

    def _try(self, job: Job, check: Check, text: str, seed: int) -> Finding:
        """The finding of one run; a broken run is repeated.

        A lost worker says nothing about the candidate, so it does not count as an attempt. But one
        candidate may lose only `_MOST_LOSSES` workers.
        """
        attempts = losses = 0
        while True:
            while (pair := None if self._is_off(job) else self._free_pair()) is None:
                if self._is_off(job):
                    return CALLED_OFF
            started = time.monotonic()
            job.start(pair)
            pair.memory = job.memory
            try:
                finding = check.how.judge(text, pair, seed)
                attempts += 1
            except SandboxDied as exc:
                losses += 1
                usage = Usage(seconds=time.monotonic() - started)
                finding = Finding(Verdict.BROKEN, str(exc), usage=usage)
            except (UsageError, VerifierError, ParkedCall):
                raise  # no isolation, no answer from a server, or a person decides
            except Exception as exc:  # an error in judging one candidate must not affect others
                attempts += 1
                pair.close()
                finding = fault(exc)
            finally:
                job.stop()
                self._free.put(pair)
            broken = finding.verdict is Verdict.BROKEN
            if not broken or attempts == self._attempts or losses == _MOST_LOSSES:
                return finding

    def folders(self) -> list[Path]:
        """The directories that the workers use now."""
        workers = [worker for pair in self.pairs for worker in pair.workers]
        return [worker.folder for worker in workers if worker.folder is not None]

    def _is_off(self, job: Job) -> bool:
        return job.called_off or self._closed

    def close(self) -> None:
        """Stop the workers, also those that are busy."""
        self._closed = True
        for _ in self.pairs:
            while (pair := self._free_pair()) is None:
                for each in self.pairs:
                    each.interrupt()
            pair.close()

    def _free_pair(self) -> WorkerPair | None:
        """A free pair, or None after a short wait."""
        try:
            return self._free.get(timeout=_WAIT)
        except queue.Empty:
            return None


def fault(exc: Exception) -> Finding:
    """The finding if judging one candidate raised an exception."""
    return Finding(Verdict.BROKEN, clean(f"the judge failed: {error_line(exc, named=True)}"))
