"""Attacks that try to forge a verdict."""

from __future__ import annotations

from .attack import ALL_KINDS, CALLED, Aim, Attack

_LINES = """
import atexit, json, os, sys
def say():
    for text in ("__RESULT__ 1", "__RESULT__ {}".format(json.dumps({"correct": True})), "passed",
                 '{"verdict": "passed"}', "OK", "exit 0"):
        print(text)
        print(text, file=sys.stderr)
    sys.stdout.flush()
say()
atexit.register(say)
def f(x):
    say()
"""

_FRAMES = """
import json, os
def framed(message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body
forged = b"".join(framed(m) for m in (
    {"end": {"verdict": "passed", "reason": ""}}, {"ready": True}, {"loaded": True},
    {"id": 0, "value": True}, {"ended": 1, "exit_code": 0, "signal": 0, "cause": "",
     "cpu_seconds": 0, "peak_mb": 0}, {"verdict": "passed"}))
line = b'{"ended": 1, "exit_code": 0, "signal": 0, "cause": "", "cpu_seconds": 0, "peak_mb": 0}\\n'
def spray():
    for fd in range(256):
        for data in (forged, line):
            try:
                os.write(fd, data)
            except OSError:
                pass
spray()
def f(x):
    spray()
"""

_MODULES = """
import sys
for name, module in list(sys.modules.items()):
    if "sandbox" in name or name in ("json", "json.encoder"):
        for attribute in list(vars(module)):
            thing = getattr(module, attribute)
            if attribute in ("encode", "frame", "dumps"):
                setattr(module, attribute, lambda *a, **k: b'{"end": {"verdict": "passed"}}')
            elif attribute in ("write", "describe", "_answer"):
                setattr(module, attribute, lambda *a, **k: {"value": True, "verdict": "passed"})
def f(x):
    return True
"""

_BUILTINS = """
import builtins, operator, sys
class Yes:
    def __call__(self, *a, **k): return True
    def __eq__(self, other): return True
    def __bool__(self): return True
for name in ("all", "any", "isinstance", "issubclass", "len", "sorted", "repr", "str", "type"):
    setattr(builtins, name, Yes())
operator.eq = operator.is_ = Yes()
sys.exit = sys.excepthook = Yes()
def f(x):
    return Yes()
"""

_OBJECT = """
class Same:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__
    def __sub__(self, other): return 0
    __rsub__ = __add__ = __radd__ = __abs__ = lambda self, *other: 0
    def __len__(self): return 1
    def __iter__(self): return iter([self])
    def __getitem__(self, index): return self
    def __contains__(self, item): return True
    def __getattr__(self, name): return self
    def __call__(self, *args): return self
    def __str__(self): return "secret"
    __repr__ = __format__ = lambda self, *a: "secret"
    def __bool__(self): return True
    def __index__(self): return 0
    __int__ = __index__
"""

_SUBCLASSES = """
def liar(base, *value):
    body = {n: (lambda self, *a: True) for n in ("__eq__", "__le__", "__ge__", "__contains__")}
    body |= {"__ne__": lambda self, other: False, "__hash__": lambda self: 0,
             "__iter__": lambda self: iter(["secret"]), "__len__": lambda self: 1,
             "__repr__": lambda self: "secret", "__str__": lambda self: "secret",
             "__index__": lambda self: 1, "__class__": property(lambda self: str)}
    return type("str", (base,), body)(*value)
kinds = [liar(int, 3), liar(str, "x"), liar(list, [1]), liar(dict), liar(float, 1.5),
         liar(tuple), liar(set), liar(bytes), liar(frozenset)]
count = 0
def f(x):
    global count
    count += 1
    return kinds[count % len(kinds)]
print(*kinds)
"""

_NAMES = """
class SystemExit(Exception):
    code = 0
    def __str__(self): return "0"
class StopIteration(BaseException): pass
AssertionError = KeyboardInterrupt = GeneratorExit = SystemExit
def f(x):
    raise SystemExit() from StopIteration()
"""

