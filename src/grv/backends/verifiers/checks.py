"""Parses the `"check"` record of a problem.

Every mistake in a record is a UsageError of one line that names the problem and the field.
"""

from __future__ import annotations

import abc
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from ...core.errors import UsageError
from ...files import parse_json, shown
from ...options import did_you_mean, misspelt
from ...text import checksum
from ..protocols import Finding, Problem
from ..sandbox.limits import Limits
from .programs.checks import (
    AssertsCheck,
    FunctionCheck,
    FunctionTest,
    ProgramCheck,
    StdinCheck,
    StdinTest,
)
from .worker_pair import WorkerPair

KINDS = ("asserts", "command", "function", "http", "human", "math", "stdin")
DATA_KINDS = ("asserts", "function", "math", "stdin")  # they run no command and call no server
_MOST_REPEATS = 100


class TextCheck(abc.ABC):
    """A check that needs no sandbox."""

    @abc.abstractmethod
    def compare(self, text: str) -> Finding:
        """The finding on a candidate's text. May be called from any thread."""

    def key(self, text: str) -> str | None:
        """Texts with equal keys fail together; None is in no class."""
        return f"text:{checksum(text)}"

    def identity(self, text: str) -> str:
        """A checksum of the whole text. A pass holds for texts with the same identity."""
        return checksum(text)

    def refutation(self, text: str) -> str | None:
        """Why a text certainly fails, without verification; None if it may pass."""
        return None

    def judge(self, text: str, pair: WorkerPair, seed: int = 0) -> Finding:
        """The finding on a candidate's text."""
        return self.compare(text)


Judging = ProgramCheck | TextCheck


@dataclass(frozen=True)
class Check:
    """How the candidates of one problem are verified.

    Attributes:
        how: judges a candidate's text.
        repeat: the number of verifications of a candidate; it must pass each of them.
        digest: a checksum of the record with its limits, for a store of verdicts.
    """

    how: Judging
    repeat: int
    digest: str


