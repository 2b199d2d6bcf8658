"""Checks that run programs in the sandbox.

The verdict is decided only here, in the judge. Expected values stay here: the candidate's process
receives only the input or the arguments of a test.
"""

from __future__ import annotations

import abc
import itertools
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....core.values import Verdict
from ....text import checksum
from ...protocols import Finding, Stage, Usage
from ...sandbox import plain
from ...sandbox.limits import DEFAULT_LIMITS, End, RunLimits
from ...sandbox.run import Run, SandboxDied
from ...sandbox.worker import Worker
from ..suite import Suite, with_stages
from ..worker_pair import WorkerPair
from . import comparing, reading, refuting
from .findings import clean, failed, raised, refused, silent
from .forgetful import is_forgetful
from .keys import key
from .simple_tests import Unclear, simple_test
from .statements import Statements, statements
from .syntax import Program


class ProgramCheck(abc.ABC):
    """A way to verify programs: how they are found in a text, and how they are run."""

    prompt: str

    def program(self, text: str) -> Program:
        """The program in a candidate's text; with an `entry_point`, one that defines it."""
        return reading.find(text, self.prompt, getattr(self, "entry_point", ""))

    @abc.abstractmethod
    def run(self, program: Program, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program."""

    def suites(self) -> Iterator[Suite]:
        """What orders its tests, if there are several."""
        suite = getattr(self, "suite", None)
        if isinstance(suite, Suite):
            yield suite

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
        finding = self.run(program, pair, seed)
        evidence = clean(finding.evidence) | {"isolation": str(self.worker(pair).in_force)}
        usage = Usage(seconds=time.monotonic() - started)
        return Finding(finding.verdict, finding.reason, evidence, usage)


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
    suite: Suite = field(default_factory=Suite, compare=False, repr=False)

    def lacking(self, program: Program) -> str | None:
        """An empty program fails if a test expects output."""
        if program.tree is None or program.tree.body:
            return None
        outputs = (test.output for test in self.tests)
        silent = all(not output.split() for output in outputs)
        return None if silent else "has no program"

    def run(self, program: Program, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if every output agrees."""
        return self.suite.find(
            len(self.tests),
            lambda number: self._one(program.source, pair.candidate, seed, number),
        )

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
    suite: Suite = field(default_factory=Suite, compare=False, repr=False)

    def lacking(self, program: Program) -> str | None:
        """A program without the function fails."""
        lacks = refuting.lacks(program, self.entry_point)
        return f"does not define {self.entry_point}" if lacks else None

    def run(self, program: Program, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if it returns every expected value.

        One process makes all calls. A program that may remember a call gets them in the order of
        the file; so does one that ran out of memory in another order.
        """
        order = self.suite.order(len(self.tests))
        if is_reordered(order) and is_forgetful(program):
            finding = self._called(program.source, pair, seed, order)
            if is_certain(finding):
                return finding
        return self._called(program.source, pair, seed, range(len(self.tests)))

    def _called(self, source: str, pair: WorkerPair, seed: int, order: Sequence[int]) -> Finding:
        tests = len(self.tests)
        loaded = loading(source, self.entry_point, self.limits, seed)
        with pair.candidate.run("candidate", self.limits, tests=tests + 1, first=loaded) as run:
            refusal = load(run, self.entry_point, self.limits)
            if refusal is not None:
                return refusal
            return self.suite.find(tests, lambda number: self._one(run, number), order)

    def _one(self, run: Run, number: int) -> Finding:
        test = self.tests[number]
        run.clock.begin()
        answer = call(run, {"args": plain.encode(list(test.args))})
        if isinstance(answer, dict) and self._is_right(answer, test):
            return Finding(Verdict.PASSED)
        shown = {"test": number, "args": comparing.show(list(test.args))}
        return self._failure(run, answer, test, shown)

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


def is_reordered(order: Sequence[int]) -> bool:
    """Whether tests do not run in the order of the file."""
    return any(place != number for place, number in enumerate(order))


def is_certain(finding: Finding) -> bool:
    """Whether the verdict of a run in another order is that of the order of the file.

    A test may be at fault only in one order, and memory may be scattered only in one.
    """
    return finding.verdict is not Verdict.BROKEN and finding.reason != "memory"


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


def _asserts() -> Suite:
    return Suite("assert")


@dataclass(frozen=True)
class AssertsCheck(ProgramCheck):
    """The user's test code, run in a separate process against a proxy of the candidate."""

    entry_point: str
    test: str
    prompt: str = ""
    limits: RunLimits = DEFAULT_LIMITS
    in_place: bool = False
    objects: bool = False
    suite: Suite = field(default_factory=_asserts, compare=False, repr=False)

    def lacking(self, program: Program) -> str | None:
        """A program without the function fails."""
        lacks = refuting.lacks(program, self.entry_point)
        return f"does not define {self.entry_point}" if lacks else None

    @property
    def statements(self) -> Statements | None:
        """The asserts that may change places, if there are some."""
        return statements(self.test, self.entry_point) if self._asks_by_value else None

    @property
    def _asks_by_value(self) -> bool:
        """Whether the test sees copies only, so that each call is a question of its own."""
        return not self.in_place and not self.objects

    def run(self, program: Program, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if the test ran to its end.

        Asserts change places only if neither the test nor the program can notice it.
        """
        parts = self.statements
        if parts is None:
            return self._tested(program.source, pair, seed, self.test, ())
        order = self.suite.order(len(parts.asserts))
        if is_reordered(order) and is_forgetful(program):
            finding = self._tested(program.source, pair, seed, parts.text(order), order)
            if is_certain(finding):
                return finding
        return self._tested(program.source, pair, seed, self.test, range(len(parts.asserts)))

    def _tested(
        self, source: str, pair: WorkerPair, seed: int, test: str, order: Sequence[int]
    ) -> Finding:
        """The finding of a test whose asserts are in this order; none if they are not known."""
        limits = self.limits
        loaded = loading(source, self.entry_point, limits, seed)
        with pair.candidate.run("candidate", limits, first=loaded) as run:
            refusal = load(run, self.entry_point, limits)
            if refusal is not None:
                return refusal
            calls = _Calls(run, limits.seconds)
            finding = self._evaluated(test, calls)
            if finding is None:
                with pair.tester(int(limits.memory_mb)) as tester:
                    tester.clock.begin()
                    tester.send(
                        {
                            **{"entry_point": self.entry_point, "test": test, "seed": seed},
                            **{"prompt": self.prompt, "in_place": self.in_place},
                            "objects": self.objects,
                        }
                    )
                    finding = self._dialogue(tester, calls)
            calls.times.append(time.monotonic())
        return self._in_stages(finding, order, calls.times) if order else finding

    def _evaluated(self, test: str, calls: _Calls) -> Finding | None:
        """The finding of a test that the judge evaluates; None if a process must run it."""
        if not self._asks_by_value:
            return None
        simple = simple_test(test, self.prompt, self.entry_point)
        if simple is None:
            return None
        try:
            outcome = simple.outcome(calls.ask_and_keep)
        except Unclear:
            calls.begin_again()
            return None
        except _Unanswered as end:
            return end.finding
        verdict = Verdict.FAILED if outcome.reason else Verdict.PASSED
        return Finding(verdict, outcome.reason, calls.last() | dict(outcome.evidence))

    def _in_stages(self, finding: Finding, order: Sequence[int], calls: Sequence[float]) -> Finding:
        """The finding with the asserts that ran: each of them calls the candidate once.

        `calls` are the times of the calls and of the end. What follows the asserts is one more
        stage, which has no number.
        """
        seconds = [round(after - before, 6) for before, after in itertools.pairwise(calls)]
        stages = [
            Stage(self.suite.name(number), Verdict.PASSED, spent)
            for number, spent in zip(order, seconds, strict=False)
        ]
        rest = seconds[len(order) :]
        if rest:
            stages.append(Stage("the rest", Verdict.PASSED, sum(rest)))
        if not stages or finding.verdict is Verdict.BROKEN:
            return finding
        stages[-1] = replace(stages[-1], verdict=finding.verdict)
        self.suite.note(zip(order, stages, strict=False))
        return with_stages(finding, stages)

    def _dialogue(self, test: Run, calls: _Calls) -> Finding:
        """The finding of a test in its process.

        Forwards the test's calls to the candidate, and the answers back. What the candidate has
        answered already, it is not asked again.
        """
        while True:
            match test.receive():
                case {"call": dict(question)}:
                    try:
                        answer = calls.repeat(question)
                    except _Unanswered as end:
                        return end.finding
                    test.clock.turn()
                    test.send({name: answer[name] for name in _PASSED_ON if name in answer})
                case {"end": {"verdict": verdict, "reason": reason, **rest}}:
                    shown = calls.last()
                    if reason == "exception" and shown.get("got", "").startswith("MemoryError"):
                        reason = "memory"
                    shown |= {str(name): value for name, value in rest.items()}
                    return Finding(Verdict(verdict), str(reason), shown)
                case End() as end:
                    return _exhausted(test, end, calls.is_answered, calls.last())
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


class _Unanswered(Exception):
    """The candidate gave no answer that a test can use."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


class _Calls:
    """What a test asks a candidate, and what the candidate answers.

    The candidate's time is the sum of loading and all calls.

    Attributes:
        times: when the calls were made.
        kept: questions with their answers, for a process that asks them again.
        is_answered: whether the test got an answer.
    """

    def __init__(self, run: Run, seconds: float) -> None:
        self._run = run
        self._seconds = seconds
        self._question: Mapping[str, Any] = {}
        self._answer: Mapping[str, Any] = {}
        self.times: list[float] = []
        self.kept: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        self.is_answered = False

    def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The candidate's answer; raises `_Unanswered` if there is none."""
        self._question = question
        self._answer = {}
        if "do" not in question:
            self.times.append(time.monotonic())
        self._run.clock.turn()
        answer = call(self._run, question)
        if isinstance(answer, End):
            raise _Unanswered(silent(self._run, answer, self._seconds, **self.last()))
        if "refused" in answer:
            raise _Unanswered(refused(answer, **self.last()))
        self._answer = answer
        self.is_answered = True
        return answer

    def ask_and_keep(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The candidate's answer, which is kept."""
        self.kept.append((question, self.ask(question)))
        return self._answer

    def begin_again(self) -> None:
        """Note that the test starts again, in a process that has not asked anything yet."""
        self._question = {}
        self._answer = {}
        self.is_answered = False

    def repeat(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The first kept answer, which is the one to this question; else the candidate's."""
        if not self.kept:
            return self.ask(question)
        asked, answer = self.kept.pop(0)
        if asked != question:
            raise SandboxDied("the test asks something else than the judge", backend="sandbox")
        self._question = question
        self._answer = answer
        self.is_answered = True
        return answer

    def last(self) -> dict[str, Any]:
        """The last call as evidence: the arguments and the answer."""
        if not self._question:
            return {}
        shown = {"args": comparing.show_node(self._question.get("args"))}
        if "raised" in self._answer:
            shown["got"] = str(raised(self._answer).evidence["exception"])
        elif "value" in self._answer:
            shown["got"] = comparing.show_node(self._answer["value"])
        return shown
