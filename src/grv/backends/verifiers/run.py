"""Verify programs in any language: checks of kind "run".

`{"kind": "run", "language": "cpp", "tests": [{"input": "3 4", "output": "7"}]}`. A program is built
once, in the jail, with no input or expected value present. Each test is a process of its own, with
an empty scratch directory. The judge compares what it printed. If several outputs are right, a
checker decides: a program of the check, in a jail of its own, where no candidate ever runs. A check
may put text around a candidate's program (completing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.values import Verdict
from ...text import checksum
from ..protocols import Finding
from ..sandbox.limits import DEFAULT_LIMITS, End, RunLimits
from ..sandbox.tool_worker import ToolWorker
from .languages import sources
from .languages.building import build, ended, said, wait
from .languages.completing import Completion
from .languages.toolchains import BuildPlan, NotInstalled, own_step, toolchain
from .programs import comparing
from .programs.checks import ProgramCheck
from .programs.findings import failed
from .programs.syntax import Program
from .suite import Suite
from .worker_pair import WorkerPair

_SHOWN = 300  # characters of inputs and outputs that are kept as evidence


@dataclass(frozen=True, slots=True)
class RunTest:
    """The input of a program, and the output it must print; None if only a checker decides."""

    input: str
    output: str | None


@dataclass(frozen=True, slots=True)
class OwnCommands:
    """How a check builds and runs programs itself.

    Attributes:
        source: the name of the program's file, `{}` in an argument.
        build: the program that builds it, with arguments; empty if nothing is built.
        run: the program that runs it, with arguments; `./NAME` is a file that was built.
    """

    source: str
    build: tuple[str, ...]
    run: tuple[str, ...]

    def plan(self) -> BuildPlan:
        """How a program is built and run. Raises UsageError if a program is missing here."""
        path = f"{{built}}/{self.source}"
        build = tuple(part.replace("{}", path) for part in self.build)
        run = tuple(part.replace("{}", path) for part in self.run)
        steps = (own_step(build),) if build else ()
        return BuildPlan(self.source, steps, own_step(run), mode="command")


@dataclass(frozen=True, slots=True)
class Checker:
    """A program that decides: arguments input, output, expected; exit code 0 passed, 1 failed."""

    language: str
    program: str

    def compare(
        self, worker: ToolWorker, test: RunTest, printed: bytes, limits: RunLimits
    ) -> Finding:
        """The finding on an output; broken if the checker cannot decide."""
        plan = toolchain(self.language).plan(self.program, int(limits.memory_mb))
        problem = build(worker, plan, self.program, limits)
        if problem is not None:
            return Finding(Verdict.BROKEN, "the checker does not compile", problem.evidence)
        files = {
            "input.txt": test.input,
            "output.txt": printed.decode("utf-8", "surrogateescape"),
            "expected.txt": test.output or "",
        }
        step = plan.run.with_arguments(*files)
        with worker.step(plan.mode, step, limits, files=files, joins=True) as run:
            status = wait(run)
            evidence = {f"checker_{name}": text for name, text in said(worker, run).items()}
            if isinstance(status, End) or status.exit_code is None:
                cause = status.value if isinstance(status, End) else status.cause or "crash"
                return Finding(Verdict.BROKEN, f"the checker did not end: {cause}", evidence)
        match status.exit_code:
            case 0:
                return Finding(Verdict.PASSED)
            case 1:
                return failed("checker failed it", **evidence)
            case code:
                return Finding(Verdict.BROKEN, f"the checker exited with status {code}", evidence)


@dataclass(frozen=True)
class RunCheck(ProgramCheck):
    """A whole program in any language, run in a new process for each test."""

    language: str
    tests: tuple[RunTest, ...]
    limits: RunLimits = DEFAULT_LIMITS
    tolerance: float = 1e-6
    absolute_tolerance: float = 0.0
    own: OwnCommands | None = None
    checker: Checker | None = None
    completion: Completion = field(default_factory=Completion)
    prompt: str = ""
    suite: Suite = field(default_factory=Suite, compare=False, repr=False)

    def program(self, text: str) -> Program:
        """The program in a candidate's text, with what the check puts around it."""
        found = sources.find(text, self.language)
        return Program(self.completion.around(found.source), read=found.read)

    def key(self, text: str) -> str:
        """Texts with the same program fail together."""
        return f"run:{checksum(self.program(text).source)[:40]}"

    def refutation(self, text: str) -> str | None:
        """An empty program fails if a test expects output."""
        if self.checker is not None or self.program(text).source.strip():
            return None
        silent_tests = all(not (test.output or "").split() for test in self.tests)
        return None if silent_tests else "has no program"

    def worker(self, pair: WorkerPair) -> ToolWorker:
        """The worker that builds and runs candidates."""
        return pair.tools

    def run(self, program: Program, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if it compiles and every output is right.

        It is broken if this machine lacks the tools: other problems are judged all the same.
        """
        try:
            return self._judged(program.source, pair)
        except NotInstalled as exc:
            return Finding(Verdict.BROKEN, str(exc))

    def _judged(self, source: str, pair: WorkerPair) -> Finding:
        if self.own is not None:
            plan = self.own.plan()
        else:
            plan = toolchain(self.language).plan(source, int(self.limits.memory_mb))
        problem = build(pair.tools, plan, source, self.limits)
        if problem is not None:
            return problem
        return self.suite.find(len(self.tests), lambda number: self._one(plan, pair, number))

    def _one(self, plan: BuildPlan, pair: WorkerPair, number: int) -> Finding:
        test = self.tests[number]
        evidence: dict[str, Any] = {"test": number, "input": test.input[:_SHOWN]}
        given = test.input.encode("utf-8", "surrogateescape")
        with pair.tools.step(plan.mode, plan.run, self.limits, stdin=given) as run:
            problem = ended(pair.tools, run, self.limits, "no answer", **evidence)
            if problem is not None:
                return problem
            output = bytes(run.output)
        if self.checker is not None:
            finding = self.checker.compare(pair.checker, test, output, self.limits)
            shown = {**evidence, "got": output.decode("utf-8", "replace")[:_SHOWN]}
            return Finding(finding.verdict, finding.reason, {**shown, **finding.evidence})
        printed = output.decode("utf-8", "replace")
        expected = test.output or ""
        difference = comparing.first_difference(
            expected, printed, self.tolerance, self.absolute_tolerance
        )
        if difference is None:
            return Finding(Verdict.PASSED)
        shown = {"expected": expected[:_SHOWN], "got": printed[:_SHOWN], "difference": difference}
        return failed("wrong answer", **evidence, **shown)


def arguments(value: Sequence[str]) -> tuple[str, ...]:
    """An argument list of a check; raises ValueError if it is none."""
    if not isinstance(value, list) or not value or not all(isinstance(p, str) for p in value):
        raise ValueError("must be a list of strings, the program first")
    if not value[0] or any("\0" in part for part in value):
        raise ValueError("names no program, or has a null character")
    return tuple(value)
