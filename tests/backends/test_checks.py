from __future__ import annotations

from typing import Any

import pytest

from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import Isolation, RunLimits
from grv.backends.verifiers import checks
from grv.backends.verifiers.checks import (
    DATA_KINDS,
    KINDS,
    CheckKind,
    TextCheck,
    parse_check,
)
from grv.backends.verifiers.command import check_allowed
from grv.backends.verifiers.programs.checks import AssertsCheck, FunctionCheck, StdinCheck
from grv.core.errors import UsageError

STDIN = {"kind": "stdin", "tests": [{"input": "1", "output": "2"}]}
FUNCTION = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
ASSERTS = {"kind": "asserts", "entry_point": "f", "test": "def check(c): pass"}


def parsed(record: Any, **problem: Any) -> Any:
    return parse_check(Problem("p7", check=record, **problem)).how


def test_each_kind_of_program_check_is_parsed() -> None:
    assert isinstance(parsed(STDIN), StdinCheck)
    assert isinstance(parsed(FUNCTION), FunctionCheck)
    assert isinstance(parsed(ASSERTS), AssertsCheck)
    assert parsed(ASSERTS, prompt="def f(): ...").prompt == "def f(): ..."
    assert parsed(ASSERTS | {"prompt": "x"}, prompt="y").prompt == "x"


def test_a_command_is_parsed_elsewhere() -> None:
    how = parsed({"kind": "command", "argv": ["true"]})
    assert isinstance(how, TextCheck)
    with pytest.raises(UsageError, match=r"problem p7, check: .*argv"):
        parsed({"kind": "command"})


def test_strings_of_livecodebench_are_read() -> None:
    record = FUNCTION | {"tests": [{"input": '[1, 2]\n"a"\n', "output": "[true]"}]}
    (test,) = parsed(record).tests
    assert test.args == ([1, 2], "a")
    assert test.expected == [True]
    record = FUNCTION | {"tests": [{"args": "[1, 2]\n3", "expected": 4}]}
    assert parsed(record).tests[0].args == ([1, 2], 3)


def test_limits_of_the_record_come_before_the_defaults() -> None:
    record = STDIN | {"limits": {"seconds": 3, "files_mb": 0}}
    check = parse_check(Problem("p", check=record), RunLimits(seconds=7, memory_mb=99))
    assert isinstance(check.how, StdinCheck)
    assert check.how.limits == RunLimits(seconds=3, memory_mb=99, files_mb=0)


def test_the_digest_knows_the_record_and_the_limits() -> None:
    def digest(record: Any, limits: RunLimits | None = None) -> str:
        return parse_check(Problem("p", check=record), limits).digest

    assert digest(STDIN) == digest(dict(reversed(STDIN.items())))
    assert digest(STDIN) != digest(STDIN | {"tolerance": 0.1})
    assert digest(STDIN) != digest(STDIN, RunLimits(seconds=1))
    one, other = (parse_check(Problem("p", text, ASSERTS)).digest for text in ("a", "b"))
    assert one != other  # the prompt is the beginning of the program


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "check.kind: is missing"),
        ({"kind": 3}, "check.kind: must be a string, not 3"),
        (
            {"kind": "x"},
            f"check.kind: must be one of {', '.join(KINDS)}, not",
        ),
        ([], "check: must be a record"),
        ({"kind": "stdin"}, "check.tests: is missing"),
        (STDIN | {"tests": []}, "check.tests: must be a list with at least one test"),
        (STDIN | {"tests": [3]}, r"check.tests\[0\]: must be a record, not 3"),
        (STDIN | {"tests": [{"input": "1"}]}, r"check.tests\[0\].output: is missing"),
        (STDIN | {"tests": [{"input": 1, "output": "2"}]}, r"tests\[0\].input: must be a string"),
        (STDIN | {"time": 3}, "check.time: no such field; there are"),
        (STDIN | {"tolerence": 3}, r"check.tolerence: no such field; did you mean tolerance\?"),
        (STDIN | {"repeat": 0}, "check.repeat: must be between 1 and 100, not 0"),
        (STDIN | {"repeat": True}, "check.repeat: must be between"),
        (STDIN | {"limits": 3}, "check.limits: must be a record"),
        (
            STDIN | {"limits": {"second": 3}},
            "check.limits: unknown field 'second'; did you mean seconds",
        ),
        (STDIN | {"limits": {"seconds": -3}}, "check.limits: seconds must be positive, not -3"),
        (STDIN | {"limits": {"seconds": 10**400}}, "check.limits: seconds must be positive, not 1"),
        (STDIN | {"tolerance": "x"}, "check.tolerance: must be a number"),
        (FUNCTION | {"entry_point": "a b"}, "check.entry_point: must be a name, not 'a b'"),
        (FUNCTION | {"tests": [{"args": [1]}]}, r"tests\[0\].expected: is missing"),
        (FUNCTION | {"tests": [{"expected": 1}]}, r"tests\[0\].args: is missing"),
        (FUNCTION | {"tests": [{"args": 1, "expected": 1}]}, r"args: must be a list, not 1"),
        (FUNCTION | {"tests": [{"input": "[", "output": "1"}]}, r"input: is not JSON: '\['"),
        (ASSERTS | {"test": "def ("}, "check.test: is not a program"),
        (ASSERTS | {"in_place": 1}, "check.in_place: must be true or false"),
    ],
)
def test_mistakes_are_named_in_one_line(record: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"^problem p7, .*{message}") as caught:
        parsed(record)
    assert "\n" not in str(caught.value)


def test_a_long_test_is_not_compiled_here_because_that_stops_all_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compiled(*given: object, **named: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(checks, "compile", compiled, raising=False)
    parsed(ASSERTS | {"test": "pass\n" * 20_000})
    with pytest.raises(AssertionError, match="compiled"):
        parsed(ASSERTS | {"test": "pass"})


def test_the_kinds_are_listed() -> None:
    assert sorted(KINDS) == list(KINDS)


def test_what_a_guest_may_give_does_nothing_outside() -> None:
    """A kind that is added is not for guests before its entry says so."""
    assert CheckKind(KINDS["math"].parse).for_guests is False
    assert DATA_KINDS
    for name in DATA_KINDS:
        assert KINDS[name].outside is None, name


def test_verdicts_depend_on_what_a_check_reads() -> None:
    """The checksums of the kinds that are in ledgers already do not change."""
    assert KINDS["asserts"].reads == ("prompt",)
    assert KINDS["http"].reads == ("id", "prompt")
    for name in ("command", "function", "human", "math", "stdin"):
        assert KINDS[name].reads == ()
    assert CheckKind(KINDS["math"].parse).reads == ("id", "prompt")


def test_any_kind_that_works_outside_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = CheckKind(KINDS["math"].parse, outside=lambda record: f"sends {record['answer']} away")
    monkeypatch.setitem(KINDS, "mail", kind)
    problem = Problem("p", check={"kind": "mail", "answer": "letters"})

    with pytest.raises(UsageError, match="problem p: its check sends letters away; if you trust"):
        check_allowed(problem, allowed=False, isolation=Isolation.JAIL)
    check_allowed(problem, allowed=True, isolation=Isolation.JAIL)
    with pytest.raises(UsageError, match="strict isolation forbids"):
        check_allowed(problem, allowed=True, isolation=Isolation.STRICT)


@pytest.mark.parametrize("record", [[], {}, {"kind": 3}, {"kind": "x"}])
def test_what_is_no_check_is_left_to_the_parser(record: Any) -> None:
    check_allowed(Problem("p", check=record), allowed=False, isolation=Isolation.STRICT)
