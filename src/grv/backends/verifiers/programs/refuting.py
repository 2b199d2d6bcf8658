"""Finds programs that certainly fail, without running them.

Soundness comes first: in doubt a program may pass. A program is parsed as in `syntax`, within the
same limits; nothing of it is executed or compiled, as compiling can take exponential time. The
sandbox runs the same interpreter, so its syntax is the same.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import itertools
import math
import re
import symtable
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .syntax import Program, parser_lock


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def _public(module: object) -> frozenset[str]:
    return frozenset(name for name in dir(module) if not name.startswith("_"))


_FRAMES = ("gi_", "cr_", "ag_", "tb_", "f_", "co_")  # attributes that lead to a frame or its code
_DUNDERS = words(
    """__name__ __init__ __repr__ __str__ __eq__ __lt__ __len__ __hash__ __iter__ __next__ __call__
    __contains__ __getitem__ __add__"""
)
# A program that uses only these names cannot reach its own namespace by a computed name.
_EXCEPTIONS = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
_BUILTINS = _EXCEPTIONS | words(
    """abs all any bin bool bytearray bytes callable chr complex dict divmod enumerate filter float
    format frozenset hash hex id input int isinstance issubclass iter len list map max min next
    object oct ord pow print range repr reversed round set slice sorted str sum tuple type zip
    property staticmethod classmethod NotImplemented Ellipsis"""
)
MODULES: Mapping[str, frozenset[str]] = {
    "bisect": words("bisect bisect_left bisect_right insort insort_left insort_right"),
    "cmath": _public(cmath),
    "collections": words("Counter OrderedDict defaultdict deque"),
    "functools": words("cache cmp_to_key lru_cache partial reduce"),
    "heapq": words("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "itertools": _public(itertools),
    "math": _public(math),
    "random": words("choice choices randint random randrange sample seed shuffle"),
    "re": words("compile escape findall finditer fullmatch match search split sub"),
    "string": words("ascii_letters ascii_lowercase ascii_uppercase digits punctuation whitespace"),
    "typing": words(
        """Any Callable Deque Dict FrozenSet Generator Iterable Iterator List Mapping Optional
        Sequence Set Tuple TypeVar Union"""
    ),
}


def not_compilable(program: Program) -> str | None:
    """The error that compiling a parsed program certainly raises; None if there may be none."""
    if program.tree is None or program.compiles:
        return None
    wrong = _misplaced(program.tree)
    if not wrong and "__future__" in program.source:
        wrong = _late_future(program.tree)
    if wrong:
        return wrong
    try:
        with parser_lock:
            symtable.symtable(program.source, "<candidate>", "exec")
    except SyntaxError as exc:
        certain = exc.msg.startswith(_CERTAIN)
        return f"line {exc.lineno}: {exc.msg}"[:200] if certain else None
    except (ValueError, RecursionError, MemoryError, SystemError):  # left to the sandbox
        return None
    return None


# Others may depend on whether annotations are evaluated.
_CERTAIN = ("duplicate argument", "nonlocal declaration not allowed")


_Place = tuple[Iterable[ast.stmt], bool, bool]  # statements, in a function, in a loop


def _misplaced(tree: ast.Module) -> str | None:
    """A `return` outside a function, or a `break` or `continue` outside a loop."""
    places: list[_Place] = [(tree.body, False, False)]
    while places:
        body, function, loop = places.pop()
        for node in body:
            match node:
                case ast.Return() if not function:
                    return f"line {node.lineno}: 'return' outside function"
                case ast.Break() | ast.Continue() if not loop:
                    word = type(node).__name__.lower()
                    return f"line {node.lineno}: '{word}' outside loop"
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    places.append((node.body, True, False))
                case ast.ClassDef():
                    places.append((node.body, False, False))
                case ast.For() | ast.AsyncFor() | ast.While():
                    places.append((node.body, function, True))
                    places.append((node.orelse, function, loop))
                case _:
                    places += [(inner, function, loop) for inner in _inside(node)]
    return None


def _late_future(tree: ast.Module) -> str | None:
    """An import from `__future__` after other statements."""
    first = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    last = -1
    for node in tree.body[first:]:
        if not _is_future(node):
            break
        last = node.lineno
    for inner in ast.walk(tree):
        if isinstance(inner, ast.ImportFrom) and _is_future(inner) and inner.lineno > last:
            return f"line {inner.lineno}: from __future__ imports must come first"
    return None


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _inside(node: ast.AST) -> Iterable[list[ast.stmt]]:
    """The bodies of a statement that is neither a definition nor a loop."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for name in ("handlers", "cases"):
        for part in getattr(node, name, []):
            yield part.body


def lacks(program: Program, name: str) -> bool:
    """Whether a program certainly defines no function `name`, and no class `Solution` with it.

    Certain means: it binds neither name at any level, and uses only names and modules by which a
    program cannot reach its own namespace in another way.
    """
    if program.tree is None or not name.isascii() or name.startswith("__"):
        return False
    if any(getattr(node, "name", None) in (name, "Solution") for node in program.tree.body):
        return False
    return are_plain(nodes_of(program.tree), {name, "Solution"}, MODULES)


