"""The verifier of all kinds of checks: a pool of workers.

Use `await verify(problem, draft)` in a search, `find` or `find_all` in a plain loop.
"""

from __future__ import annotations

import asyncio
import collections
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from ...core.errors import UsageError, VerifierError
from ...core.values import REFUTED, Verdict
from ...files import error_line
from ..callables import processors
from ..protocols import Draft, Finding, Problem, Usage
from ..sandbox.limits import InForce, Isolation, Limits
from ..sandbox.run import WorkerDied
from ..sandbox.worker import sweep
from .checks import Check, parse_check
from .command import check_allowed
from .programs.findings import clean
from .verdict_store import VerdictStore
from .worker_pair import WorkerPair

_PARSED = 256  # parsed checks in the cache
_KNOWN = 20_000  # findings in the cache, for candidates with equal keys
_WAIT = 0.1  # seconds to wait for a free pair before checking for cancellation
_MOST_LOSSES = 3  # workers that one candidate may lose before its verdict is broken
Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and the key of the candidate, if it has one."""

    finding: Finding
    key: str | None


@dataclass(slots=True)
class _Job:
    """One candidate in work; another thread may call it off."""

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


@dataclass(frozen=True, slots=True)
class _Known:
    """A finding, and the identity of the program that was run for it."""

    finding: Finding
    identity: str

    def holds_for(self, identity: str) -> bool:
        """Whether a program with an equal key and this identity has the same finding.

        Programs with equal keys share failures. A pass holds only for the program that ran.
        """
        verdict = self.finding.verdict
        return verdict is Verdict.FAILED or (
            verdict is Verdict.PASSED and self.identity == identity
        )


class CheckVerifier:
    """Verifies candidates by the checks of their problems.

    Args:
        workers: the number of candidates verified at once; by default one per processor.
        isolation: how strictly programs are confined.
        limits: the limits of programs whose check sets none.
        attempts: the number of attempts until a verdict is broken. A lost worker is not an attempt;
            after three losses the verdict is broken.
        store: remembers verdicts across runs.
        allow_commands: allow checks of kind "command", which are not confined, and "http". They are
            never allowed under strict isolation.
        refute: whether candidates that certainly fail are refuted without being verified.
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
        refute: bool = True,
    ) -> None:
        count = workers if workers is not None else processors()
        if count < 1 or attempts < 1:
            raise UsageError("workers and attempts must be at least 1")
        self.workers = count
        self._isolation, self._allow_commands = isolation, allow_commands
        self._limits = limits or Limits()
        self._attempts, self._refute = attempts, refute
        self._store = store
        self._free: queue.LifoQueue[WorkerPair] = queue.LifoQueue()
        self._all = [WorkerPair(isolation) for _ in range(count)]
        for pair in reversed(self._all):
            self._free.put(pair)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="verify")
        self._prepared: collections.OrderedDict[str, tuple[Problem, Check]]
        self._prepared = collections.OrderedDict()
        self._known: collections.OrderedDict[tuple[str, str], Future[_Known]]
        self._known = collections.OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        sweep()

    @property
    def in_force(self) -> InForce:
        """How programs are confined; a UsageError if this machine lacks the level."""
        return self._all[0].candidate.in_force

    def prepare(self, problem: Problem) -> Check:
        """The check of a problem; a UsageError if its record is wrong or not allowed."""
        with self._lock:
            earlier, check = self._prepared.get(problem.id, (None, None))
            if check is not None and earlier == problem:
                self._prepared.move_to_end(problem.id)
                return check
        check_allowed(problem, allowed=self._allow_commands, isolation=self._isolation)
        check = parse_check(problem, self._limits)
        with self._lock:
            self._prepared[problem.id] = problem, check
            while len(self._prepared) > _PARSED:
                self._prepared.popitem(last=False)
        return check

    def key(self, problem: Problem, draft: Draft) -> str | None:
        """The key of a draft: drafts with equal keys fail together. None means no class."""
        return self.prepare(problem).how.key(draft.text)

    def refutation(self, problem: Problem, draft: Draft) -> str | None:
        """Why a draft certainly fails, without verifying it; None if it may pass."""
        return self._refutation(self.prepare(problem), draft.text)

    def _refutation(self, check: Check, text: str) -> str | None:
        if not self._refute:
            return None
        try:
            reason = check.how.refutation(text)
        except Exception:  # in doubt, it may pass
            return None
        return None if reason is None else str(clean(reason))

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding on a draft. A cancellation stops the program."""
        job = _Job()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, self._find, job, problem, draft.text)
        try:
            return (await asyncio.shield(future)).finding
        except asyncio.CancelledError:
            job.call_off()
            raise

    def find(self, problem: Problem, text: str) -> Finding:
        """The finding on a text."""
        return self._judged(_Job(), problem, text).finding

    def find_all(self, jobs: Iterable[tuple[Tag, Problem, str]]) -> Iterator[tuple[Tag, Judged]]:
        """The findings on many texts, each with its tag, in the order of completion.

        Takes from `jobs` only what the workers need. If the caller stops early, running jobs are
        called off.
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
        check = self.prepare(problem)
        how = check.how
        if (reason := self._refutation(check, text)) is not None:
            return Judged(Finding(Verdict.FAILED, f"refuted: {reason}"), REFUTED)
        try:
            key, identity = how.key(text), how.identity(text)
        except Exception as exc:  # an error in reading one candidate must not affect others
            return Judged(_fault(exc), None)
        if key is None:
            return Judged(self._ask(job, check, text), None)

        digest = check.digest
        finding = None if self._store is None else self._store.get(digest, key, identity)
        if finding is None:

            def ask() -> Finding:
                found = self._ask(job, check, text)
                if job.called_off:
                    return Finding(Verdict.BROKEN, "called off")
                if self._store is not None:
                    self._store.put(digest, key, identity, found)
                return found

            finding = self._once((digest, key), identity, ask)
        return Judged(finding, key)

    def _once(self, place: tuple[str, str], identity: str, ask: Callable[[], Finding]) -> Finding:
        """The finding in the cache if it holds for this identity, otherwise a new one."""
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

    def _ask(self, job: _Job, check: Check, text: str) -> Finding:
        """The finding of as many runs as the check wants."""
        findings: list[Finding] = []
        for seed in range(check.repeat):
            finding = self._try(job, check, text, seed)
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
        """The finding of one run; a broken run is repeated.

        A lost worker says nothing about the candidate, so it does not count as an attempt. But one
        candidate may lose only `_MOST_LOSSES` workers.
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
            except Exception as exc:  # an error in judging one candidate must not affect others
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
        """The directories that the workers use now."""
        workers = [worker for pair in self._all for worker in (pair.candidate, pair.test)]
        return [worker.folder for worker in workers if worker.folder is not None]

    def _is_off(self, job: _Job) -> bool:
        return job.called_off or self._closed

    def close(self) -> None:
        """Stop the workers, also those that are busy."""
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
        """A free pair, or None after a short wait."""
        try:
            return self._free.get(timeout=_WAIT)
        except queue.Empty:
            return None

    def __enter__(self) -> CheckVerifier:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _fault(exc: Exception) -> Finding:
    """The finding if judging one candidate raised an exception."""
    return Finding(Verdict.BROKEN, clean(f"the judge failed: {error_line(exc, named=True)}"))


def _sum(findings: list[Finding]) -> Usage:
    return sum((finding.usage for finding in findings), Usage())
