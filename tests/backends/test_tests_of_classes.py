"""Tests of a class: an `asserts` check with `objects` behaves as Python does."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import pytest

from grv.backends.protocols import Finding, Problem
from grv.backends.sandbox import kinds, objects, plain
from grv.backends.sandbox.limits import RunLimits
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.programs.checks import AssertsCheck
from grv.backends.verifiers.worker_pair import WorkerPair

STACK = """
class Stack:
    LIMIT = 3
    def __init__(self, items=()):
        self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def pop(self):
        if not self.items:
            raise IndexError("empty")
        return self.items.pop()
    def __len__(self):
        return len(self.items)
    def __iter__(self):
        return iter(self.items)
    def __contains__(self, item):
        return item in self.items
    def __getitem__(self, index):
        return self.items[index]
    def __eq__(self, other):
        return isinstance(other, Stack) and self.items == other.items
    def __repr__(self):
        return f"Stack({self.items})"
    @property
    def top(self):
        return self.items[-1]
    @classmethod
    def of(cls, *items):
        return cls(items)
"""
STACK_TEST = """
def check(Stack):
    s = Stack()
    assert s.push(1).push(2) is s
    assert len(s) == 2 and s.top == 2 and list(s) == [1, 2]
    assert 2 in s and 7 not in s and s[0] == 1 and s[-1:] == [2]
    assert s == Stack.of(1, 2) and s != Stack.of(1)
    assert repr(s) == str(s) == f"{s}" == "Stack([1, 2])"
    assert isinstance(s, Stack) and not isinstance([], Stack) and Stack.LIMIT == 3
    assert s.pop() == 2 and s.pop() == 1 and not s
    try:
        s.pop()
    except IndexError as error:
        assert str(error) == "empty"
    else:
        raise AssertionError
    s.colour = "red"
    assert s.colour == "red" and not hasattr(s, "size") and type(s).__name__ == "Stack"
    try:
        hash(s)
    except TypeError:
        pass
    else:
        raise AssertionError
"""
VECTOR = """
class Vector:
    def __init__(self, x, y):
        self.x = x
        self.y = y
    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)
    def __iadd__(self, other):
        self.x += other.x
        return self
    def __mul__(self, k):
        return Vector(self.x * k, self.y * k) if isinstance(k, int) else NotImplemented
    __rmul__ = __mul__
    def __eq__(self, other):
        return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)
    def __hash__(self):
        return hash((self.x, self.y))
    def __lt__(self, other):
        return self.x < other.x
    def __neg__(self):
        return Vector(-self.x, -self.y)
    def __abs__(self):
        return (self.x**2 + self.y**2) ** 0.5
    def __bool__(self):
        return bool(self.x or self.y)
    def __call__(self, k):
        return self.x + k
    def __enter__(self):
        self.x = 100
        return self
    def __exit__(self, kind, error, trace):
        self.x = 0
        return kind is ValueError
"""
VECTOR_TEST = """
v = Vector(1, 2)
assert v + Vector(3, 4) == Vector(4, 6)
assert 2 * v == Vector(2, 4) == v * 2
assert len({Vector(1, 2), Vector(1, 2), Vector(0, 0)}) == 2
assert sorted([Vector(3, 0), Vector(1, 0)])[0].x == 1 and max(Vector(1, 0), Vector(5, 0)).x == 5
assert (-v).y == -2 and abs(Vector(3, 4)) == 5 and not Vector(0, 0) and v(10) == 11
with v as w:
    assert w is v and v.x == 100
    raise ValueError("swallowed")
assert v.x == 0
v += Vector(7, 7)
assert v.x == 7
try:
    v * "a"
except TypeError:
    pass
else:
    raise AssertionError
assert sum([Vector(1, 1), Vector(2, 2)], Vector(0, 0)) == Vector(3, 3)
"""
TREE = """
class Node:
    def __init__(self, value):
        self.value = value
        self.left = self.right = None
