"""Tests that the judge evaluates itself: no process runs them, and nothing of them is executed.

Most tests are a list of asserts that compare a call of the candidate with a literal:

    def check(candidate):
        assert candidate([1, 2]) == 3
        assert abs(candidate(0.5) - 0.25) < 1e-6

Such a test is read into a tree of a few forms: literals, names that it binds to values, calls of
the candidate, comparisons, `and`, `or`, `not`, sums and differences, and the functions in
`_FUNCTIONS`. Any other test runs in a process of its own (sandbox/tester.py).

The outcome is the same, with the same evidence, because the same operations are applied to the same
values: answers are decoded by the decoder of that process. Whatever might make a difference is
`Unclear`, and so is what would take long. Then that process runs the test. It gets the answers that
the candidate has given, and the candidate is not called again for them. Unclear are

- answers other than small plain data, such as a named tuple or a class's instance;
- exceptions other than the common ones;
- failures in statements of several lines, whose line a traceback would tell.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...sandbox import kinds, plain
from .inert import imported, is_deeper, names_of_helpers
from .refuting import words
from .syntax import parse

_LARGEST_TEST = 1 << 14  # characters
_LARGEST_LITERAL = 1 << 14  # bytes, roughly
_LARGEST_QUESTION = 1 << 30  # bytes, roughly, as in a process
_DEEPEST = 30  # levels of a test's syntax tree, and of an answer
_MOST_HASHED = 256  # items of a set or dictionary: a candidate can choose keys that collide
_SMALL = 1 << 53
_NODE = 16  # what a value takes of the room for answers
_ROOM = 1 << 20  # for the answers to one test: characters, and `_NODE` for each value
_CODING = re.compile(r"coding[=:]")
_ENTRIES = (None, True, False)

Answer = Mapping[str, Any]


class Unclear(Exception):
    """The judge does not know what the test would do next."""


class _Raised(Exception):
    """The test ends with an exception: the candidate's, or one of its own."""

    def __init__(self, exception: Exception, *, by_candidate: bool) -> None:
        super().__init__()
        self.exception = exception
        self.by_candidate = by_candidate


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test ended.

    Attributes:
        reason: why the candidate failed; "" if it passed.
        evidence: the message of the exception, and the line of the test.
    """

    reason: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Scope:
    """One evaluation of a test.

    Attributes:
        ask: asks the candidate; its answer.
        names: the values of names.
        room: how much more the candidate may answer.
        answers: the number of answers.
    """

    ask: Callable[[dict[str, Any]], Answer]
    names: dict[str, Any] = field(default_factory=dict)
    room: int = _ROOM
    answers: int = 0

    def call(self, args: Any, kwargs: Any) -> Any:
        """What the candidate returns."""
        question = {"args": args, "kwargs": kwargs, "in_place": False, "rich": True}
        answer = self.ask(question)
        self.answers += 1
        if answer.keys() == _OF_VALUE:
            return self._value(answer["value"])
        raise _Raised(_exception(answer), by_candidate=True)

    def _value(self, node: Any) -> Any:
        self.room = _room_after(node, self.room, 0)
        try:
            return plain.decode(node)
        except (plain.PlainError, TypeError, ValueError, ArithmeticError):
            raise Unclear from None


def _room_after(node: Any, room: int, depth: int) -> int:
    """The room that an answer leaves. Raises Unclear if it is not small plain data."""
    room -= _NODE
    match node:
        case str():
            room -= len(node)
        case None | int():
            pass
        case ["n" | "f", str(text)]:
            room -= len(text)
        case ["l" | "t", *items] if depth < _DEEPEST:
            for item in items:
                room = _room_after(item, room, depth + 1)
        case ["s" | "z", *items] if len(items) <= _MOST_HASHED:
            room -= sum(map(_hashed, items))
        case ["d", *items] if len(items) <= 2 * _MOST_HASHED and depth < _DEEPEST:
            room -= sum(map(_hashed, items[::2]))
            for item in items[1::2]:
                room = _room_after(item, room, depth + 1)
        case _:
            raise Unclear
    if room < 0:
        raise Unclear
    return room


def _hashed(node: Any) -> int:
    """The room that a key takes. Raises Unclear if it may be long to hash or to compare."""
    match node:
        case None | int() if node is None or -_SMALL < node < _SMALL:
            return _NODE
        case str():
            return _NODE + len(node)
        case ["f", str(text)]:
            return _NODE + len(text)
        case ["t", *items] if len(items) <= _NODE and not any(map(_is_container, items)):
            return _NODE + sum(map(_hashed, items))
    raise Unclear


def _is_container(node: Any) -> bool:
    return isinstance(node, list) and node[:1] != ["f"]


# Their text follows from their arguments.
_EXCEPTIONS = words(
    """ArithmeticError AssertionError AttributeError Exception ImportError IndexError KeyError
    LookupError ModuleNotFoundError NameError NotImplementedError OverflowError RecursionError
    RuntimeError TypeError UnboundLocalError ValueError ZeroDivisionError"""
)
_OF_VALUE = {"id", "at", "value"}
_OF_EXCEPTION = {"id", "at", "raised", "message", "line", "compiled", "exception"}


def _exception(answer: Answer) -> Exception:
    """The exception that the candidate raised."""
    if answer.keys() == _OF_EXCEPTION:
        match answer["exception"]:
            case ["X", str(name), [first, *_], ["t", *args], str(), ["d"]] if (
                name in _EXCEPTIONS
                and first == f"builtins.{name}"
                and len(args) <= _NODE
                and all(item is None or isinstance(item, str | int) for item in args)
            ):
                found = getattr(builtins, name)(*args)
                assert isinstance(found, Exception)
                return found
    raise Unclear


_Value = Callable[[_Scope], Any]


@dataclass(frozen=True, slots=True)
class _Literal:
    """A value that is known beforehand, and roughly how many bytes it takes."""

    value: Any
    size: int

    def __call__(self, scope: _Scope) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class _Statement:
    """An expression, whose value a name gets or an assert demands.

    Attributes:
        value: the expression.
        line: the text of its line; None if it has several.
        name: what gets the value; "" if nothing does.
        message: what an assert says if it fails; None if it is not known, or not an assert.
        is_assert: whether the value must be true.
    """

    value: _Value
    line: str | None
    name: str = ""
    message: tuple[Any, ...] | None = None
    is_assert: bool = False

    def run(self, scope: _Scope) -> None:
        """Evaluate it. Raises `_Raised` for the exception with which it ends."""
        value = self.value(scope)
        if self.name:
            scope.names[self.name] = value
        if self.is_assert and not value:
            if self.message is None:
                raise Unclear
            raise _Raised(AssertionError(*self.message), by_candidate=False)


@dataclass(frozen=True, slots=True)
class SimpleTest:
    """A test that the judge can evaluate."""

    statements: tuple[_Statement, ...]

    def outcome(self, ask: Callable[[dict[str, Any]], Answer]) -> Outcome:
        """How the test ends if the candidate is asked with `ask`. Raises Unclear."""
        scope = _Scope(ask)
        for statement in self.statements:
            try:
                statement.run(scope)
            except _Raised as end:
                if statement.line is None or not scope.answers:
                    raise Unclear from None
                message = f"{type(end.exception).__name__}: {end.exception}"[:500]
                reason = "exception" if end.by_candidate else "wrong answer"
                return Outcome(reason, {"message": message, "line": statement.line})
        if not scope.answers:
            raise Unclear
        return Outcome()


@functools.lru_cache(maxsize=128)
def simple_test(test: str, prompt: str, entry_point: str) -> SimpleTest | None:
    """The test, if the judge can evaluate it; None if it must run in a process."""
    if len(test) > _LARGEST_TEST:
        return None
    shared = names_of_helpers(prompt)
    # Python reads a file's encoding and line breaks in ways that do not matter to most tests.
    odd = "\r" in test or any(map(_CODING.search, test.split("\n", 2)[:2]))
    tree = None if shared is None or odd or test.startswith("\ufeff") else parse(test).tree
    if shared is None or tree is None or is_deeper(tree, _DEEPEST):
        return None
    try:
        return SimpleTest(tuple(_Reader(test, entry_point, shared).statements(tree)))
    except Unclear:
        return None


# What a message may not contain: it may change what the names of a test mean, or not compile.
_NOT_IN_MESSAGES = (
    ast.NamedExpr,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Lambda,
    ast.comprehension,
    ast.keyword,
    ast.Starred,
)


class _Reader:
    """Reads the statements of a test. Raises Unclear for a form that it does not know."""

    def __init__(self, test: str, entry_point: str, shared: frozenset[str]) -> None:
        self._lines = test.splitlines()
        self._candidates = {entry_point}
        self._bound: set[str] = set()  # by the statements that were read
        self._hidden = set[str]()  # names of the module that a function hides
        reserved = frozenset(("check",)) | _FUNCTIONS.keys() | _KINDS.keys()
        self._taken = reserved | {entry_point}
        if entry_point in reserved or not shared.isdisjoint(reserved):
            raise Unclear

    def statements(self, tree: ast.Module) -> Iterator[_Statement]:
        """The statements in the order in which they run."""
        check: ast.FunctionDef | None = None
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == "check" and check is None:
                check = node
            else:
                yield from self._statement(node)
        if check is not None:
            self._enter(check)
            for node in check.body:
                yield from self._statement(node)

    def _enter(self, check: ast.FunctionDef) -> None:
        match check.args:
            case ast.arguments(
                posonlyargs=[],
                args=[ast.arg(arg=name, annotation=None)],
                vararg=None,
                kwonlyargs=[],
                kwarg=None,
                defaults=[],
            ) if not check.decorator_list and check.returns is None:
                pass
            case _:
                raise Unclear
        if getattr(check, "type_params", []):
            raise Unclear
        self._bind(name, self._taken - self._candidates)
        self._candidates.add(name)
        self._taken |= {name}
        self._hidden = {name for node in ast.walk(check) for name in _stored(node)}
        self._bound -= self._hidden

    def _bind(self, name: str, taken: Iterable[str]) -> None:
        if name in taken or name.startswith("__"):
            raise Unclear
        self._bound.discard(name)

    def _statement(self, node: ast.stmt) -> Iterator[_Statement]:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return
            case ast.Import() | ast.ImportFrom():
                names = imported(node)
                if names is None:
                    raise Unclear
                for name in names:
                    self._bind(name, self._taken)
                return
        line = None
        if node.end_lineno == node.lineno and node.lineno <= len(self._lines):
            line = self._lines[node.lineno - 1].strip()[:500]
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found = _Statement(self.value(value), line, name)
                self._bind(name, self._taken)
                self._bound.add(name)
                yield found
            case ast.Assert(test=value, msg=message):
                known = _message(message)
                yield _Statement(self.value(value), line, message=known, is_assert=True)
            case ast.Expr(value=value):
                yield _Statement(self.value(value), line)
            case _:
                raise Unclear

    def value(self, node: ast.expr) -> _Value:
        """What gives the value of an expression."""
        match node:
            case ast.Constant(value=value):
                return _literal(value)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._sequence(list if isinstance(node, ast.List) else tuple, items)
            case ast.Set() | ast.Dict():
                return self._hashed(node)
            case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _SIGNS:
                return self._applied(_SIGNS[type(sign)], [inner])
            case ast.BinOp(left=left, op=sign, right=right):
                return self._sum(type(sign), left, right)
            case ast.BoolOp(op=sign, values=values):
                return _joined(isinstance(sign, ast.And), [self.value(each) for each in values])
            case ast.Compare(left=left, ops=signs, comparators=others):
                return self._comparison([left, *others], signs)
            case ast.Name(id=name) if name in self._bound:
                return lambda scope: scope.names[name]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                if name in self._candidates:
                    return self._call(args, keywords)
                if name in _FUNCTIONS and not keywords:
                    return self._function(name, args)
        raise Unclear

    def _sequence(self, kind: type, items: Sequence[ast.expr]) -> _Value:
        parts = [self.value(item) for item in items]
        literals = [part for part in parts if isinstance(part, _Literal)]
        if len(literals) == len(parts):
            return _sized(kind(part.value for part in literals), literals)
        # Other parts would let values grow without limit: `x = [x, x]`.
        for item, part in zip(items, parts, strict=True):
            if not (isinstance(part, _Literal) or self._is_call(item)):
                raise Unclear
        return lambda scope: kind([part(scope) for part in parts])

    def _is_call(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return name in self._candidates
        return False

    def _hashed(self, node: ast.Set | ast.Dict) -> _Literal:
        keys = node.elts if isinstance(node, ast.Set) else node.keys
        values = [] if isinstance(node, ast.Set) else node.values
        if len(keys) > _MOST_HASHED or None in keys:
            raise Unclear
        parts = [self.value(part) for part in (*keys, *values) if part is not None]
        literals = [part for part in parts if isinstance(part, _Literal)]
        if len(literals) < len(parts):
            raise Unclear
        found = [part.value for part in literals]
        try:
            if isinstance(node, ast.Set):
                return _sized(set(found), literals)
            pairs = zip(found[: len(keys)], found[len(keys) :], strict=True)
            return _sized(dict(pairs), literals)
        except TypeError:
            raise Unclear from None

    def _applied(self, function: Callable[..., Any], nodes: Sequence[ast.expr]) -> _Value:
        parts = [self.value(node) for node in nodes]
        if all(isinstance(part, _Literal) for part in parts):
            return _folded(function, [part for part in parts if isinstance(part, _Literal)])
        return lambda scope: _result(function, *[part(scope) for part in parts])

    def _sum(self, sign: type[ast.operator], left: ast.expr, right: ast.expr) -> _Value:
        one = self.value(left)
        other = self.value(right)
        if isinstance(one, _Literal) and isinstance(other, _Literal):
            return _calculated(sign, one, other)
        if sign not in (ast.Add, ast.Sub):
            raise Unclear
        function = _OPERATORS[sign]
        return lambda scope: _result(_added, function, one(scope), other(scope))

    def _comparison(self, nodes: Sequence[ast.expr], signs: Sequence[ast.cmpop]) -> _Value:
        parts = [self.value(node) for node in nodes]
        for sign, one, other in zip(signs, parts, parts[1:], strict=False):
            sides = [side.value for side in (one, other) if isinstance(side, _Literal)]
            single = any(side is entry for side in sides for entry in _ENTRIES)
            if isinstance(sign, ast.Is | ast.IsNot) and not single:
                raise Unclear
        functions = [_COMPARISONS[type(sign)] for sign in signs]
        first, *others = parts

        def compared(scope: _Scope) -> Any:
            left = first(scope)
            result: Any = True
            for function, part in zip(functions, others, strict=True):
                right = part(scope)
                result = _result(function, left, right)
                if not result:
                    break
                left = right
            return result

        return compared

    def _function(self, name: str, args: Sequence[ast.expr]) -> _Value:
        match name, args:
            case "isinstance", [value, ast.Name(id=kind)] if kind in _KINDS:
                part = self.value(value)
                return lambda scope: isinstance(part(scope), _KINDS[kind])
            case "round", [_, ast.Constant(value=int(digits))] if 0 <= digits <= _NODE:
                return self._applied(round, args)
            case "float", [ast.Constant()]:
                return self._applied(float, args)
            case "isinstance" | "float", _:
                raise Unclear
            case _, [_]:
                return self._applied(_FUNCTIONS[name], args)
        raise Unclear

    def _call(self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> _Value:
        nodes: list[ast.expr] = []
        for node in args:
            match node:
                case ast.Starred(value=ast.List(elts=items) | ast.Tuple(elts=items)):
                    nodes += items
                case _:
                    nodes.append(node)
        parts = [self.value(node) for node in (*nodes, *(each.value for each in keywords))]
        names = [each.arg for each in keywords]
        wrong = any(name is None or name.startswith("__") for name in names)
        if wrong or len(set(names)) < len(names):  # the compiler refuses it
            raise Unclear
        places = len(nodes)
        if all(isinstance(part, _Literal) for part in parts):
            known = [part.value for part in parts if isinstance(part, _Literal)]
            sent, named = _arguments(known[:places], names, known[places:])
            return lambda scope: scope.call(sent, named)

        def called(scope: _Scope) -> Any:
            values = [part(scope) for part in parts]
            return scope.call(*_arguments(values[:places], names, values[places:]))

        return called


def _arguments(
    values: list[Any], names: Sequence[str | None], named: Sequence[Any]
) -> tuple[Any, Any]:
    """The nodes of the positional arguments and of those with names."""
    return _sent(values), _sent(dict(zip(names, named, strict=True)))


def _sent(value: Any) -> Any:
    """The node of arguments. The order of a set's items may differ in another process."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case None | int() | float() | str() | bytes():
                pass
            case list() | tuple() as items:
                waiting.extend(items)
            case dict() as pairs:
                waiting.extend(pairs.keys())
                waiting.extend(pairs.values())
            case _:
                raise Unclear
    return kinds.Encoder(_LARGEST_QUESTION, lambda tag, value: None).value(value)


