"""An answer in mathematics as a tree. Scalars are what has a value; the rest is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from .words import NO_UNIT, Unit


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
    """An angle in degrees, inside a formula; at the end of an answer, degrees are a unit."""

    amount: Scalar


Scalar = Number | Name | Sum | Product | Power | Call | Degrees


@dataclass(frozen=True, slots=True)
class Quantity:
    """A scalar with its unit."""

    scalar: Scalar
    unit: Unit = NO_UNIT


@dataclass(frozen=True, slots=True)
class Infinity:
    """Positive or negative infinity, as the end of an interval or as an answer."""

    positive: bool


@dataclass(frozen=True, slots=True)
class Word:
    """An answer in words, lower case, or a number in another base than ten, as `101_2`."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers of a multiple choice, by its letter in upper case."""

    letter: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Ordered members between brackets: a point, an interval, a ratio, a row, a matrix."""

    opening: str
    members: tuple[Answer, ...]
    closing: str


@dataclass(frozen=True, slots=True)
class Unordered:
    """Members in any order: a set, or answers one after the other."""

    members: tuple[Answer, ...]
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Intervals joined, with the name of the variable that lies in them, where it is said."""

    name: str | None
    intervals: tuple[Sequence, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A value with its name, as `m+n=5` or `x=1,2`; where `name` is empty, the value of a chain.

    Attributes:
        name: the name, or several with commas between them where all have the value.
        value: the last value of the chain.
        others: the other values of the chain, which must be equal to it.
    """

    name: str
    value: Answer
    others: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """The values of several variables, sorted by their names: `x=3, y=4`."""

    members: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """Two sides, with variables, that are equal."""

    left: Scalar
    right: Scalar


@dataclass(frozen=True, slots=True)
class Inequality:
    """Two scalars with `<`, `<=` or `!=` between them, where they are no interval."""

    left: Scalar
    sign: str
    right: Scalar


Answer = (
    Quantity
    | Infinity
    | Word
    | Choice
    | Sequence
    | Unordered
    | Region
    | Named
    | Assignment
    | Equation
    | Inequality
)

CONSTANTS = frozenset({"pi", "e", "i"})


def names(scalar: Scalar) -> frozenset[str]:
    """The variables in a scalar, constants left out."""
    return frozenset(_names(scalar)) - CONSTANTS


def mentions(scalar: Scalar, name: str) -> bool:
    """Whether the variable or constant is in the scalar."""
    return name in _names(scalar)


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
