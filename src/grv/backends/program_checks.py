"""Checks that run programs: what is sent to the sandbox, and how the verdict is decided from it.

A verdict is decided here, in the judge, and nowhere else. Expected values stay here; of a test, the
candidate's process is sent the input or the arguments alone.
"""

from __future__ import annotations

import abc
import contextlib
import secrets
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.values import Verdict
from . import comparing, programs
from .protocols import Finding, Usage
from .sandbox import plain
from .sandbox.limits import DEFAULT_LIMITS, Isolation, Limits
from .sandbox.run import End, Run, WorkerDied
from .sandbox.worker import Worker

_TEST_SECONDS = 10.0  # what the user's own test may use on top of the candidate's time
_MOST_TESTS = 500  # that one process for tests carries out


class Seat:
    """The workers that one judging thread has to itself: for candidates, and for tests."""

    def __init__(self, isolation: Isolation = Isolation.JAIL) -> None:
        self.candidate = Worker(isolation)
        self.test = Worker(isolation)
        self._tester: Run | None = None
        self._tested: AssertsCheck | None = None
        self._tests = 0
        self._ending = contextlib.ExitStack()

    def tester(self, check: AssertsCheck) -> Run:
        """A process for the user's test, ready for an order.

        It is kept for the next candidates of the same check: the test is the user's own code, and
        nothing of a candidate gets into its process but plain data. Each order is carried out in a
        namespace of its own.
        """
        fresh = self._tester is None or self._tested is not check or self._tests >= _MOST_TESTS
        if self._tester is None or fresh or not self._tester.is_waiting():
            self.dismiss()
            limits = Limits(_TEST_SECONDS, memory_mb=check.limits.memory_mb)
            self._tester = self._ending.enter_context(
                self.test.run("test", limits, tests=_MOST_TESTS)
            )
            self._tested, self._tests = check, 0
        self._tests += 1
        return self._tester

    def dismiss(self) -> None:
        """End the test's process, where there is one."""
        self._tester = self._tested = None
        with contextlib.suppress(WorkerDied):
            self._ending.close()

    def interrupt(self) -> None:
        """End what is going on, from another thread."""
        self.candidate.interrupt()
        self.test.interrupt()

    def resume(self) -> None:
        """Forget that something was interrupted."""
        self.candidate.interrupted = self.test.interrupted = False

    def close(self) -> None:
        """End both workers."""
        self.dismiss()
        self.candidate.close()
        self.test.close()


class ProgramCheck(abc.ABC):
    """A way to verify programs: where they are in a text, and how they are run."""

    @abc.abstractmethod
    def program(self, text: str) -> programs.Program:
        """The program in a candidate's text."""

    @abc.abstractmethod
    def run(self, source: str, seat: Seat, seed: int) -> Finding:
        """The finding on a program."""

    def key(self, text: str) -> str:
        """Texts with equal keys have equal verdicts."""
        return programs.key(self.program(text))

    def judge(self, text: str, seat: Seat, seed: int = 0) -> Finding:
        """The finding on a candidate's text; a WorkerDied where there is none."""
        started = time.monotonic()
        program = self.program(text)
        if program.error:
            return Finding(Verdict.FAILED, "syntax error", {"error": program.error})
        finding = self.run(program.source, seat, seed)
        evidence = dict(finding.evidence) | {"isolation": str(seat.candidate.in_force)}
        usage = Usage(seconds=time.monotonic() - started)
        return Finding(finding.verdict, finding.reason, evidence, usage)


class FailureCount:
    """How often each test of a problem has failed: those that failed most are run first."""

    def __init__(self, tests: int) -> None:
        self._failures = [0] * tests
        self._lock = threading.Lock()

    def order(self) -> Sequence[int]:
        """The tests' numbers, in the order to be run."""
        with self._lock:
            return sorted(range(len(self._failures)), key=lambda test: -self._failures[test])

    def failed(self, test: int) -> None:
        """Note a failure."""
        with self._lock:
            self._failures[test] += 1


def _failed(reason: str, **evidence: Any) -> Finding:
    return Finding(Verdict.FAILED, reason, evidence)


def _raised(message: Mapping[str, Any], **evidence: Any) -> Finding:
    """The finding on a program that raised, from its own description."""
    names, said, line = (message.get(name) for name in ("raised", "message", "line"))
    listed = names[:50] if isinstance(names, list) else []
    kinds = [name[:100] for name in listed if isinstance(name, str)]
    text = f"{kinds[0] if kinds else 'exception'}: {said[:300] if isinstance(said, str) else ''}"
    shown = {"exception": text} | ({"line": line} if type(line) is int else {}) | evidence
    if "MemoryError" in kinds:
        return Finding(Verdict.FAILED, "memory", shown)
    compiled = message.get("compiled", True)
    return Finding(Verdict.FAILED, "exception" if compiled else "syntax error", shown)