def _stored(node: ast.AST) -> Iterable[str]:
    """The names that a node of a function's body binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.alias(name=name, asname=renamed):
            return (renamed or name,)
    return ()


def _message(node: ast.expr | None) -> tuple[Any, ...] | None:
    """The arguments of an assert's exception; None if the judge does not know them."""
    match node:
        case None:
            return ()
        case ast.Constant(value=str(text)):
            return (text,)
    if any(isinstance(inner, _NOT_IN_MESSAGES) for inner in ast.walk(node)):
        raise Unclear
    return None


def _literal(value: Any) -> _Literal:
    match value:
        case str() | bytes():
            size = len(value)
        case None | bool() | float():
            size = 1
        case int():
            size = 1 + value.bit_length() // 8
        case _:
            raise Unclear
    if size > _LARGEST_LITERAL or value != value:  # not a number: equal only by identity
        raise Unclear
    return _Literal(value, size)


def _sized(value: Any, parts: Sequence[_Literal]) -> _Literal:
    size = 1 + sum(1 + part.size for part in parts)
    if size > _LARGEST_LITERAL:
        raise Unclear
    return _Literal(value, size)


def _folded(function: Callable[..., Any], parts: Sequence[_Literal]) -> _Literal:
    """The value of a function of literals, which takes no more bytes than they."""
    try:
        value = function(*(part.value for part in parts))
    except Exception:
        raise Unclear from None
    if isinstance(value, list | tuple | set):
        return _sized(value, parts)
    return _literal(value)


