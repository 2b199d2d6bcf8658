"""The order of tests: what it is learned from, and that no verdict depends on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from grv.backends.protocols import Problem, Stage
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.programs.checks import AssertsCheck, FunctionCheck, FunctionTest
from grv.backends.verifiers.programs.forgetful import is_forgetful
from grv.backends.verifiers.programs.statements import statements
from grv.backends.verifiers.programs.syntax import parse
from grv.backends.verifiers.suite import Suite, TestOrder, listed
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.values import Verdict
from support.mutants import Mutant, mutants

LIMITS = RunLimits(seconds=10, memory_mb=256)


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def stage(test: int, verdict: Verdict, seconds: float = 0.0, cost: float | None = None) -> Stage:
    return Stage(f"test {test}", verdict, seconds, cost)


def noted(*runs: Sequence[int]) -> Suite:
    """A suite of tests after verifications, each of which ended with the failure of its last."""
    suite = Suite()
    for run in runs:
        passed = [(test, stage(test, Verdict.PASSED)) for test in run[:-1]]
        suite.note([*passed, (run[-1], stage(run[-1], Verdict.FAILED))])
    return suite


def test_failures_per_run_decide_and_ties_keep_the_order_of_the_file() -> None:
    assert list(Suite().order(3)) == [0, 1, 2]
    # test 0: 0 of 2, test 1: 1 of 2, test 2: 1 of 1
    assert noted([0, 1], [0, 1, 2]).order(4) == [2, 1, 3, 0]
    assert noted([0]).order(3) == [0, 1, 2]


def test_a_test_that_never_ran_comes_before_one_that_rarely_fails() -> None:
    suite = noted([0], *[[0, 1]] * 3)  # test 0: 1 of 4, (1 + .5) / 5 < .5 / 1
    assert suite.order(3) == [1, 2, 0]


def test_prices_divide_the_rate_and_what_is_free_comes_first() -> None:
    suite = noted([0], [1])
    assert suite.order(3, [10.0, 1.0, None]) == [2, 1, 0]
    assert Suite().order(3, [3.0, 1.0, 2.0]) == [1, 2, 0]


def test_seconds_are_prices_where_nothing_else_is() -> None:
    suite = Suite()
    suite.note([(0, stage(0, Verdict.FAILED, 2.0))])
    suite.note([(1, stage(1, Verdict.FAILED, 0.2))])
    assert suite.order(2) == [1, 0]
    quick = Suite()
    quick.note([(0, stage(0, Verdict.FAILED, 0.02))])
    quick.note([(1, stage(1, Verdict.FAILED, 0.01))])
    assert quick.order(2) == [0, 1]


def test_a_suite_starts_from_recorded_stages_and_broken_runs_say_nothing() -> None:
    suite = Suite()
    suite.recall([[stage(0, Verdict.PASSED), stage(2, Verdict.FAILED), Stage("x", Verdict.FAILED)]])
    suite.note([(1, stage(1, Verdict.BROKEN))])
    assert suite.order(3) == [2, 1, 0]
    suite.order_tests = TestOrder.FILE
    assert list(suite.order(3)) == [0, 1, 2]


def test_of_very_many_stages_the_middle_ones_are_one() -> None:
    stages = [stage(n, Verdict.PASSED, 1.0, 0.5) for n in range(999)]
    shown = listed([*stages, stage(999, Verdict.FAILED, 1.0, 0.5)])["stages"]
    assert len(shown) == 100
    assert sum(each["seconds"] for each in shown) == 1000
    assert sum(each["cost"] for each in shown) == 500
    assert shown[-1]["check"] == "test 999"


FORGETFUL = [
    "def f(x): return x",
    "from typing import List\nimport math\nE = 1e-9\n\ndef f(x: List[int]) -> int:\n    return x",
    "INF = float('inf')\nMOD = 10**9 + 7\nNAMES = ('a', 'b')\ndef f(x, n=3): return MOD",
    "class Solution:\n    base = 2\n    def f(self, x):\n        y = [x]\n"
    "        y[0] = 1\n        return y",
    "def f(x):\n    memo = {}\n    def g(n):\n        nonlocal x\n"
    "        memo[n] = 1\n    return g(x)",
    "from functools import lru_cache\ndef f(n):\n    @lru_cache(None)\n"
    "    def g(k): return k\n    return g(n)",
    "def f(x): return x\nif __name__ == '__main__':\n    import doctest\n    doctest.testmod()",
    "def f(x): return x\nprint(f(3))\nassert f(1) == 1",
]
REMEMBERING = [
    "seen = []\ndef f(x): seen.append(x)",
    "def f(x, seen=[]): seen.append(x)",
    "def f(x, seen={}): return x",
    "n = 0\ndef f(x):\n    global n\n    n += 1",
    "def f(x): f.last = x",
    "class C:\n    n = 0\ndef f(x): C.n += 1",
    "class C:\n    all = []\ndef f(x): return C.all",
    "import random\ndef f(x): return random.random()",
    "from functools import lru_cache\n@lru_cache(None)\ndef f(x): return []",
    "import itertools\nnumbers = itertools.count()\ndef f(x): return next(numbers)",
    "def f(x): open('log', 'a').write('x')",
    "def f(x): globals()['n'] = 1",
    "def f(x): getattr(f, '__dict__')['n'] = 1",
    "def f(x): f.__dict__['n'] = 1",
    "def f(x): return id(x)",
    "def f(x: (seen := [])): seen.append(x)",
    "def float(x): return [x]\nA = float(1)\ndef f(x): A.append(x)",
    "__name__ = '__main__'\nif __name__ == '__main__':\n    seen = []\ndef f(x): seen.append(x)",
    "import sys\ndef f(x): sys.modules['n'] = x",
    "g = lambda x, seen=[]: seen.append(x)\ndef f(x): return g(x)",
    "seen = [x for x in ()]\ndef f(x): seen.append(x)",
    "for seen in ([],): pass\ndef f(x): seen.append(x)",
    "async def f(x): return x",
    "def f(x): setattr(f, 'n', x)",
    "import operator\ndef f(x): return operator.attrgetter('__globals__')(f)",
    "from typing import *\ndef f(x): return x",
]


@pytest.mark.parametrize("source", FORGETFUL)
def test_a_program_that_keeps_nothing_is_forgetful(source: str) -> None:
    assert is_forgetful(parse(source))


@pytest.mark.parametrize("source", REMEMBERING)
def test_a_program_that_may_keep_something_is_not(source: str) -> None:
    assert not is_forgetful(parse(source))


HEAD = "METADATA = {'a': 1}\n\ndef check(candidate):\n"
MOVABLE = [
    HEAD + "    assert candidate(1) == 2\n    # a comment\n    assert candidate(\n"
    "        2\n    ) == 3, 'm'",
    "assert f(1) == 1\nassert abs(f(2) - 1) < 1e-6\n",
    HEAD + "    assert candidate(1) == 2\n    assert sorted(candidate([2])) == [2]\n"
    "    x = candidate(3)\n",
]
FIXED = [
    HEAD + "    assert candidate(1) == 2\n",  # one only
    HEAD + "    x = candidate(1)\n    assert candidate(1) == 2\n    assert candidate(2) == 2\n",
    HEAD + "    assert candidate(1) == 2; assert candidate(2) == 2\n    assert candidate(3) == 1\n",
    HEAD + "    for i in range(3):\n        assert candidate(i) == 1\n",
    HEAD
    + "    assert candidate(1) == candidate(2)\n    assert candidate(1) in (candidate(2), 2)\n",
    HEAD + "    x = []\n    assert x.append(candidate(1)) is None\n    assert x == candidate(2)\n",
    HEAD + "    assert (y := candidate(1))\n    assert candidate(y)\n",
    HEAD + "    assert True or candidate(1)\n    assert 1 < 2 < candidate(3)\n",
    HEAD + "    assert candidate(1) == 2\n    assert candidate(2) == 2\ncheck(f)\n",
    "def list(x): return 1\n"
    + HEAD
    + "    assert list(candidate(1))\n    assert list(candidate(1))\n",
]


@pytest.mark.parametrize("test", MOVABLE)
def test_asserts_that_change_nothing_may_change_places(test: str) -> None:
    parts = statements(test, "f")
    assert parts is not None
    assert parts.text(range(len(parts.asserts))).rstrip("\n") == test.rstrip("\n")
    turned = parts.text([1, 0, *range(2, len(parts.asserts))])
    assert sorted(turned.split()) == sorted(test.split())
    compile(turned, "<test>", "exec")


@pytest.mark.parametrize("test", FIXED)
def test_other_statements_stay_where_they_are(test: str) -> None:
    compile(test, "<test>", "exec")
    assert statements(test, "f") is None


def test_a_program_that_counts_its_calls_is_called_in_the_order_of_the_file(
    pair: WorkerPair,
) -> None:
    tests = tuple(FunctionTest((number,), number) for number in range(3))
    check = FunctionCheck("f", tests, LIMITS)
    for _ in range(3):  # the last test is the one that fails
        assert check.judge("def f(x): return 9 if x == 2 else x", pair).evidence["test"] == 2
    assert check.suite.order(3)[0] == 2
    counting = "calls = [0]\ndef f(x):\n    calls[0] += 1\n    return calls[0] - 1"
    assert check.judge(counting, pair).verdict is Verdict.PASSED
    last_only = "calls = []\ndef f(x):\n    calls.append(x)\n    return x if len(calls) > 2 else 7"
    finding = check.judge(last_only, pair)
    assert (finding.verdict, finding.evidence["test"]) == (Verdict.FAILED, 0)


def test_the_learned_order_of_asserts_ends_at_the_one_that_fails_most(pair: WorkerPair) -> None:
    test = "def check(candidate):\n    assert candidate(0) == 0\n    assert candidate(1) == 1\n"
    check = AssertsCheck("f", f"{test}    assert candidate(2) == 2\n", "", LIMITS)
    wrong = "def f(x): return 7 if x == 2 else x"
    first = check.judge(wrong, pair)
    assert [each.name for each in first.stages] == ["assert 0", "assert 1", "assert 2"]
    second = check.judge(wrong, pair)
    assert [each.name for each in second.stages] == ["assert 2"]
    assert second.stages[-1].verdict is Verdict.FAILED
    assert second.evidence["line"] == "assert candidate(2) == 2"
    counting = "calls = [0]\ndef f(x):\n    calls[0] += 1\n    return calls[0] - 1"
    assert check.judge(counting, pair).verdict is Verdict.PASSED
    assert len(check.judge("def f(x): return x", pair).stages) == 3


class Reversed(Suite):
    """Tests from the last to the first."""

    def order(self, tests: int, prices: Sequence[float | None] = ()) -> Sequence[int]:
        return range(tests)[::-1]


def verdicts(records: Sequence[tuple[dict[str, Any], str]], pair: WorkerPair) -> None:
    """Assert that texts get the same verdict in file order, learned order and reversed order."""
    checks: dict[str, list[Any]] = {}
    for record, text in records:
        name = repr(record)
        if name not in checks:
            problem = Problem("p", check=record)
            in_file_order, learning = (
                parse_check(problem, LIMITS, order).how for order in TestOrder
            )
            last_first = parse_check(problem, LIMITS).how
            what = next(last_first.suites()).what
            checks[name] = [in_file_order, learning, replace(last_first, suite=Reversed(what))]  # type: ignore[type-var]
        found = [how.judge(text, pair).verdict for how in checks[name]]
        assert len(set(found)) == 1, (found, text)


def records_of(mutant: Mutant, kind: str) -> tuple[dict[str, Any], str]:
    if kind == "function":
        tests = mutant.function_tests
        return {"kind": kind, "entry_point": "f", "tests": tests}, mutant.source
    if kind == "asserts":
        return {"kind": kind, "entry_point": "f", "test": mutant.asserts}, mutant.source
    pairs = [{"input": repr(given), "output": repr(value)} for given, value in mutant.tests]
    return {"kind": kind, "tests": pairs}, f"{mutant.source}\nprint(f(eval(input() or '\"\"')))"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["function", "asserts", "stdin"])
def test_no_verdict_depends_on_the_order(kind: str, pair: WorkerPair) -> None:
    verdicts([records_of(each, kind) for each in mutants(12, seed=4)], pair)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["function", "asserts", "stdin"])
def test_no_verdict_of_two_thousand_programs_depends_on_the_order(
    kind: str, pair: WorkerPair
) -> None:
    count = 700 if kind == "stdin" else 2000
    verdicts([records_of(each, kind) for each in mutants(count, seed=5)], pair)


@pytest.mark.slow
def test_counts_outlive_the_parsed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grv.backends.verifiers.pool._PARSED", 1)
    tests = [{"args": [number], "expected": number} for number in range(2)]
    check = {"kind": "function", "entry_point": "f", "tests": tests}
    with CheckVerifier(workers=1) as verifier:
        first = Problem("first", check=check)
        assert verifier.find(first, "def f(x): return 0").evidence["test"] == 1
        verifier.prepare(Problem("other", check={"kind": "math", "answer": "1"}))
        (suite,) = verifier.prepare(first).how.suites()
        assert suite.order(2) == [1, 0]