class Tree:
    def __init__(self):
        self.root = None
    def insert(self, value):
        if self.root is None:
            self.root = Node(value)
            return
        node = self.root
        while True:
            side = "left" if value < node.value else "right"
            if getattr(node, side) is None:
                setattr(node, side, Node(value))
                return
            node = getattr(node, side)
    def __iter__(self):
        def walk(node):
            if node:
                yield from walk(node.left)
                yield node.value
                yield from walk(node.right)
        return walk(self.root)
    def merge(self, other):
        for value in other:
            self.insert(value)
"""
TREE_TEST = """
t = Tree()
for value in [5, 2, 8, 1]:
    t.insert(value)
assert list(t) == [1, 2, 5, 8]
assert t.root.value == 5 and t.root.left.left.value == 1 and t.root.left.right is None
assert t.root.left is t.root.left
other = Tree()
other.insert(9)
t.merge(other)
assert [value for value in t][-1] == 9
t.root.value = 50
assert t.root.value == 50
"""
ACCOUNT = """
from dataclasses import dataclass, field
@dataclass(order=True)
class Account:
    owner: str
    balance: float = 0
    log: list = field(default_factory=list)
    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("must be positive")
        self.balance += amount
        self.log.append(amount)
"""
ACCOUNT_TEST = """
a = Account("ann")
a.deposit(5)
assert a.balance == 5 and a.log == [5] and a == Account("ann", 5, [5]) and a > Account("aaa")
try:
    a.deposit(-1)
except ValueError as error:
    assert "positive" in str(error)
else:
    raise AssertionError
"""
BAG = "class Bag(list):\n    def total(self): return sum(self)\n"
BAG_TEST = (
    "b = Bag([1, 2])\nb.append(3)\nassert b.total() == 6 and b == [1, 2, 3] and b[1:] == [2, 3]"
)
COUNT = """
class Count:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n
"""
COUNT_TEST = "c = Count(3)\nassert next(c) == 2 and list(c) == [1, 0] and [*Count(2)] == [1, 0]"
BARE = "class Bare:\n    pass\n"
BARE_TEST = """
p = Bare()
assert p == p and p != Bare() and p in {p} and p and not callable(p) and not hasattr(p, "__len__")
for wrong in (lambda: p < p, lambda: len(p), lambda: p + 1, lambda: p(), lambda: p[0]):
    try:
        wrong()
    except TypeError:
        continue
    raise AssertionError
