"""Values as tagged JSON: how arguments and results cross between processes, without pickle.

    None, True, "text", small integers    themselves
    ["n", hex]   other integers           ["f", hex]   floats
    ["l", ...]   lists                    ["t", ...]   tuples
    ["d", k, v, k, v, ...]  dictionaries  ["s", ...]   sets       ["z", ...]  frozen sets
    ["b", hex]   bytes                    ["B", hex]   byte arrays
    ["c", re, im]  complex numbers        ["r", start, stop, step]   ranges
    ["F", n, d]  fractions                ["D", text]  decimals
    ["i", ...]   iterators, spent         ["a", list]  arrays
    ["o", name]  anything else, by the name of its type

What is encoded in a candidate's process is the candidate's word: objects that lie about their
class, length or items only change the candidate's own answer. What is decoded is of built-in types
alone, within the limits below.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import GeneratorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the zygote is kept small, and few candidates use these
    from decimal import Decimal
    from fractions import Fraction

DEEPEST = 64  # levels of nesting
_SMALL = 1 << 53
_DECIMAL_EXPONENT = 10_000
_EMPTY: tuple[Any, ...] = ([], (), {}, set(), "", b"", range(0))
_ITERATORS: tuple[type, ...] = (
    *(type(iter(empty)) for empty in _EMPTY),
    *(type({}.keys()), type({}.values()), type({}.items()), type(reversed([]))),
    *(map, filter, zip, enumerate, itertools.chain, itertools.islice, GeneratorType),
)


class PlainError(Exception):
    """A value that is too deep or too large to be sent, or a message that is no value."""


class Opaque:
    """A value that could not be sent: known by the name of its type, equal to nothing else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<an object of type {self.name}>"


def integer(text: Any) -> int:
    """The integer of an "n" node's text."""
    if not isinstance(text, str):
        raise PlainError("an integer is not written as text")
    try:
        return int(text, 16)
    except ValueError:
        raise PlainError("not a hexadecimal integer") from None


def real(text: Any) -> float:
    """The float of an "f" node's text."""
    if not isinstance(text, str):
        raise PlainError("a float is not written as text")
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        raise PlainError("not a hexadecimal float") from None


class _Encoder:
    def __init__(self, room: int) -> None:
        self.room = room  # bytes left, roughly

    def spend(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            raise PlainError("too large")

    def many(self, tag: str, items: Iterable[Any], depth: int) -> list[Any]:
        return [tag, *(self.value(item, depth + 1) for item in items)]

    def value(self, value: Any, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise PlainError("too deep")
        kind = type(value)
        self.spend(2)
        if value is None or kind is bool:
            return value
        if issubclass(kind, int):
            return self._integer(int.__index__(value))
        if issubclass(kind, str):
            self.spend(len(value))
            return str.__str__(value)
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
        if kind in _ITERATORS:
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
    """Whether a type is the named one, if that was loaded at all."""
    return kind is getattr(sys.modules.get(module), name, None)


def encode(value: Any, room: int = 1 << 30) -> Any:
    """The node of a value, of about `room` bytes at most; a PlainError where that cannot be."""
    return _Encoder(room).value(value)


def decode(node: Any, depth: int = 0) -> Any:
    """The value of a node, of built-in types (or `Opaque`); a PlainError where it is none."""
    if node is None or isinstance(node, (bool, str)):
        return node
    if isinstance(node, int):
        return node
    if not isinstance(node, list) or not node or not isinstance(node[0], str):
        raise PlainError("not a value")
    if depth > DEEPEST:
        raise PlainError("too deep")
    tag, *parts = node
    if tag in _CONTAINERS:
        return _CONTAINERS[tag](decode(part, depth + 1) for part in parts)
    if tag not in _SCALARS:
        raise PlainError(f"unknown tag {tag[:10]!r}")
    count, make = _SCALARS[tag]
    if len(parts) != count:
        raise PlainError(f"{len(parts)} parts in a {tag!r}")
    return make(*parts)


def _dictionary(items: Iterator[Any]) -> Any:
    values = list(items)
    if len(values) % 2:
        raise PlainError("a dictionary with a key too many")
    return _hashed(lambda: dict(zip(values[::2], values[1::2], strict=True)))


def _hashed(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except TypeError as exc:  # unhashable
        raise PlainError(str(exc)) from None


def _bytes(text: Any) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise PlainError("not hexadecimal bytes") from None


def _whole(node: Any) -> int:
    value = decode(node)
    if not isinstance(value, int):
        raise PlainError("not an integer")
    return value


def _range(start: Any, stop: Any, step: Any) -> range:
    if _whole(step) == 0:
        raise PlainError("a range without a step")
    return range(_whole(start), _whole(stop), _whole(step))


def _fraction(numerator: Any, denominator: Any) -> Fraction:
    from fractions import Fraction

    if _whole(denominator) == 0:
        raise PlainError("a fraction over nothing")
    return Fraction(_whole(numerator), _whole(denominator))


def _decimal(text: Any) -> Decimal:
    from decimal import Decimal

    try:
        value = Decimal(text) if isinstance(text, str) else None
    except ArithmeticError:
        value = None
    if value is None or (value.is_finite() and abs(value.adjusted()) > _DECIMAL_EXPONENT):
        raise PlainError("not a decimal of reasonable size")
    return value


def _opaque(name: Any) -> Opaque:
    if not isinstance(name, str):
        raise PlainError("a type without a name")
    return Opaque(name)


_CONTAINERS: dict[str, Callable[[Iterator[Any]], Any]] = {
    "l": list,
    "t": tuple,
    "d": _dictionary,
    "s": lambda items: _hashed(lambda: set(items)),
    "z": lambda items: _hashed(lambda: frozenset(items)),
    "i": lambda items: iter(list(items)),
}
_SCALARS: dict[str, tuple[int, Callable[..., Any]]] = {
    "n": (1, integer),
    "f": (1, real),
    "b": (1, _bytes),
    "B": (1, lambda text: bytearray(_bytes(text))),
    "c": (2, lambda re, im: complex(real(re), real(im))),
    "r": (3, _range),
    "F": (2, _fraction),
    "D": (1, _decimal),
    "a": (1, lambda _: Opaque("numpy.ndarray")),
    "o": (1, _opaque),
}
