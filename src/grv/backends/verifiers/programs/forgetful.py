"""Finds programs that keep nothing between two calls of their functions.

Such a program cannot tell which tests ran before: its tests may run in any order, in one process.
Soundness comes first: in doubt a program may remember.

What two calls share are the module's global names, what they mean, and the state of the library. So
a program is forgetful if

- it uses only names and modules without a state and without a way to reach a namespace, as in
  `refuting.is_blind`; `random` has a state, and `id` sees where objects lie;
- it has no `global`, and sets or deletes no attribute;
- its module and its classes bind only functions without decorators, with constants as default
  values, and values that cannot change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from . import refuting
from .refuting import words
from .syntax import Program

_MODULES: Mapping[str, frozenset[str]] = {
    **{name: known for name, known in refuting.MODULES.items() if name != "random"},
    "sys": words("maxsize"),
}
# Attributes of modules whose values cannot change, by which a global name may be bound.
_CONSTANTS: Mapping[str, frozenset[str]] = {
    "math": words("e inf nan pi tau"),
    "string": refuting.MODULES["string"],
    "sys": words("maxsize"),
}
_CONVERSIONS = words("bool bytes complex float frozenset int str tuple")


def is_forgetful(program: Program) -> bool:
    """Whether a program, imported as a module, certainly keeps nothing between two calls."""
    if program.tree is None:
        return False
    body = [node for node in program.tree.body if not _is_for_scripts(node)]
    nodes = refuting.nodes_of(ast.Module(body, []))
    if not refuting.are_plain(nodes, set(), _MODULES):
        return False
    if not all(map(_leaves_no_trace, nodes)):
        return False
    bound = frozenset(refuting.bound_in(nodes))
    return "__name__" not in bound and _is_steady(body, bound)


def _is_for_scripts(node: ast.stmt) -> bool:
    """Whether a statement runs only in a script: `if __name__ == "__main__":`."""
    match node:
        case ast.If(
            test=ast.Compare(
                left=ast.Name(id="__name__"),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value="__main__")],
            ),
            orelse=[],
        ):
            return True
    return False


def _leaves_no_trace(node: ast.AST) -> bool:
    """Whether a node itself changes nothing that outlives a call."""
    match node:
        case ast.Global() | ast.NamedExpr():
            return False
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            return False
        case ast.Name(id="id"):
            return False
    return True


def _is_steady(body: Iterable[ast.stmt], bound: frozenset[str]) -> bool:
    """Whether the statements of a module or a class bind only what cannot change."""
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr() | ast.Assert():
                continue
            case ast.FunctionDef(decorator_list=[], args=args):
                values = [*args.defaults, *filter(None, args.kw_defaults)]
                if not _are_constant(values, bound):
                    return False
            case ast.ClassDef(decorator_list=[], keywords=[], bases=bases, body=inner):
                plain = all(isinstance(base, ast.Name) and base.id == "object" for base in bases)
                if not plain or "object" in bound or not _is_steady(inner, bound):
                    return False
            case ast.Assign(targets=targets, value=value):
                if not all(isinstance(target, ast.Name) for target in targets):
                    return False
                if not _are_constant([value], bound):
                    return False
            case ast.AnnAssign(target=ast.Name(), value=value):
                if value is not None and not _are_constant([value], bound):
                    return False
            case _:
                return False
    return True


def _are_constant(values: Sequence[ast.expr], bound: frozenset[str]) -> bool:
    return all(_is_constant(value, bound) for value in values)


def _is_constant(value: ast.expr, bound: frozenset[str]) -> bool:
    """Whether an expression certainly has a value that cannot change.

    `bound` are the names that the program binds: a conversion is the built-in one if it is not
    among them.
    """
    match value:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand, bound)
        case ast.BinOp(left=left, right=right):
            return _are_constant([left, right], bound)
        case ast.Tuple(elts=items):
            return _are_constant(items, bound)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return name in _CONVERSIONS - bound and _are_constant(args, bound)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name in _CONSTANTS.get(module, ())
    return False
