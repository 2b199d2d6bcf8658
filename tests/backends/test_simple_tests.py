"""A test that the judge evaluates ends as it does in a process of its own."""

# ruff: noqa: E501
from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.backends.protocols import Finding
from grv.backends.sandbox import kinds, plain, runner, tester
from grv.backends.sandbox.limits import RunLimits
from grv.backends.sandbox.run import Run
from grv.backends.verifiers.programs import checks
from grv.backends.verifiers.programs.checks import AssertsCheck
from grv.backends.verifiers.programs.inert import names_of_helpers
from grv.backends.verifiers.programs.simple_tests import Unclear, simple_test
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.values import Verdict
from support.examples import examples
from support.selection import short

SIMPLE = {
    "check": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
    "bare": "assert f(1, 2) == 3\nassert f(0, 0) == 0",
    "both names": "def check(c):\n    assert c(1) == f(1)",
    "metadata": "\n\nMETADATA = {\n    'author': 'jt',\n    'n': [1, -2.5]\n}\n\n\ndef check(c):\n"
    "    # simple\n    assert True, 'prints'\n    assert c([1.5]) is None",
    "imports": "import math\nfrom typing import List\ndef check(c):\n    import copy\n"
    "    assert not c({'a': (1,)})",
    "names": "def check(c):\n    x = [1, 2]\n    y = c(x)\n    assert y == x and c(y) != y",
    "tolerance": "assert abs(f(0.5) - 0.25) < 10 ** -6",
    "functions": "assert sorted(f(1)) == [1] and len(set(f('a' * 3))) == 1 and round(f(1), 2) == .5",
    "starred": "assert f(*[[1.0, 2.0], 0.3], key=-1) == True, f'no {1}'",
    "infinite": "assert f(1) == float('inf')",
    "kinds": "assert isinstance(f(1), int) and f(1) in (1, 2) and list(f(1)) == tuple(f(2))",
    "calls in a list": "assert [f(1), f(2)] == [1, 2]",
    "an expression": "f(1)\nassert f(2)",
}
NOT_SIMPLE = {
    "a loop": "for i in range(3):\n    assert f(i) == i",
    "a comprehension": "assert all(f(i) == i for i in [1, 2])",
    "a raise": "try:\n    f(1)\nexcept ValueError:\n    pass",
    "a helper": "def g(x): return x\nassert f(1) == g(1)",
    "two checks": "def check(c): assert c(1)\ndef check(c): assert c(2)",
    "a check with a default": "def check(c, x=1): assert c(1)",
    "a decorated check": "import functools\n@functools.cache\ndef check(c): assert c(1)",
    "an asynchronous check": "async def check(c): assert c(1)",
    "a generator": "def check(c):\n    assert c(1), (yield)",
    "a call of check": "def check(c): assert c(1)\ncheck(f)",
    "a huge number": "assert f(1) == 10 ** 10 ** 10",
    "a huge negative count": "assert f(1) == [0] * -(10 ** 400)",
    "a huge text": "assert f(1) == 'a' * 10 ** 10",
    "a huge list": "assert f(1) == [[0] * 10 ** 4] * 10 ** 4",
    "a list that doubles": "x = [1]\nx = [x, x]\nassert f(x)",
    "a list of expressions": "x = f(1)\nx = [x or 1, x or 1]\nassert f(x)",
    "an unknown name": "assert f(1) == g",
    "a name that comes later": "def check(c):\n    assert c(x)\n    x = 1",
    "a name of the module that a function hides": "x = 1\ndef check(c):\n    assert c(x)\n    x = 2",
    "a name that a message binds": "def check(c):\n    assert c(1), (x := 1)",
    "a built-in name that is bound": "len = 3\nassert f(1) == len",
    "a candidate that is bound": "f = 3\nassert f == 3",
    "an import that fails": "import nothing_such\nassert f(1)",
    "an import of a missing name": "from math import nothing_such\nassert f(1)",
    "an import of all names": "from math import *\nassert f(1)",
    "an import of a future": "from __future__ import annotations\nassert f(1)",
    "identity": "assert f(1) is 1000",
    "not a number": "x = 1e999 - 1e999\nassert [x] == [x] and f(1)",
    "a set as an argument": "assert f({'a', 'b'}) == 1",
    "an error of its own": "assert f(1) == -'a'",
    "an encoding": "# coding: latin-1\nassert f(1) == 'é'",
    "a carriage return": "assert f(1) == 1\rassert f(2) == 1",
    "a deep list": f"assert f(1) == {'[' * 40}{']' * 40}",
    "a format": "assert f(1) == f'{1}'",
    "an argument that is repeated": "assert f(1, k=1, k=2) == 1",
    "a message that does not compile": "assert f(1), print(1, end='', end='')",
    "an argument that cannot be assigned": "assert f(1, __debug__=2) == 1",
    "an operation that warns": "assert ~f(1) == -2",
    "an attribute": "assert f(1).real == 1",
    "a subscript": "assert f(1)[0] == 1",
    "a product of answers": "assert f(1) * 2 == 2",
    "no statement": "",
    "a wrong program": "assert f(1) ==",
}
INERT = (
    "",
    "Write a function that doubles x.",
    'from typing import List, Optional\n\ndef f(x: List[int], y: Optional[str] = None) -> bool:\n    """Double."""\n',
    "import math\nLIMIT = 3\ndef g(a, b=2):\n    return a % b\n\ndef f(x: int) -> 'Any':",
    "def f(x: list[int], *y: int, z: dict[str, int] = None): pass",
)
NOT_INERT = (
    "print(1)\ndef f(x):\n",
    "def f(x: List[int]):\n    pass",
    "from typing import Dict\ndef f(x: Dict[int]):\n    pass",
    "from typing import Optional, List\ndef f(x: List[Optional]):\n    pass",
    "def f(x: int[str]):\n    pass",
    "def f(x=1 / 0):\n    pass",
    "def f(x, x):\n    pass",
    "def f(x):\n    break",
    "def f(x):\n    return g(a=1, a=2)",
    "def f(x):\n    nonlocal y",
    "@g\ndef f(x):\n",
    "class A:\n    pass\ndef f(x):\n",
    "def len(x):\n    return 3\ndef f(x):\n",
    "def check(x):\n    return 3\ndef f(x):\n",
    "int = 3\ndef f(x: int[3]):\n",
    "import nothing_such\ndef f(x):\n",
    "hello",
)


