"""Published datasets as problems: HMMT, LiveCodeBench, HumanEval.

A record of a dataset becomes `{"problem", "prompt", "check"}`. Nothing in a record is executed or
unpickled; see `_private_tests`.
"""

from __future__ import annotations

import base64
import pickletools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...core.errors import UsageError
from ...files import LONGEST_LINE, json_lines, parse_json
from ...parquet import read_rows
from ..protocols import Problem
from ..verifiers.checks import parse_check
from .prompts import filled

_Record = Mapping[str, Any]  # untrusted JSON data, checked field by field
LARGEST = LONGEST_LINE  # unpacked bytes of the tests in one record: a problem is a line of a file
_TEXT = {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
_STEPS = 16  # opcodes of a pickle of one text; there are 6
_BEGINNING = 1000  # characters that may precede a list
_AROUND_TEXT = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}

MATH_PROMPT = "{question}\n\nReason step by step, and put the final answer within \\boxed{}.\n\n"
STDIN_PROMPT = (
    "{question}\n\nWrite a Python program that reads the input from standard input and prints the"
    " answer.\n\n```python\n"
)
FUNCTION_PROMPT = (
    "{question}\n\nComplete this Python program.\n\n```python\n{code}\n```\n\n```python\n"
)
CODE_PROMPT = "{code}"


@dataclass(frozen=True, slots=True)
class Converted:
    """A problem of a dataset, and its difficulty if the dataset states it."""

    problem: Problem
    difficulty: str | None = None


def hmmt(
    record: _Record, source: str, prompt: str | None, match: str, largest: int = LARGEST
) -> Converted:
    """A problem of HMMT, as MathArena publishes it or with the fields problem, prompt, answer."""
    if "prompt" in record:
        name = str(_field(record, "problem", str | int))
        question = _text(record, "prompt")
    else:
        number = _field(record, "problem_idx", str | int)
        name = f"{source}/{number}"
        question = _text(record, "problem")
    answer = _field(record, "answer", str | int | float)
    check = {"kind": "math", "answer": str(answer), "match": match}
    return Converted(Problem(name, filled(prompt or MATH_PROMPT, question), check, question))


def livecodebench(
    record: _Record, source: str, prompt: str | None, match: str, largest: int = LARGEST
) -> Converted:
    """A problem of LiveCodeBench, with its public and hidden tests."""
    question = _text(record, "question_content")
    code = _text(record, "starter_code", "")
    public = _field(record, "public_test_cases", str | list)
    tests = _tests(public, "public_test_cases", largest)
    tests += _tests(_private_tests(record, largest), "private_test_cases", largest)
    check: dict[str, Any] = {"kind": "stdin"}
    if any(test.get("testtype") == "functional" for test in tests):
        match _parsed(record.get("metadata"), "metadata"):
            case {"func_name": str(entry_point)}:
                check = {"kind": "function", "entry_point": entry_point}
            case _:
                raise UsageError("metadata has no func_name, but the tests call a function")
    check["tests"] = [{name: _text(test, name) for name in ("input", "output")} for test in tests]
    form = prompt or (STDIN_PROMPT if check["kind"] == "stdin" else FUNCTION_PROMPT)
    name = str(_field(record, "question_id", str | int))
    code = code.rstrip()
    problem = Problem(name, filled(form, question, code), check, question, code)
    return Converted(problem, _text(record, "difficulty", "") or None)


def humaneval(
    record: _Record, source: str, prompt: str | None, match: str, largest: int = LARGEST
) -> Converted:
    """A problem of HumanEval: the beginning of a program, and its tests."""
    name = record.get("task_id", record.get("problem"))
    if not isinstance(name, str):
        raise UsageError("there is no task_id")
    # A model continues best right after the docstring, and starts the line itself.
    code = _text(record, "prompt").rstrip()
    check = {
        "kind": "asserts",
        "entry_point": _text(record, "entry_point"),
        "test": _text(record, "test"),
        "prompt": f"{code}\n",
    }
    return Converted(Problem(name, filled(prompt or CODE_PROMPT, code, code), check, code, code))


Reader = Callable[[_Record, str, str | None, str, int], Converted]
DATASETS: Mapping[str, Reader] = MappingProxyType(
    {"hmmt": hmmt, "livecodebench": livecodebench, "humaneval": humaneval}
)


