"""The asserts of a test that may run in any order.

Most tests are a list of asserts, each with one call of the candidate:

    def check(candidate):
        assert candidate(2, 3) == 5
        assert candidate(-1, 1) == 0

They may change places if none of them changes anything in the test's process, and if the candidate
keeps nothing between two calls (`forgetful.py`). Everything else in a test stays where it is. In
doubt a test runs as it is written.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .refuting import words
from .syntax import LARGEST, parser_lock

# What an assert may call besides the candidate: it changes nothing, whatever the answer is.
_PURE = words(
    """abs all any bool dict float frozenset int isinstance len list max min range round set sorted
    str sum tuple type"""
)
_FEWEST = 2
_QUIET = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.Pass,
)
_NAMESPACES = words("eval exec getattr globals locals vars")
_NODES = (
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.Name,
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.UnaryOp,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.Call,
    ast.Subscript,
    ast.Slice,
)


@dataclass(frozen=True)
class Statements:
    """A test, divided at the asserts that may change places.

    Attributes:
        before: the text before them.
        asserts: the text of each of them, with its line breaks.
        after: the text after them.
    """

    before: str
    asserts: tuple[str, ...]
    after: str

    def text(self, order: Sequence[int]) -> str:
        """The test with its asserts in this order."""
        return "".join([self.before, *(self.asserts[number] for number in order), self.after])


@functools.lru_cache(maxsize=256)
def statements(test: str, entry_point: str) -> Statements | None:
    """The asserts of a test that may change places; None if there are not two."""
    if len(test) > LARGEST:
        return None
    try:
        with parser_lock:
            tree = ast.parse(test, "<test>")
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None
    body, candidate = _place(tree, entry_point)
    allowed = _PURE - _bound(tree)
    first, last = _segment(body, candidate, allowed)
    before = [*body[:first]]
    if body is not tree.body:  # `check` is called after the rest of the test
        before += [node for node in tree.body if getattr(node, "name", None) != "check"]
    if last - first < _FEWEST or not _are_quiet(before, frozenset((candidate, entry_point))):
        return None
    return _divided(test, body[first:last])


def _place(tree: ast.Module, entry_point: str) -> tuple[Sequence[ast.stmt], str]:
    """The body with the asserts, and what the candidate is called there."""
    checks = [node for node in tree.body if getattr(node, "name", None) == "check"]
    match checks:
        case [ast.FunctionDef(decorator_list=[], args=args, body=body)]:
            match args:
                case ast.arguments(
                    posonlyargs=[],
                    args=[ast.arg(arg=name)],
                    vararg=None,
                    kwonlyargs=[],
                    kwarg=None,
                    defaults=[],
                ):
                    return body, name
        case []:
            return tree.body, entry_point
    return (), ""


def _bound(tree: ast.Module) -> frozenset[str]:
    """All names that the test binds anywhere."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=renamed):
                found.add(renamed or name.partition(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
    return frozenset(found)


def _segment(body: Sequence[ast.stmt], candidate: str, allowed: frozenset[str]) -> tuple[int, int]:
    """The first run of asserts that may change places: its start and its end."""
    start = 0
    while start < len(body) and not _is_movable(body[start], candidate, allowed):
        start += 1
    end = start
    while end < len(body) and _is_movable(body[end], candidate, allowed):
        end += 1
    return start, end


def _is_movable(node: ast.stmt, candidate: str, allowed: frozenset[str]) -> bool:
    """Whether a statement is an assert that calls the candidate once and changes nothing."""
    match node:
        case ast.Assert(test=test, msg=None | ast.Constant()):
            calls = sum(_is_candidate(each, candidate) for each in ast.walk(test))
            mentions = sum(
                isinstance(each, ast.Name) and each.id == candidate for each in ast.walk(test)
            )
            plain = all(_is_plain(each, candidate, allowed) for each in ast.walk(test))
            return plain and calls == mentions == 1 and _always_calls(test, candidate)
    return False


def _is_candidate(node: ast.AST, candidate: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name == candidate
    return False


def _is_plain(node: ast.AST, candidate: str, allowed: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return name == candidate or name in allowed
        case ast.Call(func=func):
            return isinstance(func, ast.Name)
        case ast.keyword():
            return True
    return isinstance(node, _NODES)


def _always_calls(node: ast.AST, candidate: str) -> bool:
    """Whether the call of the candidate is made whenever an expression is evaluated."""
    if _is_candidate(node, candidate):
        return True
    return any(_always_calls(part, candidate) for part in _always_evaluated(node))


def _always_evaluated(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BoolOp(values=values):
            yield values[0]
        case ast.Compare(left=left, comparators=others):
            yield left
            yield others[0]
        case _:
            yield from ast.iter_child_nodes(node)


def _are_quiet(nodes: Sequence[ast.stmt], names: frozenset[str]) -> bool:
    """Whether statements certainly do not call the candidate, which has one of these names."""
    for node in nodes:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, _QUIET):
            return False
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if used & (names | _NAMESPACES):
            return False
    return True


def _divided(test: str, asserts: Sequence[ast.stmt]) -> Statements | None:
    """The test, divided at asserts that have lines of their own."""
    lines = test.splitlines(keepends=True)
    if "".join(lines).count("\n") != len(lines) - (not test.endswith("\n")):
        return None  # a line break that Python's parser does not count
    for node in asserts:
        begins = lines[node.lineno - 1].encode()[: node.col_offset]
        assert node.end_lineno is not None
        ends = lines[node.end_lineno - 1].encode()[node.end_col_offset :]
        rest = ends.strip()
        if begins.strip() or (rest and not rest.startswith(b"#")):
            return None
    starts = [node.lineno - 1 for node in asserts]
    end = asserts[-1].end_lineno
    assert end is not None
    bounds = [*starts, end]
    parts = ["".join(lines[one:two]) for one, two in itertools.pairwise(bounds)]
    if not parts[-1].endswith("\n"):
        parts[-1] += "\n"
    return Statements("".join(lines[: starts[0]]), tuple(parts), "".join(lines[end:]))