def _silent(run: Run, end: End, seconds: float, **evidence: Any) -> Finding:
    """The finding on a program from which no answer came."""
    match end:
        case End.TIMEOUT:
            return _failed("timeout", seconds=seconds, **evidence)
        case End.TOO_LARGE:
            return _failed("output limit", **evidence)
        case End.MALFORMED:
            return _failed("malformed answer", **evidence)
    ended = run.wait(0.5) or run.end()
    if run.out_of_cpu:
        return _failed("timeout", cpu_seconds=round(ended.cpu_seconds, 2), **evidence)
    if ended.cause in ("threads", "files"):
        return _failed(f"too many {ended.cause}", **evidence)
    if ended.signal and not ended.cause:
        name = signal.Signals(ended.signal).name if ended.signal < 65 else str(ended.signal)
        return _failed("crash", signal=name, **evidence)
    return _failed("no answer", exit_code=ended.exit_code, **evidence)


@dataclass(frozen=True, slots=True)
class StdinTest:
    """What a program is given, and what it must print."""

    input: str
    output: str


@dataclass(frozen=True)
class StdinCheck(ProgramCheck):
    """A whole program, run once a test in a process of its own."""

    tests: tuple[StdinTest, ...]
    limits: Limits = DEFAULT_LIMITS
    tolerance: float = 1e-6
    prompt: str = ""
    failures: FailureCount = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "failures", FailureCount(len(self.tests)))

    def program(self, text: str) -> programs.Program:
        """The program in a candidate's text."""
        return programs.find(text, self.prompt)

    def run(self, source: str, seat: Seat, seed: int) -> Finding:
        """The finding on a program: passed when each output agrees."""
        for number in self.failures.order():
            finding = self._one(source, seat.candidate, seed, number)
            if finding.verdict is not Verdict.PASSED:
                self.failures.failed(number)
                return finding
        return Finding(Verdict.PASSED, "", {"tests": len(self.tests)})

    def _one(self, source: str, worker: Worker, seed: int, number: int) -> Finding:
        test, seconds = self.tests[number], self.limits.seconds
        given = test.input.encode("utf-8", "surrogateescape")
        evidence: dict[str, Any] = {"test": number, "input": test.input[:300]}
        with worker.run("candidate", self.limits, stdin=given, capture=True) as run:
            run.send({"mode": "program", "source": source, "seed": seed})
            deadline = time.monotonic() + seconds
            end = run.drain(seconds)
            if end is not End.CLOSED:
                return _silent(run, end, seconds, **evidence)
            # Both its streams are closed, but it may go on.
            ended = run.wait(max(0.0, deadline - time.monotonic()))
            if ended is None:
                return _silent(run, End.TIMEOUT, seconds, **evidence)
            if ended.exit_code != 0:
                message = run.receive(0)
                if isinstance(message, dict) and "raised" in message:
                    return _raised(message, **evidence)
                return _silent(run, End.CLOSED, seconds, **evidence)
            printed = run.output.decode("utf-8", "replace")
        difference = comparing.first_difference(test.output, printed, self.tolerance)
        if difference is None:
            return Finding(Verdict.PASSED)
        shown = {"expected": test.output[:300], "got": printed[:300], "difference": difference}
        return _failed("wrong answer", **evidence, **shown)


@dataclass(frozen=True, slots=True)
class FunctionTest:
    """What a function is called with, and what it must return. JSON data."""

    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class FunctionCheck(ProgramCheck):
    """A function, or a method of `Solution`, called once a test in one process."""

    entry_point: str
    tests: tuple[FunctionTest, ...]
    limits: Limits = DEFAULT_LIMITS
    tolerance: float = 1e-9
    prompt: str = ""
    failures: FailureCount = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "failures", FailureCount(len(self.tests)))

    def program(self, text: str) -> programs.Program:
        """The program in a candidate's text."""
        return programs.find(text, self.prompt, self.entry_point)

    def run(self, source: str, seat: Seat, seed: int) -> Finding:
        """The finding on a program: passed when each value that it returns is the expected one."""
        seconds, tests = self.limits.seconds, len(self.tests)
        with seat.candidate.run("candidate", self.limits, tests=tests + 1) as run:
            refused = load(run, source, self.entry_point, self.limits, seed)
            if refused is not None:
                return refused
            for number in self.failures.order():
                test = self.tests[number]
                shown = {"test": number, "args": comparing.show(list(test.args))}
                answer = call(run, {"args": plain.encode(list(test.args))}, seconds)
                finding = self._compare(run, answer, test, shown)
                if finding is not None:
                    self.failures.failed(number)
                    return finding
        return Finding(Verdict.PASSED, "", {"tests": tests})

    def _compare(
        self,
        run: Run,
        answer: dict[str, Any] | End,
        test: FunctionTest,
        shown: dict[str, Any],
    ) -> Finding | None:
        match answer:
            case End() as end:
                return _silent(run, end, self.limits.seconds, **shown)
            case {"raised": _}:
                return _raised(answer, **shown)
            case {"refused": problem}:
                reason = "output limit" if problem == "too large" else "malformed answer"
                return _failed(reason, **shown)
            case {"value": node}:
                if comparing.same_value(test.expected, node, self.tolerance):
                    return None
                values = {"expected": comparing.show(test.expected)}
                return _failed("wrong answer", **shown, **values, got=comparing.show_node(node))
        return _failed("malformed answer", **shown)


