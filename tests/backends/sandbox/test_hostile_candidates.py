"""Whatever a candidate does or sends, only that candidate fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grv.backends.protocols import Finding
from grv.backends.sandbox import message
from grv.backends.sandbox.limits import End, RunLimits
from grv.backends.verifiers import worker_pair
from grv.backends.verifiers.programs.checks import (
    AssertsCheck,
    FunctionCheck,
    FunctionTest,
    StdinCheck,
)
from grv.backends.verifiers.programs.checks import StdinTest as Printed
from grv.backends.verifiers.programs.comparing import same_value, show_node
from grv.backends.verifiers.programs.findings import clean, signal_name
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.values import Verdict
from support.examples import examples

pytestmark = pytest.mark.slow
SOURCE = str(Path(__file__).parents[3] / "src")
LIMITS = RunLimits(seconds=5, memory_mb=256, output_mb=1)
FUNCTION = FunctionCheck("f", (FunctionTest((1,), 2), FunctionTest((1,), 2)), LIMITS)
ASSERTS = AssertsCheck("f", "def check(c):\n    assert c(1) == 2\n    c(1)\n", limits=LIMITS)
STDIN = StdinCheck((Printed("1\n", "2\n"),), LIMITS)


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def said(finding: Finding) -> tuple[str, str]:
    return finding.verdict.value, finding.reason


@pytest.mark.parametrize("number", range(1, 65))
def test_a_program_that_signals_itself_fails(pair: WorkerPair, number: int) -> None:
    text = f"import os\ndef f(x):\n    os.kill(os.getpid(), {number})\n    return 'none'"
    limits = RunLimits(seconds=0.3, memory_mb=256)
    finding = FunctionCheck("f", (FunctionTest((1,), 2),), limits).judge(text, pair)
    assert finding.verdict is Verdict.FAILED
    harmless = {1, 2, 15, 9, 17, 18, 19, 20, 21, 22, 23, 28, 13, 25, 32, 33}
    assert number in harmless or finding.evidence.get("signal") == signal_name(number)


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.abort()",
        "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0.01)\nwhile True: pass",
        "import signal\nsignal.alarm(1)\nsignal.pause()",
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
        "import resource, os\nresource.prlimit(os.getpid(), resource.RLIMIT_CPU, (0, 0))",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))\n[0] * 10**7",
        "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (4096, 4096))\n"
        "def g(): g()\ng()",
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))\n"
        "import signal\nsignal.signal(25, signal.SIG_DFL)\nopen('a', 'w').write('x' * 99999)",
        "import os\nos.kill(os.getpid(), 9)\nos._exit(3)",
        "import signal\nsignal.pthread_kill(signal.pthread_self() if 0 else __import__('threading')"
        ".get_ident(), 9)",
        "import signal, os\nsignal.pidfd_send_signal(os.pidfd_open(os.getpid()), 9)",
        "import faulthandler\nfaulthandler._sigsegv()",
        "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, os.getpid())",
        "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, 10, 9)",
    ],
)
def test_a_program_that_ends_itself_fails(pair: WorkerPair, text: str) -> None:
    limits = RunLimits(seconds=3, memory_mb=256)
    assert StdinCheck((Printed("", "2"),), limits).judge(text, pair).verdict is Verdict.FAILED
    called = "def f(x):\n" + "".join(f"    {line}\n" for line in text.split("\n"))
    check = FunctionCheck("f", (FunctionTest((1,), 2),), limits)
    assert check.judge(called, pair).verdict is Verdict.FAILED


_CALLS = """
import ctypes, os, signal, struct, time
libc = ctypes.CDLL(None, use_errno=True)
def f(x):
    event = ctypes.create_string_buffer(struct.pack("QiiI", 0, 9, 0, 0).ljust(64, b"\\0"))
    timer = ctypes.c_int()
    soon = struct.pack("qqqq", 0, 0, 0, 1000)
    for clock in (0, 1, 2, 3):
        libc.syscall(222, clock, event, ctypes.byref(timer))
        libc.syscall(223, timer, 0, soon, None)
    limit = struct.pack("QQ", 0, 0)
    for kind in (0, 15):
        libc.syscall(160, kind, limit)
        libc.syscall(302, 0, kind, limit, None)
        libc.syscall(302, os.getpid(), kind, limit, None)
    for number, arguments in ((62, (os.getpid(), 9)), (200, (os.getpid(), 9)),
                              (234, (os.getpid(), os.getpid(), 9)), (157, (1, 9)),
                              (129, (os.getpid(), 9, event)), (424, (0, 9, None, 0)),
                              (297, (os.getpid(), os.getpid(), 9, event)), (244, (0, event)),
                              (317, (0, 0, None)), (157, (22, 1)), (101, (0, 0, 0, 0))):
        libc.syscall(number, *arguments)
    end = time.process_time() + 1.2
    while time.process_time() < end: pass
    return "alive"
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
def test_no_system_call_lets_a_program_die_as_if_it_had_been_killed(pair: WorkerPair) -> None:
    finding = FunctionCheck("f", (FunctionTest((1,), "alive"),), LIMITS).judge(_CALLS, pair)
    assert said(finding) == ("passed", "")