def is_blind(tree: ast.Module) -> bool:
    """Whether a program certainly cannot observe where its statements stand.

    It uses only names and modules that lead to no frame, code or traceback. Two more ways lead
    there. `str.format` looks into values (`"{0.__code__}"`), so it must be called on a constant
    without such a field. A metaclass receives the line of a class, so classes must have none; that
    is certain only if their bases are built-in.
    """
    nodes = nodes_of(tree)
    if not are_plain(nodes, set(), _MODULES_OF_BLIND):
        return False
    has_bases = False
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Constant(value=str(form)), attr="format"):
                if _FIELD.search(form):
                    return False
            case ast.Attribute(attr="format" | "format_map"):
                return False
            case ast.ClassDef(bases=bases, keywords=keywords):
                builtin = (isinstance(base, ast.Name) and base.id in _BASES for base in bases)
                if keywords or not all(builtin):
                    return False
                has_bases = has_bases or bool(bases)
    return not has_bases or _BASES.isdisjoint(bound_in(nodes))


def bound_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """All names in a program, except those that are only read."""
    for node in nodes:
        match node:
            case ast.Name(ctx=ast.Load()):
                pass
            case ast.alias(name=name, asname=renamed):
                yield renamed or name
            case _:
                yield from _identifiers(node)


_FIELD = re.compile(r"\{[^{}:!]*[.\[]")  # a field of a format that looks into its value
_BASES = _EXCEPTIONS | words("dict float frozenset int list object set str tuple")
_MODULES_OF_BLIND = {**MODULES, "sys": words("exit maxsize setrecursionlimit stdin stdout")}


def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """All nodes but those that only name an operator, in the order of `ast.walk`."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:  # which grows meanwhile
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                nodes += [
                    item
                    for item in value
                    if isinstance(item, ast.AST) and type(item) not in _OPERATORS
                ]
            elif isinstance(value, ast.AST) and type(value) not in _OPERATORS:
                nodes.append(value)
    return nodes


def are_plain(
    nodes: Sequence[ast.AST], wanted: set[str], known: Mapping[str, frozenset[str]]
) -> bool:
    """Whether nodes bind no wanted name, and use only names and modules that are known."""
    modules: dict[str, str] = {}  # the names of imported modules
    qualified = set[int]()  # the names before a dot
    for node in nodes:
        if not _is_plain(node, wanted, known):
            return False
        match node:
            case ast.Import(names=names):
                modules |= {alias.asname or alias.name: alias.name for alias in names}
            case ast.Attribute(value=ast.Name() as value):
                qualified.add(id(value))
    if not modules:
        return True
    return all(_is_used_plainly(node, modules, qualified, known) for node in nodes)


def _is_plain(node: ast.AST, wanted: set[str], known: Mapping[str, frozenset[str]]) -> bool:
    """Whether a node binds none of the wanted names, and can do nothing unexpected."""
    if type(node) in _NAMELESS:
        return True
    if type(node) not in _KNOWN:
        return False
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            builtin = hasattr(builtins, name) and name not in _BUILTINS
            return not builtin and (not name.startswith("__") or name in _DUNDERS)
        case ast.Attribute(attr=name):
            if name.startswith(("_", *_FRAMES)):
                return False
        case ast.Import(names=names):
            if any(alias.name not in known for alias in names):
                return False
        case ast.ImportFrom(module=module, names=names, level=level):
            allowed = known.get(module or "", frozenset())
            if level or any(alias.name not in allowed for alias in names):
                return False
    return all(
        name not in wanted and (not name.startswith("__") or name in _DUNDERS)
        for name in _identifiers(node)
    )


def _identifiers(node: ast.AST) -> Iterable[str]:
    for field in node._fields:
        value = getattr(node, field, None)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str):
                yield item


def _is_used_plainly(
    node: ast.AST,
    modules: Mapping[str, str],
    qualified: set[int],
    known: Mapping[str, frozenset[str]],
) -> bool:
    """Whether an imported module is only used for those of its attributes that are known."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in modules:
            return attribute in known[modules[name]]
        case ast.Name(id=name) if name in modules:
            return id(node) in qualified
    return True


_EXPRESSIONS = (
    ast.BoolOp,
    ast.NamedExpr,
    ast.BinOp,
    ast.UnaryOp,
    ast.Lambda,
    ast.IfExp,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Yield,
    ast.YieldFrom,
    ast.Compare,
    ast.Call,
    ast.FormattedValue,
    ast.JoinedStr,
    ast.Constant,
    ast.Attribute,
    ast.Subscript,
    ast.Starred,
    ast.Name,
    ast.List,
    ast.Tuple,
    ast.Slice,
)
_STATEMENTS = (
    ast.FunctionDef,
    ast.ClassDef,
    ast.Return,
    ast.Delete,
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.With,
    ast.Raise,
    ast.Try,
    ast.Assert,
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
    ast.Expr,
    ast.Pass,
    ast.Break,
    ast.Continue,
)
_PARTS = (
    ast.Module,
    ast.comprehension,
    ast.ExceptHandler,
    ast.arguments,
    ast.arg,
    ast.keyword,
    ast.alias,
    ast.withitem,
)
_OPERATORS = frozenset(
    kind
    for base in (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    for kind in base.__subclasses__()
)
_KNOWN = frozenset((*_EXPRESSIONS, *_STATEMENTS, *_PARTS))
# The others have names of their own.
_NAMELESS = _KNOWN - {
    ast.Name,
    ast.Attribute,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Global,
    ast.Nonlocal,
    ast.ExceptHandler,
    ast.arg,
    ast.keyword,
    ast.alias,
}
