"""The verifier: a pool of workers that gives candidates their verdicts.

One for all kinds of checks; `await verify(problem, draft)` in a search, `find` or `find_all` in a
plain loop.
"""

from __future__ import annotations

import asyncio
import collections
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ...core.errors import UsageError, VerifierError
from ...core.values import Verdict
from ...files import error_line
from ..protocols import Draft, Finding, Problem, Usage
from ..sandbox.limits import InForce, Isolation, Limits
from ..sandbox.run import WorkerDied
from ..sandbox.worker import sweep
from .checks import Check, parse_check
from .command import check_allowed
from .programs.findings import clean
from .verdict_store import VerdictStore
from .worker_pair import WorkerPair

_PARSED = 256  # problems whose checks are kept ready
_KNOWN = 20_000  # findings that are kept for candidates with equal keys
_WHILE = 0.1  # seconds that a free pair is waited for before one looks around
_MOST_LOSSES = 3  # workers that one candidate may lose before its verdict is broken
Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, with the key of the candidate's class where it has one."""

    finding: Finding
    key: str | None


@dataclass(slots=True)
class _Job:
    """One candidate on its way; may be called off from another thread."""

    pair: WorkerPair | None = None
    called_off: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, pair: WorkerPair) -> None:
        with self._lock:
            pair.resume()
            self.pair = pair
            if self.called_off:
                pair.interrupt()

    def stop(self) -> None:
        with self._lock:
            self.pair = None

    def call_off(self) -> None:
        with self._lock:
            self.called_off = True
            if self.pair is not None:
                self.pair.interrupt()


@dataclass(slots=True)
class _Prepared:
    """A problem with its check."""

    problem: Problem
    check: Check


@dataclass(frozen=True, slots=True)
class _Known:
    """A finding, and the identity of the program that was run for it."""

    finding: Finding
    identity: str

    def holds_for(self, identity: str) -> bool:
        """Whether it is also the finding on a program with this identity and an equal key.

        Equal keys share failures. A pass belongs to the very program that ran.
        """
        verdict = self.finding.verdict
        return verdict is Verdict.FAILED or (
            verdict is Verdict.PASSED and self.identity == identity
        )