def sending(answer: str, body: str = "") -> str:
    """A program that answers its first call with these bytes, the right number included."""
    return (
        "import json, os, sys\n"
        f"def send(number):\n    body = {answer}\n"
        "    data = len(body).to_bytes(4, 'big') + body\n"
        "    while data: data = data[os.write(4, data):]\n"
        "runner = next(m for n, m in sys.modules.items() if n.endswith('.runner'))\n"
        "runner._answer = lambda function, call, room: send(call['id']) or os._exit(0)\n"
        f"def f(x): pass\n{body}"
    )


HOSTILE = [
    "b''", "b'null'", "b'[]'", "b'3'", "b'{'", "b'\\xff\\xfe'", "b'{\"id\": %d}' % number",
    "b'{\"id\": %d, \"value\": \"\\xff\"}' % number",
    "b'{\"id\": %d, \"id\": 3, \"value\": 2}' % number",
    "b'{\"id\": true, \"value\": 2}'", "b'{\"id\": NaN, \"value\": 2}'",
    "b'{\"id\": %d, \"value\": NaN}' % number", "b'{\"id\": %d, \"value\": Infinity}' % number",
    "b'{\"id\": %d, \"value\": 2.0}' % number", "b'{\"id\": %d, \"value\": 1e999}' % number",
    "b'{\"id\": %d, \"value\": %s}' % (number, b'9' * 5000)",
    "b'{\"id\": %d, \"value\": %s}' % (number, b'9' * 4000)",
    "b'{\"id\": %d, \"value\": %s2%s}' % (number, b'[' * 900, b']' * 900)",
    "b'{\"id\": %d, \"value\": %s2%s}' % (number, b'[' * 100000, b']' * 100000)",
    "b'{\"id\": %d, \"value\": %s\"x\"%s}' % (number, b'[\"a\",' * 300, b']' * 300)",
    "b'{\"id\": %d, \"value\": %s1%s}' % (number, b'{\"a\":' * 500, b'}' * 500)",
    "b'{\"id\": %d, \"value\": \"\\\\ud800\"}' % number",
    "b'{\"id\": %d, \"raised\": [\"\\\\ud800\"], \"message\": \"\\\\udfff\"}' % number",
    "b'{\"id\": %d, \"raised\": [\"ExceptionGroup\"], \"message\": [[]]}' % number",
    "b'{\"id\": %d, \"raised\": {}, \"message\": null, \"line\": 1e400}' % number",
    "b'{\"id\": %d, \"raised\": [\"X\"], \"line\": %s}' % (number, b'9' * 4000)",
    "b'{\"id\": %d, \"refused\": {\"too\": \"large\"}}' % number",
    "b'{\"id\": %d, \"value\": [\"F\", 2, 0]}' % number",
    "b'{\"id\": %d, \"value\": [\"F\", [\"F\", 2, 1], 1]}' % number",
    "b'{\"id\": %d, \"value\": [\"F\", 4, 2]}' % number",
    "b'{\"id\": %d, \"value\": [\"D\", \"sNaN\"]}' % number",
    "b'{\"id\": %d, \"value\": [\"D\", \"2E+99999999999999999999\"]}' % number",
    "b'{\"id\": %d, \"value\": [\"n\", \"0b10\"]}' % number",
    "b'{\"id\": %d, \"value\": [\"n\", \"%s\"]}' % (number, b'f' * 1000000)",
    "b'{\"id\": %d, \"value\": [\"r\", 0, [\"n\", \"0x1%s\"], 1]}' % (number, b'0' * 5000)",
    "b'{\"id\": %d, \"value\": [\"b\", \"zz\"]}' % number",
    "b'{\"id\": %d, \"value\": [\"c\", \"nan\", \"inf\"]}' % number",
    "b'{\"id\": %d, \"value\": [\"a\", [\"a\", [\"a\", 2]]]}' % number",
    "b'{\"id\": %d, \"value\": [\"o\", \"\\\\ud800\"]}' % number",
    *(
        "b'{\"id\": %d, \"at\": " + at + ", \"value\": 3}' % number"
        for at in ("NaN", "-1e308", "1e308", "-Infinity", "[]", '"x"', "9" * 400, "true", "null")
    ),
    "b'{\"id\": %d, \"end\": {\"verdict\": \"passed\", \"reason\": \"\"}}' % number",
]  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE)
def test_an_answer_of_any_bytes_is_a_failure(pair: WorkerPair, answer: str) -> None:
    for check in (FUNCTION, ASSERTS):
        finding = check.judge(sending(answer), pair)
        assert finding.verdict is Verdict.FAILED, finding
        json.dumps(
            dict(finding.evidence), ensure_ascii=False
        ).encode()  # can be written to any file


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.tuples(st.sampled_from([*"lntfdszbBcrFDiao?"]), inner, inner).map(list)
        | st.tuples(st.sampled_from([*"lntfdszbBcrFDiao?"]), inner).map(list)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(500), suppress_health_check=[HealthCheck.too_slow])
