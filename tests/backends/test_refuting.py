"""Candidates that cannot pass are refuted without verification, and no others."""

from __future__ import annotations

import importlib
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grv.backends.attacks import right_programs, suite
from grv.backends.protocols import Draft, Problem
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.programs import refuting
from grv.backends.verifiers.programs.checks import ProgramCheck
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.values import REFUTED, Verdict
from support.examples import examples

FUNCTION = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
ASSERTS = {"kind": "asserts", "entry_point": "f", "test": "assert f(1) == 2"}
STDIN = {"kind": "stdin", "tests": [{"input": "1\n", "output": "2\n"}]}
MATH = {"kind": "math", "answer": "5"}
LIMITS = RunLimits(seconds=2.0, memory_mb=512)


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    workers = WorkerPair()
    yield workers
    workers.close()


def refutation(check: dict[str, Any], text: str) -> str | None:
    return parse_check(Problem("p", check=check)).how.refutation(text)


def in_the_sandbox(pair: WorkerPair, check: dict[str, Any], text: str) -> Verdict:
    """The verdict of a run in the sandbox, also of a program that does not parse."""
    how = parse_check(Problem("p", check=check), LIMITS).how
    assert isinstance(how, ProgramCheck)
    return how.run(how.program(text), pair, 0).verdict


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(x): return (x", "does not parse: line 1: '(' was never closed"),
        ("I cannot do that, sorry.", "does not parse: line 1: invalid syntax"),
        ("def f(x):\n    return x\x00", "does not parse: "),
        ("def f(x): return '\ud800'", "does not parse: "),
        ("def f(x): return x\nreturn 3", "does not compile: line 2: 'return' outside function"),
        ("class f:\n    return 3", "does not compile: line 2: 'return' outside function"),
        ("def f(x):\n    break", "does not compile: line 2: 'break' outside loop"),
        ("for i in ():\n    pass\nelse:\n    continue", "does not compile: line 4: 'continue'"),
        ("import math\nfrom __future__ import division", "does not compile: line 2: from __futu"),
        ('"""Doc."""\ndef f(x): return x\nfrom __future__ import division', "does not compile: "),
        ("def f(x, x): return x", "does not compile: line 1: duplicate argument 'x'"),
        ("def f(x):\n    pass\nnonlocal y", "does not compile: line 3: nonlocal declaration"),
        ("", "does not define f"),
        ("def g(x): return x + 1", "does not define f"),
        ("import math\ndef g(x):\n    return f(x) + math.sqrt(1)", "does not define f"),
        ("```python\ndef g(x):\n    return x + 1\n```", "does not define f"),
    ],
)
@pytest.mark.parametrize("check", [FUNCTION, ASSERTS], ids=["function", "asserts"])
def test_a_program_that_cannot_pass_is_refuted_and_fails_in_the_sandbox(
    check: dict[str, Any], text: str, reason: str, pair: WorkerPair
) -> None:
    assert (refutation(check, text) or "").startswith(reason)
    assert in_the_sandbox(pair, check, text) is Verdict.FAILED


@pytest.mark.parametrize(
    ("text", "refuted"),
    [
        ("print(2", True),
        ("break", True),
        ("", True),
        ("# nothing", True),
        ("pass", False),
        ("print(3)", False),
    ],
)
def test_a_program_for_tests_of_output_is_refuted_if_it_does_not_compile_or_is_empty(
    text: str, refuted: bool, pair: WorkerPair
) -> None:
    assert (refutation(STDIN, text) is not None) is refuted
    assert in_the_sandbox(pair, STDIN, text) is Verdict.FAILED


def test_an_empty_program_may_pass_if_no_output_is_expected(pair: WorkerPair) -> None:
    silent = {"kind": "stdin", "tests": [{"input": "1\n", "output": "\n"}]}
    assert refutation(silent, "") is None
    assert in_the_sandbox(pair, silent, "") is Verdict.PASSED


def test_a_text_without_an_answer_is_refuted_by_checks_of_mathematics() -> None:
    for match in ("equivalent", "exact"):
        check = MATH | {"match": match}
        assert refutation(check, r"It is \\boxed{5") == "has no answer"
        assert refutation(check, r"It is \boxed{6}.") is None


def test_checks_by_commands_and_servers_refute_nothing() -> None:
    for check in ({"kind": "command", "argv": ["true"]}, {"kind": "http", "url": "http://[::1]"}):
        assert refutation(check, "def f(x: return") is None