def _calculated(sign: type[ast.operator], one: _Literal, other: _Literal) -> _Literal:
    """The value of an operation of two literals."""
    left = one.value
    right = other.value
    if isinstance(left, int | float) and isinstance(right, int | float):
        if sign is ast.Pow and max(one.size, 1) * abs(right) > _LARGEST_LITERAL // 8:
            raise Unclear
        return _folded(_operator(sign), [one, other])
    if isinstance(right, int) and isinstance(left, list | tuple | str) and sign is ast.Mult:
        size = (one.size + 1) * max(abs(right), 1)
        if size > _LARGEST_LITERAL:
            raise Unclear
        return _Literal(left * right, size)
    if type(left) is type(right) and isinstance(left, list | tuple | str) and sign is ast.Add:
        return _sized(left + right, [one, other])
    raise Unclear


def _operator(sign: type[ast.operator]) -> Callable[[Any, Any], Any]:
    if sign not in _OPERATORS:
        raise Unclear
    return _OPERATORS[sign]


def _result(function: Callable[..., Any], *values: Any) -> Any:
    """What an operation of the test's gives, or raises in the test."""
    try:
        return function(*values)
    except (TypeError, ValueError, ArithmeticError) as exc:
        raise _Raised(exc, by_candidate=False) from None


def _joined(is_and: bool, parts: Sequence[_Value]) -> _Value:
    def joined(scope: _Scope) -> Any:
        result: Any = None
        for part in parts:
            result = part(scope)
            if bool(result) is not is_and:
                break
        return result

    return joined


