"""Verdicts on programs, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from grv.backends.protocols import Finding
from grv.backends.sandbox.limits import RunLimits
from grv.backends.sandbox.run import SandboxDied
from grv.backends.verifiers.programs.checks import (
    AssertsCheck,
    FunctionCheck,
    FunctionTest,
    StdinCheck,
    StdinTest,
)
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.values import Verdict

LIMITS = RunLimits(seconds=10, memory_mb=256, output_mb=1)
SHORT = RunLimits(seconds=1.5, memory_mb=256)


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def function(*tests: tuple[list[Any], Any], limits: RunLimits = LIMITS) -> FunctionCheck:
    return FunctionCheck("f", tuple(FunctionTest(tuple(a), e) for a, e in tests), limits)


def stdin(*tests: tuple[str, str], limits: RunLimits = LIMITS) -> StdinCheck:
    return StdinCheck(tuple(StdinTest(*test) for test in tests), limits)


def said(finding: Finding) -> tuple[str, str]:
    return finding.verdict.value, finding.reason


def test_a_function_passes_when_every_value_is_right(pair: WorkerPair) -> None:
    check = function(([1], 2), ([2], 3))
    finding = check.judge("def f(x): return x + 1", pair)
    assert said(finding) == ("passed", "")
    assert finding.evidence["tests"] == 2
    assert finding.evidence["isolation"].startswith("jail: landlock")
    assert finding.usage.seconds > 0


def test_the_first_failing_test_is_the_evidence(pair: WorkerPair) -> None:
    finding = function(([1], 2), ([2], 4)).judge("def f(x): return x + 1", pair)
    assert said(finding) == ("failed", "wrong answer")
    shown = {name: finding.evidence[name] for name in ("test", "args", "expected", "got")}
    assert shown == {"test": 1, "args": "[2]", "expected": "4", "got": "3"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(x): return x +", "syntax error"),
        ("return 3", "syntax error"),
        ("def f(x): return x / 0", "exception"),
        ("raise ValueError", "exception"),
        ("def g(x): return 3", "no function"),
        ("f = 3", "no function"),
        ("def f(): return 3", "exception"),
        ("def f(x): return bytearray(1 << 30)", "memory"),
        ("def f(x): return 'x' * (1 << 22)", "output limit"),
        ("def f(x):\n    v = []\n    v.append(v)\n    return v", "malformed answer"),
        ("import os\ndef f(x): os._exit(0)", "no answer"),
        ("import ctypes\ndef f(x): ctypes.string_at(0)", "crash"),
        ("def f(x): return input()", "exception"),
    ],
)
def test_a_failure_has_its_reason(pair: WorkerPair, text: str, reason: str) -> None:
    assert said(function(([1], 2)).judge(text, pair)) == ("failed", reason)


@pytest.mark.slow
def test_time_is_kept_per_test(pair: WorkerPair) -> None:
    sleepy = "import time\ndef f(x):\n    time.sleep(x)\n    return x"
    check = function(*(([0.6], 0.6) for _ in range(3)), limits=SHORT)
    assert said(check.judge(sleepy, pair)) == ("passed", "")
    check = function(([0.0], 0.0), ([9], 9), limits=SHORT)
    finding = check.judge(sleepy, pair)
    assert said(finding) == ("failed", "timeout")
    assert finding.evidence["test"] == 1
    assert finding.usage.seconds < 5


def test_the_test_that_failed_most_is_run_first(pair: WorkerPair) -> None:
    check = function(([1], 1), ([2], 2), ([3], 9))
    identity = "def f(x):\n    open('log', 'a').write(str(x))\n    return x"
    assert check.judge(identity, pair).evidence["test"] == 2
    assert check.suite.order(3) == [2, 0, 1]
    finding = check.judge("def f(x): return 0", pair)
    assert finding.evidence["test"] == 2


def test_a_program_reads_its_input_and_is_judged_by_its_output(pair: WorkerPair) -> None:
    check = stdin(("3 4\n", "7\n"), ("1 1\n", "2\n"))
    assert said(check.judge("print(sum(map(int, input().split())))", pair)) == ("passed", "")
    finding = check.judge("print(7)", pair)
    assert said(finding) == ("failed", "wrong answer")
    assert finding.evidence["difference"] == "token 1: expected '2', got '7'"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print(7)\nraise SystemExit(1)", "no answer"),
        ("print(7)\n1 / 0", "exception"),
        ("return", "syntax error"),
        ("print(7)\nimport os\nos._exit(3)", "no answer"),
        ("while True: print('x' * 1000)", "output limit"),
        ("print('x' * (1 << 30))", "memory"),
        ("print(7)\nimport os\nos.abort()", "crash"),
    ],
)
def test_a_program_that_ends_badly_fails_whatever_it_printed(
    pair: WorkerPair, text: str, reason: str
) -> None:
    assert said(stdin(("", "7")).judge(text, pair)) == ("failed", reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "print(7, flush=True)\nwhile True: pass",
        "import os\nprint(7, flush=True)\nfor i in range(5): os.close(i)\nwhile True: pass",
        "import threading, time\nprint(7)\nthreading.Thread(target=time.sleep, args=(99,)).start()",
        "import atexit, time\nprint(7)\natexit.register(time.sleep, 99)",
    ],
)
def test_a_program_that_does_not_end_fails_whatever_it_printed(pair: WorkerPair, text: str) -> None:
    assert said(stdin(("", "7"), limits=SHORT).judge(text, pair)) == ("failed", "timeout")


def asserts(test: str, prompt: str = "", **options: Any) -> AssertsCheck:
    return AssertsCheck("f", test, prompt, **({"limits": LIMITS} | options))


def test_a_test_of_asserts_passes_or_fails(pair: WorkerPair) -> None:
    check = asserts("def check(c):\n    assert c(1) == 2\n    assert c(2) == 3, 'two'\n")
    assert said(check.judge("def f(x): return x + 1", pair)) == ("passed", "")
    finding = check.judge("def f(x): return 2", pair)
    assert said(finding) == ("failed", "wrong answer")
    assert finding.evidence["line"] == "assert c(2) == 3, 'two'"
    assert finding.evidence["args"] == "[2]"
    assert finding.evidence["got"] == "2"
    assert finding.evidence["message"] == "AssertionError: two"


def test_the_test_sees_the_prompts_helpers_and_the_candidate_by_name(pair: WorkerPair) -> None:
    prompt = "import math\n\n\ndef helper(x):\n    return math.floor(x)\n\n\ndef f(x):\n    'doc'\n"
    check = asserts("def check(c):\n    assert f(1.5) == helper(1.5) == c(1.2)\n", prompt)
    assert said(check.judge("    return helper(x)\n", pair)) == ("passed", "")
    # A candidate that redefines the helper does not change the test's.
    cheat = "    return 99\ndef helper(x): return 99\n"
    assert said(check.judge(cheat, pair)) == ("failed", "wrong answer")


def test_asserts_without_a_check_function_work_too(pair: WorkerPair) -> None:
    check = asserts("assert f(1) == 2\nassert f(2) == 3")
    assert said(check.judge("def f(x): return x + 1", pair)) == ("passed", "")
    assert said(check.judge("def f(x): return 2", pair)) == ("failed", "wrong answer")


def test_an_entry_point_may_be_named_check(pair: WorkerPair) -> None:
    right, wrong = "def check(x): return x + 1", "def check(x): return 2"
    for test in ("assert check(1) == 2\nassert check(2) == 3", "def check(c): assert c(2) == 3"):
        named = AssertsCheck("check", test, limits=LIMITS)
        assert said(named.judge(right, pair)) == ("passed", "")
        assert said(named.judge(wrong, pair)) == ("failed", "wrong answer")
    # A helper of the prompt's of that name is not the test's.
    prompt = "def check(x):\n    raise ValueError\n\n\ndef f(x):\n    'doc'\n"
    bare = asserts("assert f(1) == 2", prompt)
    assert said(bare.judge("    return x + 1\n", pair)) == ("passed", "")


def test_what_a_test_draws_at_random_is_fixed(pair: WorkerPair) -> None:
    test = (
        "import random\nx = random.random()\ndef check(c):\n"
        "    assert c(1) == 0, (x, random.random(), hash('x'), {'a', 'b', 'c'})\n"
    )
    check, text = asserts(test), "def f(x): return 1"

    def drawn(pair: WorkerPair, seed: int = 0) -> object:
        return check.judge(text, pair, seed).evidence["message"]

    other = WorkerPair()
    assert drawn(pair) == drawn(pair) == drawn(other)
    assert drawn(pair, 1) != drawn(pair)
    assert drawn(pair, 1) == drawn(other, 1)
    other.close()


def test_what_a_test_draws_from_numpy_is_fixed_too(pair: WorkerPair) -> None:
    pytest.importorskip("numpy")
    test = "import numpy\ndef check(c): assert c(1) == 0, numpy.random.rand()\n"
    check = asserts(test, limits=RunLimits(seconds=20))
    first, second = (check.judge("def f(x): return 1", pair).evidence["message"] for _ in "12")
    assert first == second


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        ("ValueError('no')", "ValueError"),
        ("type('Own', (KeyError,), {})('no')", "KeyError"),
        ("type('Own', (Exception,), {})('no')", "Exception"),
        ("UnicodeDecodeError('utf-8', b'', 0, 1, 'no')", "ValueError"),
        ("ZeroDivisionError('no')", "ArithmeticError"),
        ("SystemExit(0)", "RuntimeError"),
        ("StopIteration()", "RuntimeError"),
    ],
)
def test_exceptions_come_back_as_built_in_ones(pair: WorkerPair, raised: str, caught: str) -> None:
    test = (
        f"def check(c):\n    try:\n        c(1)\n    except {caught}:\n        return\n"
        "    raise SystemError('not caught')\n"
    )
    text = f"def f(x):\n    raise {raised}"
    assert said(asserts(test).judge(text, pair)) == ("passed", "")
    uncaught = asserts("def check(c): c(1)").judge(text, pair)
    assert said(uncaught) == ("failed", "exception")


def test_arguments_are_copies_unless_the_check_says_in_place(pair: WorkerPair) -> None:
    test = "def check(c):\n    v = [3, 1, 2]\n    c(v)\n    assert v == [1, 2, 3]\n"
    text = "def f(v): v.sort()"
    assert said(asserts(test).judge(text, pair)) == ("failed", "wrong answer")
    assert said(asserts(test, in_place=True).judge(text, pair)) == ("passed", "")
    # Otherwise a candidate could empty what its answer is compared with.
    cheated = asserts("def check(c):\n    v = [3, 1]\n    assert c(v) == sum(v)\n")
    assert said(cheated.judge("def f(v):\n    v.clear()\n    return 0", pair))[0] == "failed"


def test_types_are_kept_apart_as_python_keeps_them(pair: WorkerPair) -> None:
    check = asserts("def check(c):\n    assert c(1) == (1, 2)\n    assert type(c(1)) is tuple\n")
    assert said(check.judge("def f(x): return (1, 2)", pair)) == ("passed", "")
    assert said(check.judge("def f(x): return [1, 2]", pair)) == ("failed", "wrong answer")
    check = asserts(
        "def check(c):\n    assert list(c(3)) == [0, 1, 2]\n    assert c(3) != [0, 1, 2]\n"
    )
    assert said(check.judge("def f(x): return (i for i in range(x))", pair)) == ("passed", "")


def test_keywords_are_passed_on(pair: WorkerPair) -> None:
    check = asserts("def check(c): assert c(1, y=2) == 3")
    assert said(check.judge("def f(x, y): return x + y", pair)) == ("passed", "")


@pytest.mark.parametrize(
    "test",
    [
        "def check(c): pass",
        "def check(c): undefined(c(1))",
        "import nothing_of_this_name",
        "def check(c): c(lambda: 1)",
        "raise ValueError",
        "def check(c): raise AssertionError('before any call')",
    ],
)
def test_a_test_at_fault_is_no_verdict_on_the_candidate(pair: WorkerPair, test: str) -> None:
    finding = asserts(test).judge("def f(x): return x", pair)
    assert said(finding) == ("broken", "test at fault")


@pytest.mark.slow
def test_time_in_a_test_of_asserts_is_the_candidates_alone(pair: WorkerPair) -> None:
    slow_test = "import time\ndef check(c):\n    time.sleep(2)\n    assert c(1) == 1\n"
    check = asserts(slow_test, limits=SHORT)
    assert said(check.judge("def f(x): return x", pair)) == ("passed", "")
    many = asserts("def check(c):\n    for _ in range(99): c(0.1)\n", limits=SHORT)
    finding = many.judge("import time\nf = time.sleep", pair)
    assert said(finding) == ("failed", "timeout")


@pytest.mark.slow
def test_each_candidate_has_a_test_process_of_its_own(pair: WorkerPair) -> None:
    test = (
        "import os\nseen = globals().setdefault('seen', [])\n"
        "def check(c):\n    seen.append(1)\n    assert len(seen) == 1 and c(1) == os.getpid()\n"
    )
    check, other = asserts(test), asserts(test + "\n")
    findings = [c.judge("def f(x): return 0", pair) for c in (check, check, other)]
    assert {said(finding) for finding in findings} == {("failed", "wrong answer")}
    assert all("len(seen) == 1" in finding.evidence["line"] for finding in findings)
    # Left waiting for an answer, it is not used again.
    hung = "import time\nf = time.sleep"
    waiting = asserts("def check(c):\n    c(9)\n", limits=SHORT)
    for _ in range(2):
        assert said(waiting.judge(hung, pair)) == ("failed", "timeout")
    assert said(waiting.judge("def f(x): pass", pair)) == ("passed", "")


def test_a_worker_that_is_killed_says_nothing_about_the_candidate(pair: WorkerPair) -> None:
    import os
    import signal
    import threading

    check = function(([1], 1))
    assert pair.candidate.in_force
    over = threading.Event()

    def kill_until_it_is_over() -> None:  # on a busy machine the first may come before the run
        while not over.wait(0.3):
            if pair.candidate.pid is not None:
                os.kill(pair.candidate.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_until_it_is_over)
    killer.start()
    try:
        with pytest.raises(SandboxDied):
            check.judge("import time\ndef f(x): time.sleep(9)", pair)
    finally:
        over.set()
        killer.join()
    assert said(check.judge("def f(x): return x", pair)) == ("passed", "")


def test_an_answer_of_any_shape_is_no_more_than_a_wrong_one(pair: WorkerPair) -> None:
    # Sent in place of the runner's own answer, with the right number.
    for answer in (
        '{"raised": 3}', '{"raised": [[], {}, "x"], "message": {}, "line": []}', '{"value": {}}',
        '{"raised": ["StopIteration"]}', '{"refused": []}', '{"end": {"verdict": "passed"}}', "{}",
        '{"value": ["?"]}', '{"value": [[[[]]]]}', '{"value": ["d", 1]}', '{"value": 1e400}',
        '{"raised": [], "value": 2}', '{"verdict": "passed", "call": {}, "ready": true}',
    ):  # fmt: skip
        text = (
            "import json, sys\nfor name, module in list(sys.modules.items()):\n"
            "    if name.endswith('runner'):\n"
            "        wire = module.wire\n"
            "        class Wire:\n            read = wire.read\n"
            "            def write(descriptor, message):\n"
            f"                forged = json.loads({answer!r}) if 'id' in message else {{}}\n"
            "                kept = {k: v for k, v in message.items() if k in ('id', 'loaded')}\n"
            "                wire.write(descriptor, kept | forged)\n"
            "        module.wire = Wire\ndef f(x): pass"
        )
        verdict, reason = said(function(([1], 2)).judge(text, pair))
        assert verdict == "failed", (answer, reason)
        check = asserts("def check(c):\n    assert c(1) == 2\n")
        verdict, reason = said(check.judge(text, pair))
        assert verdict == "failed", (answer, reason)


def test_what_passed_was_compared(pair: WorkerPair) -> None:
    assert (
        Verdict.PASSED
        is function(([1], [1, {"a": 0.5}])).judge("def f(x): return (1, {'a': 0.5})", pair).verdict
    )
