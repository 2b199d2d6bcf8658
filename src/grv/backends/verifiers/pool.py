"""The verifier of all kinds of checks: a pool of workers.

Use `await verify(problem, draft)` in a search, `find` or `find_all` in a plain loop.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from ...conditions import Conditions
from ...core.errors import UsageError, VerifierError
from ...core.values import REFUTED, Verdict
from ...options import choose
from ...text import checksum
from ...theory.confirmations import (
    CallCounts,
    Confirm,
    Decision,
    Earlier,
    ErringRule,
    Errors,
    check_wrong,
)
from ..callables import processors
from ..protocols import JUDGED, NOTHING, Draft, Finding, ParkedCall, Problem, Stage
from ..sandbox.limits import InForce, Isolation, RunLimits
from ..sandbox.worker import sweep
from .byte_cache import ByteCache, size_of
from .checks import Check, WholeTextCheck, parse_check
from .command import check_allowed
from .engine import CALLED_OFF, Engine, Job, LocalEngine, NoWorkers, fault
from .human import HumanCheck
from .judge_prices import JudgePrices
from .known_findings import KnownFindings
from .programs.findings import clean
from .programs.published import PublishedCheck
from .suite import PaidStage, StageMemory, Suite, TestOrder
from .threads import Threads
from .verdict_store import VerdictStore

_PARSED = 256  # parsed checks in the cache
_PATIENCE = 60.0  # seconds without any worker until a plain loop ends
_FIRST = Earlier()
_PARSED_BYTES = 64 << 20  # of their records and what is made of them
_SUITES_BYTES = 32 << 20  # of the counts of tests
_SUITE_BYTES = 2048  # about as much as the counts of one suite take
Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and the key of the candidate, if it has one."""

    finding: Finding
    key: str | None