def _added(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if not all(value is None or isinstance(value, int | float) for value in (left, right)):
        raise Unclear  # the sum of two lists is longer than they
    return function(left, right)


def _contains(item: Any, items: Any) -> Any:
    return operator.contains(items, item)


def _is_not_in(item: Any, items: Any) -> Any:
    return not operator.contains(items, item)


def _sorted(values: Any) -> Any:
    """The values in order; of a set, if that is the only one they can have."""
    if isinstance(values, set | frozenset):
        kinds = {type(value) for value in values}
        if kinds - {str} and kinds - {int}:
            raise Unclear
    return sorted(values)


def _listed(values: Any) -> Any:
    if isinstance(values, set | frozenset):
        raise Unclear  # their order may differ in another process
    return list(values)


def _tuple(values: Any) -> Any:
    return tuple(_listed(values))


def _set(values: Any) -> Any:
    if not isinstance(values, list | tuple | str) or len(values) > _MOST_HASHED:
        raise Unclear
    if not all(isinstance(value, str | float) or _is_small(value) for value in values):
        raise Unclear
    return set(values)


def _is_small(value: Any) -> bool:
    return value is None or (isinstance(value, int) and -_SMALL < value < _SMALL)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "float": float,
    "isinstance": isinstance,
    "len": len,
    "list": _listed,
    "round": round,
    "set": _set,
    "sorted": _sorted,
    "tuple": _tuple,
}
_KINDS: Mapping[str, type] = {
    kind.__name__: kind for kind in (bool, dict, float, int, list, set, str, tuple)
}
_SIGNS: Mapping[type, Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: _contains,
    ast.NotIn: _is_not_in,
}
