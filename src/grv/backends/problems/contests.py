"""Contest problems: LiveCodeBench, TACO, APPS and CodeContests.

Time and memory limits of a dataset become limits of the check.
"""

from __future__ import annotations

import base64
import os
import pickletools
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import LogError, UsageError
from ...files import is_number, parse_json, read_bytes, shown
from ..protocols import Problem
from . import unit_tests
from .prompts import filled
from .reading import read_records
from .records import (
    FUNCTION_PROMPT,
    LANGUAGES,
    STDIN_PROMPT,
    Converted,
    NotConverted,
    Record,
    Wanted,
    kept,
    limits,
    parsed,
    too_large,
    usable_megabytes,
    usable_seconds,
)

_TEXT = {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
_STEPS = 16  # opcodes of a pickle of one text; there are 6
_BEGINNING = 1000  # characters that may precede a list
_AROUND_TEXT = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}
_RUN_PROMPT = (
    "{question}\n\nWrite a LANGUAGE program that reads the input from standard input and prints"
    " the answer.\n\n```FENCE\n"
)
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\.?\s*")
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "ms": 1e-3, "millisecond": 1e-3}
_MEGABYTES = {
    "": 1.0,
    "mb": 1.0,
    "megabyte": 1.0,
    "mib": 1.0,
    "kb": 2**-10,
    "kilobyte": 2**-10,
    "gb": 2.0**10,
    "gigabyte": 2.0**10,
    "byte": 2**-20,
    "bytes": 2**-20,
}
# CodeContests numbers its languages; CodeContests+ names them.
_LANGUAGE: Mapping[object, str] = {
    2: "cpp",
    3: "python",
    4: "java",
    "cpp": "cpp",
    "c++": "cpp",
    "py3": "python",
    "python": "python",
    "python3": "python",
    "java": "java",
}
_TEST_FIELDS = ("public_tests", "private_tests", "generated_tests", "test_cases")
_DIFFICULTIES = ("", "easy", "medium", "hard", "harder", "hardest", "external")
_LETTER = 7  # the number of difficulty A


def livecodebench(record: Record, wanted: Wanted) -> Converted:
    """A problem of LiveCodeBench, with its public and hidden tests."""
    question = record.text("question_content")
    code = record.text("starter_code", "")
    public = record.field("public_test_cases", str | list)
    tests = _tests(public, "public_test_cases", wanted.largest)
    tests += _tests(_private_tests(record, wanted.largest), "private_test_cases", wanted.largest)
    check: dict[str, Any] = {"kind": "stdin"}
    if any(test.get("testtype") == "functional" for test in tests):
        match record.parsed("metadata"):
            case {"func_name": str(entry_point)}:
                check = {"kind": "function", "entry_point": entry_point}
            case _:
                raise UsageError("metadata has no func_name, but the tests call a function")
    check["tests"] = [
        {name: Record(test, "", 0, "").text(name) for name in ("input", "output")} for test in tests
    ]
    name = str(record.field("question_id", str | int))
    problem = _problem(name, question, code.rstrip(), check, wanted)
    return Converted(problem, record.text("difficulty", "") or None)


def _problem(
    name: str, question: str, code: str, check: Mapping[str, Any], wanted: Wanted
) -> Problem:
    """A problem with the prompt of its kind of check."""
    if wanted.prompt is not None:
        prompt = wanted.prompt
    elif check["kind"] == "function":
        prompt = FUNCTION_PROMPT if code else _named_prompt(str(check["entry_point"]))
    elif check.get("language", "python") == "python":
        prompt = STDIN_PROMPT
    else:
        prompt = _RUN_PROMPT.replace("LANGUAGE", LANGUAGES[check["language"]])
        prompt = prompt.replace("FENCE", check["language"])
    return Problem(name, filled(prompt, question, code), check, question, code)


def _named_prompt(function: str) -> str:
    """The prompt of a problem that gives no code: it must say what the function is called."""
    return (
        "{question}\n\nWrite a Python function "
        + function
        + " that returns the answer.\n\n```python\n"
    )


def taco(record: Record, wanted: Wanted) -> Converted:
    """A problem of TACO."""
    return _with_input_output(record, record.row, wanted)


def apps(record: Record, wanted: Wanted) -> Converted:
    """A problem of APPS."""
    name = record.data.get("problem_id", record.data.get("id"))
    if name is None:
        return _with_input_output(record, record.row, wanted)
    return _with_input_output(record, f"{record.source}/{name}", wanted)