def read_dataset(
    name: str,
    paths: Sequence[str],
    *,
    prompt: str | None = None,
    match: str = "equivalent",
    largest: int = LARGEST,
) -> Iterator[Converted]:
    """The problems of a dataset's files. An error names the line; a problem may occur only once.

    Args:
        name: one of `DATASETS`.
        paths: files of JSON lines, also compressed with gzip, or Parquet.
        prompt: a template with {question} or {code}, instead of the dataset's own.
        match: how answers in mathematics are compared: equivalent or exact.
        largest: how many bytes the tests of a record may unpack to.
    """
    if prompt is not None and "{question}" not in prompt and "{code}" not in prompt:
        raise UsageError("the prompt must contain {question} or {code}")
    seen: dict[str, str] = {}
    for path in paths:
        source = Path(path).name.partition(".")[0]
        for number, record in enumerate(_records(path), 1):
            place = f"{path}:{number}"
            try:
                converted = DATASETS[name](record, source, prompt, match, largest)
                parse_check(converted.problem)
            except UsageError as error:
                raise UsageError(f"{place}: {error}") from error
            id = converted.problem.id
            if id in seen:
                raise UsageError(f"{place}: problem {id!r} is also at {seen[id]}")
            seen[id] = place
            yield converted
    if not seen:
        raise UsageError(f"{', '.join(paths)}: no problems")


def _records(path: str) -> Iterator[_Record]:
    if path.endswith(".parquet"):
        yield from read_rows(path)
        return
    for _, record in json_lines(path):
        yield record


def _field(record: _Record, name: str, kind: Any) -> Any:
    value = record.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        there = ", ".join(map(str, record))
        raise UsageError(f"field {name} is missing or has the wrong type; there are {there[:200]}")
    return value


def _text(record: _Record, name: str, default: str | None = None) -> str:
    if default is not None and record.get(name) is None:
        return default
    return str(_field(record, name, str))


def _parsed(value: Any, name: str) -> Any:
    """The value of a field that may be JSON in a text."""
    try:
        return parse_json(value) if isinstance(value, str) else value
    except ValueError as error:
        raise UsageError(f"{name} is not JSON: {error}") from error


def _tests(listed: str | list[Any], name: str, largest: int) -> list[_Record]:
    if isinstance(listed, str) and len(listed) > largest:
        raise _too_large(name, largest)
    tests = _parsed(listed, name)
    if not isinstance(tests, list) or not all(isinstance(test, dict) for test in tests):
        raise UsageError(f"{name} is not a list of tests")
    return tests


def _too_large(name: str, largest: int) -> UsageError:
    return UsageError(
        f"{name} unpacks to more than {largest:,} bytes, the limit: leave this record out, or"
        " raise the limit in Python with read_dataset(..., largest=BYTES)"
    )


def _private_tests(record: _Record, largest: int) -> str | list[Any]:
    """The hidden tests: JSON, or JSON in a compressed pickle in base64.

    Loading a pickle can run any code, so it is only scanned. A pickle of one text consists of the
    text and a few opcodes around it; at any other opcode the scan ends, and it is refused.
    """
    name = "private_test_cases"
    packed: str | list[Any] = _field(record, name, str | list)
    if isinstance(packed, list) or packed[:_BEGINNING].lstrip().startswith("["):
        return packed
    if len(packed) > 2 * largest:  # in base64
        raise _too_large(name, largest)
    try:
        unpacking = zlib.decompressobj()
        pickled = unpacking.decompress(base64.b64decode(packed, validate=True), largest)
        if len(pickled) == largest and not unpacking.eof:
            raise _too_large(name, largest)
        if not unpacking.eof:
            raise ValueError("cut off")
        return _only_text(pickled)
    except UsageError:
        raise
    except (ValueError, zlib.error) as error:
        raise UsageError(f"{name} cannot be unpacked: {error}"[:200]) from error


def _only_text(pickled: bytes) -> str:
    """The text in a pickle of one text."""
    texts: list[Any] = []
    for count, (step, value, _) in enumerate(pickletools.genops(pickled), 1):
        if step.name in _TEXT:
            texts.append(value)
        elif step.name not in _AROUND_TEXT:
            raise UsageError(
                f"private_test_cases is a pickle with {step.name}, not with one text; refused"
            )
        if len(texts) > 1 or count > _STEPS:
            raise UsageError("private_test_cases is a pickle with more than one text; refused")
    if not texts:
        raise UsageError("private_test_cases is a pickle without a text; refused")
    return str(texts[0])
