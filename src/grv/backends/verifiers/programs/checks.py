"""Checks that run programs in the sandbox.

The verdict is decided only here, in the judge. Expected values stay here: the candidate's process
receives only the input or the arguments of a test.
"""

from __future__ import annotations

import abc
import secrets
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....core.values import Verdict
from ....text import checksum
from ...protocols import Finding, Usage
from ...sandbox import plain
from ...sandbox.limits import DEFAULT_LIMITS, End, RunLimits
from ...sandbox.run import Run, SandboxDied
from ...sandbox.worker import Worker
from ..worker_pair import WorkerPair
from . import comparing, reading, refuting
from .findings import clean, failed, raised, refused, silent
from .keys import key
from .syntax import Program


class ProgramCheck(abc.ABC):
    """A way to verify programs: how they are found in a text, and how they are run."""

    prompt: str

    def program(self, text: str) -> Program:
        """The program in a candidate's text; with an `entry_point`, one that defines it."""
        return reading.find(text, self.prompt, getattr(self, "entry_point", ""))

    @abc.abstractmethod
    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program."""

    def worker(self, pair: WorkerPair) -> Worker:
        """The worker that runs candidates."""
        return pair.candidate

    def key(self, text: str) -> str:
        """Texts with equal keys fail together."""
        return key(self.program(text))

    def identity(self, text: str) -> str:
        """A checksum of the program that is run."""
        return checksum(self.program(text).source)

    def reading(self, text: str, verdict: Verdict) -> dict[str, str]:
        """How a text was read; if it passed, with the program that ran: a pass certifies that."""
        program = self.program(text)
        passed = {"answer_program": program.source} if verdict is Verdict.PASSED else {}
        return {"read": program.read, **passed}

    def refutation(self, text: str) -> str | None:
        """Why a text certainly fails, without running it; None if it may pass."""
        program = self.program(text)
        if program.error:
            return f"does not parse: {program.error}"
        if (error := refuting.not_compilable(program)) is not None:
            return f"does not compile: {error}"
        return self.lacking(program)

    def lacking(self, program: Program) -> str | None:
        """What a program that compiles certainly lacks; None if it may pass."""
        return None

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text; raises SandboxDied if there is none."""
        started = time.monotonic()
        program = self.program(text)
        if program.error:
            return failed("syntax error", error=clean(program.error))
        finding = self.run(program.source, pair, seed)
        evidence = clean(finding.evidence) | {"isolation": str(self.worker(pair).in_force)}
        usage = Usage(seconds=time.monotonic() - started)
        return Finding(finding.verdict, finding.reason, evidence, usage)


class FailureCount:
    """Counts the failures of each test of a problem: the test that failed most runs first."""

    def __init__(self) -> None:
        self._failures = Counter[int]()
        self._lock = threading.Lock()

    def order(self, tests: int) -> Sequence[int]:
        """The numbers of the tests, in the order to run them."""
        with self._lock:
            return sorted(range(tests), key=lambda test: -self._failures[test])

    def failed(self, test: int) -> None:
        """Note a failure."""
        with self._lock:
            self._failures[test] += 1


@dataclass(frozen=True, slots=True)
class StdinTest:
    """The input of a program, and the output it must print."""

    input: str
    output: str


@dataclass(frozen=True)
class StdinCheck(ProgramCheck):
    """A whole program, run in a new process for each test."""

    tests: tuple[StdinTest, ...]
    limits: RunLimits = DEFAULT_LIMITS
    tolerance: float = 1e-6
    prompt: str = ""
    absolute_tolerance: float = 0.0
    failures: FailureCount = field(default_factory=FailureCount, compare=False, repr=False)

    def lacking(self, program: Program) -> str | None:
        """An empty program fails if a test expects output."""
        if program.tree is None or program.tree.body:
            return None
        outputs = (test.output for test in self.tests)
        silent = all(not output.split() for output in outputs)
        return None if silent else "has no program"

    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if every output agrees."""
        for number in self.failures.order(len(self.tests)):
            finding = self._one(source, pair.candidate, seed, number)
            if finding.verdict is not Verdict.PASSED:
                self.failures.failed(number)
                return finding
        return Finding(Verdict.PASSED, "", {"tests": len(self.tests)})

    def _one(self, source: str, worker: Worker, seed: int, number: int) -> Finding:
        test = self.tests[number]
        seconds = self.limits.seconds
        given = test.input.encode("utf-8", "surrogateescape")
        evidence: dict[str, Any] = {"test": number, "input": test.input[:300]}
        order = {"mode": "program", "source": source, "seed": seed}
        with worker.run("candidate", self.limits, stdin=given, capture=True, first=order) as run:
            end = run.drain()
            if end is not End.CLOSED:
                return silent(run, end, seconds, **evidence)
            # Both its streams are closed, but it may still run.
            ended = run.wait_for_end()
            if isinstance(ended, End):
                return silent(run, ended, seconds, **evidence)
            if ended.exit_code != 0:
                message = run.left_over()
                if isinstance(message, dict) and "raised" in message:
                    return raised(message, **evidence)
                return silent(run, End.CLOSED, seconds, **evidence)
            printed = run.output.decode("utf-8", "replace")
        difference = comparing.first_difference(
            test.output, printed, self.tolerance, self.absolute_tolerance
        )
        if difference is None:
            return Finding(Verdict.PASSED)
        shown = {"expected": test.output[:300], "got": printed[:300], "difference": difference}
        return failed("wrong answer", **evidence, **shown)


@dataclass(frozen=True, slots=True)
class FunctionTest:
    """The arguments of a function, and the value it must return. JSON data."""

    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class FunctionCheck(ProgramCheck):
    """A function, or a method of `Solution`, called once per test in one process."""

    entry_point: str
    tests: tuple[FunctionTest, ...]
    limits: RunLimits = DEFAULT_LIMITS
    tolerance: float = 1e-9
    prompt: str = ""
    absolute_tolerance: float = 0.0
    failures: FailureCount = field(default_factory=FailureCount, compare=False, repr=False)

    def lacking(self, program: Program) -> str | None:
        """A program without the function fails."""
        lacks = refuting.lacks(program, self.entry_point)
        return f"does not define {self.entry_point}" if lacks else None

    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if it returns every expected value."""
        tests = len(self.tests)
        order = loading(source, self.entry_point, self.limits, seed)
        with pair.candidate.run("candidate", self.limits, tests=tests + 1, first=order) as run:
            refusal = load(run, self.entry_point, self.limits)
            if refusal is not None:
                return refusal
            for number in self.failures.order(len(self.tests)):
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
        """Whether an answer passes a test."""
        if "value" not in answer or "raised" in answer or "refused" in answer:
            return False
        value = answer["value"]
        limits = (self.tolerance, self.absolute_tolerance)
        return comparing.same_value(test.expected, value, *limits)

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


