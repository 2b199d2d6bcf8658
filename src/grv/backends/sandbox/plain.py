"""Values as tagged JSON: how processes exchange arguments and results, without pickle.

    None, True, "text", small integers    themselves
    ["n", hex]   other integers           ["f", hex]   floats
    ["l", ...]   lists                    ["t", ...]   tuples
    ["d", k, v, k, v, ...]  dictionaries  ["s", ...]   sets       ["z", ...]  frozen sets
    ["b", hex]   bytes                    ["B", hex]   byte arrays
    ["u", hex]   texts with a surrogate before another, which JSON would join to one character
    ["c", re, im]  complex numbers        ["r", start, stop, step]   ranges
    ["F", n, d]  fractions                ["D", text]  decimals
    ["i", ...]   iterators, consumed      ["a", list]  arrays
    ["o", name]  anything else, by the name of its type

These are what a `function` check compares. An `asserts` check has more nodes (kinds.py).

Encoding runs in the candidate's process and cannot be trusted: an object that lies about its class,
length or items only changes the candidate's own answer. Decoding makes built-in types only, within
the limits below.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any

DEEPEST = 64  # levels of nesting
_SMALL = 1 << 53
_DECIMAL_EXPONENT = 10_000
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BUILT_IN = {int, str, float, list, tuple, dict, set, frozenset, bytes, bytearray, complex, range}
_EMPTY: tuple[Any, ...] = ([], (), {}, set(), "", b"", range(0))
ITERATORS: tuple[type, ...] = (
    *(type(iter(empty)) for empty in _EMPTY),
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    type(reversed([])),
    map,
    filter,
    zip,
    enumerate,
    itertools.chain,
    itertools.islice,
    GeneratorType,
)


class PlainError(Exception):
    """A value that is too deep or too large to send, or a message that encodes no value."""


class Opaque:
    """Stands for a value that could not be sent. Has its type's name; equals nothing else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<an object of type {self.name}>"


def made(make: Callable[..., Any], what: str, *parts: Any) -> Any:
    """What `make` makes of some parts; a PlainError if they do not fit."""
    try:
        return make(*parts)
    except (TypeError, ValueError, ArithmeticError):
        raise PlainError(f"not {what}") from None


def integer(text: Any) -> int:
    """The integer of an "n" node's text."""
    return int(made(int, "a hexadecimal integer", text, 16))


def real(text: Any) -> float:
    """The float of an "f" node's text."""
    return float(made(float.fromhex, "a hexadecimal float", text))