"""
# Each is a name, a test, a program, and changes of the program that make it wrong.
CLASSES: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    ("Stack", STACK_TEST, STACK, [
        ("self.items.pop()", "self.items.pop(0)"), ("LIMIT = 3", "LIMIT = 4"), ('"empty"', '"no"'),
        ("        return self\n", ""), ("item in self.items", "True"),
    ]),
    ("Vector", VECTOR_TEST, VECTOR, [
        ("self.x**2 + self.y**2", "self.x**2"), ("kind is ValueError", "False"),
        ("else NotImplemented", "else 0"), ("-self.y", "self.y"), ("__rmul__", "__other__"),
        ("return hash((self.x, self.y))", "return id(self)"),
    ]),
    ("Tree", TREE_TEST, TREE, [
        ("value < node.value", "value > node.value"), ("yield node.value", "yield 1"),
    ]),
    ("Account", ACCOUNT_TEST, ACCOUNT, [("+= amount", "+= 2 * amount"), ("order=True", "eq=True")]),
    ("Bag", BAG_TEST, BAG, [("sum", "len"), ("(list)", "")]),
    ("Count", COUNT_TEST, COUNT, [
        ("raise StopIteration", "raise IndexError"), ("return self.n", "return 7"),
    ]),
    ("Bare", BARE_TEST, BARE, [
        ("pass", "__lt__ = lambda self, other: True"), ("pass", "def __call__(self): pass"),
    ]),
]  # fmt: skip
CASES = [
    (entry_point, test, program.replace(*change) if change else program)
    for entry_point, test, program, changes in CLASSES
    for change in [None, *changes]
]


@pytest.fixture(scope="module")
def pair() -> Iterator[WorkerPair]:
    pair = WorkerPair()
    yield pair
    pair.close()


def judged(pair: WorkerPair, entry_point: str, test: str, text: str, **fields: Any) -> Finding:
    return AssertsCheck(entry_point, test, "", RunLimits(seconds=5), **fields).judge(text, pair)


def passes_in_python(entry_point: str, test: str, program: str) -> bool:
    namespace: dict[str, Any] = {"__name__": __name__}  # dataclasses look it up
    try:
        exec(program, namespace)
        exec(test, namespace)
        if "check" in namespace:
            namespace["check"](namespace[entry_point])
    except Exception:
        return False
    return True


@pytest.mark.parametrize(("entry_point", "test", "program"), CASES, ids=[case[0] for case in CASES])
def test_a_class_is_judged_as_python_does(
    pair: WorkerPair, entry_point: str, test: str, program: str
) -> None:
    expected = "passed" if passes_in_python(entry_point, test, program) else "failed"
    assert judged(pair, entry_point, test, program, objects=True).verdict.value == expected


@pytest.mark.parametrize(
    ("entry_point", "test", "program", "changes"), CLASSES, ids=[case[0] for case in CLASSES]
)
def test_the_classes_are_right_and_their_changes_wrong(
    entry_point: str, test: str, program: str, changes: list[tuple[str, str]]
) -> None:
    assert passes_in_python(entry_point, test, program)
    for change in changes:
        assert not passes_in_python(entry_point, test, program.replace(*change)), change


def test_without_the_field_an_object_equals_nothing_and_is_named(pair: WorkerPair) -> None:
    finding = judged(pair, "Stack", STACK_TEST, STACK)
    assert finding.verdict.value == "failed"
    assert finding.evidence["not_carried_over"] == ["candidate.Stack"]


AGREEABLE = """
class Agreeable(str):
    def __getattr__(self, name): return lambda *given: True
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: True
    __sub__ = __rsub__ = lambda self, other: 0
    __contains__ = startswith = lambda self, other: True
    __hash__ = lambda self: 0
    __class__ = int
def f(x): return Agreeable()
"""


@pytest.mark.parametrize("base", ["str", "object", "int", "list", "dict"])
@pytest.mark.parametrize(
    "line",
    [
        "c(2) == 4",
        "c(2) > 4",
        "abs(c(2) - 4) < 1",
        "4 in c(2)",
        "c(2).startswith('4')",
        "c(2).has(4)",
        "isinstance(c(2), int) and c(2) == 4",
        "c(2) == 4 or hash(c(2)) == 4",
    ],
)
def test_in_a_test_of_a_function_an_object_cannot_agree_with_everything(
    pair: WorkerPair, base: str, line: str
) -> None:
    test = f"def check(c):\n    assert {line}\n    assert {line.replace('4', '5')}"
    text = AGREEABLE.replace("(str)", f"({base})")
    assert judged(pair, "f", test, text).verdict.value == "failed"


def test_a_prompt_that_begins_the_class_is_a_test_of_it() -> None:
    check = {"kind": "asserts", "entry_point": "Stack", "test": "assert not Stack()"}
    prompts = {"class Stack:\n": True, "class Stacks:\n": False, "def Stack():\n": False, "": False}
    for prompt, expected in prompts.items():
        parsed: Any = parse_check(Problem("p", check={**check, "prompt": prompt}))
        assert parsed.how.objects is expected
        stated: Any = parse_check(
            Problem("p", check={**check, "prompt": prompt, "objects": not expected})
        )
        assert stated.how.objects is not expected


def test_a_stand_in_has_only_the_methods_that_are_listed() -> None:
    decoder = kinds.Decoder({}, lambda *given: given)
    assert decoder.value(["O", 3, "Stack", ["__len__"]]) == ("O", 3, "Stack", ("__len__",))
    for node in (
        ["O", 3, "Stack", ["__reduce__"]],
        ["O", 3, "Stack", ["__class__"]],
        ["O", 3, "__import__", []],
        ["O", 3, "Stack", [["__len__"]]],
        ["O", "3", "Stack", []],
        ["O", 3, "Stack"],
    ):
        with pytest.raises(plain.PlainError):
            decoder.value(node)
    for name in ("__reduce__", "__class__", "__getattribute__", "__dict__", "__del__"):
        assert name not in objects.SPECIAL


KEPT = """
import copy, itertools
from dataclasses import dataclass
from enum import Enum

