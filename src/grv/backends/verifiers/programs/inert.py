"""Prompts that only define something: a test that uses none of it behaves as without the prompt.

The process of a test executes the prompt first (sandbox/tester.py). The judge may leave that out if
the prompt certainly raises nothing and changes nothing but the names that it binds. Soundness comes
first: in doubt a prompt is not inert.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from .refuting import MODULES, words
from .syntax import parse

# Loading one of these modules has no effect that a program can notice.
_IMPORTABLE = frozenset(MODULES) | words(
    "copy datetime decimal fractions json operator os sys time"
)
_TYPES = words("bool bytes complex dict float frozenset int list object set str tuple")
_SUBSCRIPTED = words("dict frozenset list set tuple")
# Names of `typing`: those that may be a parameter by themselves, and those with parameters.
_PARAMETERS = words("Any Dict FrozenSet Iterable Iterator List Mapping Sequence Set Tuple")
_COUNTS: Mapping[str, int] = {
    **dict.fromkeys(words("Deque FrozenSet Iterable Iterator List Optional Sequence Set"), 1),
    **dict.fromkeys(words("Dict Mapping"), 2),
}
_WITH_ANY_COUNT = words("Tuple Union")
_DEEPEST = 30
# What a function's body may have: nothing here can be an error of the compiler's.
_IN_BODIES = (
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.arguments,
    ast.arg,
    ast.keyword,
    ast.comprehension,
    ast.Expr,
    ast.Return,
    ast.Pass,
    ast.Assign,
    ast.AugAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.Name,
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.UnaryOp,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.Call,
    ast.IfExp,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.ListComp,
    ast.GeneratorExp,
    ast.JoinedStr,
    ast.FormattedValue,
)


def names_of_helpers(prompt: str) -> frozenset[str] | None:
    """The names that a prompt binds, if it does nothing else; None if it may do more.

    A prompt that is neither a program nor the start of one is not executed, and binds none.
    """
    if prompt.startswith("\ufeff"):
        return None
    for source in (prompt, f"{prompt.rstrip()}\n    pass\n"):
        program = parse(source)
        if program.error:
            continue
        return None if program.tree is None else _names(program.tree)
    return frozenset()


def imported(node: ast.Import | ast.ImportFrom) -> list[str] | None:
    """The names that an import binds; None if it may fail, or have another effect."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            known = alias.name in _IMPORTABLE
        else:
            known = not node.level and alias.name in MODULES.get(node.module or "", ())
        if not known:
            return None
    return [alias.asname or alias.name for alias in node.names]


def is_deeper(tree: ast.AST, levels: int) -> bool:
    """Whether a tree has more levels."""
    level: list[ast.AST] = [tree]
    for _ in range(levels):
        level = [inner for outer in level for inner in ast.iter_child_nodes(outer)]
        if not level:
            return False
    return True


def _names(tree: ast.Module) -> frozenset[str] | None:
    if is_deeper(tree, _DEEPEST):
        return None
    bound: list[str] = []
    typing: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Import() | ast.ImportFrom():
                names = imported(node)
                if names is None:
                    return None
                if isinstance(node, ast.ImportFrom) and node.module == "typing":
                    typing.update(alias.name for alias in node.names if alias.asname is None)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
                names = [name]
            case ast.FunctionDef(name=name) if _is_inert(node, typing):
                names = [name]
            case _:
                return None
        bound += names
    # A name that is bound twice might mean something else in an annotation.
    twice = len(set(bound)) < len(bound) and not typing.isdisjoint(bound)
    hidden = not (_TYPES | {"typing"}).isdisjoint(bound)
    return None if twice or hidden or any(map(_is_special, bound)) else frozenset(bound)


def _is_special(name: str) -> bool:
    return name.startswith("__")


def _is_inert(node: ast.FunctionDef, typing: set[str]) -> bool:
    """Whether a definition only binds a name."""
    if node.decorator_list or getattr(node, "type_params", []):
        return False
    taken = node.args
    args = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs]
    args += [arg for arg in (taken.vararg, taken.kwarg) if arg is not None]
    names = [arg.arg for arg in args]
    if len(set(names)) < len(names) or any(map(_is_special, names)):
        return False
    defaults = [*taken.defaults, *filter(None, taken.kw_defaults)]
    if not all(isinstance(value, ast.Constant) for value in defaults):
        return False
    annotations = [arg.annotation for arg in args] + [node.returns]
    if not all(_is_annotation(value, typing) for value in annotations if value is not None):
        return False
    return all(map(_compiles, node.body))


def _compiles(body: ast.stmt) -> bool:
    """Whether the compiler certainly finds no error in a statement of a function."""
    for node in ast.walk(body):
        if not isinstance(node, _IN_BODIES):
            return False
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                if _is_special(name):
                    return False
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                if _is_special(name):
                    return False
            case ast.comprehension(is_async=1):
                return False
            case ast.Call(keywords=keywords):
                if len({keyword.arg for keyword in keywords}) < len(keywords):
                    return False
    return True


def _is_annotation(node: ast.expr, typing: set[str]) -> bool:
    """Whether an annotation certainly raises nothing."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in _TYPES or name in typing
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=parts)):
            return _is_parametrized(name, parts, typing)
        case ast.Subscript(value=ast.Name(id=name), slice=part):
            return _is_parametrized(name, [part], typing)
    return False


def _is_parametrized(name: str, parts: Sequence[ast.expr], typing: set[str]) -> bool:
    if name in typing:
        if name not in _WITH_ANY_COUNT and _COUNTS.get(name) != len(parts):
            return False
    elif name not in _SUBSCRIPTED:
        return False
    return bool(parts) and _are_parameters(parts, typing)


def _are_parameters(parts: Iterable[ast.expr], typing: set[str]) -> bool:
    for part in parts:
        match part:
            case ast.Constant(value=None):
                continue
            case ast.Name(id=name) if name in _TYPES or (name in typing and name in _PARAMETERS):
                continue
            case ast.Subscript() if _is_annotation(part, typing):
                continue
        return False
    return True