# Right programs whose function is bound in a way that is easy to overlook.
_HIDDEN = """
globals()["f"] = lambda x: x + 1
---
globals().update({chr(102): lambda x: x + 1})
---
exec("def " + chr(102) + "(x): return x + 1")
---
eval(compile("def f(x): return x + 1", "s", "exec"))
---
vars()["f"] = lambda x: x + 1
---
locals()["f"] = lambda x: x + 1
---
import sys
setattr(sys.modules[__name__], chr(102), lambda x: x + 1)
---
import candidate
candidate.__dict__["f"] = lambda x: x + 1
---
def g(x): return x + 1
g.__globals__["f"] = g
---
def g(x): return x + 1
def h():
    yield
h().gi_frame.f_globals[chr(102)] = g
---
def g(x): return x + 1
try:
    1 / 0
except ZeroDivisionError as e:
    e.__traceback__.tb_frame.f_globals[chr(102)] = g
---
def g(x): return x + 1
class C:
    def __enter__(self): return self
    def __exit__(self, kind, value, tb):
        tb.tb_frame.f_globals[chr(102)] = g
        return True
with C():
    1 / 0
---
def __getattr__(name): return lambda x: x + 1
---
class Solution:
    def f(self, x): return x + 1
---
class Base:
    pass
setattr(Base, chr(102), lambda self, x: x + 1)
class Solution(Base): pass
---
Solution = type("S", (), {chr(102): lambda self, x: x + 1})
---
for f in [lambda x: x + 1]: pass
---
import math as f
f = lambda x: x + 1
---
with open("/dev/null") as f: pass
def g():
    global f
    def f(x): return x + 1
g()
---
match (lambda x: x + 1):
    case f: pass
---
(f := lambda x: x + 1)
---
[f := lambda x: x + 1 for _ in "a"]
---
ｆ = lambda x: x + 1
---
from functools import *
f = lambda x: x + 1
---
import typing
def g(x: "globals().update({chr(102): lambda x: x + 1})"): pass
try: typing.get_type_hints(g)
except Exception: pass
---
import functools
@functools.singledispatch
def g(x): pass
def h(x: "globals().update({chr(102): lambda x: x + 1})"): pass
try: g.register(h)
except Exception: pass
---
import collections
collections._sys.modules["candidate"].__dict__[chr(102)] = lambda x: x + 1
---
import re
re.enum.sys.modules["candidate"].__dict__[chr(102)] = lambda x: x + 1
---
import typing as t
m = t
m.sys.modules["candidate"].__dict__[chr(102)] = lambda x: x + 1
---
import string
def g(x): return x + 1
string.Formatter().get_field("0.__glo" + "bals__", (g,), {})[0][chr(102)] = g
---
import functools, sys
class C: pass
c = C()
vars(c)[chr(102)] = lambda x: x + 1
functools.update_wrapper(sys.modules["candidate"], c, assigned=[chr(102)], updated=[])
---
import enum
@enum.global_enum
class E(enum.Enum):
    f = lambda x: x + 1
def g(x): return x + 1
import builtins
builtins.setattr(__import__("candidate"), chr(102), g)
---
async def h(): pass
def g(x): return x + 1
c = h()
c.cr_frame.f_globals[chr(102)] = g
c.close()
---
def g(x): return x + 1
print.__self__.exec(chr(102) + " = g", g.__globals__)
---
def g(x): return x + 1
class M(type):
    def __instancecheck__(cls, other): return True
class P(metaclass=M):
    __match_args__ = ("__globals__",)
match g:
    case P(d): d[chr(102)] = g
"""
HIDDEN = _HIDDEN.split("\n---\n")


@pytest.mark.parametrize("text", HIDDEN, ids=range(len(HIDDEN)))
def test_a_function_that_is_bound_in_a_hidden_way_is_not_refuted(
    text: str, pair: WorkerPair
) -> None:
    for check in (FUNCTION, ASSERTS):
        assert refutation(check, text) is None
    assert in_the_sandbox(pair, FUNCTION, text) is Verdict.PASSED


def deep(part: str, end: str, times: int) -> str:
    return part * times + "1" + end * times


FINALLY = "".join(
    f"{' ' * n}try:\n{' ' * n} pass\n{' ' * n}finally:\n" for n in range(60)
) + " " * 60 + "pass\n"  # fmt: skip
HOSTILE = {
    "parentheses": deep("(", ")", 20_000),
    "brackets": deep("[", "]", 150),
    "operators": "-" * 30_000 + "1",
    "attributes": "a" + ".b" * 15_000,
    "sums": "1" + "+1" * 15_000,
    "lambdas": "lambda: " * 5_000 + "1",
    "comparisons": "1" + "<1" * 15_000,
    "elif": "if 0: pass\n" + "elif 0: pass\n" * 3_000,
    "finally, which takes exponential time to compile": FINALLY,
    "a huge integer": "x = " + "9" * 60_000,
    "a huge hexadecimal": "x = 0x" + "f" * 60_000,
    "a large power": "x = 9 ** 9 ** 9 ** 9",
    "null bytes": "x = 1\x00" * 1_000,
    "surrogates": "x = '\ud800\udfff'" * 100,
    "a long line": "x = '" + "y" * 10_000_000 + "'",
    "f-strings": 'f"{' * 100 + "1" + '}"' * 100,
    "indentation": "".join(f"{' ' * n}if 1:\n" for n in range(99)) + " " * 99 + "pass",
    "escapes": "x = '" + "\\N{BULLET}" * 5_000 + "'",
    "a form feed": "\f" * 60_000,
    "a byte order mark": "\ufeffx = 1",
    "boxes": r"\boxed{" * 20_000 + "1",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refuted_or_not_in_a_moment(name: str) -> None:
    text = HOSTILE[name]
    with CheckVerifier(workers=1) as verifier:
        started = time.process_time()
        for check in (FUNCTION, ASSERTS, STDIN, MATH):
            for variant in (text, f"```python\n{text}\n```"):
                reason = verifier.refutation(Problem("p", check=check), Draft(variant))
                assert reason is None or reason.encode()
    assert time.process_time() - started < 20


def test_an_error_in_refuting_means_that_the_candidate_may_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refuting, "lacks", lambda program, name: 1 / 0)
    with CheckVerifier(workers=1) as verifier:
        assert verifier.refutation(Problem("p", check=FUNCTION), Draft("def g(x): pass")) is None


