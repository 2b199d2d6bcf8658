"""Text that a check of kind "run" puts around a program."""

from __future__ import annotations

from typing import Any

import pytest

from grv import Problem, UsageError
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.languages.completing import Completion

TASK = Completion("use std;\n/// Adds.\nfn add(a: u8) -> u8 {\n", "}\nfn main() {}\n", ("\n}",))
WHOLE = "use std;\n/// Adds.\nfn add(a: u8) -> u8 {\n    a + a\n}\nfn main() {}\n"


@pytest.mark.parametrize(
    ("code", "whole"),
    [
        ("    a + a\n}\n\nfn other() {}", WHOLE),
        ("    a + a", WHOLE),
        ("fn add(a:u8)->u8 {\n    a + a\n}", WHOLE.replace("add(a: u8) -> u8", "add(a:u8)->u8")),
        ("use std;\n/// Adds.\nfn add(a: u8) -> u8 {\n    a + a\n}\nfn main() { }", WHOLE),
        (
            "fn more() {\n}\nfn add(a: u8) -> u8 {\n    a + a\n}",
            WHOLE.replace("fn add", "fn more() {\n}\nfn add"),
        ),
        ("}", WHOLE.replace("    a + a\n", "")),
        ("", WHOLE.replace("    a + a\n", "")),
    ],
)
def test_the_beginning_is_there_once_and_the_end_is_cut(code: str, whole: str) -> None:
    assert TASK.around(code) == whole


@pytest.mark.parametrize("code", ["", "\n", "a\r\nb", "\n\n}\n", "x\x00y"])
def test_without_a_task_a_program_stays_as_it_is(code: str) -> None:
    assert Completion().around(code) == code


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prefix": 3}, "check.prefix: must be a string, not 3"),
        ({"suffix": ["x"]}, "check.suffix: must be a string"),
        ({"stop": "x"}, "check.stop: must be a list of texts, not 'x'"),
        ({"stop": [""]}, "check.stop: must be a list of texts"),
        ({"sufix": "x"}, "check.sufix: no such field; did you mean suffix?"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], message: str) -> None:
    tests = [{"input": "", "output": "1"}]
    check = {"kind": "run", "language": "python", "tests": tests, **fields}
    with pytest.raises(UsageError) as caught:
        parse_check(Problem("p", check=check))
    assert message in str(caught.value)