def loading(source: str, entry_point: str, limits: RunLimits, seed: int) -> dict[str, Any]:
    """The message that loads a program and names the function to call."""
    order = {"mode": "functions", "source": source, "entry_point": entry_point}
    return order | {"room": limits.output_bytes, "seed": seed}


def load(run: Run, entry_point: str, limits: RunLimits) -> Finding | None:
    """The finding on a program that could not be loaded; None if it was loaded."""
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
    """The candidate's answer to one call. Random numbers expose answers sent before the call."""
    number = secrets.randbits(48)
    run.send({"kwargs": ["d"], "in_place": False, "rich": False} | dict(message) | {"id": number})
    answer = run.receive()
    if isinstance(answer, End):
        return answer
    return answer if answer.get("id") == number else End.MALFORMED


@dataclass(frozen=True)
class AssertsCheck(ProgramCheck):
    """The user's test code, run in a separate process against a proxy of the candidate."""

    entry_point: str
    test: str
    prompt: str = ""
    limits: RunLimits = DEFAULT_LIMITS
    in_place: bool = False

    def lacking(self, program: Program) -> str | None:
        """A program without the function fails."""
        lacks = refuting.lacks(program, self.entry_point)
        return f"does not define {self.entry_point}" if lacks else None

    def run(self, source: str, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if the test ran to its end."""
        limits = self.limits
        order = loading(source, self.entry_point, limits, seed)
        with pair.candidate.run("candidate", limits, first=order) as run:
            refusal = load(run, self.entry_point, limits)
            if refusal is not None:
                return refusal
            with pair.tester(int(limits.memory_mb)) as test:
                test.clock.begin()
                test.send(
                    {
                        **{"entry_point": self.entry_point, "test": self.test, "seed": seed},
                        **{"prompt": self.prompt, "in_place": self.in_place},
                    }
                )
                return self._dialogue(test, run)

    def _dialogue(self, test: Run, run: Run) -> Finding:
        """The finding.

        Forwards the test's calls to the candidate, and the answers back. The candidate's time is
        the sum of loading and all calls.
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
                        return silent(run, answer, self.limits.seconds, **shown)
                    if "refused" in answer:
                        return refused(answer, **_last_call(question))
                    test.clock.turn()
                    test.send({name: answer[name] for name in _PASSED_ON if name in answer})
                case {"end": {"verdict": verdict, "reason": reason, **rest}}:
                    shown = _last_call(question, answer)
                    if reason == "exception" and shown.get("got", "").startswith("MemoryError"):
                        reason = "memory"
                    shown |= {str(name): value for name, value in rest.items()}
                    return Finding(Verdict(verdict), str(reason), shown)
                case End() as end:
                    shown = _last_call(question, answer)
                    return _exhausted(test, end, bool(answer), shown)
                case _:
                    raise SandboxDied(
                        "the test's process sent an unknown message", backend="sandbox"
                    )


_PASSED_ON = ("value", "args", "raised", "exception", "stopped")  # what the test gets of an answer


def _exhausted(test: Run, end: End, answered: bool, shown: Mapping[str, Any]) -> Finding:
    """The finding if the test's process ended before the test did.

    After an answer of the candidate, the answer is the cause. Otherwise the candidate is not.
    """
    if end is End.CLOSED:
        test.wait(0.5)  # raises SandboxDied if it was killed from outside
    evidence = {"message": f"the test did not end: {end.value}", **shown}
    if answered and end is not End.STARVED:
        return failed("test exhausted", **evidence)
    return Finding(Verdict.BROKEN, f"the test did not end: {end.value}", evidence)


def _last_call(
    question: Mapping[str, Any], answer: Mapping[str, Any] | End | None = None
) -> dict[str, Any]:
    """The last call of a test, as evidence: the arguments and the answer."""
    if not question:
        return {}
    shown = {"args": comparing.show_node(question.get("args"))}
    if isinstance(answer, Mapping) and "raised" in answer:
        shown["got"] = str(raised(answer).evidence["exception"])
    elif isinstance(answer, Mapping) and "value" in answer:
        shown["got"] = comparing.show_node(answer["value"])
    return shown
