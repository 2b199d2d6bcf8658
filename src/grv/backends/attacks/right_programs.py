"""Right programs that must pass. Other verifiers reject some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RightProgram:
    """A program that must pass its check."""

    name: str
    check: Mapping[str, Any]
    text: str


def _stdin(name: str, text: str, given: str = "3 4\n", printed: str = "7\n") -> RightProgram:
    return RightProgram(
        name, {"kind": "stdin", "tests": [{"input": given, "output": printed}]}, text
    )


def _function(name: str, text: str, *tests: tuple[list[Any], Any]) -> RightProgram:
    records = [{"args": args, "expected": expected} for args, expected in tests]
    return RightProgram(name, {"kind": "function", "entry_point": "f", "tests": records}, text)


_SOLUTION = """
class Solution:
    def a_helper(self, x):
        return -x
    def f(self, x):
        return self.a_helper(x) + 2 * x
    def z_helper(self):
        raise ValueError
"""
_STACK = """
import sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(256 << 20)
def deep(n):
    return 0 if n == 0 else max(deep(n - 1), n)
def main():
    print(deep(int(input())))
thread = threading.Thread(target=main)
thread.start()
thread.join()
"""
_THREADS = """
from concurrent.futures import ThreadPoolExecutor
def f(x):
    with ThreadPoolExecutor(16) as pool:
        return sum(pool.map(lambda i: i * i, range(x)))
"""
_SCRATCH = """
import os, tempfile
def f(x):
    with open("note.txt", "w") as file:
        file.write(x)
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write(open("note.txt").read())
        file.seek(0)
        return file.read()
"""
_LOOP = """
import asyncio
async def double(x):
    await asyncio.sleep(0)
    return 2 * x
def f(x):
    return asyncio.run(double(x))
"""
_LIMITED = """
import resource
def f(x):
    for kind in range(16):
        try: resource.getrlimit(kind)
        except ValueError: pass
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, hard))
    return x
"""
_LIBRARY = """
import collections, dataclasses, datetime, decimal, fractions, functools, hashlib, heapq, itertools
import json, math, random, re, statistics, string, sys, typing, zoneinfo
@dataclasses.dataclass
class Point:
    x: int
def f(x):
    assert hashlib.sha256(b"").hexdigest().startswith("e3b0")
    return int(decimal.Decimal(x) + fractions.Fraction(1, 2).numerator + Point(x).x)
"""
_NUMPY = """
import numpy as np
def f(x):
    return np.linalg.det(np.eye(3) * x).round(), np.arange(x) @ np.arange(x), np.array([x])
"""
_CHECK = """
def check(candidate):
    assert candidate(3) == helper(2)
    assert f(4) == 5
    try:
        candidate(-1)
        assert False
    except ValueError as exc:
        assert str(exc) == "negative"
"""
_PROMPT = '''def helper(x):
    return x + 2


def f(x):
    """One more than x."""
'''
_TYPES = """
import asyncio, collections, datetime, decimal
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, timedelta
def check(candidate):
    pair, counts, groups, ordered, queue, day = candidate(2)
    assert pair == (1, 2) and pair.x == 1 and pair._asdict() == {"x": 1, "y": 2}
    assert counts == Counter("aab") and counts["c"] == 0 and counts.most_common(1) == [("a", 2)]
    assert groups["new"] == [] and ordered == OrderedDict([("b", 1), ("a", 2)])
    assert queue == deque([2, 3]) and queue.maxlen == 2
    assert day + timedelta(days=1) == date(2020, 3, 1)
"""
_TYPES_ANSWER = """
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import date
Pair = namedtuple("Pair", "x y")
def f(x):
    ordered = OrderedDict([("b", 1), ("a", 2)])
    queue = deque([1, 2, 3], maxlen=2)
    return Pair(1, x), Counter("aab"), defaultdict(list), ordered, queue, date(2020, 2, 29)
"""
_STAYING = """
import asyncio, itertools
def check(candidate):
    add, count, later = candidate(2)
    assert add(3) == 5 and list(itertools.islice(count, 3)) == [2, 3, 4]
    assert asyncio.run(later) == 4
    try:
        add("x")
    except TypeError as exc:
        assert exc.args
    else:
        assert False
"""
_STAYING_ANSWER = """
import asyncio
def numbers(x):
    while True:
        yield x
        x += 1
async def double(x):
    await asyncio.sleep(0)
    return 2 * x
def f(x):
    return lambda y: x + y, numbers(x), double(x)
"""
_ENUM = """from enum import Enum
class Color(Enum):
    RED = 1
    BLUE = 2
class Wrong(Exception):
    def __init__(self, color):
        self.color = color
"""
_ENUM_CHECK = """
def check(candidate):
    assert candidate(Color.RED) is Color.BLUE
    try:
        candidate(3)
    except Wrong as exc:
        assert exc.color == 3
    else:
        assert False
"""
_ENUM_ANSWER = """
def f(x):
    if not isinstance(x, Color):
        raise Wrong(x)
    return Color.BLUE if x is Color.RED else Color.RED
