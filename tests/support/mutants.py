"""Programs with defects, and with memories: for tests that no verdict depends on an order."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

REFERENCES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    (
        "def f(values):\n"
        "    best = 0\n"
        "    total = 0\n"
        "    for value in values:\n"
        "        total = max(0, total + value)\n"
        "        best = max(best, total)\n"
        "    return best\n",
        ([], [1, 2, 3], [-1, -2], [2, -1, 2], [5, -9, 6], [0], [-1, 4, -2, 3]),
    ),
    (
        "def f(n):\n"
        "    if n < 2:\n"
        "        return n\n"
        "    one, two = 0, 1\n"
        "    for _ in range(n - 1):\n"
        "        one, two = two, one + two\n"
        "    return two\n",
        (0, 1, 2, 3, 7, 12),
    ),
    (
        "def f(text):\n"
        "    count = 0\n"
        "    for letter in text:\n"
        "        if letter in 'aeiou' and count < 9:\n"
        "            count = count + 1\n"
        "    return count * 2\n",
        ("", "a", "xyz", "aeiou", "banana", "queue" * 3),
    ),
)
# What a program may do besides: most of it lets one call change the next.
MEMORIES = (
    "",
    "",
    "calls = []\n\ndef note(x):\n    calls.append(x)\n    return len(calls) > {n}\n",
    "def note(x, seen=[]):\n    seen.append(x)\n    return len(seen) == {n}\n",
    "count = 0\n\ndef note(x):\n    global count\n    count += 1\n    return count == {n}\n",
    "def note(x):\n    note.last = getattr(note, 'last', 0) + 1\n    return note.last > {n}\n",
    "import random\n\ndef note(x):\n    return random.random() < 0.0{n}\n",
    "class Memory:\n    calls = 0\n\ndef note(x):\n    Memory.calls += 1\n"
    "    return Memory.calls > {n}\n",
)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Mutant(NamedTuple):
    """A program, and the arguments and values of its tests."""

    source: str
    tests: tuple[tuple[Any, Any], ...]

    @property
    def function_tests(self) -> list[dict[str, Any]]:
        return [{"args": [given], "expected": value} for given, value in self.tests]

    @property
    def asserts(self) -> str:
        lines = [f"    assert candidate({given!r}) == {value!r}" for given, value in self.tests]
        return "\n".join(["def check(candidate):", *lines, ""])


class _Change(ast.NodeTransformer):
    """Changes the node with this number, of those that can be changed."""

    def __init__(self, chance: random.Random, place: int) -> None:
        self._chance = chance
        self._place = place
        self.seen = 0

    def _is_next(self) -> bool:
        self.seen += 1
        return self.seen == self._place

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, int) and self._is_next():
            return ast.Constant(node.value + self._chance.choice((-1, 1)))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if self._is_next():
            node.op = self._chance.choice(_OPERATORS)()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ops[0], _COMPARISONS) and self._is_next():
            node.ops = [self._chance.choice(_COMPARISONS)()]
        return node


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """Programs, each with at most two defects; most of them remember earlier calls."""
    chance = random.Random(seed)
    for _ in range(count):
        source, given = chance.choice(REFERENCES)
        names: dict[str, Any] = {}
        exec(source, names)
        tests = tuple((each, names["f"](each)) for each in given)
        tree = ast.parse(source)
        for _ in range(chance.randrange(3)):
            tree = ast.fix_missing_locations(_Change(chance, chance.randrange(1, 9)).visit(tree))
        text = ast.unparse(tree)
        memory = chance.choice(MEMORIES).format(n=chance.randrange(1, 7))
        if memory:
            text = text.replace("def f(", "def plain(")
            text = f"{memory}\n{text}\n\ndef f(x):\n    return None if note(x) else plain(x)"
        yield Mutant(text, tests)
