"""A problem of each kind of check, with a right and a wrong candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_STAFF = (
    "CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT NOT NULL, pay INTEGER NOT NULL);"
    "INSERT INTO staff VALUES (1, 'Ann', 90), (2, 'Bob', 120), (3, 'Cid', 150);"
)
_SUMS = [{"input": "3 4\n", "output": "7\n"}, {"input": "30 4\n", "output": "34\n"}]
_ADD = "print(sum(map(int, input().split())))"
_FIRST = "print(input().split()[0])"
_C = '#include <stdio.h>\nint main() { int a, b; scanf("%d %d", &a, &b); printf("%d", a + b); }'
_CHECKER = (
    "import sys\ngiven, printed, expected = (open(path).read() for path in sys.argv[1:])\n"
    "sys.exit(0 if printed.strip() in ('7', '13') else 1)"
)


@dataclass(frozen=True)
class Case:
    """A check with candidates.

    Attributes:
        name: the kind, or what is special about the check.
        check: its record.
        right: a text that passes.
        wrong: a text that fails.
        prompt: what a model is asked.
        needs: the module that the check needs; "" for none.
        for_guests: whether a client of a server may give it.
    """

    name: str
    check: dict[str, Any]
    right: str
    wrong: str
    prompt: str = "Say something."
    needs: str = ""
    for_guests: bool = True

    @property
    def problem(self) -> dict[str, Any]:
        """The line of a file of problems."""
        return {"problem": self.name, "prompt": self.prompt, "check": self.check}


def _sql(engine: str) -> dict[str, Any]:
    reference = "SELECT name FROM staff WHERE pay > 100"
    return {"kind": "sql", "engine": engine, "schema": _STAFF, "reference": reference}


CASES = (
    Case("stdin", {"kind": "stdin", "tests": _SUMS}, _ADD, _FIRST),
    Case(
        "function",
        {"kind": "function", "entry_point": "f", "tests": [{"args": [2], "expected": 3}]},
        "def f(x):\n    return x + 1",
        "def f(x):\n    return x",
    ),
    Case(
        "asserts",
        {"kind": "asserts", "entry_point": "add", "test": "assert add(1, 2) == 3"},
        "def add(a, b):\n    return a + b",
        "def add(a, b):\n    return a",
        'def add(a, b):\n    """Return the sum of a and b."""\n',
    ),
    Case("math", {"kind": "math", "answer": "5"}, "\\boxed{5}", "\\boxed{6}", "2 + 3 ="),
    Case("run", {"kind": "run", "language": "c", "tests": _SUMS}, _C, _C.replace("+", "-")),
    Case("run python", {"kind": "run", "language": "python", "tests": _SUMS}, _ADD, _FIRST),
    Case(
        "run checker",
        {
            "kind": "run",
            "language": "python",
            "tests": [{"input": "91\n"}],
            "checker": {"language": "python", "program": _CHECKER},
        },
        "print(13)",
        "print(91)",
    ),
    Case(
        "command",
        {
            "kind": "command",
            "jail": True,
            "run": ["python3", "{}"],
            "argv": ["grep", "-qx", "7", "{output}"],
        },
        "print(3 + 4)",
        "print('7 and more')",
        for_guests=False,
    ),
    Case(
        "sql",
        _sql("sqlite"),
        "SELECT name FROM staff WHERE NOT pay <= 100",
        "SELECT name FROM staff WHERE pay >= 120",
        "-- The names of those who are paid more than 100.\nSELECT",
    ),
    Case(
        "sql duckdb",
        _sql("duckdb") | {"variants": 5},
        "FROM staff SELECT name WHERE pay > 100",
        "SELECT name FROM staff WHERE pay >= 120",
        "-- The names of those who are paid more than 100.\nSELECT",
        needs="duckdb",
    ),
    Case(
        "schema",
        {"kind": "schema", "schema": {"type": "object", "required": ["item"]}},
        'Here: {"item": "tea"}',
        '{"price": 3}',
        needs="jsonschema",
    ),
    Case(
        "text",
        {"kind": "text", "contains_any": ["Paris", "France"]},
        "It is Paris.",
        "Lyon",
        "The capital of France is",
    ),
    Case(
        "all",
        {
            "kind": "all",
            "checks": [
                {"kind": "stdin", "tests": _SUMS, "cost": 0.01},
                {"kind": "text", "contains_none": ["import"], "cost": 0},
            ],
        },
        _ADD,
        f"import sys\n{_ADD}",
    ),
    Case(
        "first",
        {
            "kind": "first",
            "checks": [
                {"kind": "schema", "schema": {"type": "object"}, "cost": 0},
                {"kind": "text", "contains_any": ["12.5"], "cost": 0.2},
            ],
        },
        '{"price": 12.5}',
        "The price is 12.5",
        needs="jsonschema",
    ),
)
