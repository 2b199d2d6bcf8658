"""The two comparisons that decide a pass: of printed tokens, and of returned values.

Returned values arrive as tagged nodes (sandbox/plain.py) and are compared as nodes. No set or
dictionary is built from them, because a candidate can choose keys that make this very slow. All
comparisons take linear time: no greatest common divisors, and no conversions between binary and
decimal of numbers whose length the candidate chose.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from ...sandbox import plain

_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_CANONICAL = re.compile(r"-?(?:0|[1-9]\d*)\Z", re.ASCII)
_REAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?\Z", re.ASCII)
_LONGEST_NUMBER = 1000
_ROUNDING = 1e-12  # what rounding may leave of an expected 0.0, to which nothing is relative
_SHOWN = 300
_Number = int | float | Decimal | tuple[int, int]  # the pair is a fraction in lowest terms


def first_difference(
    expected: str, got: str, tolerance: float, absolute: float = 0.0
) -> str | None:
    """The first difference of two outputs, token by token; None if there is none."""
    wanted = expected.split()
    printed = got.split()
    for number, (one, other) in enumerate(zip(wanted, printed, strict=False), 1):
        if not same_token(one, other, tolerance, absolute):
            return f"token {number}: expected {one[:_SHOWN]!r}, got {other[:_SHOWN]!r}"
    if len(wanted) != len(printed):
        return f"expected {len(wanted)} tokens, got {len(printed)}"
    return None


def same_token(expected: str, got: str, tolerance: float, absolute: float = 0.0) -> bool:
    """Whether two tokens agree: as text, or as numbers if both are numbers.

    Integers must be written alike, or as `3.0` for `3`. The tolerances are for expected tokens with
    a decimal point or an exponent: one relative to the expected number, one absolute.
    """
    if expected == got:
        return True
    if max(len(expected), len(got)) > _LONGEST_NUMBER:
        return False
    if not (_REAL.match(expected) and _REAL.match(got)):
        return False
    try:
        wanted = Decimal(expected)
        printed = Decimal(got)
    except InvalidOperation:
        return False
    if _INTEGER.match(expected):
        # `007` is a code, not a number; integers that are written differently are different.
        whole = _CANONICAL.match(expected) and not _INTEGER.match(got)
        return bool(whole) and wanted == printed
    if not wanted and tolerance:
        absolute = max(absolute, _ROUNDING)
    return abs(wanted - printed) <= max(Decimal(tolerance) * abs(wanted), Decimal(absolute))


def same_value(expected: Any, node: Any, tolerance: float, absolute: float = 0.0) -> bool:
    """Whether a returned value, as a node, equals an expected value of JSON types.

    Numbers are equal by value, with the tolerances if the expected one is a float; tuples and
    arrays equal lists; an integer key equals the text that JSON makes of it.
    """
    if isinstance(expected, list | tuple):
        items = _items(node)
        return (
            items is not None
            and len(items) == len(expected)
            and all(
                same_value(one, other, tolerance, absolute)
                for one, other in zip(expected, items, strict=True)
            )
        )
    if isinstance(expected, Mapping):
        return _same_mapping(expected, node, tolerance, absolute)
    if isinstance(expected, bool | int | float):
        return same_number(expected, node, tolerance, absolute)
    return type(expected) is type(node) and bool(expected == node)


def _items(node: Any) -> list[Any] | None:
    match node:
        case ["l" | "t", *items] | ["a", ["l" | "t", *items]]:
            return items
        case _:
            return None


def _same_mapping(
    expected: Mapping[str, Any], node: Any, tolerance: float, absolute: float
) -> bool:
    match node:
        case ["d", *parts] if len(parts) == 2 * len(expected):
            pass
        case _:
            return False
    missing = set(expected)
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        name = _name(key)
        if name is None or name not in missing:
            return False
        if not same_value(expected[name], value, tolerance, absolute):
            return False
        missing.discard(name)
    return not missing


def _name(key: Any) -> str | None:
    """A key as JSON writes it: a text, or the digits of an integer."""
    match key:
        case str():
            return key
        case bool():
            return None
        case int():
            return str(key)
        case ["n", str(text)] if len(text) < _LONGEST_NUMBER:
            with contextlib.suppress(plain.PlainError):
                return str(plain.integer(text))
    return None


def same_number(expected: int | float, node: Any, tolerance: float, absolute: float = 0.0) -> bool:
    """Whether a node is the expected number; with the tolerances if that is a float."""
    try:
        got = _number(node)
        if got is None:
            return False
        if _is_exactly(expected, got):
            return True
        return isinstance(expected, float) and _is_close(expected, got, tolerance, absolute)
    except (plain.PlainError, InvalidOperation, OverflowError, ValueError):
        return False  # not a number, or too large for a float


def _number(node: Any) -> _Number | None:
    match node:
        case int():
            return node
        case ["n", text]:
            return plain.integer(text)
        case ["f", text]:
            return plain.real(text)
        case ["D", str(text)]:
            return Decimal(text)
        case ["F", upper, lower]:
            match _number(upper), _number(lower):
                case int(numerator), int(denominator) if denominator > 0:
                    return numerator, denominator
    return None


def _is_exactly(expected: int | float, got: _Number) -> bool:
    if isinstance(got, tuple):  # Python's fractions are in lowest terms
        return math.isfinite(expected) and got == expected.as_integer_ratio()
    if isinstance(got, Decimal) and got.is_nan():
        return False
    return bool(got == expected)


def _is_close(expected: float, got: _Number, tolerance: float, absolute: float) -> bool:
    """Whether the nearest float is close enough."""
    nearest = got[0] / got[1] if isinstance(got, tuple) else float(got)
    if math.isnan(expected):
        return math.isnan(nearest)
    if not (tolerance or absolute) or math.isinf(expected) or math.isinf(nearest):
        return False
    if not expected and tolerance:
        absolute = max(absolute, _ROUNDING)
    return abs(expected - nearest) <= max(tolerance * abs(expected), absolute)


def show(value: Any) -> str:
    """A value of JSON types as evidence, cut to a few hundred characters."""
    return json.dumps(value, ensure_ascii=True, default=str)[:_SHOWN]


def show_node(node: Any) -> str:
    """A returned value as evidence, cut to a few hundred characters."""
    parts: list[str] = []
    _describe(node, parts, [_SHOWN], 0)
    return "".join(parts)[:_SHOWN]


_BRACKETS = {"l": "[]", "t": "()", "s": "{}", "z": "{}", "i": "<>", "d": "{}"}


def _describe(node: Any, parts: list[str], room: list[int], depth: int) -> None:
    if room[0] <= 0 or depth > plain.DEEPEST:
        return
    match node:
        case ["&", _, *shared]:
            return _describe(shared, parts, room, depth + 1)
        case ["l" | "t" | "s" | "z" | "i" | "d" as tag, *items]:
            parts.append(_BRACKETS[tag][0])
            for index, item in enumerate(items):
                if room[0] <= 0:
                    break
                between = ": " if tag == "d" and index % 2 else ", "
                parts.append(between if index else "")
                _describe(item, parts, room, depth + 1)
            parts.append(_BRACKETS[tag][1])
            return
        case ["f", str(text)]:
            try:
                shown = repr(plain.real(text))
            except plain.PlainError:
                shown = "?"
        case ["T", str(name), *items]:
            parts.append(name.rpartition(".")[2][:_SHOWN])
            return _describe(["t", *items], parts, room, depth + 1)
        case ["N" | "S" as tag, str(name), [*_], *items]:
            parts.append(name[:_SHOWN])
            return _describe(["t", *items[tag == "S" :]], parts, room, depth + 1)
        case ["e", _, str(name), _, member]:
            shown = f"{name}.{member}"[:_SHOWN]
        case ["X", str(name), _, args, *_]:
            parts.append(name[:_SHOWN])
            return _describe(args, parts, room, depth + 1)
        case ["y", str(name)]:
            shown = name[:_SHOWN]
        case (
            ["k" | "g" | "j" | "w" | "A", _, str(name)] | ["O", _, str(name), _] | ["o", str(name)]
        ):
            shown = f"<{name[:_SHOWN]}>"
        case ["n", str(text)]:
            shown = text[:_SHOWN]
        case str():
            shown = repr(node[:_SHOWN])
        case None | bool() | int() | float():
            shown = repr(node)[:_SHOWN]
        case _:  # may have any size
            shown = "<...>"
    parts.append(shown)
    room[0] -= len(shown) + 2