def _with_input_output(record: Record, name: str, wanted: Wanted) -> Converted:
    question = record.text("question")
    code = record.text("starter_code", "").rstrip()
    tests = record.parsed("input_output", wanted.largest)
    if not tests:
        raise NotConverted("no tests")
    check = unit_tests.check_of(tests, "input_output", code, wanted.language)
    notes: list[str] = []
    seconds = _quantity(record, "time_limit", _SECONDS, notes)
    megabytes = _quantity(record, "memory_limit", _MEGABYTES, notes)
    check |= limits(
        _usable(seconds, usable_seconds(seconds or 0), "time_limit", notes),
        _usable(megabytes, usable_megabytes(megabytes or 0), "memory_limit", notes),
        wanted.time_factor,
    )
    problem = _problem(name, question, code, check, wanted)
    difficulty = record.data.get("difficulty")
    solutions = _solutions(record, notes) if wanted.language == "python" else ()
    return Converted(
        problem, difficulty if isinstance(difficulty, str) else None, solutions, tuple(notes)
    )


def _solutions(record: Record, notes: list[str]) -> tuple[str, ...]:
    """The right programs: a list, or JSON in a text."""
    value = record.data.get("solutions")
    if isinstance(value, str):
        try:
            value = parse_json(value) if value.strip() else []
        except ValueError:
            value = None
    if value is not None and not isinstance(value, list):
        value = None
    if value is None and record.data.get("solutions") is not None:
        notes.append("solutions that cannot be read")
    return kept(value or [])


def _quantity(
    record: Record, name: str, units: Mapping[str, float], notes: list[str]
) -> float | None:
    """A limit such as "2.0 seconds" or "256 megabytes"; None if it is missing."""
    value = record.data.get(name)
    if value is None or value == "":
        return None
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    unit = "" if match is None else match[2].lower()
    scale = units.get(unit, units.get(unit.removesuffix("s")))
    if match is None or scale is None:
        notes.append(f"a {name} that is not understood, as {shown(value)}")
        return None
    return float(match[1]) * scale


def _usable(value: float | None, usable: bool, name: str, notes: list[str]) -> float | None:
    if value is None or usable:
        return value
    notes.append(f"a {name} out of range")
    return None


def codecontests(record: Record, wanted: Wanted) -> Converted:
    """A problem of CodeContests, or of its variants with checkers."""
    question = record.text("description")
    for name in ("input_file", "output_file"):
        if record.text(name, ""):
            raise NotConverted("reads or writes a file instead of the standard streams")
    inputs: list[Any] = []
    outputs: list[Any] = []
    for name in _TEST_FIELDS:
        for given, said in _pairs(record.data.get(name), name):
            inputs.append(given)
            outputs.append(said)
    check = unit_tests.on_stdin(inputs, outputs, "tests", wanted.language)
    checker = _checker(record)
    if checker is not None:
        check = {"kind": "run", "language": wanted.language, "tests": check["tests"]}
        check["checker"] = checker
    notes: list[str] = []
    seconds = _contest_seconds(record, notes)
    megabytes = _contest_megabytes(record, notes)
    check |= limits(
        _usable(seconds, usable_seconds(seconds or 0), "time_limit", notes),
        _usable(megabytes, usable_megabytes(megabytes or 0), "memory_limit", notes),
        wanted.time_factor,
    )
    name = record.name("id", "name", "title")
    solutions = kept(list(_contest_solutions(record, wanted.language)))
    problem = _problem(name, question, "", check, wanted)
    return Converted(problem, _difficulty(record), solutions, tuple(notes))


def _pairs(tests: Any, name: str) -> Iterator[tuple[Any, Any]]:
    """The tests of a field: a record of two lists, or a list of records."""
    match tests:
        case None:
            return
        case {"input": list(inputs), "output": list(outputs)}:
            if len(inputs) != len(outputs):
                message = f"{name} has {len(inputs)} inputs, but {len(outputs)} outputs"
                raise UsageError(message)
            yield from zip(inputs, outputs, strict=True)
        case list():
            for at, test in enumerate(tests):
                match test:
                    case {"input": given, "output": said}:
                        yield given, said
                    case _:
                        message = f"{name}[{at}] must have input and output, not {shown(test)}"
                        raise UsageError(message)
        case _:
            raise UsageError(f"{name} must have the lists input and output, not {shown(tests)}")


def _checker(record: Record) -> dict[str, str] | None:
    """The program that compares answers, if there is one."""
    value = record.data.get("checker")
    match value:
        case None | "":
            return None
        case str(program):
            language = "cpp" if "#include" in program else "python"
            return {"language": language, "program": program}
        case {"language": str(language), "program": str(program)}:
            known = _LANGUAGE.get(language.lower())
            if known is None:
                raise NotConverted(f"a checker in {language}")
            return {"language": known, "program": program}
    raise UsageError(f"field checker must be the text of a program, not {shown(value)}")


