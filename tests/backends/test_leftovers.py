"""What the test of an `asserts` check leaves behind never reaches another candidate's test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grv.backends.protocols import Finding
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.programs.checks import AssertsCheck
from grv.backends.verifiers.worker_pair import WorkerPair

# How a test leaves something, and how the next one would see it.
LEFTOVERS = {
    "a file": ("open('left', 'w').close()", "os.path.exists('left')"),
    "a file in the parent directory": (
        "open('../left', 'w').close()",
        "os.path.exists('../left')",
    ),
    "a file in /tmp": (
        "open('/tmp/grv-left-by-a-test', 'w').close()",
        "os.path.exists('/tmp/grv-left-by-a-test')",
    ),
    "its program": ("open(__file__, 'a').write('#')", "open(__file__).read()[-1] == '#'"),
    "the current directory": ("os.mkdir('d'); os.chdir('d')", "os.getcwd().endswith('/d')"),
    "the environment": ("os.environ['LEFT'] = '1'", "'LEFT' in os.environ"),
    "a loaded module": ("load('colorsys')", "'colorsys' in sys.modules"),
    "a changed module": ("os.left = 1", "hasattr(os, 'left')"),
    "a built-in name": (
        "setattr(load('builtins'), 'left', 1)",
        "hasattr(load('builtins'), 'left')",
    ),
    "the module path": ("sys.path.append('left')", "'left' in sys.path"),
    "a signal handler": (
        "signal.signal(signal.SIGUSR1, print)",
        "signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL",
    ),
    "an ignored signal": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "signal.getsignal(signal.SIGTERM) is signal.SIG_IGN",
    ),
    "a blocked signal": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [])",
    ),
    "a timer": (
        "signal.setitimer(signal.ITIMER_REAL, 500)",
        "signal.getitimer(signal.ITIMER_REAL)[0]",
    ),
    "an alarm": ("signal.alarm(500)", "signal.alarm(0)"),
    "a descriptor": ("os.dup2(1, 50)", "is_open(50)"),
    "a closed descriptor": ("os.close(2)", "not is_open(2)"),
    "a child": ("os.fork() or os._exit(0)", "has_child()"),
    "a thread": (
        "threading.Thread(target=time.sleep, args=(500,), daemon=True).start()",
        "threading.active_count() > 1",
    ),
    "the umask": ("os.umask(0o77)", "os.umask(0o22) == 0o77"),
    "a limit": (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))",
        "resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 60",
    ),
    "the recursion limit": ("sys.setrecursionlimit(5000)", "sys.getrecursionlimit() == 5000"),
    "the switched off collector": ("gc.disable()", "not gc.isenabled()"),
    "the precision of decimals": (
        "decimal.getcontext().prec = 3",
        "decimal.getcontext().prec == 3",
    ),
    "the state of random numbers": ("random.random()", "random.random() != FIRST"),
    "a filter of warnings": (
        "warnings.simplefilter('error', BytesWarning)",
        "any(each[2] is BytesWarning and each[0] == 'error' for each in warnings.filters)",
    ),
}
HELPERS = """
import decimal, gc, importlib, os, random, resource, signal, sys, threading, time, warnings
load = importlib.import_module
FIRST = random.Random(0).random()
def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
def has_child():
    try:
        return os.waitpid(-1, os.WNOHANG) is not None
    except OSError:
        return False
"""
LEAVING = """
def check(f):
    answer = f(2)
    seen = bool({seen})
    if answer == 4:
        try:
            {leave}
        except OSError:
            return  # the jail forbids it
        seen = bool({seen})
        assert seen, "it cannot be seen even here"
    assert answer == 4 or seen
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def judged(pair: WorkerPair, test: str, answer: int) -> Finding:
    check = AssertsCheck("f", HELPERS + test, "", RunLimits(seconds=10))
    return check.judge(f"def f(x): return {answer}", pair)


@pytest.mark.parametrize("name", LEFTOVERS)
def test_what_a_test_leaves_behind_reaches_no_other_candidate(pair: WorkerPair, name: str) -> None:
    leave, seen = LEFTOVERS[name]
    test = LEAVING.format(leave=leave, seen=seen)
    verdicts = [judged(pair, test, answer).verdict.value for answer in (0, 4, 0, 4, 0)]
    assert verdicts == ["failed", "passed", "failed", "passed", "failed"]


ATTACKING = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def tried(work):
    try:
        return work()
    except OSError:
        return -1
def check(f):
    answer, parent = f(2), os.getppid()
    others = {others!r}
    worked = [
        number
        for number, work in enumerate([
            os.fork,
            lambda: os.kill(parent, 9),
            lambda: os.kill(parent, 0),
            lambda: os.kill(-1, 0),
            lambda: os.killpg(0, 0),
            lambda: os.pidfd_open(parent),
            lambda: libc.ptrace(16, parent, 0, 0),
            lambda: libc.process_vm_readv(parent, 0, 0, 0, 0, 0),
            os.setsid,
            lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (1, 1)),
            lambda: libc.prctl(1, 0, 0, 0, 0),
            lambda: os.open(f"/proc/{{parent}}/mem", os.O_RDWR),
            lambda: os.open(f"/proc/{{parent}}/fd", os.O_RDONLY),
            *(lambda place=place: os.open(place, os.O_RDONLY) for place in others),
            *(lambda place=place: os.mkdir(place + "/left") for place in others),
        ])
        if tried(work) != -1
    ]
    assert worked == [] and answer == 4, worked
"""


@pytest.mark.slow
def test_a_test_starts_no_process_and_reaches_none(pair: WorkerPair) -> None:
    with_other = WorkerPair()
    try:
        for started in (pair, with_other):
            finding = judged(started, "def check(f): assert f(1) == 4", 4)
            assert finding.verdict.value == "passed", finding
        zygotes = (pair.test.pid, with_other.test.pid)
        folders = [pair.candidate.folder, with_other.test.folder, with_other.candidate.folder]
        others = [f"{folder}{end}" for folder in folders for end in ("", "/box", "/box/work")]
        for answer, verdict in ((4, "passed"), (0, "failed"), (4, "passed")):
            finding = judged(pair, ATTACKING.format(others=others), answer)
            assert finding.verdict.value == verdict, finding
        assert judged(with_other, "def check(f): assert f(1) == 4", 4).verdict.value == "passed"
        assert (pair.test.pid, with_other.test.pid) == zygotes, "a zygote was ended"
    finally:
        with_other.close()
