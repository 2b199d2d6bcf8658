"""Checks that run programs: what is sent to the sandbox, and how the verdict is decided from it.

A verdict is decided here, in the judge, and nowhere else. Expected values stay here; of a test, the
candidate's process is sent the input or the arguments alone.
"""

from __future__ import annotations

import abc
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....core.values import Verdict
from ....files import checksum
from ...protocols import Finding, Usage
from ...sandbox import plain
from ...sandbox.limits import DEFAULT_LIMITS, End, Limits
from ...sandbox.run import Run, WorkerDied
from ...sandbox.worker import Worker
from ..worker_pair import WorkerPair
from . import comparing, extraction
from .findings import clean, failed, raised, refused, silent


class ProgramCheck(abc.ABC):
    """A way to verify programs: where they are in a text, and how they are run."""

    @abc.abstractmethod
    def program(self, text: str) -> extraction.Program:
        """The program in a candidate's text."""

    @abc.abstractmethod
    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program."""

    def key(self, text: str) -> str:
        """Texts with equal keys fail together."""
        return extraction.key(self.program(text))

    def identity(self, text: str) -> str:
        """A checksum of the program that is run."""
        return checksum(self.program(text).source)

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text; a WorkerDied where there is none."""
        started = time.monotonic()
        program = self.program(text)
        if program.error:
            return failed("syntax error", error=clean(program.error))
        finding = self.run(program.source, pair, seed)
        evidence = clean(finding.evidence) | {"isolation": str(pair.candidate.in_force)}
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

    def program(self, text: str) -> extraction.Program:
        """The program in a candidate's text."""
        return extraction.find(text, self.prompt)

    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed when each output agrees."""
        for number in self.failures.order():
            finding = self._one(source, pair.candidate, seed, number)
            if finding.verdict is not Verdict.PASSED:
                self.failures.failed(number)
                return finding
        return Finding(Verdict.PASSED, "", {"tests": len(self.tests)})

    def _one(self, source: str, worker: Worker, seed: int, number: int) -> Finding:
        test, seconds = self.tests[number], self.limits.seconds
        given = test.input.encode("utf-8", "surrogateescape")
        evidence: dict[str, Any] = {"test": number, "input": test.input[:300]}
        order = {"mode": "program", "source": source, "seed": seed}
        with worker.run("candidate", self.limits, stdin=given, capture=True, first=order) as run:
            end = run.drain()
            if end is not End.CLOSED:
                return silent(run, end, seconds, **evidence)
            # Both its streams are closed, but it may go on.
            ended = run.wait_for_end()
            if isinstance(ended, End):
                return silent(run, ended, seconds, **evidence)
            if ended.exit_code != 0:
                message = run.left_over()
                if isinstance(message, dict) and "raised" in message:
                    return raised(message, **evidence)
                return silent(run, End.CLOSED, seconds, **evidence)
            printed = run.output.decode("utf-8", "replace")
        difference = comparing.first_difference(test.output, printed, self.tolerance)
        if difference is None:
            return Finding(Verdict.PASSED)
        shown = {"expected": test.output[:300], "got": printed[:300], "difference": difference}
        return failed("wrong answer", **evidence, **shown)


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

    def program(self, text: str) -> extraction.Program:
        """The program in a candidate's text."""
        return extraction.find(text, self.prompt, self.entry_point)

    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed when each value that it returns is the expected one."""
        tests = len(self.tests)
        order = loading(source, self.entry_point, self.limits, seed)
        with pair.candidate.run("candidate", self.limits, tests=tests + 1, first=order) as run:
            refusal = load(run, self.entry_point, self.limits)
            if refusal is not None:
                return refusal
            for number in self.failures.order():
                test = self.tests[number]
                run.clock.begin()
                answer = call(run, {"args": plain.encode(list(test.args))})
                if isinstance(answer, dict) and self._is_right(answer, test):
                    continue
                self.failures.failed(number)
                shown = {"test": number, "args": comparing.show(list(test.args))}
                return self._failure(run, answer, test, shown)
        return Finding(Verdict.PASSED, "", {"tests": tests})

    def _is_right(self, answer: Mapping[str, Any], test: FunctionTest) -> bool:
        """The comparison that a pass consists of."""
        if "value" not in answer or "raised" in answer or "refused" in answer:
            return False
        return comparing.same_value(test.expected, answer["value"], self.tolerance)

    def _failure(
        self,
        run: Run,
        answer: dict[str, Any] | End,
        test: FunctionTest,
        shown: dict[str, Any],
    ) -> Finding:
        match answer:
            case End() as end:
                return silent(run, end, self.limits.seconds, **shown)
            case {"raised": _}:
                return raised(answer, **shown)
            case {"refused": _}:
                return refused(answer, **shown)
            case {"value": node}:
                values = {"expected": comparing.show(test.expected)}
                return failed("wrong answer", **shown, **values, got=comparing.show_node(node))
        return failed("malformed answer", **shown)


def loading(source: str, entry_point: str, limits: Limits, seed: int) -> dict[str, Any]:
    """The order to load a program, and to answer calls of one of its functions."""
    order = {"mode": "functions", "source": source, "entry_point": entry_point}
    return order | {"room": limits.output_bytes, "seed": seed}


def load(run: Run, entry_point: str, limits: Limits) -> Finding | None:
    """The finding on a program that could not be loaded; None where it was."""
    match run.receive():
        case End() as end:
            return silent(run, end, limits.seconds, test="while loading")
        case {"loaded": True}:
            return None
        case {"loaded": _}:
            return failed("no function", entry_point=entry_point)
        case {"raised": _} as message:
            return raised(message, test="while loading")
    return failed("malformed answer", test="while loading")


def call(run: Run, message: Mapping[str, Any]) -> dict[str, Any] | End:
    """The candidate's answer to one call.

    Calls are numbered at random: an answer sent before its question is recognised as such.
    """
    number = secrets.randbits(48)
    run.send({"kwargs": ["d"], "in_place": False} | dict(message) | {"id": number})
    answer = run.receive()
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

    def program(self, text: str) -> extraction.Program:
        """The program in a candidate's text."""
        return extraction.find(text, self.prompt, self.entry_point)

    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed when the test came to its end."""
        limits = self.limits
        order = loading(source, self.entry_point, limits, seed)
        with pair.candidate.run("candidate", limits, first=order) as run:
            refusal = load(run, self.entry_point, limits)
            if refusal is not None:
                return refusal
            test = pair.tester(self, int(limits.memory_mb))
            ended = False
            try:
                test.clock.begin()
                test.send(
                    {
                        **{"entry_point": self.entry_point, "test": self.test, "seed": seed},
                        **{"prompt": self.prompt, "in_place": self.in_place},
                    }
                )
                finding, ended = self._dialogue(test, run)
            finally:
                if not ended:  # it waits for an answer that will not come
                    pair.dismiss()
        return finding

    def _dialogue(self, test: Run, run: Run) -> tuple[Finding, bool]:
        """The finding, and whether the test came to its end.

        Passes the test's calls on, and the answers back. The candidate's time is that of loading
        and of all calls together.
        """
        question: dict[str, Any] = {}
        answer: dict[str, Any] | End = {}
        while True:
            match test.receive():
                case {"call": dict(question)}:
                    run.clock.turn()
                    answer = call(run, question)
                    if isinstance(answer, End):
                        shown = _last_call(question)
                        return silent(run, answer, self.limits.seconds, **shown), False
                    if "refused" in answer:
                        return refused(answer, **_last_call(question)), False
                    test.clock.turn()
                    test.send({name: answer[name] for name in _PASSED_ON if name in answer})
                case {"end": {"verdict": verdict, "reason": reason, **rest}}:
                    shown = _last_call(question, answer)
                    if reason == "exception" and shown.get("got", "").startswith("MemoryError"):
                        reason = "memory"
                    shown |= {str(name): value for name, value in rest.items()}
                    return Finding(Verdict(verdict), str(reason), shown), True
                case End() as end:
                    shown = _last_call(question, answer)
                    return _exhausted(test, end, bool(answer), shown), False
                case _:
                    raise WorkerDied("the test's process is confused", backend="sandbox")


_PASSED_ON = ("value", "args", "raised", "message")  # of an answer, to the test


def _exhausted(test: Run, end: End, answered: bool, shown: Mapping[str, Any]) -> Finding:
    """The finding where the test's process came to its end before the test.

    With an answer of the candidate's in hand, that is what it did with the answer; without one it
    says nothing about the candidate.
    """
    if end is End.CLOSED:
        test.wait(0.5)  # a WorkerDied where it was killed from outside
    evidence = {"message": f"the test did not end: {end.value}", **shown}
    if answered and end is not End.STARVED:
        return failed("test exhausted", **evidence)
    return Finding(Verdict.BROKEN, f"the test did not end: {end.value}", evidence)


def _last_call(
    question: Mapping[str, Any], answer: Mapping[str, Any] | End | None = None
) -> dict[str, Any]:
    """The last call of a test, for people: what was asked, and what came back."""
    if not question:
        return {}
    shown = {"args": comparing.show_node(question.get("args"))}
    if isinstance(answer, Mapping) and "raised" in answer:
        shown["got"] = str(raised(answer).evidence["exception"])
    elif isinstance(answer, Mapping) and "value" in answer:
        shown["got"] = comparing.show_node(answer["value"])
    return shown
