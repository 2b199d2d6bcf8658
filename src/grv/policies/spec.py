"""Policies as text, such as `adaptive(checks=4)`, for command lines and ledgers."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterable

from ..core.errors import UsageError
from ..core.search import Policy
from ..options import did_you_mean

FILE = "file"  # in a field's metadata: a specification gives the value as the name of a file
_LARGEST = 1e6  # parameter that a guest may give: a larger one asks for more than can be made
_SPEC = re.compile(r"\s*([A-Za-z][\w-]*)\s*(\(.*\))?\s*", re.DOTALL)


def parse(text: str, *, load: Callable[[str], object] | None = None) -> Policy:
    """The policy that a specification names; `default` is the policy used if none is named.

    `load` reads the values that a specification gives as the name of a file.

    >>> parse("fixed(64, k=4)")
    Fixed(m=64, k=4)
    """
    from . import DEFAULT, POLICIES

    name, positional, named = split(text)
    if name == "default":
        if positional or named:
            raise UsageError(f"default takes no parameters; it stands for {spec(DEFAULT)!r}")
        return DEFAULT
    if name not in POLICIES:
        raise UsageError(unknown("policy", name, [*POLICIES, "default"]))
    policy = POLICIES[name]
    fields = [field.name for field in dataclasses.fields(policy)]
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
        for field in dataclasses.fields(policy)
        if field.name not in given and field.default is dataclasses.MISSING
    ]
    if missing:
        raise UsageError(f"{name} needs {_listed(missing)}, as in {_example(name, fields)}")
    for field in dataclasses.fields(policy):
        if FILE in field.metadata and isinstance(given[field.name], str) and load is not None:
            given[field.name] = load(str(given[field.name]))
    try:
        made: Policy = policy(**given)
    except TypeError as error:
        raise UsageError(f"{name}: a parameter has the wrong type in {text!r}") from error
    return made


def parse_guest(text: str) -> Policy:
    """The policy that a client of a server names: one of `FOR_GUESTS`, and only with numbers.

    No text becomes a parameter, so none becomes a file, an address or a class.

    >>> parse_guest("fixed(64, k=4)")
    Fixed(m=64, k=4)
    """
    from . import FOR_GUESTS

    name, positional, named = split(text)
    if name not in (*FOR_GUESTS, "default"):
        known = ", ".join([*FOR_GUESTS, "default"])
        raise UsageError(f"a request may name one of {known}, not {name!r}")
    for value in (*positional, *named.values()):
        # Not `isinstance`: True is no number here.
        if type(value) not in (int, float) or not abs(value) <= _LARGEST:  # type: ignore[arg-type]
            raise UsageError(
                f"{name}: a request may give numbers from -{_LARGEST:g} to {_LARGEST:g} only"
            )
    return parse(text)


def spec(policy: Policy) -> str:
    """The specification of a policy, without parameters that have their default value.

    >>> from grv.policies import Adaptive
    >>> spec(Adaptive(checks=4))
    'adaptive(checks=4)'
    """
    from . import POLICIES

    name = next((name for name, cls in POLICIES.items() if type(policy) is cls), None)
    if name is None:
        raise UsageError(f"{type(policy).__name__} is not a registered policy")
    values = [
        f"{field.name}={_shown(field, getattr(policy, field.name))!r}"
        for field in dataclasses.fields(POLICIES[name])
        if getattr(policy, field.name) != field.default
    ]
    return f"{name}({', '.join(values)})" if values else name


def _shown(field: dataclasses.Field[object], value: object) -> object:
    """A value in a specification; if it comes from a file, the name of the file."""
    return getattr(value, "name", value) if FILE in field.metadata else value


def split(text: str) -> tuple[str, list[object], dict[str, object]]:
    """The name, the positional and the named parameters of a specification."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise UsageError(f"not a policy: {text!r}; write a name, or name(parameter=value, ...)")
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
        raise UsageError(f"the parameters of {text!r} are not valid") from error
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