@pytest.mark.parametrize("name", SIMPLE)
def test_a_simple_test_is_read(name: str) -> None:
    assert simple_test(SIMPLE[name], "", "f") is not None


@pytest.mark.parametrize("name", NOT_SIMPLE)
def test_any_other_test_needs_a_process(name: str) -> None:
    found = simple_test(NOT_SIMPLE[name], "", "f")
    if found is not None:  # it ends without a call
        with pytest.raises(Unclear):
            found.outcome(lambda question: {})
        assert name == "no statement"


@pytest.mark.parametrize("name", ["check", "list", "abs"])
def test_a_candidate_with_the_name_of_a_function_needs_a_process(name: str) -> None:
    test = f"assert {name}([1]) == isinstance({name}([2]), list)"
    assert simple_test(test, "", name) is None


@pytest.mark.parametrize("prompt", INERT)
def test_a_prompt_that_only_defines_is_left_out(prompt: str) -> None:
    assert simple_test("assert f(1) == 1", prompt, "f") is not None
    namespace: dict[str, Any] = {}
    tester.define_helpers(prompt, namespace)  # raises nothing
    assert frozenset(namespace) - {"__builtins__"} == names_of_helpers(prompt)


@pytest.mark.parametrize("prompt", NOT_INERT)
def test_a_prompt_that_may_do_more_is_executed(prompt: str) -> None:
    assert simple_test("assert f(1) == 1", prompt, "f") is None


# --- beside Python itself ---

Answers = Callable[[], Any]


