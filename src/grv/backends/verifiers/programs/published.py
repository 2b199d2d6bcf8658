"""The labels of the paper's published harness: checks with `"labels": "published"`.

For comparison with the paper only. Its code is github.com/yhkalayci/efficient_query, coding/gen.py
and coding/verify.py, at commit f8ecf7a. It was read, and its behaviour is written down here once
more. In these ways it differs from the checks `stdin` and `function`:

- The program is the first block with fences, or the whole text without the space around it.
- All tests run in one process, in their order, and have the time of one test together.
- A function is looked up by its name. Otherwise it is the first public method of one `Solution`, in
  alphabetical order; otherwise the name that was defined last.
- An input that is one JSON list is the list of all arguments. So a function whose only argument is
  a list gets its members instead.
- A value is right if it is equal to the expected one, or is written alike: a float must be exact,
  and a tuple is not a list.
- A program reads standard input from a text, not from a file: `sys.stdin.buffer`, `open(0)` and
  `os.read` do not work. It may end with any exit code. Tokens of its output must be the same texts.

The published harness has the expected outputs in the program's own process. Here they stay with the
judge, and the program runs in the sandbox with the usual limits of memory and output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....core.values import Verdict
from ....text import checksum
from ...protocols import Finding
from ...sandbox import plain
from ...sandbox.limits import DEFAULT_LIMITS, End, RunLimits
from ..worker_pair import WorkerPair
from . import comparing
from .checks import ProgramCheck, call, load, loading
from .findings import failed, raised, refused, silent
from .syntax import Program, parse

PUBLISHED = "published"
_FENCE = "```"
_ENTRY_POINT = "grv_answer"

# What runs in the sandbox, in front of which stands the candidate's program as SOURCE.
_CALLS = """
def grv_load():
    names = {"__name__": "__main__"}
    exec(SOURCE, names)
    if NAME in names:
        return names[NAME]
    if "Solution" in names:
        try:
            solution = names["Solution"]()
            for name in dir(solution):
                if not name.startswith("_") and callable(getattr(solution, name)):
                    return getattr(solution, name)
        except Exception:
            pass
    for name, value in reversed(list(names.items())):
        if callable(value) and not name.startswith("_"):
            return value
    raise LookupError("the program defines no function")


grv_function = grv_load()


def grv_answer(*args):
    result = grv_function(*args)
    try:
        text = str(result).strip()
    except Exception:
        text = None
    return [result, text]
"""
_READS = """
import io
import sys


def grv_answer(given):
    streams = sys.stdin, sys.stdout
    printed = io.StringIO()
    sys.stdin = io.StringIO(given)
    sys.stdout = printed
    try:
        exec(SOURCE, {"__name__": "__main__"})
    except SystemExit:
        pass
    finally:
        sys.stdin, sys.stdout = streams
    return printed.getvalue()
"""


@dataclass(frozen=True, slots=True)
class PublishedTest:
    """The input of a test and its expected output, as the dataset has them.

    Attributes:
        input: a text; or a list of arguments.
        output: a text; or the expected value.
    """

    input: Any
    output: Any

    @property
    def args(self) -> list[Any]:
        """The arguments of a function, as the published harness reads them."""
        if isinstance(self.input, list):
            return self.input
        value, is_json = _json(self.input)
        if is_json:
            return value if isinstance(value, list) else [value]
        return [_json(line)[0] for line in self.input.strip().split("\n")]

    @property
    def expected(self) -> Any:
        """The expected value of a function."""
        return _json(self.output)[0] if isinstance(self.output, str) else self.output


@dataclass(frozen=True)
class PublishedCheck(ProgramCheck):
    """A program or a function, judged as the paper's published harness does.

    Attributes:
        tests: in the order in which they run.
        limits: `seconds` is for loading and all tests together.
        entry_point: the name of the function; empty if the program reads standard input.
    """

    tests: tuple[PublishedTest, ...]
    limits: RunLimits = DEFAULT_LIMITS
    entry_point: str = ""
    prompt: str = ""  # programs continue nothing

    def program(self, text: str) -> Program:
        """The first block with fences, of Python if there is one; otherwise the whole text."""
        for opening in (f"{_FENCE}python", _FENCE):
            _, begins, rest = text.partition(opening)
            source, ends, _ = rest.partition(_FENCE)
            if begins and ends:
                return parse(source.strip(), "the first block")
        return parse(text.strip(), "the whole text")

    def key(self, text: str) -> str:
        """Only equal programs fail together: names decide which function is called."""
        return f"{PUBLISHED}:{checksum(self.program(text).source)}"

    def run(self, program: Program, pair: WorkerPair, seed: int) -> Finding:
        """The finding on a program: passed if every test passes, within the time of one."""
        source = program.source
        rest = f"NAME = {self.entry_point!r}\n{_CALLS}" if self.entry_point else _READS
        order = loading(f"SOURCE = {source!r}\n{rest}", _ENTRY_POINT, self.limits, seed)
        with pair.candidate.run("candidate", self.limits, first=order) as run:
            refusal = load(run, _ENTRY_POINT, self.limits)
            if refusal is not None:
                return refusal
            for number, test in enumerate(self.tests):
                args = test.args if self.entry_point else [test.input]
                shown = {"test": number, "args": comparing.show(args)}
                run.clock.turn()
                answer = call(run, {"args": plain.encode(args)})
                match answer:
                    case End() as end:
                        return silent(run, end, self.limits.seconds, **shown)
                    case {"raised": _}:
                        return raised(answer, **shown)
                    case {"refused": _}:
                        return refused(answer, **shown)
                    case {"value": node} if self._is_right(node, test):
                        continue
                    case {"value": node}:
                        got = comparing.show_node(node)
                        return failed("wrong answer", **shown, got=got)
                return failed("malformed answer", **shown)
        return Finding(Verdict.PASSED, "", {"tests": len(self.tests)})

    def _is_right(self, node: Any, test: PublishedTest) -> bool:
        if not self.entry_point:
            return isinstance(node, str) and node.split() == test.output.split()
        match node:
            case ["l", value, text]:
                expected = test.expected
                return equals(value, expected) or text == str(expected).strip()
        return False


def equals(node: Any, expected: Any) -> bool:
    """Whether a returned value, as a node, is equal to a JSON value, as Python compares them."""
    match node, expected:
        case ["l", *members], list():
            return len(members) == len(expected) and all(map(equals, members, expected))
        case ["d", *members], dict():
            return _same_records(members, expected)
        case [("n" | "f" | "c" | "F" | "D"), *_], bool() | int() | float():
            try:
                return bool(plain.decode(node) == expected)
            except plain.PlainError:
                return False
        case ((None | bool() | int() | float() | str()), (None | bool() | int() | float() | str())):
            return bool(node == expected)
    return False


def _same_records(members: Sequence[Any], expected: Mapping[str, Any]) -> bool:
    names = members[::2]
    if not all(isinstance(name, str) for name in names) or len(members) % 2:
        return False
    values = dict(zip(names, members[1::2], strict=True))
    if values.keys() != expected.keys():
        return False
    return all(equals(values[name], value) for name, value in expected.items())


def _json(text: str) -> tuple[Any, bool]:
    """The value of a text, and whether it is JSON; if not, the value is the text."""
    try:
        return json.loads(text), True
    except (ValueError, RecursionError):
        return text, False
