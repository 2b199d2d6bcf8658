"""A test's time is the program's own: neither the machine's load nor the judge's delays count."""

from __future__ import annotations

import contextlib
import itertools
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from grv.backends.protocols import Problem
from grv.backends.sandbox.clock import RunClock, Stopwatch
from grv.backends.sandbox.limits import End, RunLimits
from grv.backends.sandbox.worker import Worker
from grv.backends.verifiers.pool import CheckVerifier
from grv.backends.verifiers.programs.checks import call, load, loading

pytestmark = pytest.mark.alone

LIMIT = 0.5
BURN = """
import hashlib, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def hash_for(seconds):  # without the interpreter's lock
    end, data = time.thread_time() + seconds, bytes(1 << 22)
    while time.thread_time() < end: hashlib.sha256(data)
def in_thread(work, seconds):
    thread = threading.Thread(target=work, args=(seconds,))
    thread.start()
    thread.join()
"""
CALLED = {"tests": [{"args": [1], "expected": 1}, {"args": [2], "expected": 2}]}
FUNCTION = {"kind": "function", "entry_point": "f", **CALLED}
STDIN = {"kind": "stdin", "tests": [{"input": "", "output": "7\n"}]}
CALLS = "def check(c):\n    for i in range(4): assert c(i) == i\n"
ASSERTS = {"kind": "asserts", "entry_point": "f", "test": CALLS}
# Each needs S seconds of its own for a test.
WAYS: list[tuple[dict[str, Any], str]] = [
    (FUNCTION, "def f(x):\n    burn(S)\n    return x"),
    (FUNCTION, "def f(x):\n    time.sleep(S)\n    return x"),
    (FUNCTION, "def f(x):\n    time.sleep(S / 2)\n    burn(S / 2)\n    return x"),
    (FUNCTION, "def f(x):\n    in_thread(burn, S)\n    return x"),
    (ASSERTS, "def f(x):\n    burn(S / 4)\n    return x"),
    (ASSERTS, "def f(x):\n    time.sleep(S / 4)\n    return x"),
    (ASSERTS, "burn(S)\ndef f(x): return x"),
    (STDIN, "burn(S)\nprint(7)"),
    (STDIN, "in_thread(burn, S)\nprint(7)"),
    (STDIN, "print(7, flush=True)\ntime.sleep(S)"),
]
SHARES = (0.85, 1.3, 0.5, 0.75)  # of the limit


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def verdicts(count: int) -> list[str]:  # with the measurements if a verdict is unexpected
    """The verdicts on programs of every way, each with every share of the limit in turn."""
    drawn = itertools.islice(itertools.cycle(itertools.product(SHARES, WAYS)), count)
    jobs = []
    for number, (share, (check, program)) in enumerate(drawn):
        text = f"{BURN}S = {share * LIMIT}\n{program}\n_ = {number}"
        jobs.append((number, Problem(str(number), check=check), text))
    random.Random(count).shuffle(jobs)
    with CheckVerifier(workers=2, limits=RunLimits(seconds=LIMIT)) as verifier:
        found = {number: judged.finding for number, judged in verifier.find_all(jobs)}
    said = [f"{found[n].verdict.value} {found[n].reason}".strip() for n in range(count)]
    return [
        one if one == other else f"{one} {dict(found[n].evidence)}"
        for n, (one, other) in enumerate(zip(said, expected(count), strict=True))
    ]


def expected(count: int) -> list[str]:
    drawn = itertools.islice(itertools.cycle(itertools.product(SHARES, WAYS)), count)
    return ["passed" if share < 1 else "failed timeout" for share, _ in drawn]


def test_twenty_programs_near_the_limit_get_the_same_verdicts_on_a_busy_machine() -> None:
    assert verdicts(20) == expected(20)
    with busy(8):
        assert verdicts(20) == expected(20)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_five_hundred_programs_near_the_limit_get_the_same_verdicts_on_a_busy_machine() -> None:
    idle = verdicts(500)
    with busy(8):
        assert verdicts(500) == idle == expected(500)


@contextlib.contextmanager
def lock_taken(seconds: float) -> Iterator[None]:
    """Another thread that keeps Python's lock for `seconds` at a time."""
    before = sys.getswitchinterval()
    stop = threading.Event()

    def keep_running() -> None:
        while not stop.is_set():
            pass

    hog = threading.Thread(target=keep_running)
    sys.setswitchinterval(seconds)
    hog.start()
    try:
        yield
    finally:
        stop.set()
        hog.join()
        sys.setswitchinterval(before)


def test_the_judges_wait_for_pythons_lock_does_not_count() -> None:
    program = f"{BURN}def f(x):\n    burn({0.85 * LIMIT / 4})\n    return x"
    with CheckVerifier(workers=1, limits=RunLimits(seconds=LIMIT)) as verifier, lock_taken(0.05):
        finding = verifier.find(Problem("p", check=ASSERTS), program)
    assert finding.verdict.value == "passed", finding.evidence


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


def answer_to_a_late_judge(worker: Worker, body: str, late: float) -> dict[str, Any] | End:
    limits = RunLimits(seconds=LIMIT)
    order = loading(f"{BURN}\ndef f(x):\n    {body}\n    return x", "f", limits, 0)
    with worker.run("candidate", limits, first=order) as run:
        time.sleep(late)
        assert load(run, "f", limits) is None
        run.clock.begin()
        run.send({"args": ["l", 1], "kwargs": ["d"], "in_place": False, "id": 1})
        run._pump(time.monotonic() + late)  # noqa: SLF001  # the question is sent
        time.sleep(late)
        return run.receive()