def load(run: Run, source: str, entry_point: str, limits: Limits, seed: int) -> Finding | None:
    """Have the program loaded in its process; a finding where that fails."""
    room = limits.output_bytes
    order = {"mode": "functions", "source": source, "entry_point": entry_point}
    run.send(order | {"room": room, "seed": seed})
    match run.receive(limits.seconds):
        case End() as end:
            return _silent(run, end, limits.seconds, test="while loading")
        case {"loaded": True}:
            return None
        case {"loaded": _}:
            return _failed("no function", entry_point=entry_point)
        case {"raised": _} as message:
            return _raised(message, test="while loading")
    return _failed("malformed answer", test="while loading")


def call(run: Run, message: Mapping[str, Any], seconds: float) -> dict[str, Any] | End:
    """The candidate's answer to one call.

    Calls are numbered at random: an answer sent before its question is recognised as such.
    """
    number = secrets.randbits(48)
    run.send({"kwargs": ["d"], "in_place": False} | dict(message) | {"id": number})
    answer = run.receive(seconds)
    if isinstance(answer, End):
        return answer
    return answer if answer.get("id") == number else End.MALFORMED


@dataclass(frozen=True)
class AssertsCheck(ProgramCheck):
    """The user's test code, run in a process of its own against a proxy of the candidate."""

    entry_point: str
    test: str
    prompt: str = ""
    limits: Limits = DEFAULT_LIMITS
    in_place: bool = False

    def program(self, text: str) -> programs.Program:
        """The program in a candidate's text."""
        return programs.find(text, self.prompt, self.entry_point)

    def run(self, source: str, seat: Seat, seed: int) -> Finding:
        """The finding on a program: passed when the test came to its end."""
        limits = self.limits
        with seat.candidate.run("candidate", limits) as run:
            started = time.monotonic()
            refused = load(run, source, self.entry_point, limits, seed)
            if refused is not None:
                return refused
            left = limits.seconds - (time.monotonic() - started)
            test = seat.tester(self)
            ended = False
            try:
                test.send(
                    {
                        **{"entry_point": self.entry_point, "test": self.test},
                        **{"prompt": self.prompt, "in_place": self.in_place},
                    }
                )
                finding, ended = self._dialogue(test, run, left)
            finally:
                if not ended:  # it waits for an answer that will not come
                    seat.dismiss()
        return finding

    def _dialogue(self, test: Run, run: Run, left: float) -> tuple[Finding, bool]:
        """The finding, and whether the test came to its end.

        Passes the test's calls on, and the answers back; `left` is the candidate's time.
        """
        patience = _TEST_SECONDS
        last: dict[str, Any] = {}
        while True:
            started = time.monotonic()
            message = test.receive(patience)
            patience -= time.monotonic() - started
            match message:
                case {"call": dict(question)}:
                    started = time.monotonic()
                    answer = call(run, question, max(0.0, left))
                    left -= time.monotonic() - started
                    last = {"args": comparing.show_node(question.get("args"))}
                    if isinstance(answer, End):
                        return _silent(run, answer, self.limits.seconds, **last), False
                    if "refused" in answer:
                        large = answer["refused"] == "too large"
                        reason = "output limit" if large else "malformed answer"
                        return _failed(reason, **last), False
                    last["got"] = _outcome(answer)
                    test.send(answer)
                case {"end": {"verdict": verdict, "reason": reason, **rest}}:
                    if reason == "exception" and last["got"].startswith("MemoryError"):
                        reason = "memory"
                    shown = {str(name): value for name, value in rest.items()}
                    return Finding(Verdict(verdict), reason, last | shown), True
                case End() as end:
                    raise WorkerDied(f"the test did not end: {end.value}", backend="sandbox")
                case _:
                    raise WorkerDied("the test's process is confused", backend="sandbox")


def _outcome(answer: Mapping[str, Any]) -> str:
    if "value" in answer:
        return comparing.show_node(answer["value"])
    return str(_raised(answer).evidence["exception"])