def _contest_seconds(record: Record, notes: list[str]) -> float | None:
    match record.data.get("time_limit"):
        case {"seconds": int(seconds), "nanos": int(nanos)} if is_number(seconds) and is_number(
            nanos
        ):
            return seconds + nanos / 1e9
        case {"seconds": int(seconds)} if is_number(seconds):
            return float(seconds)
        case int(milliseconds) | float(milliseconds) if (
            is_number(milliseconds) and milliseconds >= 100
        ):
            return milliseconds / 1e3  # CodeContests+ counts milliseconds
    return _quantity(record, "time_limit", _SECONDS, notes)


def _contest_megabytes(record: Record, notes: list[str]) -> float | None:
    match record.data.get("memory_limit_bytes"):
        case int(size) if is_number(size) and size > 0:
            return size / 2**20
    return _quantity(record, "memory_limit", _MEGABYTES, notes)


def _contest_solutions(record: Record, language: str) -> Iterator[Any]:
    """The right programs in this language."""
    for name in ("solutions", "correct_submissions"):
        value = record.data.get(name)
        match value:
            case {"language": list(languages), "solution": list(programs)}:
                pairs = list(zip(languages, programs, strict=False))
            case list():
                pairs = [
                    (each.get("language"), each.get("code", each.get("solution")))
                    for each in value
                    if isinstance(each, Mapping)
                ]
            case _:
                continue
        for written, program in pairs:
            known = written.lower() if isinstance(written, str) else written
            if isinstance(known, str | int) and _LANGUAGE.get(known) == language:
                yield program


def _difficulty(record: Record) -> str | None:
    match record.data.get("difficulty"):
        case str(name) if name:
            return name
        case int(number) if 0 < number < len(_DIFFICULTIES):
            return _DIFFICULTIES[number]
        case int(number) if _LETTER <= number < _LETTER + 26:
            return chr(ord("A") + number - _LETTER)
    return None


def apps_records(path: str) -> Iterator[Record]:
    """The records of a file, or of the folder that APPS is published in: one folder a problem."""
    if not os.path.isdir(path):
        yield from read_records(path)
        return
    source = Path(path).resolve().name
    folders = sorted(each for each in Path(path).iterdir() if each.is_dir())
    for number, folder in enumerate(folders, 1):
        data: dict[str, Any] = {"problem_id": folder.name}
        for file, name in _APPS_FILES.items():
            if (folder / file).is_file():
                data[name] = _file_text(folder / file)
        if isinstance(metadata := data.pop("metadata", None), str):
            match parsed(metadata, f"{folder}/metadata.json"):
                case {"difficulty": str(difficulty)}:
                    data["difficulty"] = difficulty
        yield Record(data, str(folder), number, source)


_APPS_FILES = {
    "question.txt": "question",
    "input_output.json": "input_output",
    "solutions.json": "solutions",
    "starter_code.py": "starter_code",
    "metadata.json": "metadata",
}


def _file_text(path: Path) -> str:
    try:
        return read_bytes(str(path)).decode()
    except UnicodeDecodeError:
        raise LogError("not UTF-8 text", path=str(path)) from None


def _tests(listed: str | list[Any], name: str, largest: int) -> list[Mapping[str, Any]]:
    if isinstance(listed, str) and len(listed) > largest:
        raise too_large(name, largest)
    tests = parsed(listed, name) if isinstance(listed, str) else listed
    if not isinstance(tests, list) or not all(isinstance(test, dict) for test in tests):
        raise UsageError(f"{name} is not a list of tests")
    return tests


def _private_tests(record: Record, largest: int) -> str | list[Any]:
    """The hidden tests: JSON, or JSON in a compressed pickle in base64.

    Loading a pickle can run any code, so it is only scanned. A pickle of one text consists of the
    text and a few opcodes around it; at any other opcode the scan ends, and it is refused.
    """
    name = "private_test_cases"
    packed: str | list[Any] = record.field(name, str | list)
    if isinstance(packed, list) or packed[:_BEGINNING].lstrip().startswith("["):
        return packed
    if len(packed) > 2 * largest:  # in base64
        raise too_large(name, largest)
    try:
        unpacking = zlib.decompressobj()
        pickled = unpacking.decompress(base64.b64decode(packed, validate=True), largest)
        if len(pickled) == largest and not unpacking.eof:
            raise too_large(name, largest)
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
