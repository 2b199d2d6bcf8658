"""An answer in mathematics as a tree. Scalars are what has a value; the rest is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Number:
    """An exact rational."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, with its subscript, or one of the constants `pi`, `e`, `i`."""

    name: str


@dataclass(frozen=True, slots=True)
class Sum:
    """Two terms or more, added."""

    terms: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """Two factors or more, multiplied."""

    factors: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Power:
    """A base to an exponent; division is an exponent of -1."""

    base: Scalar
    exponent: Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the table in `math_values`, with its arguments."""

    function: str
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Degrees:
    """So many degrees: an angle where it is inside a formula, a unit where it ends an answer."""

    amount: Scalar


Scalar = Number | Name | Sum | Product | Power | Call | Degrees


@dataclass(frozen=True, slots=True)
class Quantity:
    """A scalar with its unit, "" where it has none and "%" for percent."""

    scalar: Scalar
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Infinity:
    """Positive or negative infinity, as the end of an interval or as an answer."""

    positive: bool


@dataclass(frozen=True, slots=True)
class Word:
    """An answer in words, lower case; a single letter as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Ordered members between brackets: a point, an interval, a row of a matrix, a matrix."""

    opening: str
    members: tuple[Answer, ...]
    closing: str


@dataclass(frozen=True, slots=True)
class Collection:
    """Members in any order: a set, where it has braces; answers one after the other; a union."""

    kind: str  # "set", "list" or "union"
    members: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """Two sides that are equal; `name` is the left one where it only names the answer."""

    left: Scalar | None
    right: Answer
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Inequality:
    """A chain of scalars, with `<`, `<=`, `>`, `>=` or `!=` between them."""

    sides: tuple[Scalar, ...]
    signs: tuple[str, ...]


Answer = Quantity | Infinity | Word | Sequence | Collection | Equation | Inequality

CONSTANTS = frozenset({"pi", "e", "i"})


def names(scalar: Scalar) -> frozenset[str]:
    """The variables in a scalar, constants left out."""
    return frozenset(_names(scalar)) - CONSTANTS


def _names(scalar: Scalar) -> Iterator[str]:
    match scalar:
        case Name(name):
            yield name
        case _:
            for part in parts(scalar):
                yield from _names(part)


def parts(scalar: Scalar) -> tuple[Scalar, ...]:
    """What a scalar is made of, one level down."""
    match scalar:
        case Number() | Name():
            return ()
        case Sum(several) | Product(several) | Call(_, several):
            return several
        case Power(base, exponent):
            return (base, exponent)
        case Degrees(amount):
            return (amount,)
