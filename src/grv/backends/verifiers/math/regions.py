r"""Intervals and unions of them, from inequalities and from brackets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence as Several
from fractions import Fraction

from .scalars import Unreadable, negative
from .tree import Answer, Call, Infinity, Name, Number, Quantity, Region, Sequence, Unordered, names
from .words import NO_UNIT

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LEAST, _MOST = Infinity(False), Infinity(True)


def interval(sides: Several[Quantity | Infinity], signs: list[str]) -> Region | None:
    r"""The region of one variable that inequalities describe; None if they describe none.

    `1 < x \le 2` is `(1,2]`, `x > 3` is `(3,\infty)`, `x \ne 3` is two intervals, `|x| < 2` is
    `(-2,2)`.
    """
    match sides, signs:
        case [low, Quantity(Name(name)), high], [first, second]:
            if "!" in first + second or first[0] != second[0] or not _constant(low, high):
                return None
            if first[0] == ">":
                low, high, first, second = high, low, _FLIPPED[second], _FLIPPED[first]
            opening, closing = "[" if "=" in first else "(", "]" if "=" in second else ")"
            return Region(name, (Sequence(opening, (low, high), closing),))
        case [Quantity(Name(name)), bound], [sign] if _constant(bound):
            return Region(name, _rays(bound, sign))
        case [bound, Quantity(Name(name))], [sign] if _constant(bound):
            return Region(name, _rays(bound, _FLIPPED.get(sign, sign)))
        case [Quantity(Call("abs", (Name(name),))), Quantity(Number(value)) as high], [sign]:
            return _around_zero(name, value, high, sign)
        case _:
            return None


def _constant(*ends: Quantity | Infinity) -> bool:
    return all(isinstance(end, Infinity) or not names(end.scalar) for end in ends)


def _rays(bound: Answer, sign: str) -> tuple[Sequence, ...]:
    if sign == "!=":
        return (*_rays(bound, "<"), *_rays(bound, ">"))
    if sign[0] == ">":
        return (Sequence("[" if "=" in sign else "(", (bound, _MOST), ")"),)
    return (Sequence("(", (_LEAST, bound), "]" if "=" in sign else ")"),)


def _around_zero(name: str, value: Fraction, high: Quantity, sign: str) -> Region | None:
    if value <= 0 or sign == "!=":
        return None
    low = Quantity(negative(high.scalar))
    if sign[0] == ">":
        return Region(name, (*_rays(low, _FLIPPED[sign]), *_rays(high, sign)))
    brackets = "[]" if "=" in sign else "()"
    return Region(name, (Sequence(brackets[0], (low, high), brackets[1]),))


def region_of(members: Several[Answer], *, only_or: bool, name: str | None = None) -> Region | None:
    """The union of intervals, regions and sets of points; None if it contains no region.

    Raises `Unreadable` if it contains a region but is not a union.
    """
    if not any(isinstance(m, Region) or _is_interval(m) for m in members):
        return None
    if not only_or:
        if any(isinstance(m, Region) for m in members):
            raise Unreadable("conditions not joined by or")
        return None
    pieces: list[Sequence] = []
    called = {name} if name else set()
    for member in members:
        match member:
            case Region(variable, intervals):
                called |= {variable} if variable else set()
                pieces += intervals
            case Sequence() if _is_interval(member):
                pieces.append(member)
            case Unordered(points):
                pieces += [Sequence("[", (point, point), "]") for point in points]
            case _:
                raise Unreadable("a union of other things than intervals")
    if len(called) > 1:
        raise Unreadable("conditions on several variables")
    return Region(called.pop() if called else None, tuple(pieces))


def _is_interval(answer: Answer) -> bool:
    return (
        isinstance(answer, Sequence)
        and answer.opening in {"(", "["}
        and answer.closing in {")", "]"}
        and len(answer.members) == 2
    )


def without(points: Answer, tokens: Several[str]) -> Region:
    """The real numbers without some points."""
    if not isinstance(points, Unordered) or (len(tokens) > 1 and tokens[1] not in _MINUS):
        raise Unreadable("the real numbers with unknown text")
    values: dict[Fraction, Answer] = {}
    for point in points.members:
        match point:
            case Quantity(Number(value), unit) if unit == NO_UNIT:
                values[value] = point
            case _:
                raise Unreadable("the real numbers without something else than numbers")
    ends: list[Answer] = [_LEAST, *(values[value] for value in sorted(values)), _MOST]
    return Region(None, tuple(Sequence("(", pair, ")") for pair in itertools.pairwise(ends)))


_MINUS = frozenset({r"\setminus", r"\backslash", "-"})