def by_python(test: str, answers: Answers) -> tuple[str, ...]:
    """How Python ends a test whose candidate gives these answers."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    decoder = kinds.Decoder(namespace, lambda tag, number, name, methods: None, {})

    def candidate(*args: Any, **kwargs: Any) -> Any:
        answer = sent(answers())
        if "exception" in answer:
            raise decoder.value(answer["exception"])
        return decoder.value(answer["value"])

    namespace["f"] = candidate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "perhaps you missed a comma?"
        code = compile(test, "<test>", "exec", dont_inherit=True)
    try:
        exec(code, namespace)
        if "check" in namespace:
            namespace["check"](candidate)
    except Exception as exc:
        lines = [n for code, n in runner.frames(exc) if code.co_filename == "<test>"]
        return (f"{type(exc).__name__}: {exc}"[:500], test.splitlines()[lines[-1] - 1].strip())
    return ()


def by_judge(test: str, answers: Answers) -> tuple[str, ...] | None:
    """How the judge ends it; None if that is not clear."""
    found = simple_test(test, "", "f")
    if found is None:
        return None
    try:
        outcome = found.outcome(lambda question: sent(answers()))
    except Unclear:
        return None
    return tuple(outcome.evidence.values())


def sent(value: Any) -> dict[str, Any]:
    """The message with an answer, as it comes out of the pipe."""
    encoder = kinds.Encoder(1 << 20, lambda tag, value: ["k", 0, "name"])
    answer: dict[str, Any] = {"id": 1, "at": 0.5}
    if isinstance(value, Raise):
        answer |= runner.describe(value.exception, "") | {
            "exception": encoder.value(value.exception)
        }
    else:
        answer["value"] = encoder.value(value)
    found: dict[str, Any] = json.loads(json.dumps(answer))
    return found


class Raise:
    def __init__(self, exception: BaseException) -> None:
        self.exception = exception

    def __repr__(self) -> str:
        return f"Raise({self.exception!r})"


class Text(str):
    """Equal to everything, where the candidate runs."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


NUMBERS = ["0", "1", "-1", "2", "0.5", "-0.0", "1.0", "10 ** 20", "10 ** -3", "True", "1 << 0"]
LITERALS = [
    *("None", "True", "False", "0", "1", "1.0", "-0.0", "0.5", "3", "'a'", "'ab'", "''", "b'a'"),
    *("[]", "[1]", "[1, 2]", "[2, 1]", "(1, 2)", "()", "[[1], (2,)]", "['b', 'a']", "[None, 1]"),
    *("{}", "{'a': 1}", "{1: 'a', 2: [3]}", "{1, 2}", "{'a'}", "2 ** 70", "float('inf')", "-3"),
]
ANSWERS = [
    *(eval(text) for text in LITERALS),
    *(float("nan"), [float("nan")], 2**70 + 0.0, 1e400, {1, 2, 3}, frozenset([1, 2]), {True: "a"}),
    *({2: [3], 1: "a"}, {(1, "a"): 2}, {1.5: None}, Text("a"), [Text("b")], {Text("a"): 1}),
    *(range(3), 1 + 2j, bytearray(b"a"), iter([1]), kinds, object(), ValueError(1), int),
    *(Raise(ValueError("no")), Raise(KeyError("a", 2)), Raise(ZeroDivisionError())),
    *(Raise(TypeError([1])), Raise(AssertionError("x" * 600)), Raise(OSError(2, "no"))),
    *(Raise(UnicodeDecodeError("utf-8", b"a", 0, 1, "no")), Raise(RecursionError("deep"))),
]
FORMS = [
    *("f({a}) == {v}", "f({a}) != {v}", "not f({a})", "f({a}) is None", "f({a}) is not True"),
    *("abs(f({a}) - {n}) < 1e-6", "f({a}) in [{v}, {w}]", "f({a}) not in {v}", "f({a}) == f({b})"),
    *("sorted(f({a})) == {v}", "len(f({a})) == 2", "list(f({a})) == {v}", "tuple(f({a})) == {v}"),
    *("set(f({a})) == {v}", "{v} == f({a}) == {w}", "f({a}) and f({b})", "f({a}) or f({b}) == {v}"),
    *("round(f({a}), 2) == {n}", "round(f({a})) == {n}", "isinstance(f({a}), int)", "-f({a}) < 0"),
    *("f({a}) < {n}", "{n} <= f({a}) < 3", "f({a}) + {n} == 3", "bool(f({a}))", "f({a}) >= {v}"),
    *("f({a}, k={v}) == {w}", "f(*[{a}, {b}]) == {v}", "f(f({a})) == {v}", "{v}"),
    *("[f({a}), f({b})] == [{v}, {w}]", "(f({a}), {w}) == ({v}, {w})", "f({a}) == {v} != {w}"),
    *("isinstance(f({a}), str) or f({b}) == {w}", "float('1') == f({a})", "{a} in f({b})"),
]