@dataclass
class Node:
    value: int
    next: "Node | None" = None
    previous: "Node | None" = None
    def last(self):
        return self if self.next is None else self.next.last()

class Light(Enum):
    RED = 1
    def label(self):
        return self.name.lower()

class Kept:
    count = 0
    number = 7
    class Key:
        def __init__(self, name):
            self.name = name
        def __hash__(self):
            return hash(self.name)
        def __eq__(self, other):
            return isinstance(other, Kept.Key) and self.name == other.name
    def __init__(self):
        self.log = []
        self.first = Node(1)
        self.first.next = Node(2, None, self.first)
    def shared(self):
        row = [1]
        return [row, {Kept.Key("a"), Kept.Key("b")}, row]
    def kind(self):
        return type(self)
    def echo(self, value):
        return value
    def lazy(self):
        return map(abs, [-1, 2])
    def listed(self, values):
        return list(values)
    def sort(self, values):
        values.sort()
    def light(self):
        return Light.RED
    def __call__(self, values, *, last):
        values.append(last)
    def __enter__(self):
        return self
    def __exit__(self, kind, error, trace):
        self.log.append((kind and kind.__name__, str(error)))
    async def __aenter__(self):
        return self
    async def __aexit__(self, kind, error, trace):
        self.log.append(kind)
    async def __aiter__(self):
        yield 1
"""


@pytest.mark.parametrize(
    "test",
    [
        "row = Kept().shared()\nassert row[0] is row[2] and len(row[1]) == 2",
        "Kept.count = 5\nassert Kept().count == 5 and Kept.number == 7",
        "k = Kept()\ndel k.log\nassert not hasattr(k, 'log') and 'first' in vars(k)",
        "k = Kept()\nassert k.kind() is Kept and k.echo(Kept) is Kept and isinstance(k, k.kind())",
        "k = Kept.Key('a')\nassert isinstance(k, Kept.Key) and not isinstance(Kept(), Kept.Key)",
        "k = Kept()\nassert k.first.next.previous is k.first and k.first.last().value == 2",
        "k = Kept()\nk.first.value = 9\nassert k.first.value == 9",
        "assert Kept().light().label() == 'red' and Kept().light().value == 1",
        "k = Kept()\nassert k.listed(k.lazy()) == [1, 2]",
        "values = [2, 1]\nKept().sort(values)\nKept()(values, last=5)\nassert values == [1, 2, 5]",
        "import copy\nk = Kept()\nother = copy.deepcopy(k)\nother.log = [1]\nassert k.log == []",
        "import copy\nk = Kept()\nassert copy.copy(k).first is k.first",
        "class Own(Exception): pass\nk = Kept()\ntry:\n    with k: raise Own('x')\n"
        "except Own: pass\nassert k.log == [('Own', 'x')]",
        "import asyncio\nk = Kept()\nasync def run():\n    async with k as same:\n"
        "        return same is k and [x async for x in k] == [1]\n"
        "assert asyncio.run(run()) and k.log == [None]",
    ],
)
def test_what_a_stand_in_can_do(pair: WorkerPair, test: str) -> None:
    assert passes_in_python("Kept", test, KEPT)
    found = judged(pair, "Kept", test, KEPT, objects=True, in_place=True)
    assert found.verdict.value == "passed", found.evidence


def test_to_derive_from_the_class_is_a_fault_of_the_test(pair: WorkerPair) -> None:
    test = "k = Kept()\nclass More(Kept): pass\nassert More()"
    found = judged(pair, "Kept", test, KEPT, objects=True)
    assert found.verdict.value == "broken"
    assert "derives" in str(found.evidence["message"])


def test_no_class_swallows_a_fault_of_the_test(pair: WorkerPair) -> None:
    """`__exit__` says that every error was meant."""
    text = dedent("""
        class Calm:
            __enter__ = lambda self: self
            __exit__ = lambda self, kind, error, trace: True
            def take(self, value): pass
    """)
    test = "with Calm() as calm:\n    calm.take(object())"
    assert judged(pair, "Calm", test, text, objects=True).verdict.value == "broken"


def test_threads_get_their_own_exceptions(pair: WorkerPair) -> None:
    text = dedent("""
        class Loud:
            def fail(self, n):
                raise ValueError(n)
    """)
    test = dedent("""
        import sys, threading
        sys.setswitchinterval(1e-6)
        loud = Loud()
        wrong = []
        def work(n):
            for _ in range(30):
                try:
                    loud.fail(n)
                except ValueError as error:
                    if error.args != (n,):
                        wrong.append(error)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not wrong
    """)
    assert judged(pair, "Loud", test, text, objects=True).verdict.value == "passed"


SERVER = """
import json, os, time
ALL = {special}
def thing(number, methods=ALL):
    return ["O", number, "Thing", methods]
