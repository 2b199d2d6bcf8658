"""Which files and which cases a run takes."""

from __future__ import annotations

import ast
import re
from itertools import pairwise, product
from pathlib import Path

import pytest

from support.selection import few_cases, has_tests, short, spread

TESTS = Path(__file__).parent
MAKEFILE = (TESTS.parent / "Makefile").read_text(encoding="utf-8")
QUICK = re.findall(r'-m "(not slow .*)"', MAKEFILE)[0]
LEFT_OUT = frozenset(re.findall(r"not (\w+)", QUICK))


@pytest.mark.parametrize(
    ("text", "quick", "alone"),
    [
        ("pytestmark = pytest.mark.slow\n\n", False, False),
        ("pytestmark = [\n    pytest.mark.browser,\n]\n\n", False, False),
        ("pytestmark = pytest.mark.anyio\n\n@pytest.mark.slow\n", True, False),
        ("pytestmark = pytest.mark.slow\n\n@pytest.mark.alone\n", False, True),
        ("def test_it() -> None: ...\n", True, False),
    ],
)
def test_a_file_is_read_if_it_may_have_tests(text: str, quick: bool, alone: bool) -> None:
    assert has_tests(text, QUICK) == quick
    assert has_tests(text, "(not soak) and alone") == alone
    assert has_tests(text, "slow or alone")


@pytest.mark.parametrize("count", [1, 6, 7, 11, 12, 240])
def test_a_sample_is_fixed_in_order_and_from_everywhere(count: int) -> None:
    sample = spread(range(count), 6)
    assert len(sample) == min(count, 6)
    assert sample == sorted(set(sample)) == spread(range(count), 6)
    steps = [after - before for before, after in pairwise([*sample, count])]
    assert max(steps) <= 2 * max(1, count / 6)
    assert spread(range(count), 0) == list(range(count))


def test_a_sample_of_several_decorators_has_several_values_of_each() -> None:
    for sizes in product((2, 3, 4, 5), (2, 3, 4, 5)):
        cases = list(product(*(range(size) for size in sizes)))
        for column in range(2):
            assert len({case[column] for case in spread(cases, 6)}) >= 2


def test_only_tests_with_many_cases_lose_some() -> None:
    names = [*(f"a.py::test_many[{case}-[x]]" for case in range(20)), "a.py::test_one"]
    assert len(few_cases(names, 6)) == 7
    assert few_cases(names, 6) >= {"a.py::test_one"}
    assert few_cases(names, 0) == set(names)


def test_names_of_cases_are_short() -> None:
    assert short(("a", 1)) == "('a', 1)"
    assert len(short("\n" * 10**6)) <= 100
    assert short("\n" * 10**6) != short("\n" * 10**5)


def _marks(text: str) -> list[set[str]]:
    """The marks of each test of a file; those of single cases do not count."""
    tests, places = [], [(node, set[str]()) for node in ast.parse(text).body]
    while places:
        node, marks = places.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines = "\n".join(map(ast.unparse, node.decorator_list))
            marks = marks | set(re.findall(r"^pytest\.mark\.(\w+)$", lines, re.MULTILINE))
            if node.name.startswith("test"):
                tests.append(marks)
        if isinstance(node, ast.ClassDef):
            places += [(child, marks) for child in node.body]
    return tests


@pytest.mark.slow
def test_a_file_without_quick_tests_says_so_at_its_top() -> None:
    """Else `make quick` imports it for nothing."""
    files = {path.name: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    imported = {name: _marks(text) for name, text in files.items() if has_tests(text, QUICK)}
    assert [
        name for name, tests in imported.items() if tests and all(each & LEFT_OUT for each in tests)
    ] == []