def test_the_modules_that_refuting_knows_offer_no_other_modules() -> None:
    for name, allowed in refuting.MODULES.items():
        module = importlib.import_module(name)
        for attribute in allowed:
            assert not isinstance(getattr(module, attribute), types.ModuleType), (name, attribute)


@pytest.mark.slow
def test_no_right_program_is_refuted_and_attacks_that_are_refuted_fail() -> None:
    with CheckVerifier(workers=1, limits=LIMITS) as verifier, suite.Surroundings() as around:
        for right in right_programs.RIGHT_PROGRAMS:
            problem = Problem(right.name, check=right.check)
            assert verifier.refutation(problem, Draft(right.text)) is None
        trials = [
            (attack, problem, text)
            for attack in suite.ATTACKS
            for _, problem, text in suite.trials_of(attack, around)
            if verifier.refutation(problem, Draft(text)) is not None
        ]
        assert [attack.name for attack, _, _ in trials] == ["loops forever while loading"]
    with CheckVerifier(workers=1, limits=LIMITS, refute=False) as verifier:
        for attack, problem, text in trials:
            assert suite.held(attack, verifier.find(problem, text))


PIECES = [
    "def f(x):",
    "def g(x):",
    "    return x + 1",
    "return x",
    "    break",
    "continue",
    "pass",
    "class Solution:",
    "    def f(self, x): return x + 1",
    "for i in [1]:",
    "    f = g",
    "f = g",
    "while x: pass",
    "from __future__ import division",
    "import math",
    "import math as f",
    "from math import *",
    "f = lambda x: x + 1",
    "g = lambda x: x + 1",
    "globals()['f'] = g",
    "exec('f = g')",
    "try:",
    "finally:",
    "else:",
    "    yield 1",
    "nonlocal f",
    "global f",
    "def f(x, x): return x",
    "f: int",
    "del f",
    "x = (",
    ")",
    '"""',
    "x = 1  # f",
    "@g",
    "#",
    "    global f",
    "    f = lambda x: x + 1",
    "g(1)",
    "print(f)",
    "async def f(x): pass",
    "\\",
    "def f(a: q): pass",
    "global q",
    "if 0:",
    "    return 1",
    "```",
    "```python",
    "assert g",
]
programs = st.lists(st.sampled_from(PIECES), max_size=7).map("\n".join)
RIGHT = "def f(x):\n    for i in [1]:\n        if x:\n            return x + 1\n"


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A right program with a few characters removed, doubled or replaced."""
    text = RIGHT
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        new = draw(st.sampled_from(["", "f", "(", "\n", " ", ":", "\t", "\\", "é"]))
        text = text[:at] + new + text[at + draw(st.integers(0, 2)) :]
    return text


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(text=programs | damaged())
@example(text="def h():\n    def g(a: q): pass\n    global q\ndef f(x): return x + 1")
@example(text="from __future__ import division; x = 1; from __future__ import generators")
def test_what_is_refuted_fails_in_the_sandbox(text: str, pair: WorkerPair) -> None:
    for check in (FUNCTION, STDIN):
        if refutation(check, text) is not None:
            assert in_the_sandbox(pair, check, text) is Verdict.FAILED


@pytest.mark.slow
def test_the_verifier_says_that_it_refuted_a_candidate_and_can_be_told_not_to() -> None:
    problem = Problem("p", check=FUNCTION)
    with CheckVerifier(workers=1) as verifier:
        ((_, judged),) = verifier.find_all([("t", problem, "def g(x): return x")])
    assert judged.key == REFUTED
    assert (judged.finding.verdict, judged.finding.reason) == (
        Verdict.FAILED,
        "refuted: does not define f",
    )
    with CheckVerifier(workers=1, refute=False) as verifier:
        assert verifier.refutation(problem, Draft("(")) is None
        assert verifier.find(problem, "def g(x): return x").reason == "no function"