@given(json_values, st.sampled_from([1, 1.5, "a", None, [1], {"a": 1}, float("nan"), 10**30]))
def test_no_value_of_any_shape_disturbs_the_judge(node: Any, expected: Any) -> None:
    same_value(expected, node, 1e-9)
    show_node(node)
    assert isinstance(message.parse(json.dumps({"id": node}).encode(), 1 << 20), dict)


@settings(max_examples=examples(300))
@given(st.binary(max_size=60))
def test_no_bytes_disturb_the_judge(body: bytes) -> None:
    assert isinstance(message.parse(body, 1 << 20), dict | End)


def test_evidence_can_be_written_anywhere() -> None:
    found = clean({"a": "\ud800x" * 9999, "b": ["\udfff", 1, {"c": b"x"}], 3: None})
    json.dumps(found, ensure_ascii=False).encode()
    assert len(found["a"]) < 10_000
    assert found["3"] is None


_FLOODED = """
import resource, sys
from grv.backends.verifiers.programs.checks import FunctionCheck, FunctionTest
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.worker_pair import WorkerPair
check = FunctionCheck("f", (FunctionTest((1,), 2),), RunLimits(seconds=20, output_mb=8))
pair = WorkerPair()
check.judge("def f(x): return 'x' * (7 << 20)", pair)
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
text = open(sys.argv[1]).read()
print(check.judge(text, pair).verdict.value, peak() - before)
pair.close()
"""