class CheckVerifier:
    """Gives candidates their verdicts, by the check of their problem.

    Args:
        workers: how many candidates are verified at once; one a processor by default.
        isolation: how far programs are kept from the machine.
        limits: what programs may use where their check does not say.
        attempts: how often a candidate is tried before its verdict is broken. Losing a worker is
            not an attempt; after three losses the verdict is broken as well.
        store: where verdicts are remembered across runs.
        allow_commands: whether checks of kind "command" may run, which nothing confines. Never
            under strict isolation.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        isolation: Isolation = Isolation.JAIL,
        limits: Limits | None = None,
        attempts: int = 3,
        store: VerdictStore | None = None,
        allow_commands: bool = False,
    ) -> None:
        count = workers if workers is not None else _processors()
        if count < 1 or attempts < 1:
            raise UsageError("there must be at least one worker and one attempt")
        self.workers = count
        self._isolation, self._allow_commands = isolation, allow_commands
        self._limits = limits or Limits()
        self._attempts = attempts
        self._store = store
        self._free: queue.LifoQueue[WorkerPair] = queue.LifoQueue()
        self._all = [WorkerPair(isolation) for _ in range(count)]
        for pair in reversed(self._all):
            self._free.put(pair)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="verify")
        self._prepared: collections.OrderedDict[str, _Prepared] = collections.OrderedDict()
        self._known: collections.OrderedDict[tuple[str, str], Future[_Known]]
        self._known = collections.OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        sweep()

    @property
    def in_force(self) -> InForce:
        """What keeps programs in; a UsageError where the level cannot be had here."""
        return self._all[0].candidate.in_force

    def prepare(self, problem: Problem) -> Check:
        """The check of a problem, parsed; a UsageError where its record is wrong."""
        return self._prepare(problem).check

    def key(self, problem: Problem, draft: Draft) -> str | None:
        """The key of a draft: drafts with equal keys fail together. None is in no class."""
        return self.prepare(problem).how.key(draft.text)

    def _prepare(self, problem: Problem) -> _Prepared:
        with self._lock:
            found = self._prepared.get(problem.id)
            if found is not None and found.problem == problem:
                self._prepared.move_to_end(problem.id)
                return found
        check_allowed(problem, allowed=self._allow_commands, isolation=self._isolation)
        prepared = _Prepared(problem, parse_check(problem, self._limits))
        with self._lock:
            self._prepared[problem.id] = prepared
            while len(self._prepared) > _PARSED:
                self._prepared.popitem(last=False)
        return prepared

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding on a draft. Cancelled, it ends the run."""
        job = _Job()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, self._find, job, problem, draft.text)
        try:
            return (await asyncio.shield(future)).finding
        except asyncio.CancelledError:
            job.call_off()
            raise

    def find(self, problem: Problem, text: str) -> Finding:
        """The finding on a text, from a plain loop or thread."""
        return self._judged(_Job(), problem, text).finding

    def find_all(self, jobs: Iterable[tuple[Tag, Problem, str]]) -> Iterator[tuple[Tag, Judged]]:
        """The findings on many texts, each with its tag, as they come.

        Takes from `jobs` no more than the workers need. When the caller stops early, what is going
        on is called off.
        """
        running: dict[Future[Judged], tuple[Tag, _Job]] = {}
        source = iter(jobs)
        more = True
        try:
            while more or running:
                while more and len(running) < 2 * self.workers:
                    try:
                        tag, problem, text = next(source)
                    except StopIteration:
                        more = False
                        break
                    job = _Job()
                    running[self._threads.submit(self._judged, job, problem, text)] = (tag, job)
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    tag, _ = running.pop(future)
                    yield tag, future.result()
        finally:
            for future, (_, job) in running.items():
                future.cancel()
                job.call_off()

    def _judged(self, job: _Job, problem: Problem, text: str) -> Judged:
        """Like `_find`, but a server that does not answer makes the finding broken."""
        try:
            return self._find(job, problem, text)
        except VerifierError as exc:
            return Judged(Finding(Verdict.BROKEN, str(exc)), None)

    def _find(self, job: _Job, problem: Problem, text: str) -> Judged:
        prepared = self._prepare(problem)
        how = prepared.check.how
        try:
            key, identity = how.key(text), how.identity(text)
        except Exception as exc:  # an error while reading one candidate concerns it alone
            return Judged(_fault(exc), None)
        if key is None:
            return Judged(self._ask(job, prepared, text), None)

        digest = prepared.check.digest
        finding = None if self._store is None else self._store.get(digest, key, identity)
        if finding is None:

            def ask() -> Finding:
                return self._ask_and_store(job, prepared, text, key, identity)

            finding = self._once((digest, key), identity, ask)
        return Judged(finding, key)

    def _once(self, place: tuple[str, str], identity: str, ask: Callable[[], Finding]) -> Finding:
        """The finding that is known at a place, where it holds; else a new one."""
        mine: Future[_Known] = Future()
        with self._lock:
            earlier = self._known.setdefault(place, mine)
            self._known.move_to_end(place)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        if earlier is not mine:
            known = earlier.result()
            if known.holds_for(identity):
                return replace(known.finding, usage=Usage())
            if known.finding.verdict is Verdict.PASSED:  # another program of the same key
                return self._once((place[0], identity), identity, ask)
            return ask()
        finding = Finding(Verdict.BROKEN, "called off")
        try:
            finding = ask()
            return finding
        finally:
            if finding.verdict is Verdict.BROKEN:
                with self._lock:
                    self._known.pop(place, None)
            mine.set_result(_Known(finding, identity))

    def _ask_and_store(
        self, job: _Job, prepared: _Prepared, text: str, key: str, identity: str
    ) -> Finding:
        finding = self._ask(job, prepared, text)
        if job.called_off:
            return Finding(Verdict.BROKEN, "called off")
        if self._store is not None:
            self._store.put(prepared.check.digest, key, identity, finding)
        return finding

    def _ask(self, job: _Job, prepared: _Prepared, text: str) -> Finding:
        """The finding, asked as often as the check says."""
        findings: list[Finding] = []
        for seed in range(prepared.check.repeat):
            finding = self._try(job, prepared.check, text, seed)
            if finding.verdict is Verdict.BROKEN:
                return finding
            findings.append(finding)
        first = findings[0]
        verdicts = [finding.verdict for finding in findings]
        if len(set(verdicts)) > 1:
            evidence = {"verdicts": [verdict.value for verdict in verdicts]}
            return Finding(Verdict.FAILED, "disagreement", evidence, _sum(findings))
        return replace(first, usage=_sum(findings))

    def _try(self, job: _Job, check: Check, text: str, seed: int) -> Finding:
        """The finding of one run, tried again where it is broken.

        A worker that is lost says nothing about the candidate, so that is not one of its attempts.
        But a candidate may not lose workers without end.
        """
        attempts = losses = 0
        while True:
            while (pair := None if self._is_off(job) else self._free_pair()) is None:
                if self._is_off(job):
                    return Finding(Verdict.BROKEN, "called off")
            started = time.monotonic()
            job.start(pair)
            try:
                finding = check.how.judge(text, pair, seed)
                attempts += 1
            except WorkerDied as exc:
                losses += 1
                usage = Usage(seconds=time.monotonic() - started)
                finding = Finding(Verdict.BROKEN, str(exc), usage=usage)
            except (UsageError, VerifierError):  # no isolation, or no answer from a server
                raise
            except Exception as exc:  # an error while judging one candidate concerns it alone
                attempts += 1
                pair.close()
                finding = _fault(exc)
            finally:
                job.stop()
                self._free.put(pair)
            broken = finding.verdict is Verdict.BROKEN
            if not broken or attempts == self._attempts or losses == _MOST_LOSSES:
                return finding

    def folders(self) -> list[Path]:
        """The directories that its workers use now."""
        workers = [worker for pair in self._all for worker in (pair.candidate, pair.test)]
        return [worker.folder for worker in workers if worker.folder is not None]

    def _is_off(self, job: _Job) -> bool:
        return job.called_off or self._closed

    def close(self) -> None:
        """End the workers. What is going on is broken off."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for _ in self._all:
            while (pair := self._free_pair()) is None:
                for each in self._all:
                    each.interrupt()
            pair.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _free_pair(self) -> WorkerPair | None:
        """A free pair; None where there is none for a while."""
        try:
            return self._free.get(timeout=_WHILE)
        except queue.Empty:
            return None

    def __enter__(self) -> CheckVerifier:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _fault(exc: Exception) -> Finding:
    """The finding where judging one candidate raised what it should not."""
    return Finding(Verdict.BROKEN, clean(f"the judge failed: {error_line(exc, named=True)}"))


def _sum(findings: list[Finding]) -> Usage:
    total = Usage()
    for finding in findings:
        total += finding.usage
    return total
