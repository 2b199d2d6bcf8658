"""A frozen dataclass as text: `fixed(64, k=4)`, for command lines, job files and ledgers.

A table says which class a name stands for. `make` reads a specification; `write` is its inverse.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .core.errors import UsageError
from .options import did_you_mean

FILE = "file"  # in a field's metadata: a specification gives the value as the name of a file
_SPEC = re.compile(r"\s*([A-Za-z][\w-]*)\s*(\(.*\))?\s*", re.DOTALL)


def make(
    text: str,
    what: str,
    table: Mapping[str, type[Any]],
    *,
    aliases: Iterable[str] = (),
    load: Callable[[str], object] | None = None,
) -> Any:
    """The value that a specification describes.

    Args:
        text: a name, or a name with parameters.
        what: the notion, for messages: `policy`.
        table: the classes by name.
        aliases: other names that the caller understands; messages list them too.
        load: reads the values that a specification gives as the name of a file.
    """
    name, positional, named = split(text, what)
    if name not in table:
        raise UsageError(unknown(what, name, [*table, *aliases]))
    made = table[name]
    fields = [field.name for field in dataclasses.fields(made)]
    for wrong in named.keys() - set(fields):
        raise UsageError(unknown(f"parameter of {name}", wrong, fields))
    if len(positional) > len(fields):
        raise UsageError(f"{name} takes {_listed(fields)}; {len(positional)} values were given")
    given = dict(zip(fields, positional, strict=False))
    for twice in given.keys() & named.keys():
        raise UsageError(f"{name}: {twice} is given twice")
    given |= named
    missing = [
        field.name
        for field in dataclasses.fields(made)
        if field.name not in given and field.default is dataclasses.MISSING
    ]
    if missing:
        raise UsageError(f"{name} needs {_listed(missing)}, as in {_example(name, fields)}")
    for field in dataclasses.fields(made):
        if FILE in field.metadata and isinstance(given[field.name], str) and load is not None:
            given[field.name] = load(str(given[field.name]))
    try:
        return made(**given)
    except TypeError as error:
        raise UsageError(f"{name}: a parameter has the wrong type in {text!r}") from error


def write(value: Any, what: str, table: Mapping[str, type[Any]]) -> str:
    """The specification of a value, without parameters that have their default value."""
    name = next((name for name, cls in table.items() if type(value) is cls), None)
    if name is None:
        raise UsageError(f"{type(value).__name__} is not a registered {what}")
    values = [
        f"{field.name}={_shown(field, getattr(value, field.name))!r}"
        for field in dataclasses.fields(table[name])
        if getattr(value, field.name) != field.default
    ]
    return f"{name}({', '.join(values)})" if values else name


def _shown(field: dataclasses.Field[object], value: object) -> object:
    """A value in a specification; if it comes from a file, the name of the file."""
    return getattr(value, "name", value) if FILE in field.metadata else value


def split(text: str, what: str = "policy") -> tuple[str, list[object], dict[str, object]]:
    """The name, the positional and the named parameters of a specification."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise UsageError(f"not a {what}: {text!r}; write a name, or name(parameter=value, ...)")
    name = match[1]
    arguments = match[2] or "()"
    try:
        call = ast.parse(f"f{arguments}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError
        positional = [_value(node) for node in call.args]
        named = {node.arg: _value(node.value) for node in call.keywords if node.arg is not None}
        if len(named) < len(call.keywords):
            raise ValueError
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        hint = "; write texts in quotes, and names after values, as in name(5, file='prior.json')"
        raise UsageError(f"the parameters of {text!r} are not valid{hint}") from error
    return name, positional, named


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """An error message that lists the known names and suggests the closest one."""
    names = sorted(known)
    hint = did_you_mean(name, {each: repr(each) for each in names})
    return f"unknown {what} {name!r}{hint} (there are: {', '.join(names)})"


def _value(node: ast.expr) -> object:
    """The value of a literal; lists become tuples, and `inf` is a number."""
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(_value(each) for each in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand)
        if isinstance(inner, int | float):
            return -inner
    if isinstance(node, ast.Name) and node.id == "inf":
        return float("inf")
    return ast.literal_eval(node)


def _listed(names: list[str]) -> str:
    return " and ".join(names) if names else "no parameters"


def _example(name: str, fields: list[str]) -> str:
    return f"{name}({', '.join(f'{field}=...' for field in fields)})"
