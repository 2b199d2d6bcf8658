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
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ...core.errors import VerifierError
from ...core.values import REFUTED, Verdict
from ..callables import processors
from ..protocols import Draft, Finding, ParkedCall, Problem, Usage
from ..sandbox.limits import InForce, Isolation, Limits
from ..sandbox.worker import sweep
from .checks import Check, parse_check
from .command import check_allowed
from .engine import CALLED_OFF, Engine, Job, LocalEngine, NoWorkers, fault
from .human import HumanCheck
from .programs.findings import clean
from .threads import Threads
from .verdict_store import VerdictStore

_PARSED = 256  # parsed checks in the cache
_PATIENCE = 60.0  # seconds without any worker until a plain loop ends
_KNOWN = 20_000  # findings in the cache, for candidates with equal keys
Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and the key of the candidate, if it has one."""

    finding: Finding
    key: str | None


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
        engine: where candidates are run; by default in processes of this machine. It has `workers`
            and `attempts` of its own, and is closed with the verifier.
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
        engine: Engine | None = None,
    ) -> None:
        count = workers if workers is not None else processors()
        self.engine = engine or LocalEngine(count, isolation, attempts)
        self._isolation, self._allow_commands = isolation, allow_commands
        self._limits = limits or Limits()
        self._store, self._refute = store, refute
        self._threads = Threads(lambda: self.engine.slots, "verify")
        self._prepared: collections.OrderedDict[str, tuple[Problem, Check]]
        self._prepared = collections.OrderedDict()
        self._known: collections.OrderedDict[tuple[str, str], Future[_Known]]
        self._known = collections.OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        sweep()

    @property
    def workers(self) -> int:
        """The number of candidates verified at once."""
        return self.engine.workers

    @property
    def in_force(self) -> InForce:
        """How programs are confined; a UsageError if this machine lacks the level."""
        return self.engine.in_force

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
        job = Job()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, self._find, job, problem, draft.text)
        try:
            return (await asyncio.shield(future)).finding
        except asyncio.CancelledError:
            job.call_off()
            raise

    def find(self, problem: Problem, text: str) -> Finding:
        """The finding on a text."""
        return self._judged(Job(), problem, text).finding

    def find_all(self, jobs: Iterable[tuple[Tag, Problem, str]]) -> Iterator[tuple[Tag, Judged]]:
        """The findings on many texts, each with its tag, in the order of completion.

        Takes from `jobs` only what the workers need. If the caller stops early, running jobs are
        called off.
        """
        running: dict[Future[Judged], tuple[Tag, Job]] = {}
        ended: queue.SimpleQueue[Future[Judged]] = queue.SimpleQueue()
        source = iter(jobs)
        more = True
        try:
            while more or running:
                while more and len(running) < 2 * self.engine.slots:
                    try:
                        tag, problem, text = next(source)
                    except StopIteration:
                        more = False
                        break
                    job = Job()
                    future = self._threads.submit(self._judged, job, problem, text)
                    running[future] = (tag, job)
                    future.add_done_callback(ended.put)
                if running:
                    done = ended.get()
                    tag, _ = running.pop(done)
                    yield tag, done.result()
        finally:
            for future, (_, job) in running.items():
                future.cancel()
                job.call_off()

    def _judged(self, job: Job, problem: Problem, text: str) -> Judged:
        """Like `_find`, but broken if a server does not answer, or if a person decides.

        A NoWorkers error is raised if it lasts: it would make all remaining findings broken.
        """
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._find(job, problem, text)
            except NoWorkers as exc:
                if time.monotonic() > until:
                    raise NoWorkers(f"{exc}; {exc.hint}, then run the same command again") from exc
            except ParkedCall:
                reason = "a person decides: use grv solve, then grv review"
                return Judged(Finding(Verdict.BROKEN, reason), None)
            except VerifierError as exc:
                return Judged(Finding(Verdict.BROKEN, str(exc)), None)

    def _find(self, job: Job, problem: Problem, text: str) -> Judged:
        check = self.prepare(problem)
        how = check.how
        if isinstance(how, HumanCheck):
            raise ParkedCall(how.question)
        if (reason := self._refutation(check, text)) is not None:
            return Judged(Finding(Verdict.FAILED, f"refuted: {reason}"), REFUTED)
        try:
            key, identity = how.key(text), how.identity(text)
        except Exception as exc:  # an error in reading one candidate must not affect others
            return Judged(fault(exc), None)
        if key is None:
            return Judged(self.engine.judge(job, problem, check, text), None)

        digest = check.digest
        finding = None if self._store is None else self._store.get(digest, key, identity)
        if finding is None:

            def ask() -> Finding:
                found = self.engine.judge(job, problem, check, text)
                if job.called_off:
                    return CALLED_OFF
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
        finding = CALLED_OFF
        try:
            finding = ask()
            return finding
        finally:
            if finding.verdict is Verdict.BROKEN:
                with self._lock:
                    self._known.pop(place, None)
            mine.set_result(_Known(finding, identity))

    def folders(self) -> list[Path]:
        """The directories that the workers use now."""
        return self.engine.folders()

    def close(self) -> None:
        """Stop the workers, also those that are busy."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.engine.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> CheckVerifier:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
