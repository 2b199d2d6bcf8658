r"""Labels by the rules of the paper's published code: answers in mathematics, and programs.

The expected labels were found by reading math/gen.py and coding/verify.py of
github.com/yhkalayci/efficient_query at commit f8ecf7a. That code, run by hand on the texts and
programs below, gives the same labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.protocols import Problem
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.math import published
from grv.backends.verifiers.math.check import MathCheck
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError

README = Path(__file__).parents[2] / "paper" / "README.md"

# The reference, the text, and whether it passes as published and with "exact".
TEXTS = [
    ("4", r"So the sum is \boxed{4}.", True, True),
    ("4", "The answer is 4.", False, True),
    ("4", "#### 4", False, True),
    ("4", r"\fbox{4}", False, True),
    ("4", r"\boxed {4}", False, True),
    ("4", r"\boxed{4}. Check: \boxed{5} is too large. The answer is 4.", False, True),
    ("4", r"<think>\boxed{4}</think> The answer is 5.", True, False),
    ("4", r"It is not \boxed{4}. The answer is 5.", True, False),
    ("4", r"x = -\boxed{4}", True, False),
    ("4", r"4\boxed{4}", True, False),
    ("4", r"\boxed{4", False, False),
    ("1000", r"\boxed{1_000}", True, False),
    ("\\boxed{4}", r"\boxed{4}", False, True),
    ("(1,2)", r"\boxed{(1, 2)}", True, True),
]


@pytest.mark.parametrize(("reference", "text", "as_published", "exact"), TEXTS)
def test_an_answer_is_read_as_the_published_code_reads_it(
    reference: str, text: str, as_published: bool, exact: bool
) -> None:
    labels = {"published": as_published, "exact": exact}
    for match, label in labels.items():
        check = parse_check(
            Problem("p", check={"kind": "math", "answer": reference, "match": match})
        ).how
        assert isinstance(check, MathCheck)
        assert check.compare(text).verdict.value == ("passed" if label else "failed")


def test_the_table_in_the_papers_page_has_these_texts() -> None:
    words = {True: "passes", False: "fails"}
    page = README.read_text()
    for reference, text, as_published, exact in TEXTS:
        row = f"| `{reference}` | `{text}` | {words[as_published]} | {words[exact]} |"
        assert row in page


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("1,000", "1000"),
        ("+7", "7"),
        ("007", "7"),
        ("0.50", "0.5"),
        ("2.0", "2"),
        ("1e3", "1000"),
        ("0.123456789012", "0.123456789"),
        ("1/2", "1/2"),
        ("-2/-4", "1/2"),
        ("8/2", "4/1"),
        ("1/0", "1/0"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        (r"\text{yes}", "yes"),
        (r"\mathrm {cm}", "cm"),
        ("$5$", "5"),
        ("$", ""),
        ("9" * 5000, "inf"),
        (f"{'9' * 5000}/2", f"{'9' * 5000}/2"),
        ("nan", "nan"),
    ],
)
def test_the_form_of_an_answer(answer: str, form: str) -> None:
    assert published.form(answer) == form


@given(st.text(alphabet=r"\boxed{}12 ", max_size=60))
def test_a_box_is_the_last_one_and_has_balanced_braces(text: str) -> None:
    answer = published.boxed(text)
    if answer is None:
        rest = text.rpartition("\\boxed{")[2] if "\\boxed{" in text else ""
        assert "\\boxed{" not in text or rest.count("}") < rest.count("{") + 1
    else:
        assert "\\boxed{" not in answer
        assert answer.count("{") == answer.count("}")


@pytest.fixture(scope="module")
def verifier() -> Iterator[CheckVerifier]:
    with CheckVerifier(workers=1, published=True, refute=False) as made:
        yield made


def function(given: str, output: str, **more: Any) -> dict[str, Any]:
    tests = [{"input": given, "output": output}]
    return {"kind": "function", "entry_point": "f", "tests": tests, **more}


def stdin(given: str, output: str, **more: Any) -> dict[str, Any]:
    return {"kind": "stdin", "tests": [{"input": given, "output": output}], **more}


ONE = function("1", "2")
LIST = function("[1,2,3]", "6")
TWO = function("[1,2]\n3", "6")
HALF = function("1", "0.3")
PAIR = function("1", "[1, 1]")
READ = stdin("3 4\n", "7\n")
REAL = stdin("1\n", "0.5\n")

# The check, the program, and whether it passes as published and by our own check.
PROGRAMS = [
    ("a right function", ONE, "def f(x): return x + 1", True, True),
    ("a right method", ONE, "class Solution:\n def f(self, x): return x + 1", True, True),
    ("List is not imported", LIST, "def f(x: List[int]): return sum(x)", False, False),
    ("the only argument is a list", LIST, "def f(x): return sum(x)", False, True),
    ("it takes the members", LIST, "def f(*x): return sum(x)", True, False),
    ("a list and a number", TWO, "def f(x, y): return sum(x) + y", True, True),
    ("an inexact float", HALF, "def f(x): return 0.1 + 0.2", False, True),
    ("an exact float", HALF, "def f(x): return 0.3", True, True),
    ("a tuple for a list", PAIR, "def f(x): return (x, x)", False, True),
    ("a text for a number", ONE, "def f(x): return str(x + 1)", True, False),
    ("another name", ONE, "def g(x): return x + 1", True, False),
    (
        "another method comes first",
        ONE,
        "class Solution:\n def a(self, x): return 0\n def f(self, x): return x + 1",
        False,
        True,
    ),
    (
        "the second block is right",
        ONE,
        "```\nx\n```\n```python\ndef f(x): return x + 1\n```",
        True,
        True,
    ),
    (
        "the first block is wrong",
        ONE,
        "```python\ndef f(x): return 0\n```\n```python\ndef f(x): return x + 1\n```",
        False,
        True,
    ),
    ("a right program", READ, "print(sum(map(int, input().split())))", True, True),
    (
        "bytes of stdin",
        READ,
        "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
        False,
        True,
    ),
    ("open(0)", READ, "print(sum(map(int, open(0).read().split())))", False, True),
    ("an exit code", READ, "print(sum(map(int, input().split())))\nexit(1)", True, False),
    ("a prompt for input", READ, "print(sum(map(int, input('? ').split())))", False, False),
    ("another way to write a float", REAL, "print('0.50')", False, True),
    ("an error after the answer", READ, "print(7)\n1 / 0", False, False),
]


@pytest.mark.parametrize(
    ("check", "program", "as_published", "own"),
    [case[1:] for case in PROGRAMS],
    ids=[case[0] for case in PROGRAMS],
)
def test_a_program_is_judged_as_the_published_harness_judges_it(
    check: dict[str, Any], program: str, as_published: bool, own: bool, verifier: CheckVerifier
) -> None:
    theirs = Problem("theirs", check={**check, "labels": "published"})
    ours = Problem("ours", check=check)
    assert verifier.find(theirs, program).verdict.value == ("passed" if as_published else "failed")
    assert verifier.find(ours, program).verdict.value == ("passed" if own else "failed")


@pytest.mark.slow
def test_all_tests_share_the_time_of_one(verifier: CheckVerifier) -> None:
    tests = [{"input": "", "output": "1"}] * 4
    check = {"kind": "stdin", "tests": tests, "limits": {"seconds": 0.5}}
    slow = "import time\ntime.sleep(0.2)\nprint(1)"
    theirs = Problem("theirs", check={**check, "labels": "published"})
    assert verifier.find(Problem("ours", check=check), slow).verdict.value == "passed"
    found = verifier.find(theirs, slow)
    assert (found.verdict.value, found.reason) == ("failed", "timeout")


def test_tests_share_a_process_and_an_object(verifier: CheckVerifier) -> None:
    counting = (
        "class Solution:\n"
        "    def __init__(self): self.n = 0\n"
        "    def f(self, x):\n"
        "        self.n += 1\n"
        "        return self.n\n"
    )
    tests = [{"args": [0], "expected": 1}, {"args": [0], "expected": 2}]
    check = {"kind": "function", "entry_point": "f", "tests": tests, "labels": "published"}
    assert verifier.find(Problem("count", check=check), counting).verdict.value == "passed"


def test_the_expected_output_is_not_in_the_programs_process(verifier: CheckVerifier) -> None:
    """The published harness has all tests in a global name, which a program can look up."""
    looking = (
        "import sys\n"
        "frame, seen = sys._getframe(), []\n"
        "while frame:\n"
        "    seen.append(repr([frame.f_globals, frame.f_locals]))\n"
        "    frame = frame.f_back\n"
        "print('secret' if any('314' + '15926' in text for text in seen) else 'nothing')\n"
    )
    check = stdin("1", "nothing", labels="published")
    check["tests"].append({"input": "2", "output": "31415926"})
    found = verifier.find(Problem("secret", check=check), looking)
    assert (found.verdict.value, found.evidence["test"]) == ("failed", 1)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({**ONE, "labels": "own"}, r'check.labels: can only be "published"'),
        ({**ONE, "labels": "published", "tolerance": 0.1}, "check.tolerance: no such field"),
        ({**READ, "labels": "published", "prompt": "x"}, "check.prompt: no such field"),
        ({"kind": "math", "answer": "1", "match": "publish"}, "match must be one of equivalent"),
    ],
)
def test_a_wrong_record_is_refused(check: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_check(Problem("p", check=check))


def test_a_search_does_not_take_published_labels() -> None:
    with (
        CheckVerifier(workers=1) as verifier,
        pytest.raises(UsageError, match="published labels are for comparison with the paper"),
    ):
        verifier.prepare(Problem("p", check={**ONE, "labels": "published"}))
