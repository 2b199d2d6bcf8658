"""An answer in mathematics as a tree. Scalars have a value; other answers consist of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

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
    """A function of the table in `values`, with its arguments."""

    function: str
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Degrees:
    """An angle in degrees inside a formula. At the end of an answer, degrees are a unit."""

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
    """An answer in words, in lower case; or a number in another base than ten, as `101_2`."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer to a multiple-choice question, by its letter in upper case."""

    letter: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Ordered members between brackets: a point, an interval, a ratio, a row, a matrix."""

    opening: str
    members: tuple[Answer, ...]
    closing: str


@dataclass(frozen=True, slots=True)
class Unordered:
    """Members without an order: a set, or a list of answers.

    Attributes:
        members: the members.
        is_set: whether it was written as a set.
        word: "and" or "or", if one of these joins the members of a list.
    """

    members: tuple[Answer, ...]
    is_set: bool = False
    word: str = ""


@dataclass(frozen=True, slots=True)
class RelationChain:
    """Scalars or infinities with `<`, `<=`, `>`, `>=` or `!=` between them."""

    sides: tuple[Quantity | Infinity, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A set of real numbers: a union or an intersection of others, or one without others."""

    operation: Literal["or", "and", "without"]
    parts: tuple[Sequence | RelationChain | Shape, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A set of real numbers, with the name of the variable, if given."""

    name: str | None
    shape: Shape


@dataclass(frozen=True, slots=True)
class Labelled:
    """The letter of a multiple-choice answer with its value: `(C) 12`."""

    letter: str
    value: Answer


@dataclass(frozen=True, slots=True)
class Congruence:
    """`x = a` modulo m."""

    left: Scalar
    right: Scalar
    modulus: Scalar


@dataclass(frozen=True, slots=True)
class SolutionFamily:
    """The values of scalars for every integer `index`."""

    members: tuple[Scalar, ...]
    index: str


@dataclass(frozen=True, slots=True)
class Cases:
    """Values with their conditions; the condition of the last may be the word "otherwise"."""

    rows: tuple[tuple[Answer, Answer], ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A value with its name, as `m+n=5` or `x=1,2`; an empty name is for a chain of values.

    Attributes:
        name: the name, or several with commas between them.
        value: the last value of the chain.
        others: the other values of the chain, which must equal it.
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
    """Two equal sides with variables."""

    left: Scalar
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
    | Labelled
    | Congruence
    | SolutionFamily
    | Cases
)

CONSTANTS = frozenset({"pi", "e", "i"})


def names(scalar: Scalar) -> frozenset[str]:
    """The variables in a scalar, without constants."""
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
    """The direct parts of a scalar."""
    match scalar:
        case Number() | Name():
            return ()
        case Sum(several) | Product(several) | Call(_, several):
            return several
        case Power(base, exponent):
            return (base, exponent)
        case Degrees(amount):
            return (amount,)