class PlainEncoder:
    """Makes nodes. A subclass may send more kinds of values."""

    def __init__(self, room: int) -> None:
        self.room = room  # roughly how many bytes are left

    def spend(self, size: int) -> None:
        """Note that a value takes some bytes."""
        self.room -= size
        if self.room < 0:
            raise PlainError("too large")

    def many(self, tag: str, items: Iterable[Any], depth: int) -> list[Any]:
        """The node of several values."""
        return [tag, *(self.value(item, depth + 1) for item in items)]

    def value(self, value: Any, depth: int = 0) -> Any:
        """The node of a value. Raises PlainError if it is too deep or too large."""
        if depth > DEEPEST:
            raise PlainError("too deep")
        kind = type(value)
        self.spend(2)
        if value is None or kind is bool:
            return value
        if kind not in _BUILT_IN and (node := self.special(value, kind, depth)) is not None:
            return node
        if issubclass(kind, int):
            return self._integer(int.__index__(value))
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if issubclass(kind, float):
            return ["f", float.hex(value)]
        if issubclass(kind, list):
            return self.many("l", list.__iter__(value), depth)
        if issubclass(kind, tuple):
            return self.many("t", tuple.__iter__(value), depth)
        if issubclass(kind, dict):
            pairs = itertools.chain.from_iterable(list(dict.items(value)))
            return self.many("d", pairs, depth)
        return self._rarer(value, kind, depth)

    def special(self, value: Any, kind: type, depth: int) -> list[Any] | None:
        """The node of a value that is not of a built-in type; None if it has no node of its own."""
        return None

    def _text(self, value: str) -> Any:
        self.spend(len(value))
        if value.isascii() or _PAIR.search(value) is None:
            return value
        data = value.encode("utf-8", "surrogatepass")
        self.spend(2 * len(data))
        return ["u", data.hex()]

    def _integer(self, value: int) -> Any:
        self.spend(value.bit_length() // 4)
        return value if -_SMALL < value < _SMALL else ["n", hex(value)]

    def _rarer(self, value: Any, kind: type, depth: int) -> Any:
        if issubclass(kind, set):
            return self.many("s", set.__iter__(value), depth)
        if issubclass(kind, frozenset):
            return self.many("z", frozenset.__iter__(value), depth)
        if issubclass(kind, (bytes, bytearray)):
            self.spend(2 * len(value))
            return ["b" if issubclass(kind, bytes) else "B", bytes(value).hex()]
        if issubclass(kind, complex):
            return ["c", float.hex(value.real), float.hex(value.imag)]
        if kind is range:
            return ["r", *(self._integer(part) for part in (value.start, value.stop, value.step))]
        if _is(kind, "fractions", "Fraction"):
            return ["F", self._integer(value.numerator), self._integer(value.denominator)]
        if _is(kind, "decimal", "Decimal"):
            text = str(value)
            self.spend(len(text))
            return ["D", text]
        if kind in ITERATORS:
            return self.many("i", value, depth)
        if kind.__module__ == "numpy":
            return self._numpy(value, kind, depth)
        return ["o", f"{kind.__module__}.{kind.__qualname__}"[:200]]

    def _numpy(self, value: Any, kind: type, depth: int) -> Any:
        if kind.__name__ == "ndarray":
            return ["a", self.value(value.tolist(), depth + 1)]
        item = value.item()
        if type(item) in (bool, int, float, complex, str, bytes):
            return self.value(item, depth)
        return ["o", f"numpy.{kind.__qualname__}"[:200]]


def _is(kind: type, module: str, name: str) -> bool:
    """Whether `kind` is the named type. Does not load its module."""
    return kind is getattr(sys.modules.get(module), name, None)


def encode(value: Any, room: int = 1 << 30) -> Any:
    """The node of a value. Raises PlainError if it would take more than about `room` bytes."""
    return PlainEncoder(room).value(value)


class PlainDecoder:
    """Makes values of nodes: built-in types and `Opaque`. A subclass may make more kinds."""

    def value(self, node: Any, depth: int = 0) -> Any:
        """The value of a node. Raises PlainError for a bad node."""
        if node is None or isinstance(node, (int, str)):
            return node
        if not isinstance(node, list) or not node or not isinstance(node[0], str):
            raise PlainError("not a value")
        if depth > DEEPEST:
            raise PlainError("too deep")
        tag, *parts = node
        if tag in _CONTAINERS:
            return made(_CONTAINERS[tag], "a container of hashable items", self.many(parts, depth))
        if tag not in _SCALARS:
            return self.special(tag, parts, depth)
        count, make = _SCALARS[tag]
        if len(parts) != count:
            raise PlainError(f"{len(parts)} parts in a {tag!r}")
        return make(*parts)

    def many(self, nodes: Iterable[Any], depth: int) -> list[Any]:
        """The values of the nodes in a node."""
        return [self.value(node, depth + 1) for node in nodes]

    def special(self, tag: str, parts: list[Any], depth: int) -> Any:
        """The value of a node with another tag."""
        raise PlainError(f"unknown tag {tag[:10]!r}")


def decode(node: Any) -> Any:
    """The value of a node. Raises PlainError for a bad node."""
    return PlainDecoder().value(node)


def _dictionary(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


def _bytes(text: Any) -> bytes:
    return bytes(made(bytes.fromhex, "hexadecimal bytes", text))


def _text(data: Any) -> str:
    return str(made(_bytes(data).decode, "a text", "utf-8", "surrogatepass"))


def _whole(node: Any) -> int:
    value = decode(node)
    if not isinstance(value, int):
        raise PlainError("not an integer")
    return value


def _range(*nodes: Any) -> Any:
    return made(range, "a range", *map(_whole, nodes))


def _fraction(*nodes: Any) -> Any:
    from fractions import Fraction

    return made(Fraction, "a fraction", *map(_whole, nodes))


def _decimal(text: Any) -> Any:
    from decimal import Decimal

    value = made(Decimal, "a decimal", text) if isinstance(text, str) else None
    if value is None or (value.is_finite() and abs(value.adjusted()) > _DECIMAL_EXPONENT):
        raise PlainError("not a decimal of reasonable size")
    return value


def _opaque(name: Any) -> Opaque:
    if not isinstance(name, str):
        raise PlainError("a type without a name")
    return Opaque(name)


_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    **{"l": list, "t": tuple, "d": _dictionary},
    **{"s": set, "z": frozenset, "i": iter},
}
_SCALARS: dict[str, tuple[int, Callable[..., Any]]] = {
    "n": (1, integer),
    "f": (1, real),
    "b": (1, _bytes),
    "u": (1, _text),
    "B": (1, lambda text: bytearray(_bytes(text))),
    "c": (2, lambda re, im: complex(real(re), real(im))),
    "r": (3, _range),
    "F": (2, _fraction),
    "D": (1, _decimal),
    "a": (1, lambda _: Opaque("numpy.ndarray")),
    "o": (1, _opaque),
}