class CheckVerifier:
    """Verifies candidates by the checks of their problems.

    Choose it for programs with tests, mathematical answers, commands, servers and people: a
    problem's `check` says which. Use it in a `with` statement, or call `close` at the end.

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
        order_tests: in which order the tests of a check run: "file", or "learned" from the
            candidates of the problem so far. No verdict depends on it.
        engine: where candidates are run; by default in processes of this machine. It has `workers`
            and `attempts` of its own, and is closed with the verifier.
        wrong: the probability of a wrong answer that a search accepts from a check that errs.
        confirm: the rule by which such a check decides: `cold`, for any candidates, or `bayes`, by
            the shares of right candidates that earlier problems have shown.
        prices: what models that judge cost.
        decides: whether its verdicts decide searches. If not, they are labels: a check that errs is
            called once, and may err as often as it likes.
        gym: the address of the resources server for checks of kind "gym".
        published: whether programs may get the labels of the paper's published harness. They are
            for comparison with the paper: some right programs fail.

    Examples:
        >>> import grv
        >>> problem = grv.Problem("sum", check={"kind": "math", "answer": "4"})
        >>> with grv.verifiers.Checks(workers=1) as verifier:
        ...     print(verifier.find(problem, "4").verdict.value)
        passed
    """

    reads_earlier: ClassVar[bool] = True
    reads_memory: ClassVar[bool] = True

    def __init__(
        self,
        *,
        workers: int | None = None,
        isolation: Isolation = Isolation.JAIL,
        limits: RunLimits | None = None,
        attempts: int = 3,
        store: VerdictStore | None = None,
        allow_commands: bool = False,
        refute: bool = True,
        order_tests: TestOrder | Literal["file", "learned"] = TestOrder.LEARNED,
        engine: Engine | None = None,
        wrong: float = 0.05,
        confirm: Confirm = Confirm.COLD,
        prices: JudgePrices | None = None,
        decides: bool = True,
        published: bool = False,
        gym: str | None = None,
    ) -> None:
        if gym is not None and isolation is Isolation.STRICT:
            raise UsageError("--gym: strict isolation forbids that candidates leave this machine")
        count = workers if workers is not None else processors()
        self.engine = engine or LocalEngine(count, isolation, attempts)
        self._isolation = isolation
        self._allow_commands = allow_commands
        self._limits = limits or RunLimits()
        self._store = store
        self._refute = refute
        self._order_tests = choose(TestOrder, order_tests, "order_tests")
        check_wrong(wrong)
        self._wrong = wrong
        self._confirm = confirm
        self._prices = prices
        self._decides = decides
        self._published = published
        self._gym = gym
        self._threads = Threads(lambda: self.engine.slots, "verify")
        self._prepared: ByteCache[str, tuple[Problem, Check]] = ByteCache(_PARSED_BYTES, _PARSED)
        self._suites: ByteCache[str, tuple[Suite, ...]] = ByteCache(_SUITES_BYTES)
        self._known = KnownFindings()
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
            earlier, check = self._prepared.get(problem.id) or (None, None)
        if check is not None and earlier == problem:
            return check
        check_allowed(problem, allowed=self._allow_commands, isolation=self._isolation)
        check = parse_check(problem, self._limits, self._order_tests)
        if isinstance(check.how, PublishedCheck) and not self._published:
            raise UsageError(
                f"problem {problem.id}, check.labels: published labels are for comparison with the"
                " paper: use grv collect or grv verify, or leave out labels"
            )
        if self._decides and check.erring is not None:
            check.erring.refuse(f"problem {problem.id}, check")
        if self._prices is not None and isinstance(check.how, WholeTextCheck):
            check = replace(check, how=check.how.priced(self._prices))
        if isinstance(check.how, WholeTextCheck):
            check = replace(check, how=check.how.at_gym(self._gym))
        suites = tuple(check.how.suites())
        with self._lock:
            # A parsed check takes much more memory than the counts of its tests, which are kept.
            known = self._suites.get(check.digest) or suites
            for suite, same in zip(suites, known, strict=True):
                suite.share(same)
            if known:
                self._suites.put(check.digest, known, _SUITE_BYTES * (1 + len(known)))
            self._prepared.put(problem.id, (problem, check), _size(problem))
        return check

    def confirms(self, problem: Problem) -> ErringRule | None:
        """How candidates are confirmed if the problem's check errs; else None."""
        erring = self.prepare(problem).erring
        if erring is None or erring.errors is None or not self._decides:
            return None
        return ErringRule(self._confirm, erring.errors, self._wrong)

    def learns_shares(self, problem: Problem) -> Errors | None:
        """The errors of a problem's check, if earlier problems help to decide; else None."""
        if self._confirm is not Confirm.BAYES or not self._decides:
            return None
        erring = self.prepare(problem).erring
        return None if erring is None else erring.errors

    def conditions(self, problem: Problem) -> Conditions:
        """What verdicts on a problem's candidates depend on now, besides the texts."""
        return self._conditions(self.prepare(problem))

    def _conditions(self, check: Check) -> Conditions:
        found = check.conditions(self.engine.isolation)
        if check.erring is None or not self._decides:
            return found
        rule = "" if self._confirm is Confirm.COLD else f" {self._confirm}"
        return replace(found, check=checksum(f"{found.check} {self._wrong}{rule}"))

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

    async def verify(
        self,
        problem: Problem,
        draft: Draft,
        *,
        earlier: Earlier = _FIRST,
        memory: StageMemory | None = None,
    ) -> Finding:
        """The finding on a draft. A cancellation stops the program.

        `earlier` is what its search knows. It decides how many passes the draft needs if the check
        errs. `memory` has the stages that the draft has passed before; they are not paid for again.
        """
        job = Job(memory=memory or StageMemory())
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, self._find, job, problem, draft.text, earlier)
        try:
            return (await asyncio.shield(future)).finding
        except asyncio.CancelledError:
            job.call_off()
            raise

    def find(self, problem: Problem, text: str) -> Finding:
        """The finding on a text."""
        return self._judged(Job(), problem, text).finding

    def find_all(
        self, jobs: Iterable[tuple[Tag, Problem, str]], seed: int = 0
    ) -> Iterator[tuple[Tag, Judged]]:
        """The findings on many texts, each with its tag, in the order of completion.

        `seed` is that of the first run of each.

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
                    future = self._threads.submit(self._judged, job, problem, text, seed)
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

    def _judged(self, job: Job, problem: Problem, text: str, seed: int = 0) -> Judged:
        """Like `_find`, but broken if a server does not answer, or if a person decides.

        A NoWorkers error is raised if it lasts: it would make all remaining findings broken.
        """
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._find(job, problem, text, seed=seed)
            except NoWorkers as exc:
                if exc.fault == "stop" or time.monotonic() > until:
                    raise NoWorkers(f"{exc}; {exc.hint}, then run the same command again") from exc
            except ParkedCall:
                reason = "a person decides: use grv solve, then grv review"
                return Judged(Finding(Verdict.BROKEN, reason), None)
            except VerifierError as exc:
                return Judged(Finding(Verdict.BROKEN, str(exc)), None)

    def _find(
        self,
        job: Job,
        problem: Problem,
        text: str,
        earlier: Earlier = _FIRST,
        seed: int = 0,
    ) -> Judged:
        check = self.prepare(problem)
        how = check.how
        if isinstance(how, HumanCheck):
            raise ParkedCall(how.question)
        conditions = self._conditions(check)
        if (reason := self._refutation(check, text)) is not None:
            said = f"refuted: {reason}"
            refuted = Finding(Verdict.FAILED, said, conditions=conditions, shared=True)
            return Judged(refuted, REFUTED)
        try:
            key = how.key(text)
            identity = how.identity(text)
        except Exception as exc:  # an error in reading one candidate must not affect others
            return Judged(fault(exc), None)
        if check.erring is not None and self._decides:
            found = self._confirmed(job, problem, check, text, earlier)
            return Judged(replace(found, conditions=conditions), key)
        if key is None:
            found = self.engine.judge(job, problem, check, text, seed)
            return Judged(replace(found, conditions=conditions), None)

        finding = None if self._store is None else self._store.get(conditions, key, identity)
        if finding is None:

            def ask() -> Finding:
                found = self.engine.judge(job, problem, check, text, seed)
                if job.called_off:
                    return CALLED_OFF
                same = self._conditions(check) == conditions
                if self._store is not None and same:  # no script was edited meanwhile
                    self._store.put(conditions, key, identity, found)
                return found

            finding = self._known.once((conditions, key), identity, ask)
        # Added here, because a finding may be that of another text with the same program.
        evidence = {**finding.evidence, **how.reading(text, finding.verdict)}
        return Judged(replace(finding, conditions=conditions, evidence=evidence), key)

    def _confirmed(
        self, job: Job, problem: Problem, check: Check, text: str, earlier: Earlier
    ) -> Finding:
        """The finding of as many calls as the rule wants.

        A call that was made before a kill is not made again. Nothing else is taken from memory.
        """
        assert check.erring is not None
        errors = check.erring.errors
        assert errors is not None, "prepare has refused it"
        rule = self._confirm.rule(errors, self._wrong, earlier)
        counts = CallCounts()
        usage = NOTHING
        stages: list[Stage] = []
        decision: Decision = "again"
        while decision == "again":
            seed = counts.passes + counts.failures
            found = self._called(job, problem, check, text, seed)
            usage = found.usage if usage is NOTHING else usage + found.usage
            stages += found.stages
            if found.verdict is Verdict.BROKEN:
                made = {"passes": counts.passes, "failures": counts.failures}
                return replace(found, usage=usage, evidence={**found.evidence, JUDGED: made})
            counts = counts.plus(passed=found.verdict is Verdict.PASSED)
            decision = rule.decide(counts)
        judged: dict[str, Any] = {"passes": counts.passes, "failures": counts.failures}
        judged |= {"errors": [errors.false_pass, errors.false_fail], "candidate": earlier.number}
        verdict = Verdict.FAILED
        if decision == "return":
            verdict = Verdict.PASSED
            judged["wrong_probability"] = rule.wrong(counts)
        evidence = {**found.evidence, JUDGED: judged}
        if stages:
            evidence["stages"] = [stage.as_data() for stage in stages]
        reason = found.reason
        if found.verdict is not verdict:
            reason = f"{counts.passes} of {seed + 1} calls passed it"
        return replace(found, verdict=verdict, reason=reason, evidence=evidence, usage=usage)

    def _called(self, job: Job, problem: Problem, check: Check, text: str, seed: int) -> Finding:
        """The finding of one call of a check that errs, or what it found before a kill."""
        name = f"call {seed}"
        known = job.memory.get(name)
        if known is not None:
            return known.finding
        found = self.engine.judge(job, problem, check, text, seed)
        if found.verdict is not Verdict.BROKEN:
            stage = Stage(name, found.verdict, found.usage.seconds, found.usage.dollars)
            job.memory.add(PaidStage(name, stage, found.evidence))
        return found

    def recall(self, problem: Problem, findings: Iterable[Finding]) -> None:
        """Start the order of a problem's tests from findings of an earlier run.

        Without effect if this process has verified candidates of the problem.
        """
        for suite in self.prepare(problem).how.suites():
            suite.recall([finding.stages for finding in findings])

    def forget(self) -> None:
        """Forget the findings of this process, so that a candidate is verified again."""
        self._known.forget()

    def rest(self) -> None:
        """Take less memory while nothing is verified: checks are parsed again when needed."""
        with self._lock:
            self._prepared = ByteCache(_PARSED_BYTES, _PARSED)
        self._known.rest()

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


def _size(problem: Problem) -> int:
    """About how many bytes a problem and its parsed check take."""
    texts = [problem.prompt, problem.question, problem.code, problem.messages]
    return size_of(texts) + 2 * size_of(problem.check)  # as it is, and parsed
