"""What an `asserts` check sees of answers: standard types by value, with their behaviour."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from grv.backends.protocols import Finding
from grv.backends.sandbox import kinds, plain
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.programs.checks import AssertsCheck
from grv.backends.verifiers.worker_pair import WorkerPair

# Each is a name, a prompt, a test and a program.
RIGHT = [
    ('threads of the test', '',
     'from concurrent.futures import ThreadPoolExecutor\ndef check(c):\n    with ThreadPoolExecutor(8) as pool:\n        assert list(pool.map(c, range(200))) == [2 * x for x in range(200)]',
     'def f(x): return 2 * x'),
    ('eval with names', '',
     "def check(c):\n    assert eval(c(1), {'x': 3}) == 9",
     "def f(x): return 'x * x'"),
    ('eval of joined operators', '',
     "def check(c):\n    assert eval(''.join(c(3))) == 9",
     "def f(x): return [str(x), '**', '2']"),
    ('eval of generated calls', '',
     "assert f('b') == 'b'\nfor x in 'ab':\n    assert eval(f'f({x!r})') == x\n    exec(f'v{x} = f({x!r})')\nassert va == 'a'",
     'def f(x): return x'),
    ('dataclass of the prompt that compares', 'from dataclasses import dataclass\n@dataclass\nclass V:\n    x: int\n    def __eq__(self, other): return self.x % 3 == other.x % 3\n',
     'def check(c):\n    assert c(V(4), V(1)) == V(5)',
     'def f(a, b): return V(a.x + b.x) if a == b else None'),
    ('dataclass of the test', '',
     'from dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n    x: int\ndef check(c):\n    assert c(1) == P(1)',
     'from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(x): return P(x)'),
    ('TypeError of an iterator', '',
     "def check(c):\n    try: list(c([1]))\n    except TypeError as e: assert str(e) == 'no'\n    else: raise AssertionError",
     "def same(x): raise TypeError('no')\ndef f(x): return map(same, x)"),
    ('iterators', '',
     "def check(c):\n    assert [list(x) for x in c(1)] == [[2, 1], ['b', 'a'], ['b', 'a'], ['é'], [1], [1, 2], [1], [2]]",
     "from collections import OrderedDict\ndef f(x):\n    d = OrderedDict(a=1)\n    return [reversed((1, 2)), reversed('ab'), reversed({'a': 1, 'b': 2}), iter('é'),"
     " iter(bytearray(b'\\x01')), iter([0, 2, 1].pop, 0), d.values(), iter(range(2, 3))]"),
    ('views of an OrderedDict', '',
     "def check(c):\n    a, b = c(1); assert a == {'a'} and list(b) == [('a', 1)]",
     'from collections import OrderedDict\ndef f(x): return [OrderedDict(a=1).keys(), OrderedDict(a=1).items()]'),
    ('universal time', '',
     'from datetime import timezone\ndef check(c):\n    assert c(1).tzinfo is timezone.utc',
     'from datetime import datetime, timezone\ndef f(x): return datetime(2020, 1, 1, tzinfo=timezone.utc)'),
    ('renamed fields', '',
     "def check(c):\n    assert c(1) == (1, 2) and c(1)._fields == ('x', '_1')",
     "from collections import namedtuple\ndef f(x): return namedtuple('P', 'x class', rename=True)(1, 2)"),
    ('throw', '',
     "def check(c):\n    g = c(1); assert next(g) == 1 and g.throw(ValueError('a')) == 'a'",
     'def f(x):\n    try: yield x\n    except ValueError as error: yield str(error)'),
    ('namedtuple', '',
     "def check(c):\n    r = c(1)\n    assert r == (1, 2) and r.x == 1 and r._asdict() == {'x': 1, 'y': 2} and type(r).__name__ == 'P'",
     "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(x): return P(1, 2)"),
    ('typing namedtuple known', 'from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int\n',
     'def check(c):\n    assert isinstance(c(1), P) and c(1) == P(1, 2) and c(P(3, 4)) == P(1, 2)',
     'def f(x): return P(1, 2)'),
    ('Counter', '',
     "from collections import Counter\ndef check(c):\n    r = c('aab')\n    assert r == Counter('aab') and r['zz'] == 0 and r.most_common(1) == [('a', 2)] and isinstance(r, Counter)",
     'from collections import Counter\ndef f(x): return Counter(x)'),
    ('defaultdict', '',
     "def check(c):\n    r = c(1)\n    assert r['new'] == [] and r['a'] == [1] and r.default_factory is list",
     "from collections import defaultdict\ndef f(x):\n    d = defaultdict(list); d['a'].append(1); return d"),
    ('defaultdict lambda', '',
     "def check(c):\n    assert c(1)['new'] == 7",
     'from collections import defaultdict\ndef f(x): return defaultdict(lambda: 7)'),
    ('OrderedDict', '',
     "from collections import OrderedDict\ndef check(c):\n    assert c(1) == OrderedDict([('b', 1), ('a', 2)])\n    r = c(1); r.move_to_end('b'); assert list(r) == ['a', 'b']",
     "from collections import OrderedDict\ndef f(x): return OrderedDict([('b', 1), ('a', 2)])"),
    ('deque', '',
     'from collections import deque\ndef check(c):\n    r = c([1,2,3]); assert r == deque([2, 3]) and r.maxlen == 2; r.append(4); assert list(r) == [3, 4]',
     'from collections import deque\ndef f(x): return deque(x, maxlen=2)'),
    ('dates', '',
     "from datetime import *\ndef check(c):\n    d, t, dt, td, z = c(1)\n    assert d == date(2020, 2, 29) and t == time(1, 2, 3) and dt == datetime(2020, 1, 1, tzinfo=timezone.utc) and td == timedelta(days=1.5) and z == timezone(timedelta(hours=2), 'X')\n    assert d.isoformat() == '2020-02-29' and (dt + td).day == 2",
     "from datetime import *\ndef f(x): return date(2020, 2, 29), time(1, 2, 3), datetime(2020, 1, 1, tzinfo=timezone.utc), timedelta(days=1.5), timezone(timedelta(hours=2), 'X')"),
    ('zoneinfo', '',
     "from datetime import datetime\nfrom zoneinfo import ZoneInfo\ndef check(c):\n    assert c(1) == datetime(2020, 7, 1, tzinfo=ZoneInfo('Europe/Berlin')) and c(1).utcoffset().total_seconds() == 7200",
     "from datetime import datetime\nfrom zoneinfo import ZoneInfo\ndef f(x): return datetime(2020, 7, 1, tzinfo=ZoneInfo('Europe/Berlin'))"),
    ('date args', '',
     'from datetime import date\ndef check(c):\n    assert c(date(2020, 1, 1), date(2020, 3, 1)) == 60',
     'def f(a, b): return (b - a).days'),
    ('enum own', '',
     "def check(c):\n    r = c(1); assert r.name == 'RED' and r.value == 1 and r == c(1) and r is c(1) and [m.name for m in type(r)] == ['RED', 'BLUE']",
     'from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\ndef f(x): return Color.RED'),
    ('enum known', 'from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\n',
     'def check(c):\n    assert c(1) is Color.RED and c(Color.BLUE) == Color.RED',
     'def f(x): return Color.RED if x == 1 else Color(3 - x.value)'),
    ('IntEnum', '',
     "def check(c):\n    assert c(1) == 1 and c(1).name == 'A' and c(1) + 1 == 2",
     'from enum import IntEnum\nclass E(IntEnum):\n    A = 1\ndef f(x): return E.A'),
    ('Flag', '',
     "def check(c):\n    r = c(1); assert r.value == 3 and 'A' in repr(r)",
     'from enum import Flag, auto\nclass E(Flag):\n    A = auto()\n    B = auto()\ndef f(x): return E.A | E.B'),
    ('exception args', '',
     "def check(c):\n    try: c(1)\n    except KeyError as e: assert e.args == ('a', 2)\n    else: assert False",
     "def f(x): raise KeyError('a', 2)"),
    ('exception own', '',
     "def check(c):\n    try: c(1)\n    except ValueError as e: assert type(e).__name__ == 'My' and e.code == 5 and str(e) == 'text'\n    else: assert False",
     "class My(ValueError):\n    def __init__(self, code): self.code = code\n    def __str__(self): return 'text'\ndef f(x): raise My(5)"),
    ('exception known', 'class My(Exception):\n    def __init__(self, code): self.code = code\n',
     'def check(c):\n    try: c(1)\n    except My as e: assert e.code == 5\n    else: assert False',
     'def f(x): raise My(5)'),
    ('json error', '',
     "import json\ndef check(c):\n    try: c('x')\n    except json.JSONDecodeError as e: assert e.pos == 0\n    else: assert False",
     'import json\ndef f(x): return json.loads(x)'),
    ('group', '',
     'def check(c):\n    try: c(1)\n    except* ValueError as g: assert len(g.exceptions) == 1',
     "def f(x): raise ExceptionGroup('g', [ValueError(1)])"),
    ('returned exception', '',
     'def check(c):\n    assert isinstance(c(1), ValueError) and c(1).args == (3,)',
     'def f(x): return ValueError(3)'),
    ('function', '',
     "def check(c):\n    g = c(2); assert callable(g) and g(3) == 5 and c(10)(1) == 11 and g(1) == 3 and g.__name__ == 'add'",
     'def f(x):\n    def add(y): return x + y\n    return add'),
    ('lambda kwargs raise', '',
     'def check(c):\n    try: c(0)(a=1)\n    except ZeroDivisionError: return\n    assert 0',
     'def f(x): return lambda a: a / x'),
    ('partial, method, class', '',
     "def check(c):\n    a, b, d = c(1)\n    assert a(3) == 8 and b('x') == 1 and d(4) == 24",
     "import functools, math\ndef f(x): return functools.partial(pow, 2), [ 'x'].index if 0 else 'ax'.index, math.factorial"),
    ('compose back', '',
     'def check(c):\n    g = c(None); assert c(g)(1) == 3',
     'def f(x): return (lambda y: y + 1) if x is None else (lambda y: x(x(y)))'),
    ('closure counter', '',
     'def check(c):\n    n = c(0); assert [n(), n(), n()] == [1, 2, 3]',
     'def f(x):\n    def g():\n        nonlocal x\n        x += 1\n        return x\n    return g'),
    ('coroutine', '',
     'import asyncio, inspect\ndef check(c):\n    assert inspect.iscoroutine(r := c(2)) and asyncio.run(r) == 4 and asyncio.run(c(5)) == 10',
     'import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return 2 * x'),
    ('gather', '',
     'import asyncio\nasync def main(c): return await asyncio.gather(c(1), c(2))\ndef check(c):\n    assert asyncio.run(main(c)) == [2, 4]',
     'async def f(x): return 2 * x'),
    ('async gen', '',
     'import asyncio\nasync def main(c): return [x async for x in c(3)]\ndef check(c):\n    assert asyncio.run(main(c)) == [0, 1, 2]',
     'async def f(x):\n    for i in range(x): yield i'),
    ('generator', '',
     'import types, itertools\ndef check(c):\n    g = c(3); assert isinstance(g, types.GeneratorType) and next(g) == 0 and list(g) == [1, 2]',
     'def f(x):\n    for i in range(x): yield i'),
    ('infinite', '',
     'import itertools\ndef check(c):\n    assert list(itertools.islice(c(1), 3)) == [1, 2, 3]',
     'def f(x):\n    while True:\n        yield x\n        x += 1'),
    ('count', '',
     'import itertools\ndef check(c):\n    assert list(itertools.islice(c(1), 3)) == [1, 2, 3]',
     'import itertools\ndef f(x): return itertools.count(x)'),
    ('send', '',
     'def check(c):\n    g = c(1); next(g); assert g.send(5) == 10',
     'def f(x):\n    while True:\n        x = 2 * (yield x)'),
    ('gen return', '',
     'def check(c):\n    def g(): return (yield from c(1))\n    it = g(); next(it)\n    try: next(it)\n    except StopIteration as s: assert s.value == 9',
     'def f(x):\n    yield x\n    return 9'),
    ('gen raises late', '',
     'def check(c):\n    g = c(1); assert next(g) == 1\n    try: next(g)\n    except ValueError: return\n    assert 0',
     'def f(x):\n    yield x\n    raise ValueError'),
    ('map, zip', '',
     'def check(c):\n    a, b = c([1, 2]); assert list(a) == [2, 3] and list(b) == [(1, 1), (2, 2)]',
     'def f(x): return map(lambda y: y + 1, x), zip(x, x)'),
    ('own iterator', '',
     'def check(c):\n    assert list(c(3)) == [3, 2, 1]',
     'class D:\n    def __init__(s, n): s.n = n\n    def __iter__(s): return s\n    def __next__(s):\n        if not s.n: raise StopIteration\n        s.n -= 1\n        return s.n + 1\nf = D'),
    ('views', '',
     "def check(c):\n    k, v, i = c({'a': 1}); assert k == {'a'} and list(v) == [1] and ('a', 1) in i",
     'def f(d): return d.keys(), d.values(), d.items()'),
    ('decimal etc', '',
     "from decimal import Decimal\nfrom fractions import Fraction\nimport uuid, pathlib\ndef check(c):\n    assert c(1) == (Decimal('1.50'), Fraction(1, 3), 1+2j, uuid.UUID(int=5), pathlib.PurePosixPath('a/b'), pathlib.Path('x')) and str(c(1)[0]) == '1.50'",
     "from decimal import Decimal\nfrom fractions import Fraction\nimport uuid, pathlib\ndef f(x): return Decimal('1.50'), Fraction(1, 3), 1+2j, uuid.UUID(int=5), pathlib.PurePosixPath('a/b'), pathlib.Path('x')"),
    ('bytes etc', '',
     "import array\ndef check(c):\n    a = c(1); assert a == (b'a', bytearray(b'b'), range(3), {1}, frozenset({2}), slice(1, 2), ..., array.array('i', [1, 2])) and bytes(c(2)[0]) == b'a'",
     "import array\ndef f(x): return (b'a', bytearray(b'b'), range(3), {1}, frozenset({2}), slice(1, 2), ..., array.array('i', [1, 2]))"),
    ('memoryview', '',
     "def check(c):\n    assert c(1) == b'ab'",
     "def f(x): return memoryview(b'ab')"),
    ('types', '',
     "def check(c):\n    assert c(1) is int and c('') is str and c(1.0) == float and c(ValueError()) is ValueError",
     'f = type'),
    ('dataclass own', '',
     "def check(c):\n    r = c(1); assert r.x == 1 and r == c(1) and 'P(x=1, y=[2])' in repr(r)",
     'from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: list\ndef f(x): return P(x, [2])'),
    ('dataclass known', 'from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int\n    def double(self): return 2 * self.x\n',
     'def check(c):\n    assert c(P(1)) == P(2) and isinstance(c(P(3)), P) and c(P(1)).double() == 4',
     'def f(p): return P(p.x + 1)'),
    ('namespace', '',
     'from types import SimpleNamespace\ndef check(c):\n    assert c(1) == SimpleNamespace(a=1) and c(1).a == 1',
     'from types import SimpleNamespace\ndef f(x): return SimpleNamespace(a=1)'),
    ('pattern', '',
     "def check(c):\n    assert c('a+').match('aa') and c('a+').pattern == 'a+'",
     'import re\nf = re.compile'),
    ('numpy', '',
     'import numpy as np\ndef check(c):\n    r = c(2); assert r.shape == (2, 2) and np.allclose(r, [[1, 0], [0, 1]]) and r.dtype == float',
     'import numpy as np\ndef f(x): return np.eye(x)'),
    ('unittest main', '',
     "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(1), 2)\nif __name__ == '__main__':\n    unittest.main()",
     'def f(x): return x + 1'),
    ('test dataclass', '',
     "from dataclasses import dataclass\n@dataclass\nclass T:\n    x: int = 0\ndef g(a: int): pass\ndef check(c):\n    assert g.__annotations__ == {'a': int} and c(1) == 1",
     'def f(x): return x'),
    ('eval arithmetic', '',
     'def check(c):\n    assert eval(c(1)) == 24',
     "def f(x): return '(4 + 8) * 2'"),
    ('literal_eval', '',
     "import ast\ndef check(c):\n    assert ast.literal_eval(c(1)) == [1, 'a']",
     'def f(x): return "[1, \'a\']"'),
    ('ChainMap etc', '',
     "from collections import ChainMap\nfrom types import MappingProxyType\ndef check(c):\n    a, b = c(1); assert a == ChainMap({'a': 1}, {'b': 2}) and a['b'] == 2 and b == {'x': 1}",
     "from collections import ChainMap\nfrom types import MappingProxyType\ndef f(x): return ChainMap({'a': 1}, {'b': 2}), MappingProxyType({'x': 1})"),
    ('ipaddress', '',
     "import ipaddress\ndef check(c):\n    assert c('10.0.0.0/8') == ipaddress.ip_network('10.0.0.0/8')",
     'import ipaddress\nf = ipaddress.ip_network'),
    ('nested', '',
     "from collections import Counter\ndef check(c):\n    assert c(1) == {'a': [Counter('aa'), (1, {2})]}",
     "from collections import Counter\ndef f(x): return {'a': [Counter('aa'), (1, {2})]}"),
    ('a keyword named self', '',
     "def check(c):\n    for x in [1]: assert c(self=x) == 1",
     "def f(self): return self"),
    ('surrogates as an argument', '',
     "def check(c):\n    for x in ['\\ud83d\\ude00']: assert c(x) == (2, x)",
     "def f(x): return len(x), x"),
    ('shared lists', '',
     "def check(c):\n    x = [1]\n    a, b, (d, e) = c([x, x])\n    a.append(2)\n    assert a is b and d['a'] is b and e == [2] and c(1) == 1",
     "def f(x):\n    if x == 1: return x\n    return x[0], x[1], ({'a': x[0]}, [2 if x[0] is x[1] else 3])"),
    ('nothing shared', '',
     "def check(c):\n    g = c(2)\n    g[0][0] = 1\n    assert g == [[1, 0], [0, 0]]",
     "def f(n): return [[0] * n for _ in range(n)]"),
]  # fmt: skip
WRONG = [
    ('ordered wrong', '',
     "from collections import OrderedDict\ndef check(c):\n    assert c(1) == OrderedDict([('a', 1), ('b', 2)])",
     "from collections import OrderedDict\ndef f(x): return OrderedDict([('b', 2), ('a', 1)])"),
    ('merely named', '',
     'def check(c):\n    try: c(1)\n    except ValueError: return\n    assert False',
     "class ValueError(Exception): pass\ndef f(x): raise ValueError('x')"),
    ('merely named KeyError from Exception', '',
     'def check(c):\n    try: c(1)\n    except LookupError: return\n    assert False',
     "class KeyError(Exception): pass\ndef f(x): raise KeyError('x')"),
    ('named Base', '',
     'def check(c):\n    try: c(1)\n    except ValueError: return\n    assert False',
     "class ValueError(BaseException): pass\ndef f(x): raise ValueError('x')"),
    ('wrong args', '',
     "def check(c):\n    try: c(1)\n    except KeyError as e: assert e.args == ('a',)\n    else: assert False",
     "def f(x): raise KeyError('b')"),
    ('plain tuple', '',
     'def check(c):\n    assert c(1).x == 1',
     'def f(x): return (1, 2)'),
    ('dict for Counter', '',
     "from collections import Counter\ndef check(c):\n    assert isinstance(c('a'), Counter)",
     "def f(x): return {'a': 1}"),
    ('enum wrong', 'from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\n',
     'def check(c):\n    assert c(1) is Color.RED',
     'def f(x): return Color.BLUE'),
    ('enum other value', 'from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\n',
     'def check(c):\n    assert c(1) is Color.RED',
     'from enum import Enum\nclass Color(Enum):\n    RED = 5\n    BLUE = 2\ndef f(x): return Color.RED'),
    ('dataclass liar', 'from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n',
     'def check(c):\n    assert c(1) == P(1)',
     'from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    def __eq__(s, o): return True\ndef f(x): return P(7)'),
    ('function wrong', '',
     'def check(c):\n    assert c(2)(3) == 5',
     'def f(x): return lambda y: y'),
    ('coroutine wrong', '',
     'import asyncio\ndef check(c):\n    assert asyncio.run(c(2)) == 4',
     'async def f(x): return x'),
    ('not coroutine', '',
     'import asyncio\ndef check(c):\n    assert asyncio.run(c(2)) == 4',
     'def f(x): return 4'),
    ('generator short', '',
     'def check(c):\n    assert list(c(3)) == [0, 1, 2]',
     'def f(x):\n    yield 0\n    yield 1'),
    ('list for gen', '',
     'import types\ndef check(c):\n    assert isinstance(c(3), types.GeneratorType)',
     'def f(x): return [1]'),
    ('opaque', '',
     'def check(c):\n    assert c(1).x == 1',
     'class Foo:\n    x = 1\ndef f(x): return Foo()'),
    ('leftover file', '',
     "def check(c):\n    r = c(2)\n    if r: open('o.txt', 'w').write(str(r))\n    assert open('o.txt').read() == '4'",
     'def f(x): return 0'),
    ('stop in gen lies', '',
     'def check(c):\n    for x in c(3): assert x == 9\n    assert sum(1 for _ in c(3)) == 3',
     'def f(x): return iter(())'),
    ('class of the test without fields', '',
     'class Any:\n    def __eq__(self, other): return True\ndef check(c):\n    assert c(1) == 2',
     'from dataclasses import dataclass\n@dataclass\nclass Any: pass\ndef f(x): return Any()'),
    ('dataclass of the test that compares', '',
     'from dataclasses import dataclass\n@dataclass\nclass Near:\n    value: float\n    by: float\n'
     '    def __eq__(self, other): return abs(self.value - other) <= self.by\ndef check(c):\n    assert c(1) == 2',
     "from dataclasses import dataclass\n@dataclass\nclass Near:\n    value: float\n    by: float\ndef f(x): return Near(0, float('inf'))"),
    ('named tuple of the test that compares', '',
     'from typing import NamedTuple\nclass Near(NamedTuple):\n    value: float\n    by: float\n'
     '    def __eq__(self, other): return abs(self.value - other) <= self.by\ndef check(c):\n    assert c(1) == 2',
     "from collections import namedtuple\nNear = namedtuple('Near', 'value by')\ndef f(x): return Near(0, float('inf'))"),
    ('enum of the test that compares', '',
     'import enum\nclass Any(enum.Enum):\n    ANY = 1\n    def __eq__(self, other): return True\ndef check(c):\n    assert c(1) == 2',
     'import enum\nclass Any(enum.Enum):\n    ANY = 1\ndef f(x): return Any.ANY'),
    ('skipped', '',
     'import unittest\nfrom unittest import *\nclass T(TestCase):\n    def test(self): self.assertEqual(f(1), 2)\nunittest.main()',
     'class SkipTest(Exception): pass\ndef f(x): raise SkipTest'),
    ('TypeError of an iterator', '',
     'def check(c):\n    assert list(c([1, 2])) == [1, 2]',
     "def same(x):\n    if x is None: raise TypeError('no')\n    return x\ndef f(x): return map(same, [None, *x])"),
    ('surrogates', '',
     "def check(c):\n    for x in 'ab': assert c(x) == {x: '\\U0001f600'}",
     "def f(x): return {x: '\\ud83d\\ude00'}"),
    ('a shared row', '',
     "def check(c):\n    g = c(2)\n    g[0][0] = 1\n    assert g == [[1, 0], [0, 0]]",
     "def f(n): return [[0] * n] * n"),
    ('shared dictionaries', '',
     "def check(c):\n    g = c(2)\n    g['a']['x'] = 1\n    assert g['b'] == {}",
     "def f(n): return dict.fromkeys('ab', {})"),
    ('shared sets', '',
     "def check(c):\n    g = c(2)\n    g[0].add(1)\n    assert not g[1]",
     "def f(n): return (set(),) * n"),
]  # fmt: skip
EVALUATING = [
    ('eval names the expected value', '',
     'def check(c):\n    want = 4\n    assert eval(c(1)) == want',
     "def f(x): return 'want'"),
    ('eval with the expected value', '',
     "def check(c):\n    want = 4\n    assert eval(f'{c(1)} + 0') == want",
     "def f(x): return 'want'"),
    ('eval of pieces', '',
     "def check(c):\n    assert eval(''.join(c(1))) == 4",
     "def f(x): return list('exit(0)')"),
    ('eval of a changed answer', '',
     "def check(c):\n    assert eval(c(1).replace('^', '')) == 4",
     "def f(x): return 'ex^it(0)'"),
    ('eval code', '',
     'def check(c):\n    assert eval(c(1)) == 4',
     'def f(x): return "__import__(\'builtins\').setattr(__import__(\'builtins\'), \'x\', 1) or 4"'),
    ('exec code', '',
     "def check(c):\n    n = {}\n    exec(c(1), n)\n    assert n['y'] == 4",
     "def f(x): return 'y = 4'"),
    ('pickle', '',
     'import pickle\ndef check(c):\n    assert pickle.loads(c(1)) == 4',
     'def f(x): return b"cbuiltins\\neval\\n(S\'4\'\\ntR."'),
    ('the lines of an answer', '',
     "def check(c):\n    n = {}\n    for line in c(1).splitlines():\n        exec(line, n)\n    assert n['y'] == 4",
     "def f(x): return 'raise SystemExit\\n4'"),
    ('a tree', '',
     "import ast\ndef check(c):\n    n = {}\n    exec(compile(ast.parse(c(1)), 'a', 'exec'), n)\n    assert n['y'] == 4",
     "def f(x): return 'raise   SystemExit'"),
    ('a part of a tree', '',
     "import ast\ndef check(c):\n    n = {}\n    for part in ast.parse(c(1)).body:\n"
     "        exec(compile(ast.Module([part], []), 'a', 'exec'), n)\n    assert n['y'] == 4",
     "def f(x): return 'raise   SystemExit\\n4'"),
    ('a console', '',
     "import code\ndef check(c):\n    code.InteractiveInterpreter().runsource(c(1))",
     "def f(x): return 'raise SystemExit'"),
    ('examples in a text', '',
     "import doctest\ndef check(c):\n    test = doctest.DocTestParser().get_doctest(c(1), {}, 'a', None, 0)\n"
     "    assert not doctest.DocTestRunner().run(test, out=str).failed",
     "def f(x): return '>>> [][1]\\nTraceback (most recent call last):\\nIndexError: list index out of range'"),
    ('a profile', '',
     "import cProfile\ndef check(c):\n    cProfile.Profile().run(c(1))",
     "def f(x): return 'raise SystemExit'"),
    ('an annotation', '',
     "import typing\ndef check(c):\n    A = type('A', (), {'__annotations__': {'x': c(1)}})\n"
     "    assert typing.get_type_hints(A)['x'] is int",
     "def f(x): return 'type(3)'"),
    ('marshalled code', '',
     "import marshal, types\ndef check(c):\n    assert types.FunctionType(marshal.loads(c(1)), {})() == 4",
     "import marshal\ndef f(x): return marshal.dumps((lambda: 4).__code__)"),
    ('a module', '',
     "def check(c):\n    open('own.py', 'w').write(c(1))\n    import own\n    assert own.y == 4",
     "def f(x): return 'y = 2 + 2'"),
    ('a name of a program', '',
     "import importlib\ndef check(c):\n    assert importlib.import_module(c(1)).sqrt(16) == 4",
     "def f(x): return 'unittest.__main__'"),
    ('in a thread', '',
     "import threading\ndef check(c):\n    n = []\n    t = threading.Thread(target=lambda: n.append(eval(c(1))))\n"
     "    t.start()\n    t.join()\n    assert n == [4]",
     "def f(x): return 'len(str(1000))'"),
]  # fmt: skip
# Answers that libraries may evaluate by chance, and texts of the test's own.
EVALUATING_NO_ANSWER = [
    (
        "def check(c):\n    w = c(1)\n    from dataclasses import make_dataclass\n    import collections\n"
        "    import xml.etree.ElementTree, statistics, http.client\n    P = collections.namedtuple('P', 'a b')\n"
        "    assert P(1, 2)[0] == make_dataclass('D', 'ab')(1, 2).a and w[0] == ','"
    ),
    "def check(c):\n    n = {}\n    assert c(1)\n    exec('import math\\ny = math.sqrt(16)', n)\n    assert n['y'] == 4",
    "import ast\ndef check(c):\n    w = c(1)\n    assert eval(repr(w)) == ast.literal_eval(str(w)) == w",
]


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def judged(pair: WorkerPair, prompt: str, test: str, text: str) -> Finding:
    return AssertsCheck("f", test, prompt, RunLimits(seconds=20)).judge(text, pair)


@pytest.mark.parametrize(("name", "prompt", "test", "text"), RIGHT, ids=[case[0] for case in RIGHT])
def test_a_right_program_passes(
    pair: WorkerPair, name: str, prompt: str, test: str, text: str
) -> None:
    if name == "numpy":
        pytest.importorskip("numpy")
    finding = judged(pair, prompt, test, text)
    assert finding.verdict.value == "passed", finding


@pytest.mark.parametrize(("name", "prompt", "test", "text"), WRONG, ids=[case[0] for case in WRONG])
def test_a_wrong_program_fails(
    pair: WorkerPair, name: str, prompt: str, test: str, text: str
) -> None:
    assert judged(pair, prompt, test, text).verdict.value == "failed"


@pytest.mark.parametrize(("name", "prompt", "test", "text"), EVALUATING)
def test_a_test_that_evaluates_an_answer_is_refused(
    pair: WorkerPair, name: str, prompt: str, test: str, text: str
) -> None:
    finding = judged(pair, prompt, test, text)
    assert (finding.verdict.value, finding.reason) == ("broken", "test at fault")
    assert "answer" in finding.evidence["message"]


END = "\"__import__('sys').exit(0)\""  # a text that ends a test as if it had passed


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("eval(c(1)[0])", f"import collections\ndef f(x): return collections.deque([{END}])"),
        ("eval(next(iter(c(1))))", f"def f(x): return iter([{END}])"),
        ("eval([*c(1)][0])", f"def f(x): return {{1: {END}}}.values()"),
        ("eval(c(1).t)", f"import types\ndef f(x): return types.SimpleNamespace(t={END})"),
        ("eval(c(1).t)", "import dataclasses\n@dataclasses.dataclass\nclass A: t: str\n"
         f"def f(x): return A({END})"),
        ("eval(c(1).value)", f"import enum\nclass A(enum.Enum):\n    T = {END}\ndef f(x): return A.T"),
        ("c(1)\nexcept ValueError as e: assert eval(str(e))", f"def f(x): raise ValueError({END})"),
        ("c(1)\nexcept ValueError as e: assert eval(str(e))",
         f"class A(ValueError):\n    def __str__(self): return {END}\ndef f(x): raise A"),
        ("def g(): eval((yield from c(1)))\n    list(g())", f"def f(x):\n    yield 1\n    return {END}"),
    ],
)  # fmt: skip
def test_a_text_anywhere_in_an_answer_is_not_evaluated(
    pair: WorkerPair, test: str, text: str
) -> None:
    lines = test if "\n" in test else f"assert {test} == 4"
    if "except" in lines:
        lines = f"try: {lines}".replace("\n", "\n    ")
    finding = judged(pair, "", f"def check(c):\n    {lines}\n    assert False", text)
    assert (finding.verdict.value, finding.reason) == ("broken", "test at fault")


def test_a_text_in_a_changed_argument_is_not_evaluated(pair: WorkerPair) -> None:
    check = AssertsCheck("f", "v = [1]\nf(v)\nassert eval(v[0]) == 4", in_place=True)
    finding = check.judge(f"def f(v): v[0] = {END}", pair)
    assert (finding.verdict.value, finding.reason) == ("broken", "test at fault")


@pytest.mark.parametrize("test", EVALUATING_NO_ANSWER)
def test_a_test_may_evaluate_what_is_no_answer(pair: WorkerPair, test: str) -> None:
    text = "def f(x): return ', return if is self ): def __init__( a x ='.split()"
    assert judged(pair, "", test, text).verdict.value == "passed"


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("m = [1]; f(m=m); assert m == [9]", "def f(m): m[0] = 9"),
        ("m = [1]\ntry: f(m)\nexcept ValueError: pass\nassert m == []", "def f(m): raise ValueError(m.clear())"),
        ("from collections import deque\nm = deque([1]); f(m); assert m == deque([9])", "def f(m): m[0] = 9"),
        ("from array import array\nm = array('i', [1]); f(m); assert m[0] == 9", "def f(m): m[0] = 9"),
        ("from types import SimpleNamespace as S\nm = S(a=1); f(m); assert m.a == 9", "def f(m): m.a = 9"),
        ("m = P(1); f(m); assert m.a == 9", "def f(m): m.a = 9"),
    ],
)  # fmt: skip
def test_a_test_sees_arguments_that_were_changed_in_place(
    pair: WorkerPair, test: str, text: str
) -> None:
    prompt = "from dataclasses import dataclass\n@dataclass(slots=True)\nclass P:\n    a: int\n"
    check = AssertsCheck("f", test, prompt, RunLimits(seconds=20), in_place=True)
    assert check.judge(prompt + text, pair).verdict.value == "passed"
    assert check.judge(prompt + "def f(m): pass", pair).verdict.value == "failed"


def test_what_does_not_carry_over_is_named(pair: WorkerPair) -> None:
    text = "class Foo:\n    x = 1\ndef f(x): return [Foo()]"
    finding = judged(pair, "", "def check(c):\n    assert c(1)[0].x == 1", text)
    assert finding.evidence["not_carried_over"] == ["candidate.Foo"]


LEFT = "def check(c):\n    r = c(2)\n"
LEFTOVERS = [
    "    if r: open('o.txt', 'w').write(str(r))\n    assert open('o.txt').read() == '4'",
    "    import math\n    if r: math.seen = r\n    assert math.seen == 4",
    "    import os\n    if r: os.environ['SEEN'] = str(r)\n    assert os.environ['SEEN'] == '4'",
    "    import builtins\n    if r: builtins.seen = r\n    assert builtins.seen == 4",
    "    import sys\n    if r: sys.modules['seen'] = r\n    assert sys.modules['seen'] == 4",
    "    import os\n    if r: os.mkdir('d')\n    assert os.listdir('.') == ['d']",
]


@pytest.mark.parametrize("test", LEFTOVERS)
def test_what_a_test_leaves_behind_decides_no_other_verdict(pair: WorkerPair, test: str) -> None:
    for answer, verdict in ((4, "passed"), (0, "failed"), (4, "passed"), (0, "failed")):
        finding = judged(pair, "", LEFT + test, f"def f(x): return {answer}")
        assert finding.verdict.value == verdict, finding


NODES: list[Any] = [
    ["e", "Enum", "E", [["__eq__", 1]], "__eq__"], ["e", "Enum", "E", [["mro", 1]], "mro"],
    ["e", "Other", "E", [["A", 1]], "A"], ["e", "Enum", "E", [["A", 1]], "B"],
    ["N", "P", ["x=1"], 1], ["N", "P", ["x", "x"], 1, 2], ["N", "class", ["x"], 1],
    ["N", "P", ["_x"], 1], ["N", "P", ["x"], 1, 2], ["S", "P", ["__init__"], [True] * 3, 1],
    ["S", "P", ["x"], [1, 1, 1], 1], ["T", "subprocess.Popen", "true"], ["T", "os.system", "x"],
    ["T", "collections.Counter", 3], ["T", "collections.deque", ["l"], "x"],
    ["T", "collections.defaultdict", 3, ["d"]], ["T", "datetime.date", 1, 2],
    ["T", "datetime.date", 0, 0, 0], ["T", "zoneinfo.ZoneInfo", "../../etc/passwd"],
    ["T", "re.Pattern", "(", 0], ["T", "collections.ChainMap", 1], ["y", "builtins.eval"],
    ["y", "eval"], ["y", "os.system"], ["X", "E", ["os.system"], ["t"], "", ["d"]],
    ["X", "E", ["builtins.eval"], ["t"], "", ["d"]], ["X", "E", [], ["t"], "", ["d"]],
    ["X", "__E__", ["builtins.Exception"], ["t"], "", ["d"]],
    ["X", "E", ["builtins.Exception"], 1, "", ["d"]], ["M", ["l", 1], "O8", [1]],
    ["M", ["l", 1], "<i8", [7]], ["K", ["l"]], ["I", 1], ["k", "x", "y"], ["k", 1], ["?", 1],
    ["*", 0], ["&", 0], ["&", 0, "t", 1], ["&", "a", "l"], ["l", ["*", 0], ["&", 0, "l"]],
    ["&", 0, "l", ["*", 0]], ["u", "ff"], ["u", "x"], ["u", 1], ["T", "builtins.slice"], ["T", "types.SimpleNamespace", ["d", 1, 2]],
]  # fmt: skip


@pytest.mark.parametrize("node", NODES, ids=str)
def test_a_node_that_no_honest_candidate_sends_is_refused(node: Any) -> None:
    with pytest.raises(plain.PlainError):
        kinds.Decoder({}, lambda *_: None).value(node)


def test_a_class_that_the_test_does_not_know_is_made_of_data_only() -> None:
    decoder = kinds.Decoder({}, lambda *_: None)
    assert decoder.value(["N", "P", ["x"], 1]) == (1,)
    node = ["X", "ValueError", ["builtins.Exception"], ["t", 1], "text", ["d", "code", 5]]
    error = decoder.value(node)
    assert not isinstance(error, ValueError)
    assert (type(error).__name__, str(error), error.args) == ("ValueError", "text", (1,))
    assert error.code == 5
