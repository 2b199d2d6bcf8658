"""Programs with tests of `asserts` checks, crossed by chance. Most tests ask for what is right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

# Programs whose verdict is Python's own: their answers carry over as what they are.
PLAIN = {
    "same": "def f(x): return x",
    "not a number": "def f(x): return float('nan')",
    "infinity": "def f(x): return float('inf') if x else float('-inf')",
    "negative zero": "def f(x): return -0.0",
    "large": "def f(x): return 2 ** 70",
    "large as a float": "def f(x): return float(2 ** 70)",
    "more digits than may be printed": "def f(x): return -(10 ** 5000)",
    "true": "def f(x): return True",
    "one": "def f(x): return 1",
    "one as a float": "def f(x): return 1.0",
    "nothing": "def f(x): pass",
    "a half": "def f(x): return 0.5",
    "close to a half": "def f(x): return 0.5 + 1e-9",
    "text": "def f(x): return 'ab'",
    "a zero byte": "def f(x): return 'a\\0b'",
    "a pair of surrogates": "def f(x): return '\\ud83d\\ude00'",
    "bytes": "def f(x): return b'ab'",
    "list": "def f(x): return [1, 2]",
    "tuple": "def f(x): return (1, 2)",
    "turned": "def f(x): return [2, 1]",
    "set": "def f(x): return {1, 2}",
    "set of texts": "def f(x): return {'a', 'b'}",
    "mixed set": "def f(x): return {1, 'a'}",
    "frozen set": "def f(x): return frozenset([1, 2])",
    "dictionary": "def f(x): return {'a': 1, 'b': [2, (3,)]}",
    "dictionary in another order": "def f(x): return {'b': [2, (3,)], 'a': 1}",
    "keys": "def f(x): return {'a': 1, 'b': 2}.keys()",
    "nested": "def f(x): return [[1], [2, [3]], (4, {'a': {5}})]",
    "the same row twice": "def f(x):\n    r = [0]\n    return [r, r]",
    "deep": "def f(x):\n    r = []\n    for _ in range(33): r = [r]\n    return r",
    "texts": "def f(x): return ['b', 'a']",
    "mixed list": "def f(x): return [1, 'a']",
    "range": "def f(x): return range(1, 3)",
    "generator": "def f(x):\n    yield 1\n    yield 2",
    "map": "def f(x): return map(int, '12')",
    "fraction": "from fractions import Fraction\ndef f(x): return Fraction(1)",
    "decimal": "from decimal import Decimal\ndef f(x): return Decimal('1')",
    "complex": "def f(x): return 1 + 0j",
    "counter": "from collections import Counter\ndef f(x): return Counter([1, 2])",
    "ordered": "from collections import OrderedDict as D\ndef f(x): return D([('b', 2), ('a', 1)])",
    "deque": "from collections import deque\ndef f(x): return deque([1, 2])",
    "named tuple": "from collections import namedtuple as n\ndef f(x): return n('P', 'a b')(1, 2)",
    "enum": "import enum\nclass E(enum.IntEnum):\n    A = 1\ndef f(x): return E.A",
    "subclass of str": "class S(str): pass\ndef f(x): return S('ab')",
    "subclass of list": "class L(list): pass\ndef f(x): return L([1, 2])",
    "subclass of dict": "class D(dict): pass\ndef f(x): return D(a=1)",
    "counts calls": "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n",
    "counts in a default": "def f(x, seen=[]):\n    seen.append(x)\n    return len(seen)",
    "counts in an attribute": "def f(x):\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n",
    "cached": "import functools\n@functools.cache\ndef g(): return [1, 2]\ndef f(x): return g()",
    "compares": "def f(x): return x == 1",
    "names": "def f(x=0, **k): return sorted(k)",
    "thread": "import threading\nr = []\ndef f(x):\n    t = threading.Thread(target=r.append,"
    " args=(1,))\n    t.start(); t.join()\n    return len(r)",
    "object with a call": "class F:\n    def __call__(self, x): return [1, 2]\nf = F()",
    "partial": "import functools\nf = functools.partial(max, 1)",
    "built-in": "f = len",
    "deep recursion": "def g(n): return n and 1 + g(n - 1)\ndef f(x): return g(900)",
    "endless recursion": "def f(x): return f(x)",
    "prints": "def f(x):\n    print('x' * 9999)\n    return [1, 2]",
    "warns": "import warnings\ndef f(x):\n    warnings.warn('x')\n    return 1",
    "raises": "def f(x): raise ValueError('no')",
    "raises without arguments": "def f(x): raise ValueError",
    "raises with arguments": "def f(x): raise ValueError(1, 'b', None)",
    "raises from another": "def f(x): raise ValueError(1) from KeyError(2)",
    "raises its own": "class E(ValueError): pass\ndef f(x): raise E('a')",
    "raises a huge number": "def f(x): raise KeyError(10 ** 5000)",
    "raises with an attribute": "def f(x):\n    e = ValueError(1)\n    e.code = 3\n    raise e",
    "missing key": "def f(x): return {}[1]",
    "missing item": "def f(x): return [][1]",
    "missing name": "def f(x): return missing",
    "missing attribute": "def f(x): return x.missing",
    "missing module": "def f(x): import nothing_such",
    "unbound": "def f(x):\n    print(y)\n    y = 1",
    "divides": "def f(x): return 1 / 0",
    "asserts": "def f(x): assert False, 'x'",
    "stops": "def f(x): raise StopIteration(1)",
    "exits": "import sys\ndef f(x): sys.exit(0)",
    "exits at once": "import os\ndef f(x): os._exit(0)",
    "no function": "g = 1",
}
# Programs that Python would pass or fail for what they do to the test, or share with it.
SPECIAL = {
    "equal to everything": "class A:\n    def __eq__(s, o): return True\n    __hash__ = None\n"
    "    def __bool__(s): return True\n    def __len__(s): return 2\ndef f(x): return A()",
    "number equal to everything": "class I(int):\n    def __eq__(s, o): return True\n"
    "    def __ne__(s, o): return False\n    __hash__ = int.__hash__\ndef f(x): return I(7)",
    "float without a difference": "class R(float):\n    def __sub__(s, o): return 0.0\n"
    "    def __eq__(s, o): return True\n    __hash__ = float.__hash__\ndef f(x): return R(7)",
    "list equal to everything": "class L(list):\n    def __eq__(s, o): return True\n"
    "def f(x): return L([9])",
    "zero that is true": "class B(int):\n    def __bool__(s): return True\ndef f(x): return B(0)",
    "the same nan twice": "N = float('nan')\ndef f(x): return [N, N]",
    "type": "def f(x): return f",
    "a changed answer": "r = [1, 2]\ndef f(x):\n    if x == 3: r.append(3)\n    return r",
    "a late change": "import threading, time\ndef f(x):\n    r = [1, 2]\n"
    "    threading.Thread(target=lambda: r.append(3)).start()\n    return r",
    "changes its argument": "def f(x):\n    if isinstance(x, list): x.append(9)\n    return x",
    "itself inside": "def f(x):\n    r = [0]\n    r.append(r)\n    return r",
    "changes built-ins": "import builtins\nbuiltins.len = builtins.abs = lambda x: 2\n"
    "builtins.isinstance = lambda *a: True\ndef f(x): return [5, 6, 7]",
    "changes json": "import json\njson.dumps = lambda *a, **k: '{}'\n"
    "json.loads = lambda *a, **k: {}\njson.JSONEncoder.encode = lambda *a: '{}'\n"
    "def f(x): return [1, 2]",
    "changes marshal": "import marshal, struct\nmarshal.dumps = struct.pack = None\n"
    "struct.unpack = None\ndef f(x): return [1, 2]",
    "changes the clock": "import time\ntime.monotonic = lambda: 0\ndef f(x): return [1, 2]",
    "closes descriptors": "import os\ndef f(x):\n    os.closerange(3, 20)\n    return 1",
    "forges": 'import os, struct\ndef f(x):\n    m = b\'{"id": 1, "value": ["l", 1, 2]}\'\n'
    "    os.write(4, struct.pack('>I', len(m)) + m)\n    return 5",
    "ends with success": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 5",
    "interrupts": "def f(x): raise KeyboardInterrupt",
    "an error that cannot be shown": "class E(ValueError):\n    def __str__(s): raise KeyError\n"
    "def f(x): raise E(1)",
    "huge": "def f(x): return 'a' * 3_000_000",
    "many": "def f(x): return [*range(100_000)]",
}
PROGRAMS = PLAIN | SPECIAL

# Each line is a value.
ARGUMENTS = """\
1
3
0
2.5
-0.0
True
None
'ab'
[1, 2]
[]
(1, 2)
{}
{'a': 1, 'b': [2, (3,)]}
1180591620717411303424
['b', 'a']
[[1], [2, [3]]]
""".splitlines()
VALUES = """\
1
0
2
1.0
-0.0
0.5
True
None
'ab'
''
[]
[1, 2]
[2, 1]
(1, 2)
{1, 2}
{'a': 1}
{'a': 1, 'b': [2, (3,)]}
2 ** 70
float('inf')
[[1], [2, [3]], (4, {'a': {5}})]
['a', 'b']
[[0], [0]]
[3]
""".splitlines()
# `v` is what the program gives for the argument `a`, `w` for `b`, if that is known.
ONE_LINE = """\
assert f({a}) == {v}
assert not f({a}) != {v}
assert {v} == f({a}), 'wrong'
assert f({a}) is None
assert f({a}) is True
assert f({a}) is not False
assert f({a})
assert not f({a})
assert bool(f({a}))
assert f({a}) is not None
assert abs(f({a}) - {v}) < 1e-6
assert abs(f({a})) < 1
assert f({a}) + 1 == 2
assert f({a}) in [{v}, {w}]
assert f({a}) not in ({w}, 5)
assert {v} in f({a})
assert f({a}) == f({b})
assert f({a}) != f({b})
assert f({a}) == {v} == {w}
assert sorted(f({a})) == {v}
assert list(f({a})) == {v}
assert set(f({a})) == {v}
assert tuple(f({a})) == {v}
assert len(f({a})) == 2
assert len(set(f({a}))) == 2
assert isinstance(f({a}), list)
assert isinstance(f({a}), int)
assert -f({a}) == -1
assert isinstance(f({a}), str)
assert round(f({a}), 2) == {v}
assert f({a}) < {v}
assert f({a}) >= {v}
assert {v} <= f({a})
assert f({a}) - 0.5 < 1
assert f({a}) == {v} or f({b}) == {w}
assert f({a}) and f({b}) == {w}
assert [f({a}), f({b})] == [{v}, {w}]
assert f() == {v}
assert (f({a}),) == ({v},)
assert f(x={a}) == {v}
assert f({a}, k=1) == {v}
assert f(*[{a}]) == {v}
a = f({a}); b = f({b}); assert a == {v} and b == {w}
assert f({a})[0] == 1
assert str(f({a})) == str({v})
assert type(f({a})) == type({v})
assert sum(f({a})) == 3
assert all(a == b for a, b in zip(f({a}), [1, 2]))
assert f({a}).count(1) == 1
assert {{1: f({a})}} == {{1: {v}}}
""".splitlines()
LINES = (
    "x = f({a})\nassert x == f({a})",
    "x = f({a})\nassert f(x) == {v}",
    "f({a})\nassert f({b})",
    "x = {a}\nassert f(x) == x",
    "assert f({a}) == {v}\nassert f({b}) == {w}\nassert f({a}) == {v}",
    "assert f(\n    {a}) == {v}",
    "for _ in range(2):\n    assert f({a}) == {v}",
    "try:\n    f({a})\nexcept ValueError:\n    pass\nelse:\n    assert False",
    "try:\n    assert f({a}) == {v}\nexcept KeyError:\n    pass\nassert f({b}) == {w}",
    "import unittest\nclass T(unittest.TestCase):\n    def runTest(self):\n"
    "        with self.assertRaises(ValueError): f({a})\nr = unittest.TestResult()\nT().run(r)\n"
    "assert r.wasSuccessful()",
    "import math\nassert math.isclose(f({a}), {v})",
    "x = f({a})\nf(3)\nassert x == {v}",
)
TESTS = (*ONE_LINE, *LINES)


@dataclass(frozen=True)
class Case:
    """A program with a test of one of its functions.

    Attributes:
        name: of the program.
    """

    name: str
    program: str
    test: str
    entry_point: str = "f"
    prompt: str = ""


def cases(seed: int, n: int) -> Iterator[Case]:
    """Programs in turn, each with a test by chance."""
    chance = Random(seed)
    names = list(PROGRAMS)
    chance.shuffle(names)
    for number in range(n):
        name = names[number % len(names)]
        a, b = chance.choice(ARGUMENTS), chance.choice(ARGUMENTS)
        v, w = (_value(name, argument, chance) for argument in (a, b))
        test = chance.choice(TESTS).format(a=a, b=b, v=v, w=w)
        if chance.random() < 0.4 and "class" not in test:
            lines = "".join(f"    {line}\n" for line in test.splitlines())
            test = f"def check(f):\n{lines}"
        yield Case(name, PROGRAMS[name], test)


def _value(name: str, argument: str, chance: Random) -> str:
    """What a program gives, if it can be written down; now and then something else."""
    found = None
    if name in PLAIN and "exit" not in name and "recursion" not in name and chance.random() < 0.8:
        found = _given(PLAIN[name], argument)
    return chance.choice(VALUES) if found is None else found


def _given(program: str, argument: str) -> str | None:
    namespace: dict[str, Any] = {"__name__": "candidate", "print": lambda *_: None}
    try:
        exec(program, namespace)
        value = namespace["f"](ast.literal_eval(argument))
        text = repr(list(value) if isinstance(value, list) else value)
        return text if ast.literal_eval(text) == value else None
    except Exception:
        return None