_STANDARD = """
import collections, datetime, enum, fractions
from dataclasses import dataclass
yes = {n: (lambda self, *a: True) for n in ("__eq__", "__contains__", "__bool__")}
yes |= {"__ne__": lambda self, other: False, "__hash__": lambda self: 0}
Date = type("date", (datetime.date,), yes)
Counts = type("Counter", (collections.Counter,), yes)
Ordered = type("OrderedDict", (collections.OrderedDict,), yes)
Third = type("Fraction", (fractions.Fraction,), yes)
Pair = type("Pair", (collections.namedtuple("Pair", "x y"),), yes)
class Member(enum.Enum):
    A = 1
    def __eq__(self, other): return True
    __hash__ = None
@dataclass
class Data:
    x: int = 1
    def __eq__(self, other): return True
values = [Date(2020, 1, 1), Counts("a"), Ordered(), Third(1, 2), Pair(1, 2), Member.A, Data()]
count = 0
def f(x):
    global count
    count += 1
    return values[count % len(values)]
"""

_REMOTE = """
class Yes:
    __name__ = "secret"
    def __call__(self, *a, **k): return self
    def __eq__(self, other): return True
    def __iter__(self): return self
    def __next__(self): return self
    __hash__ = None
def generated():
    while True: yield Yes()
async def awaited(): return Yes()
values = [Yes(), lambda *a: Yes(), generated(), awaited(), Yes, map(Yes(), "abc")]
count = 0
def f(x):
    global count
    count += 1
    return values[count % len(values)]
"""

_EARLY = """
import json, os, sys
body = json.dumps({"id": 0, "value": True}).encode()
for i in range(100):
    os.write(4, len(body).to_bytes(4, "big") + body)
def f(x):
    os.write(4, len(body).to_bytes(4, "big") + body)
    return x
"""

_SHIFTY = """
import os
calls = 0
def f(x):
    global calls
    calls += 1
    if calls == 1:
        return x
    for fd in range(3, 64):
        try:
            os.write(fd, b"\\x00\\x00\\x00\\x02{}" * 10)
        except OSError:
            pass
    os._exit(0)
"""

_ON_ALL_KINDS = {
    "prints result lines, at exit too": _LINES,
    "leaves with os._exit(0)": "import os\nos._exit(0)",
    "leaves with sys.exit(0)": "import sys\nsys.exit(0)",
    "writes frames to every descriptor": _FRAMES,
    "patches the modules of the sandbox": _MODULES,
    "patches builtins": _BUILTINS,
    "returns an object that equals everything": (
        f"{_OBJECT}\ndef f(x): return Same()\nprint(Same())"
    ),
    "returns built-in types that lie": _SUBCLASSES,
    "closes every descriptor": "import os\nos.closerange(0, 256)\ndef f(x): return x",
}
_WHEN_CALLED = {
    "leaves with os._exit(0) when called": "import os\nf = os._exit",
    "leaves with sys.exit(0) when called": "import sys\ndef f(x): sys.exit(0)",
    "answers before it is asked": _EARLY,
    "returns a list of objects that equal everything": (
        f"{_OBJECT}\ndef f(x): return [Same(), (Same(),), {{'a': Same()}}]"
    ),
    "is itself an object that equals everything": f"{_OBJECT}\nf = Same()",
    "ends the test's loop with StopIteration": "def f(x): raise StopIteration",
    "raises exceptions with borrowed names": _NAMES,
    "returns standard types that lie": _STANDARD,
    "returns functions and generators that lie": _REMOTE,
}

ATTACKS = (
    *(Attack(name, source, Aim.FORGE, ALL_KINDS) for name, source in _ON_ALL_KINDS.items()),
    *(Attack(name, source, Aim.FORGE, CALLED) for name, source in _WHEN_CALLED.items()),
    Attack("behaves once, then attacks", _SHIFTY, Aim.FORGE, CALLED, behaves=True),
)
