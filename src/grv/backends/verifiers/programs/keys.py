"""The keys of programs: candidates with equal keys fail together.

A key leaves out only what a program cannot observe unless it looks at its own source:

- comments, blank lines, line breaks, indentation, parentheses that change nothing;
- how a constant is written: quotes, the prefix `u`, `1_000`, strings that are joined.

Names, docstrings, annotations and everything else in the syntax tree stay. Where a statement stands
can be observed, by a frame, a traceback or a warning. So the key contains the positions, unless the
program uses only names, attributes and modules by which it cannot reach them.
"""

from __future__ import annotations

import ast
import re
import sys

from ....text import checksum
from . import refuting
from .syntax import Program

_PLACED = (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias, ast.pattern)
_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
# The only comment that means something, if the program is read as a file.
_ENCODING = re.compile(r"(?:[^\n]*\n)?[ \t\f]*#[^\n]*coding[:=]")


def key(program: Program) -> str:
    """Equal for programs that differ only in what they cannot observe.

    Equal keys share failures. They do not share passes: a pass holds for the program that ran.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    form = _form(program)
    kind = "tree" if form is not None else "text"
    content = program.source if form is None else form
    digest = checksum(f"{version}\n{content}")
    return f"{kind}:{digest[:40]}"


def _form(program: Program) -> str | None:
    """The syntax tree as a text; None if there is none, or the source is more than its tree."""
    if program.tree is None or _ENCODING.match(program.source):
        return None
    parts: list[str] = []
    try:
        _write(program.tree, parts, placed=not refuting.is_blind(program.tree))
    except (RecursionError, MemoryError, ValueError):  # of huge integers
        return None
    return "\n".join(parts)


def _write(node: ast.AST, parts: list[str], *, placed: bool) -> None:
    """Types of nodes and `repr`s of values, with positions if they are `placed`."""
    kind = node.__class__
    parts.append(kind.__name__)
    if placed and isinstance(node, _PLACED):
        parts.append(repr([getattr(node, name) for name in _POSITION]))
    for name in kind._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            _write(value, parts, placed=placed)
        elif isinstance(value, list):
            parts.append("[")
            for item in value:
                if isinstance(item, ast.AST):
                    _write(item, parts, placed=placed)
                else:
                    parts.append(repr(item))
            parts.append("]")
        elif name != "kind":  # the prefix u of a string
            parts.append(repr(value))