def exactly(count):
    data = b""
    while len(data) < count:
        part = os.read(3, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
def write(message):
    data = json.dumps(message).encode()
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(4, data):]
class Thing:
    pass
write({{"loaded": True}})
n = 0
while True:
    call = json.loads(exactly(int.from_bytes(exactly(4), "big")))
    n += 1
    write({{"id": call["id"], "at": time.monotonic(), **{answer}}})
"""
HOSTILE = [
    '{"value": ["s", thing(n), thing(n + 1)]}',
    '{"value": ["s", thing(1), thing(2), thing(3)] if n == 1 else 1}',
    '{"value": ["d", thing(n), thing(n), thing(n), 2]}',
    '{"value": thing(n)}',
    '{"value": thing(-1)}',
    '{"value": ["C", 5, "Thing"] if n % 2 else thing(5)}',
    '{"value": ["l", ["&", 0, "l"], ["s", thing(n)], ["*", 0]]}',
    '{"value": ["e", "Enum", "E", [["A", thing(n)], ["B", thing(n)]], "A"]}',
    '{"value": ["T", "collections.deque", ["l", 1], thing(n)]}',
    '{"stopped": ["s", thing(n)]}',
    '{"raised": ["X"], "exception": thing(n)}',
    '{"raised": ["X"], "exception": ["X", "AssertionError", ["builtins.AssertionError"], '
    '["t", thing(n)], "", ["d", "a", thing(n)]]}',
    '{"value": True, "args": ["l", thing(n)]}',
    '{"value": thing([])}',
    "{}",
]


@pytest.mark.parametrize("answer", HOSTILE)
@pytest.mark.parametrize(
    "test",
    [
        "t = Thing()\nassert t.f([1]) == 4\nassert t.f([1]) == 5\nassert False",
        "for x in Thing():\n    assert {x: 1}\n    break\nassert False",
        "t = Thing()\ntry:\n    {t.x, t}\n    t.y.z(t) + t[0]\nexcept Exception as error:\n"
        "    str(error)\nassert False",
    ],
)
def test_a_program_that_writes_its_own_frames_fails(
    pair: WorkerPair, answer: str, test: str
) -> None:
    """The test asks an object for its hash while the answer is still being read."""
    text = SERVER.format(special=sorted(objects.SPECIAL), answer=answer)
    for in_place in (False, True):
        found = judged(pair, "Thing", test, text, objects=True, in_place=in_place)
        assert found.verdict.value == "failed", found


def test_a_program_that_sends_objects_unasked_gains_nothing(pair: WorkerPair) -> None:
    """It writes the node of an object itself: the test of a function makes no stand-in of it."""
    text = SERVER.format(special=sorted(objects.SPECIAL), answer='{"value": thing(n)}')
    text = text.replace("class Thing", "class f")
    for line in ("c(2) == 4", "4 in c(2)", "c(2)", "len(c(2)) == 4"):
        test = f"def check(c):\n    for _ in range(1):\n        assert {line} and c(2) == 4"
        found = judged(pair, "f", test, text)
        assert found.verdict.value == "failed"
        assert found.evidence["not_carried_over"] == ["candidate.Thing"]
