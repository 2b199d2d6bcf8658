"""Ranks programs by how likely each is the one that a text means."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum

from . import refuting
from .syntax import Program

_INPUT = frozenset(("input", "stdin", "open", "fileinput"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Rank(IntEnum):
    """The lowest is the best. From LACKS on, a program certainly fails."""

    DEFINES = 0
    BINDS = 1
    MAY = 2
    LACKS = 3
    WRONG = 4


def rank(program: Program, entry_point: str) -> Rank:
    """The rank of a program.

    With an entry point:

    - DEFINES: a function, class or assignment of that name, or class `Solution` with such a method.
      A function with a parameter `self` is a part of a class, not a definition.
    - BINDS: it binds the name in another way. Examples often do so: `from solution import f`.
    - MAY: it was not parsed, or may bind the name in a way that cannot be seen (`exec`).
    - LACKS: it certainly does not bind the name.
    - WRONG: it does not compile.

    Without one: DEFINES if it reads its input, BINDS if it does something else, LACKS if it is data
    or a word, such as the output of a program.
    """
    if program.error or refuting.not_compilable(program) is not None:
        return Rank.WRONG
    if program.tree is None:
        return Rank.MAY
    if not entry_point:
        return _rank_of_whole(program.tree)
    if any(_defines(node, entry_point) for node in _own(program.tree)):
        return Rank.DEFINES
    if refuting.lacks(program, entry_point):
        return Rank.LACKS
    return Rank.BINDS if _mentions(program.tree, entry_point) else Rank.MAY


def _rank_of_whole(tree: ast.Module) -> Rank:
    nodes = list(ast.walk(tree))
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if name in _INPUT:
                    return Rank.DEFINES
    if all(isinstance(node, ast.Expr) for node in tree.body):
        calls = any(isinstance(node, ast.Call) for node in nodes)
        return Rank.BINDS if calls else Rank.LACKS
    return Rank.BINDS


def _own(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of the module's own scope, without those inside functions and classes."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def _defines(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.name == name and not _is_method(node)
        case ast.ClassDef():
            method = any(_has_name(inner, name) for inner in node.body)
            return node.name == name or (node.name == "Solution" and method)
        case ast.Assign(targets=targets):
            return any(_is_target(target, name) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr()) | ast.NamedExpr(target=target):
            return _is_target(target, name)
    return False


def _is_method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return [arg.arg for arg in node.args.args[:1]] == ["self"]


def _has_name(node: ast.stmt, name: str) -> bool:
    return (isinstance(node, _FUNCTIONS) and node.name == name) or _defines(node, name)


def _is_target(target: ast.expr, name: str) -> bool:
    match target:
        case ast.Name(id=bound):
            return bound == name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(_is_target(part, name) for part in parts)
        case ast.Starred(value=value):
            return _is_target(value, name)
    return False


def _mentions(tree: ast.Module, name: str) -> bool:
    """Whether a name is bound somewhere, or is a string (`globals()["f"]`)."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=bound, ctx=ast.Store()) | ast.Constant(value=str(bound)):
                if bound == name:
                    return True
            case ast.alias(name=bound, asname=renamed):
                if name == (renamed or bound):
                    return True
            case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound) | ast.MatchAs(name=bound):
                if bound in (name, "Solution"):
                    return True
    return False
