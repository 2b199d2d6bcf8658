"""Tests of contest problems: `{"inputs": [...], "outputs": [...], "fn_name": ...}`.

APPS and TACO write them so, and verl and NeMo Gym took it over. Without `fn_name` the answer is a
program that reads standard input; with it, a Python function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import UsageError
from ...files import shown
from .records import NotConverted

_RETURNS_LIST = re.compile(r"->\s*['\"]?(?:typing\.)?(?:List|list|Sequence|Tuple|tuple)\b")
_MOST_TESTS = 100_000


def check_of(tests: Any, name: str, code: str = "", language: str = "python") -> dict[str, Any]:
    """The check of a problem with such tests.

    Args:
        tests: the tests, or a list of records with `input` and `output`.
        name: the field that has them, for messages.
        code: the beginning of the program, if the problem gives one.
        language: the language of the answer.

    Raises:
        NotConverted: there are no tests, or no check can run them.
        UsageError: they have a wrong form.
    """
    if isinstance(tests, list):
        return _of_list(tests, name, language)
    if not isinstance(tests, Mapping):
        raise UsageError(f"{name} must be a record with inputs and outputs, not {shown(tests)}")
    inputs = _listed(tests, "inputs", name)
    outputs = _listed(tests, "outputs", name)
    if len(inputs) != len(outputs):
        raise UsageError(f"{name} has {len(inputs)} inputs, but {len(outputs)} outputs")
    if any(tests.get("assert_case") or ()):
        raise NotConverted("tests are asserts (assert_case)")
    function = tests.get("fn_name")
    if function is not None and not isinstance(function, str):
        raise UsageError(f"{name}.fn_name must be a text, not {shown(function)}")
    if not function:
        return on_stdin(inputs, outputs, name, language)
    return _on_function(function, inputs, outputs, name, code, language)


def _listed(tests: Mapping[str, Any], field: str, name: str) -> list[Any]:
    values = tests.get(field)
    if not isinstance(values, list):
        there = ", ".join(map(str, tests))[:200]
        raise UsageError(f"{name}.{field} is missing or is not a list; there are {there}")
    if len(values) > _MOST_TESTS:
        raise UsageError(f"{name}.{field} has {len(values):,} tests; the limit is {_MOST_TESTS:,}")
    return values


def _of_list(tests: Sequence[Any], name: str, language: str) -> dict[str, Any]:
    """LiveCodeBench's form: a list of tests, each with its type."""
    inputs = []
    outputs = []
    function = ""
    for at, test in enumerate(tests):
        match test:
            case {"input": given, "output": said}:
                inputs.append(given)
                outputs.append(said)
            case _:
                raise UsageError(f"{name}[{at}] must have input and output, not {shown(test)}")
        match test:
            case {"metadata": {"func_name": str(found)}} | {"fn_name": str(found)}:
                function = function or found
        if test.get("testtype") in ("functional", "function_call") and not function:
            raise UsageError(f"{name}[{at}] calls a function, but metadata has no func_name")
    if function:
        return _on_function(function, inputs, outputs, name, "", language)
    return on_stdin(inputs, outputs, name, language)


def on_stdin(
    inputs: Sequence[Any], outputs: Sequence[Any], name: str, language: str
) -> dict[str, Any]:
    """The check of a program that reads standard input."""
    if not inputs:
        raise NotConverted("no tests")
    tests = [
        {
            "input": _lines(given, f"{name}.inputs[{at}]"),
            "output": _lines(said, f"{name}.outputs[{at}]"),
        }
        for at, (given, said) in enumerate(zip(inputs, outputs, strict=True))
    ]
    if language == "python":
        return {"kind": "stdin", "tests": tests}
    return {"kind": "run", "language": language, "tests": tests}


def _lines(value: Any, name: str) -> str:
    """What a program reads or prints: a text, or a list of lines."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    raise UsageError(f"{name} must be a text or a list of lines, not {shown(value)}")


def _on_function(
    function: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    name: str,
    code: str,
    language: str,
) -> dict[str, Any]:
    if language != "python":
        raise NotConverted(f"tests call a Python function, not a {language} program")
    if not inputs:
        raise NotConverted("no tests")
    if all(isinstance(each, str) for each in (*inputs, *outputs)):
        # Each line of an input is an argument in JSON: the check reads that itself.
        tests: list[dict[str, Any]] = [
            {"input": given, "output": said} for given, said in zip(inputs, outputs, strict=True)
        ]
    else:
        wrapped = _are_wrapped(outputs, code)
        tests = [
            {
                "args": _arguments(given, f"{name}.inputs[{at}]"),
                "expected": said[0] if wrapped else said,
            }
            for at, (given, said) in enumerate(zip(inputs, outputs, strict=True))
        ]
    return {"kind": "function", "entry_point": function, "tests": tests}


def _are_wrapped(outputs: Sequence[Any], code: str) -> bool:
    """Whether each output is a list around the returned value.

    Most of APPS is written so, some of it is not. If every output is a list of one value, it is
    taken off, unless the code says that the function returns a list.
    """
    alone = all(isinstance(each, list) and len(each) == 1 for each in outputs)
    return alone and _RETURNS_LIST.search(code) is None


def _arguments(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"{name} must be a list of arguments, not {shown(value)}")
    for argument in value:
        if isinstance(argument, dict) and argument and all(_is_integer(key) for key in argument):
            raise NotConverted("an argument is a dictionary with numbers as keys")
    return value


def _is_integer(key: str) -> bool:
    return key.removeprefix("-").isdecimal()