@st.composite
def simple_tests(draw: st.DrawFn) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        names = {name: draw(st.sampled_from(LITERALS)) for name in "abvw"}
        line = draw(st.sampled_from(FORMS)).format(**names, n=draw(st.sampled_from(NUMBERS)))
        kind = draw(st.sampled_from(["assert", "assert", "assert", "message", "name", "not"]))
        match kind:
            case "message":
                lines.append(f"assert {line}, 'said'")
            case "name":
                lines += [f"x = {line}", "assert x", "assert f(x) == x"]
            case "not":
                lines.append(f"assert not ({line})")
            case _:
                lines.append(f"assert {line}")
    if draw(st.booleans()):
        return "def check(f):\n" + "".join(f"    {line}\n" for line in lines)
    return "\n".join(lines)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(simple_tests(), st.lists(st.sampled_from(range(len(ANSWERS))), min_size=1, max_size=6))
def test_the_judge_ends_a_test_as_python_does(test: str, picked: list[int]) -> None:
    def answers() -> Answers:
        numbers = iter(picked * 10)
        return lambda: ANSWERS[next(numbers)]

    found = by_judge(test, answers())
    if found is not None:
        assert found == by_python(test, answers())


def test_most_plain_answers_are_clear() -> None:
    asked = 0
    clear = 0
    for form in FORMS:
        for answer in ANSWERS[: len(LITERALS)]:
            test = f"assert {form.format(a='1', b='2', v='[1]', w='3', n='0.5')}"
            found = by_judge(test, lambda: answer)  # noqa: B023
            asked += 1
            clear += found is not None
            if found is not None:
                assert found == by_python(test, lambda: answer)  # noqa: B023
    assert clear > 0.85 * asked, (clear, asked)


@pytest.mark.parametrize(
    "answer",
    [
        {"value": 3, "raised": ["ValueError"]},
        {"value": 3, "stopped": 4},
        {"value": 3, "args": ["l", 1]},
        {"value": ["s", 1, 1, ["l"]]},
        {"value": ["d", 1]},
        {"value": ["n", "x"]},
        {"value": ["f", "x"]},
        {"value": ["l", 1.5]},
        {"value": {"a": 1}},
        {"value": ["l", *([1] * 100_000)]},
        {"value": "a" * (1 << 21)},
        {"value": ["d", *range(2000)]},
        {"value": ["s", *(["n", hex(i * ((1 << 61) - 1))] for i in range(100))]},
        {"raised": ["ValueError"], "exception": ["X", "ValueError", ["builtins.OSError"], ["t"]]},
        {},
    ],
    ids=short,
)
def test_an_odd_answer_is_left_to_the_process(answer: Mapping[str, Any]) -> None:
    found = simple_test("assert f(1) == 3", "", "f")
    assert found is not None
    with pytest.raises(Unclear):
        found.outcome(lambda question: {"id": 1, "at": 0.5, **answer})


