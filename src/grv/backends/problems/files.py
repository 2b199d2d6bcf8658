"""Problems from a file: JSON lines with `problem`, `prompt` and `check`.

The fields `question`, `code`, `weight` and `expected_cost` are optional, and `messages` may replace
`prompt`; see `Problem`.
Right answers may be in `solutions`. They are for `read_examples` alone: a `Problem` has no such
field, so no model, scorer or verifier of a live run can see them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import UsageError
from ...files import is_number, json_lines, shown
from ...options import misspelt
from ...text import is_name
from ..generators.chat import Message, parse_messages, transcript
from ..protocols import Problem

FIELDS = ("problem", "prompt", "check")
OPTIONAL = ("question", "code", "messages", "solutions", "weight", "expected_cost")


def read_problems(path: str, *, checks: bool = True) -> Iterator[Problem]:
    """The problems of a file. An error names the line; a problem may occur only once.

    Without `checks`, a problem may have no check: the user's own code verifies.
    """
    for problem, _ in _read(path, checks=checks):
        yield problem


@dataclass(frozen=True, slots=True)
class Example:
    """A problem and right answers to it, if its record has any."""

    problem: Problem
    solutions: tuple[str, ...] = ()


def read_examples(path: str) -> Iterator[Example]:
    """The problems of a file with their solutions, as `read_problems`."""
    for problem, record in _read(path, checks=True):
        solutions = record.get("solutions", [])
        if not isinstance(solutions, list) or not all(isinstance(each, str) for each in solutions):
            raise UsageError(
                f"{path}: problem {problem.id!r}: 'solutions' must be a list of texts, not"
                f" {shown(solutions)}"
            )
        yield Example(problem, tuple(solutions))


def _read(path: str, *, checks: bool) -> Iterator[tuple[Problem, Mapping[str, Any]]]:
    if path.endswith((".csv", ".parquet", ".toml")):
        raise UsageError(f"{path}: problems are JSON lines, one object per line, in NAME.jsonl")
    lines = ProblemLines(path, checks=checks)
    for number, record in json_lines(path):
        yield lines.problem(number, record), record
    if not lines.seen:
        raise UsageError(f"{path}: no problems in this file")


class ProblemLines:
    """Makes problems of the lines of one file. A problem may occur only once.

    Args:
        path: the file, as messages name it.
        checks: whether every problem needs a check.

    Attributes:
        seen: the lines of the problems so far.
    """

    def __init__(self, path: str, *, checks: bool) -> None:
        self.seen: dict[str, int] = {}
        self._path = path
        self._checks = checks

    def problem(self, number: int, record: Mapping[str, Any]) -> Problem:
        """The problem of a line."""
        place = f"{self._path}:{number}"
        problem = _problem(place, record if self._checks else {"check": {}, **record})
        if problem.id in self.seen:
            earlier = self.seen[problem.id]
            raise UsageError(f"{place}: problem {problem.id!r} is also on line {earlier}")
        self.seen[problem.id] = number
        return problem


def _problem(place: str, record: Mapping[str, Any]) -> Problem:
    name, prompt, check = (record.get(field) for field in FIELDS)
    if wrong := misspelt(record, FIELDS, OPTIONAL):
        raise UsageError(f"{place}: {wrong}")
    for field in FIELDS:
        if field not in record and not (field == "prompt" and "messages" in record):
            other = "; or give --verifier FILE.py:NAME" if field == "check" else ""
            raise UsageError(
                f"{place}: no field {field!r}; a problem has {', '.join(FIELDS)}{other}"
            )
    if not is_name(name):
        raise UsageError(f"{place}: 'problem' must be a name, not {shown(name)}")
    messages: tuple[Message, ...] = ()
    if "messages" in record:
        if prompt is not None:
            raise UsageError(f"{place}: give 'prompt' or 'messages', not both")
        try:
            messages = parse_messages(record["messages"])
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from error
        prompt = transcript(messages)
    if not isinstance(prompt, str):
        raise UsageError(f"{place}: 'prompt' must be text, not {shown(prompt)}")
    if not isinstance(check, dict):
        raise UsageError(f"{place}: 'check' must be an object, not {shown(check)}")
    question, code = (_optional(place, record, field) for field in ("question", "code"))
    weight = _amount(place, record, "weight", positive=True)
    expected = _amount(place, record, "expected_cost")
    return Problem(
        str(name),
        prompt,
        check,
        question,
        code,
        messages,
        1.0 if weight is None else weight,
        expected,
    )


def _amount(
    place: str, record: Mapping[str, Any], field: str, *, positive: bool = False
) -> float | None:
    value = record.get(field)
    if value is None:
        return None
    if not is_number(value) or not 0 <= value < math.inf or (positive and not value):
        wanted = "a positive number" if positive else "a number that is not negative"
        raise UsageError(f"{place}: {field!r} must be {wanted}, not {shown(value)}")
    return float(value)


def _optional(place: str, record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{place}: {field!r} must be text, not {shown(value)}")
    return value or ""


def record_of(problem: Problem, solutions: Sequence[str] = ()) -> dict[str, Any]:
    """The line of a problem in a file."""
    asked = {"messages": [*problem.messages]} if problem.messages else {"prompt": problem.prompt}
    record: dict[str, Any] = {"problem": problem.id, **asked, "check": dict(problem.check)}
    optional = {"question": problem.question, "code": problem.code}
    record |= {field: text for field, text in optional.items() if text}
    if problem.weight != 1.0:
        record["weight"] = problem.weight
    if problem.expected_cost is not None:
        record["expected_cost"] = problem.expected_cost
    return record | ({"solutions": [*solutions]} if solutions else {})