@pytest.mark.parametrize("body", ["pass", "time.sleep(0.1)", "burn(0.1)", "in_thread(burn, 0.1)"])
def test_the_judges_own_delays_do_not_count(worker: Worker, body: str) -> None:
    answer = answer_to_a_late_judge(worker, body, 2 * LIMIT)
    assert isinstance(answer, dict)
    assert answer["value"] == 1


@pytest.mark.parametrize("body", ["burn(0.7)", "in_thread(burn, 0.7)"])
def test_processor_time_counts_however_late_the_judge_looks(worker: Worker, body: str) -> None:
    assert answer_to_a_late_judge(worker, body, 4 * LIMIT) is End.TIMEOUT


def test_the_processor_time_of_threads_side_by_side_is_added_up(worker: Worker) -> None:
    body = "threads = [threading.Thread(target=hash_for, args=(0.3,)) for _ in range(3)]\n"
    body += "    [t.start() for t in threads]\n    [t.join() for t in threads]"
    assert answer_to_a_late_judge(worker, body, 0) is End.TIMEOUT


def test_each_test_has_the_whole_time(worker: Worker) -> None:
    limits = RunLimits(seconds=LIMIT)
    order = loading(f"{BURN}\nburn(0.3)\ndef f(x):\n    burn(0.3)\n    return x", "f", limits, 0)
    with worker.run("candidate", limits, tests=5, first=order) as run:
        assert load(run, "f", limits) is None
        for _ in range(4):
            run.clock.begin()
            assert isinstance(call(run, {"args": ["l", 1]}), dict)


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(99)",
        "threading.Event().wait()",
        "[time.sleep(0.002) for _ in range(10**6)]",
        "import os; os.kill(os.getpid(), 19)",  # stopped
        "import signal; signal.pause()",
        "import os; os.read(os.pipe()[0], 1)",
        "in_thread(time.sleep, 99)",
        # The main thread ends, and others sleep on.
        "threading.Thread(target=time.sleep, args=(99,)).start()\n    import ctypes\n"
        "    ctypes.CDLL(None).pthread_exit(None)",
        "[threading.Thread(target=time.sleep, args=(99,)).start() for _ in range(20)]\n"
        "    time.sleep(99)",
    ],
)
def test_a_program_that_only_waits_is_out_of_time(worker: Worker, body: str) -> None:
    started = time.monotonic()
    assert answer_to_a_late_judge(worker, body, 0) in (End.TIMEOUT, End.CLOSED)
    assert time.monotonic() - started < 10


def test_a_large_answer_is_not_slow_because_the_judge_is(worker: Worker) -> None:
    limits = RunLimits(seconds=LIMIT)
    order = loading("def f(x): return 'x' * (4 << 20)", "f", limits, 0)
    with worker.run("candidate", limits, first=order) as run:
        assert load(run, "f", limits) is None
        run.clock.begin()
        run.send({"args": ["l", 1], "kwargs": ["d"], "in_place": False, "id": 1})
        taken = 0
        while taken < 8:  # parts of a pipe's size, each late
            run._pump(time.monotonic() + 5)  # noqa: SLF001
            taken += 1
            time.sleep(LIMIT / 4)
        assert isinstance(run.receive(), dict)


def test_without_the_kernels_counts_wall_clock_time_counts() -> None:
    watch = Stopwatch(0)
    assert not watch.works
    clock = RunClock(RunLimits(seconds=0.05), watch)
    assert clock.judge(clock.look()) is None
    time.sleep(0.06)
    assert clock.judge(clock.look()) is End.TIMEOUT


def test_a_process_without_a_processor_for_very_long_is_no_verdict() -> None:
    clock = RunClock(RunLimits(seconds=0.05), Stopwatch(0))
    sight = clock.look()._replace(elapsed=60.0, own=0.0, is_runnable=True)
    assert clock.judge(sight) is End.STARVED


FLOOD = (
    "import os, time\nfor _ in range(200):\n    os.write(1, b' ' * 65536)\n    time.sleep(0.02)\n"
)
FLOOD += "print(7)"
LIAR = """
import sys, time
for name, module in list(sys.modules.items()):
    if name.endswith(".runner"): module.monotonic = lambda: 0.0
def f(x):
    time.sleep(0.009)
    return x
"""
MANY = {"kind": "asserts", "entry_point": "f", "test": CALLS.replace("4", "300")}
LARGE = "import time\ndef f(x):\n    time.sleep(0.02)\n    return [x, 'x' * 100000]"
LARGE_TEST = "def check(c):\n    for i in range(100): assert c(i)[0] == i\n"


@pytest.mark.parametrize(
    ("check", "program"),
    [
        (STDIN, FLOOD),
        (MANY, LIAR),
        ({"kind": "asserts", "entry_point": "f", "test": LARGE_TEST}, LARGE),
    ],
    ids=["full pipes", "lies", "large answers"],
)
def test_time_adds_up_over_a_test_whatever_is_sent(check: dict[str, Any], program: str) -> None:
    limits = RunLimits(seconds=LIMIT, output_mb=64)
    with CheckVerifier(workers=1, limits=limits) as verifier:
        finding = verifier.find(Problem("p", check=check), program)
    assert (finding.verdict.value, finding.reason) == ("failed", "timeout")


def test_a_test_ends_after_a_very_long_time_of_many_turns() -> None:
    clock = RunClock(RunLimits(seconds=0.05), Stopwatch(0))
    clock._wall = 60.0  # noqa: SLF001
    sight = clock.look()._replace(own=0.0, is_runnable=True)
    assert clock.judge(sight) is End.STARVED