"""
_ANNOTATED = """
from dataclasses import dataclass, fields
from functools import singledispatch
@dataclass
class Point:
    x: int
@singledispatch
def kind(value): return "other"
@kind.register
def _(value: int): return "int"
def f(x):
    return [kind(x), fields(Point)[0].type is int]
"""
_SIGNALLED = """
import os, signal
caught = []
signal.signal(signal.SIGTERM, lambda *_: caught.append(1))
os.kill(os.getpid(), signal.SIGTERM)
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    caught.append(2)
print(3 + 2 * len(caught))
"""
_LEAVING = """
import sys, threading, time
def late():
    time.sleep(0.05)
    print(7)
threading.Thread(target=late).start()
sys.exit()
"""
_SOURCE = "print(open(__file__).read().count('i') + 3, flush=True)  # it"
_ENCODED = [{"input": '[1, 2]\n"a"', "output": '["a", 3]'}]

RIGHT_PROGRAMS = (
    _stdin("input()", "print(sum(map(int, input().split())))"),
    _stdin("sys.stdin", "import sys\nprint(sum(map(int, sys.stdin.read().split())))"),
    _stdin(
        "sys.stdin.buffer", "import sys\nprint(sum(map(int, sys.stdin.buffer.readline().split())))"
    ),
    _stdin("open(0)", "print(sum(map(int, open(0).read().split())))"),
    _stdin("os.read", "import os\nprint(sum(map(int, os.read(0, 99).split())))"),
    _stdin("/dev/stdin", "print(sum(map(int, open('/dev/stdin').read().split())))"),
    _stdin(
        "fileinput",
        "import fileinput\nfor line in fileinput.input(): print(sum(map(int, line.split())))",
    ),
    _stdin(
        "sys.stdout.buffer",
        "import sys\nsys.stdout.buffer.write(b'%d' % sum(map(int, input().split())))",
    ),
    _stdin("3.0 for 3, and rounding errors", "print('3.0 0.3333333')", "", "3 0.33333333\n"),
    _stdin("leaves with exit()", "print(sum(map(int, input().split())))\nexit()"),
    _stdin("a main guard", "if __name__ == '__main__':\n    print(7)"),
    _stdin("prints at exit", "import atexit\natexit.register(print, 7)"),
    _stdin("a large stack", _STACK, "50000\n", "50000\n"),
    _stdin("a fenced block", "Here it is:\n```python\nprint(7)\n```\nIt prints 7."),
    _function("a function", "def f(x): return x + 1", ([1], 2), ([2], 3)),
    _function("a method of Solution among others", _SOLUTION, ([5], 5), ([-1], -1)),
    _function("3.0 for 3, and tuples for lists", "def f(x): return (3.0, (x,))", ([1], [3, [1]])),
    _function("threads", _THREADS, ([10], 285)),
    _function("a file of its own", _SCRATCH, (["hello"], "hello")),
    _function("an event loop", _LOOP, ([4], 8)),
    _function("the standard library", _LIBRARY, ([4], 9)),
    RightProgram(
        "strings as LiveCodeBench encodes them",
        {"kind": "function", "entry_point": "f", "tests": _ENCODED},
        "class Solution:\n    def f(self, xs, s): return [s, sum(xs)]",
    ),
    _function("its own stack limit", _LIMITED, ([5], 5)),
    _function("annotations that are read", _ANNOTATED, ([4], ["int", True])),
    _function(
        "recursion to the usual limit",
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)",
        ([990], 990),
    ),
    _stdin("signals to itself", _SIGNALLED),
    _stdin("a thread that outlives sys.exit()", _LEAVING),
    _stdin("its own source", _SOURCE),
    _stdin("a finalizer at exit", "class A:\n    def __del__(self): print(7)\na = A()"),
    _stdin("a cookie", "# coding: latin-1\nprint(len('\u00e9') + 5)"),
    RightProgram(
        "standard types in a test",
        {"kind": "asserts", "entry_point": "f", "test": _TYPES},
        _TYPES_ANSWER,
    ),
    RightProgram(
        "functions, generators and coroutines in a test",
        {"kind": "asserts", "entry_point": "f", "test": _STAYING},
        _STAYING_ANSWER,
    ),
    RightProgram(
        "classes of the prompt in a test",
        {"kind": "asserts", "entry_point": "f", "test": _ENUM_CHECK, "prompt": _ENUM},
        _ENUM_ANSWER,
    ),
    RightProgram(
        "a function named check, with bare asserts",
        {"kind": "asserts", "entry_point": "check", "test": "assert check(1) == 2"},
        "def check(x): return x + 1",
    ),
    RightProgram(
        "a test with helpers and exceptions",
        {"kind": "asserts", "entry_point": "f", "test": _CHECK, "prompt": _PROMPT},
        "    if x < 0:\n        raise ValueError('negative')\n    return x + 1\n",
    ),
)

NUMPY = _function("numpy", _NUMPY, ([2], [8, 1, [2]]))