@pytest.mark.parametrize("part", ["{},", "[],", '"ab",', "1000,", "[[]],", '{"a":1},', "1.5,"])
def test_what_is_sent_takes_little_memory_in_the_judge(part: str, tmp_path: Path) -> None:
    count = (16 << 20) // len(part) - 100
    body = f"b'{{\"id\": %d, \"value\": [%s0]}}' % (number, b'{part}' * {count})"
    program = tmp_path / "program.py"
    program.write_text(sending(body))
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    call = [sys.executable, "-c", _FLOODED, str(program)]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=True)
    verdict, grown = done.stdout.split()
    assert verdict == "failed"
    assert float(grown) < 160  # for 8 MiB of output


def test_a_text_full_of_brackets_is_no_more_than_a_text() -> None:
    text = '[{,:"\\' * 100_000
    body = json.dumps({"id": 1, "value": text}).encode()
    assert message.parse(body, 1 << 20) == {"id": 1, "value": text}
    started = time.thread_time()
    assert message.parse(b'{"a":"' + b'\\"' * 4_000_000, 1 << 20) is not None
    assert time.thread_time() - started < 5


def exhausting(test: str, **limits: float) -> AssertsCheck:
    given = RunLimits(seconds=5, memory_mb=256).with_(limits)
    return AssertsCheck("f", test, limits=given)


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("assert list(f(1)) == [1]", "def f(x): return range(10**12)"),
        ("assert [0] * f(1) == []", "def f(x): return 10**15"),
        ("assert [0] * f(1) == []", "def f(x): return 10**9"),
        ("assert 2 ** f(1) == 4", "def f(x): return 10**12"),
        ("assert set(f(1)) == {1}", "def f(x): return range(10**10)"),
        ("assert eval(f(1)) == 3", "def f(x): return 'unknown_name'"),
        ("assert eval(f(1)) == 3", "def f(x): return '1 +'"),
        ("for x in f(1): y = x\nassert y == 1", "def f(x): return []"),
        ("def check(c):\n    for x in c(1): y = x\n    assert y == 1", "def f(x): return []"),
        ("assert __import__(f(1)).pi", "def f(x): return 'no_such_module'"),
        ("assert f(f(1)) == 1", "def f(x): return object()"),
        ("assert f([f(1)]) == 1", "def f(x):\n    for _ in range(63): x = [x]\n    return x"),
        ("def check(c):\n    c(c(1))", "def f(x): return [object()]"),
        ("import sys\nsys.setrecursionlimit(10**6)\ndef g(n): return g(n + 1)\nassert g(f(1))",
         "def f(x): return x"),
        ("import os\nif f(1): os._exit(3)", "def f(x): return True"),
    ],
)  # fmt: skip
def test_an_answer_that_exhausts_the_test_fails(pair: WorkerPair, test: str, text: str) -> None:
    assert exhausting(test).judge(text, pair).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("assert sum(f(1)) == 1", "def f(x): return range(10**13)"),
        ("assert pow(7, f(1)) == 7", "def f(x): return 10**8"),
    ],
)
def test_an_answer_that_takes_the_tests_time_fails(
    pair: WorkerPair, test: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pair, "TEST_SECONDS", 1.0)
    check = exhausting(test, memory_mb=257)  # other limits: the pair starts a new process
    assert said(check.judge(text, pair)) == ("failed", "test exhausted")


@pytest.mark.parametrize(
    "test",
    [
        "[0] * 10**15",
        "import os\nos._exit(3)",
        "import os\nos.abort()",
        "x = f(1)\nundefined(x)",
        "x = f(1)\nimport nothing_of_this_name",
        "f(1)\nf(lambda: 1)",
    ],
)
def test_a_test_that_is_at_fault_by_itself_is_broken(pair: WorkerPair, test: str) -> None:
    assert exhausting(test).judge("def f(x): return x", pair).verdict is Verdict.BROKEN