class _Record:
    """A record with its position, for messages: `problem p7, check.tests[3].input: ...`."""

    def __init__(self, data: Any, place: str) -> None:
        self.place = place
        if not isinstance(data, Mapping):
            raise self.wrong("", f"must be a record, not {shown(data)}")
        self.data = data

    def wrong(self, name: str, problem: str) -> UsageError:
        return UsageError(f"{self.place}{'.' if name else ''}{name}: {problem}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self.data.get(name, default)
        if not isinstance(value, str):
            problem = "is missing" if value is None else f"must be a string, not {shown(value)}"
            raise self.wrong(name, problem)
        return value

    def name(self, name: str) -> str:
        value = self.text(name)
        if not value.isidentifier():
            raise self.wrong(name, f"must be a name, not {shown(value)}")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise self.wrong(name, f"must be a number and not negative, not {shown(value)}")
        return float(value)

    def flag(self, name: str) -> bool:
        value = self.data.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, not {shown(value)}")
        return value

    def each(self, name: str) -> list[_Record]:
        values = self.data.get(name)
        if not isinstance(values, list) or not values:
            problem = "is missing" if values is None else "must be a list with at least one test"
            raise self.wrong(name, problem)
        return [_Record(v, f"{self.place}.{name}[{i}]") for i, v in enumerate(values)]

    def only(self, *names: str) -> None:
        """Refuse unknown fields, so that no misspelt limit is ignored."""
        for name in self.data:
            if name not in names:
                hint = did_you_mean(str(name), names) or f"; there are {', '.join(names)}"
                raise self.wrong(str(name), f"no such field{hint}")


def parse_check(problem: Problem, defaults: Limits | None = None) -> Check:
    """The check of a problem; `defaults` are the limits that the record does not set."""
    record = _Record(problem.check, f"problem {problem.id}, check")
    if wrong := misspelt(record.data, ("kind",)):
        raise record.wrong("", wrong)
    kind = record.text("kind")
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise record.wrong("kind", f"must be one of {', '.join(KINDS)}, not {shown(kind)}{hint}")
    repeat = record.data.get("repeat", 1)
    if isinstance(repeat, bool) or not isinstance(repeat, int) or not 1 <= repeat <= _MOST_REPEATS:
        raise record.wrong("repeat", f"must be between 1 and {_MOST_REPEATS}, not {shown(repeat)}")
    limits = _limits(record, defaults or Limits())
    how = _PARSERS[kind](record, limits, problem)
    prompt = problem.prompt if kind == "asserts" else ""  # a prompt may be part of the program
    try:
        text = json.dumps([dict(record.data), repr(limits), prompt], sort_keys=True)
    except (TypeError, ValueError) as exc:
        raise record.wrong("", f"is not JSON data: {exc}") from None
    return Check(how, repeat, checksum(text))


def _limits(record: _Record, defaults: Limits) -> Limits:
    changes = record.data.get("limits", {})
    if not isinstance(changes, Mapping):
        raise record.wrong("limits", f"must be a record, not {shown(changes)}")
    if wrong := misspelt(changes, [each.name for each in fields(Limits)]):
        raise record.wrong("limits", wrong)
    try:
        return defaults.with_(changes)
    except ValueError as exc:
        raise record.wrong("limits", str(exc)) from None


def _stdin(record: _Record, limits: Limits, problem: Problem) -> StdinCheck:
    record.only("kind", "tests", "tolerance", "prompt", "limits", "repeat")
    tests = []
    for test in record.each("tests"):
        test.only("input", "output")
        tests.append(StdinTest(test.text("input"), test.text("output")))
    return StdinCheck(
        tuple(tests), limits, record.number("tolerance", 1e-6), record.text("prompt", "")
    )


def _function(record: _Record, limits: Limits, problem: Problem) -> FunctionCheck:
    record.only("kind", "entry_point", "tests", "tolerance", "prompt", "limits", "repeat")
    tests = tuple(_function_test(test) for test in record.each("tests"))
    return FunctionCheck(
        record.name("entry_point"),
        tests,
        limits,
        record.number("tolerance", 1e-9),
        record.text("prompt", ""),
    )


def _function_test(test: _Record) -> FunctionTest:
    """A test with `args` and `expected`, or with LiveCodeBench's strings `input` and `output`.

    Each line of `input` is one argument as JSON; `output` is JSON.
    """
    if "input" in test.data or "output" in test.data:
        test.only("input", "output")
        lines = [line for line in test.text("input").split("\n") if line.strip()]
        values = tuple(_json(test, "input", line) for line in lines)
        return FunctionTest(values, _json(test, "output", test.text("output")))
    test.only("args", "expected")
    if "expected" not in test.data:
        raise test.wrong("expected", "is missing")
    args = test.data.get("args")
    if isinstance(args, str):
        args = [_json(test, "args", line) for line in args.split("\n") if line.strip()]
    if not isinstance(args, list):
        problem = "is missing" if args is None else f"must be a list, not {shown(args)}"
        raise test.wrong("args", problem)
    return FunctionTest(tuple(args), test.data["expected"])


def _json(record: _Record, name: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        raise record.wrong(name, f"is not JSON: {shown(text)}") from None


def _asserts(record: _Record, limits: Limits, problem: Problem) -> AssertsCheck:
    record.only("kind", "entry_point", "test", "prompt", "in_place", "limits", "repeat")
    test = record.text("test")
    try:
        compile(test, "<test>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise record.wrong("test", f"is not a program: {exc or 'nested too deep'}") from None
    prompt = record.text("prompt", problem.prompt)
    return AssertsCheck(record.name("entry_point"), test, prompt, limits, record.flag("in_place"))


def _text(module: str, name: str, *fields: str) -> _Parser:
    """A check without a sandbox. Its module is imported on use, as its libraries are optional."""

    def parse(record: _Record, limits: Limits, problem: Problem) -> Judging:
        record.only("kind", *fields, "limits", "repeat")
        kind = getattr(importlib.import_module(module, __package__), name)
        try:
            return cast(TextCheck, kind.of(problem))
        except UsageError as exc:
            raise record.wrong("", str(exc)) from None

    return parse


_Parser = Callable[[_Record, Limits, Problem], Judging]
_PARSERS: Mapping[str, _Parser] = {
    "asserts": _asserts,
    "command": _text(".command", "CommandCheck", "argv"),
    "function": _function,
    "http": _text(".http", "HttpCheck", "url", "data"),
    "human": _text(".human", "HumanCheck", "question", "rubric", "minutes"),
    "math": _text(".math.check", "MathCheck", "answer", "match"),
    "stdin": _stdin,
}