def test_the_answers_to_one_test_have_limited_room() -> None:
    text = "\n".join(f"assert f({number})" for number in range(30))
    found = simple_test(text, "", "f")
    assert found is not None
    asked = []

    def ask(question: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(question)
        return {"id": 1, "at": 0.5, "value": "a" * 100_000}

    with pytest.raises(Unclear):
        found.outcome(ask)
    assert 5 < len(asked) < 15


# --- beside the process of a test ---

CHECK = """
def check(candidate):
    assert candidate([1, 2], 3) == [2, 4]
    assert candidate([0.5], 1) == [1.0], "a half"
    assert candidate([], None) == [] and not candidate([], 2)
    assert sorted(candidate(['a', 'b'], 1)) == ['aa', 'bb']
    assert candidate(
        [True], 0) == [2]
"""
COUNT = "def check(c):\n" + "".join(f"    assert c({n}) == {n}\n" for n in range(5))
SETS = "x = {1: 'a', 2: ['b']}\nassert f(x, 1) == {1: 'aa', 2: 2}\nassert f([3], 1) == {6}"
DOUBLE = "def f(v, n):\n    return [2 * x for x in v]"
PROGRAMS = {
    "right": DOUBLE,
    "wrong": "def f(v, n):\n    return v",
    "wrong at the end": "def f(v, n):\n    return [2 * x for x in v] if v != [True] else [1]",
    "tuples": "def f(v, n):\n    return tuple(2 * x for x in v)",
    "a named tuple": "from collections import namedtuple\n"
    "def f(v, n):\n    return namedtuple('P', 'x y')(2, 4) if n == 3 else [2 * x for x in v]",
    "raises": "def f(v, n):\n    raise ValueError('no')",
    "raises late": "def f(v, n):\n    return [2 * x for x in v] if v else v[1]",
    "raises a class of its own": "class E(ValueError): pass\ndef f(v, n):\n    raise E(1)",
    "a missing module": "def f(v, n):\n    import nothing_such",
    "ends": "def f(v, n):\n    raise SystemExit",
    "interrupts": "def f(v, n):\n    raise KeyboardInterrupt",
    "no memory": "def f(v, n):\n    raise MemoryError",
    "recursion": "def f(v, n):\n    return f(v, n)",
    "changes its arguments": "def f(v, n):\n    v[:] = [2 * x for x in v]\n    return v",
    "empties its arguments": "def f(v, n):\n    r = [2 * x for x in v]\n    v.clear()\n    return r",
    "remembers": "seen = []\ndef f(v, n):\n    seen.append(v)\n    return [2 * x for x in v] if len(seen) < 3 else seen",
    "a generator": "def f(v, n):\n    yield from (2 * x for x in v)",
    "a class": "class L(list):\n    def __eq__(self, other): return True\ndef f(v, n):\n    return L()",
    "an object": "class A:\n    def __eq__(self, other): return True\ndef f(v, n):\n    return A()",
    "a text of its own": "class T(str):\n    def __eq__(self, o): return True\n    __hash__ = str.__hash__\ndef f(v, n):\n    return T('x')",
    "nan": "def f(v, n):\n    return [float('nan')]",
    "none": "def f(v, n):\n    return None",
    "huge": "def f(v, n):\n    return [0] * 10 ** 5",
    "too large": "def f(v, n):\n    return 'a' * 10 ** 8",
    "itself": "def f(v, n):\n    v.append(v)\n    return v",
    "prints": "def f(v, n):\n    print('x' * 10000)\n    return [2 * x for x in v]",
    "exits": "import os\ndef f(v, n):\n    os._exit(0)",
    "forges": 'import os, struct\ndef f(v, n):\n    m = b\'{"id":1,"value":["l",2,4]}\'\n    os.write(4, struct.pack(\'>I\', len(m)) + m)',
    "sets": "def f(v, n):\n    return {2 * x for x in v} if v == [3] else {1: 'aa', 2: 2}",
    "another order": "def f(v, n):\n    return {6} if v == [3] else {2: 2, 1: 'aa'}",
    "collides": "def f(v, n):\n    return {i * ((1 << 61) - 1): 0 for i in range(2000)}",
    "counts": "n = -1\ndef f(v, k=0):\n    global n\n    n += 1\n    return n",
    "counts, with a named tuple": "from collections import namedtuple\nn = -1\ndef f(v, k=0):\n    global n\n    n += 1\n"
    "    return n if n != 2 else namedtuple('P', 'x')(2)",
    "counts, with a fraction": "from fractions import Fraction\nn = -1\ndef f(v, k=0):\n    global n\n    n += 1\n    return Fraction(n)",
    "no function": "x = 1",
}
LOOPS = "def f(v, n=0):\n    while v: pass\n    return v"
LIMITS = RunLimits(output_mb=2)


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def found_by(
    pair: WorkerPair, test: str, program: str, limits: RunLimits = LIMITS
) -> tuple[Any, ...]:
    finding = AssertsCheck("f", test, "", limits).judge(program, pair)
    return finding.verdict, finding.reason, measured_apart(finding)


def measured_apart(finding: Finding) -> dict[str, Any]:
    """The evidence without what is measured."""
    evidence = dict(finding.evidence)
    stages = evidence.pop("stages", [])
    for name in ("own_seconds", "cpu_seconds"):
        evidence.pop(name, None)
    return evidence | {"stages": [(stage["check"], stage["verdict"]) for stage in stages]}


@contextmanager
def counting(pair: WorkerPair, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of tests that needed a process, as the length of a list."""
    used: list[int] = []
    start = pair.tester

    @contextmanager
    def noted(memory_mb: int) -> Iterator[Run]:
        used.append(1)
        with start(memory_mb) as run:
            yield run

    with monkeypatch.context() as patch:
        patch.setattr(pair, "tester", noted)
        yield used


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_findings_are_those_of_a_process(
    name: str, pair: WorkerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for test in (CHECK, COUNT, SETS):
        quick = found_by(pair, test, PROGRAMS[name])
        with monkeypatch.context() as patch:
            patch.setattr(checks, "simple_test", lambda *_: None)
            slow = found_by(pair, test, PROGRAMS[name])
        assert quick == slow


@pytest.mark.alone
def test_a_timeout_is_found_alike(pair: WorkerPair, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = RunLimits(seconds=0.3)
    quick = found_by(pair, "assert f(0) == 0\nassert f(1) == 1", LOOPS, limits)
    assert quick[:2] == (Verdict.FAILED, "timeout")
    monkeypatch.setattr(checks, "simple_test", lambda *_: None)
    assert found_by(pair, "assert f(0) == 0\nassert f(1) == 1", LOOPS, limits) == quick


@pytest.mark.parametrize(
    ("name", "test", "processes"),
    [
        ("right", CHECK, 0),
        ("wrong", CHECK, 0),
        ("raises", CHECK, 0),
        ("too large", CHECK, 0),
        ("counts", COUNT, 0),
        ("wrong at the end", CHECK, 1),  # in a statement of two lines
        ("a named tuple", CHECK, 1),
        ("raises a class of its own", CHECK, 1),
    ],
)
def test_only_what_is_not_clear_needs_a_process(
    name: str, test: str, processes: int, pair: WorkerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counting(pair, monkeypatch) as used:
        found_by(pair, test, PROGRAMS[name])
    assert len(used) == processes


@pytest.mark.parametrize("name", ["counts, with a named tuple", "counts, with a fraction"])
def test_a_call_is_not_made_again_in_the_process(
    name: str, pair: WorkerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = COUNT.replace("c(2) == 2", "c(2) in (2, (2,))")
    with counting(pair, monkeypatch) as used:
        verdict, reason, evidence = found_by(pair, test, PROGRAMS[name])
    assert (verdict.value, reason, len(used)) == ("passed", "", 1)
    assert evidence["args"] == "[4]"


def test_surrogates_are_asked_for_alike(pair: WorkerPair) -> None:
    test = "assert f('\\ud83d\\ude00') == 2"
    fraction = "from fractions import Fraction\ndef f(x): return Fraction(len(x))"
    for program in (fraction, "def f(x): return len(x)"):
        assert found_by(pair, test, program)[0] is Verdict.PASSED


def test_shared_arguments_are_asked_for_alike(pair: WorkerPair) -> None:
    test = "x = [1]\nassert f(x, x, [[0]] * 2, k=x) == 1"
    program = "def f(a, b, c, k):\n    r = (a is b) + (c[0] is c[1]) + k[0] - 2\n    return r"
    fraction = (
        f"from fractions import Fraction\n{program.replace('return r', 'return Fraction(r)')}"
    )
    for text in (program, fraction):
        assert found_by(pair, test, text)[0] is Verdict.PASSED


def test_what_only_the_judge_has_asked_is_no_answer_to_the_process(
    pair: WorkerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends before it asks anything: the candidate is not the cause."""
    start = pair.tester

    @contextmanager
    def ended(memory_mb: int) -> Iterator[Run]:
        with start(memory_mb) as run:
            run.end()
            yield run

    monkeypatch.setattr(pair, "tester", ended)
    verdict, reason, evidence = found_by(pair, COUNT, PROGRAMS["counts, with a fraction"])
    assert (verdict, reason) == (Verdict.BROKEN, "the test did not end: closed")
    assert "got" not in evidence


def test_a_changed_argument_reaches_no_later_call(pair: WorkerPair) -> None:
    """Literals belong to the judge: a candidate that changes its copy changes nothing else."""
    test = "x = [1, 2]\nassert f(x, 1) == [2, 4]\nassert x == [1, 2] and f(x, 1) == [2, 4]"
    for _ in range(2):
        for name in ("changes its arguments", "empties its arguments", "itself", "right"):
            verdict = found_by(pair, test, PROGRAMS[name])[0].value
            assert verdict == ("failed" if name == "itself" else "passed")


def test_the_reader_and_the_runner_agree_on_an_answer() -> None:
    """The judge knows an exception by all fields of its message."""
    message = sent(Raise(ValueError("no")))
    assert message.keys() == {"id", "at", *runner.describe(ValueError(), ""), "exception"}
    assert plain.encode([1]) == kinds.Encoder(99, lambda tag, value: None).value([1])
