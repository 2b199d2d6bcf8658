r"""Reads an answer: canonical text becomes a tree, or `Unreadable` is raised.

This module splits the text into members, sides and units; `scalars` reads values. The whole text
must be understood: an ambiguous text, and a text with an unknown word or sign, is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as Tokens

from .quantities import TEXT, bare, closes_last, numeral_of, quantity, split, word_of
from .regions import interval, region_of, without
from .scalars import Unreadable, read_scalar, tokens_of
from .tree import (
    CONSTANTS,
    Answer,
    Assignment,
    Equation,
    Inequality,
    Infinity,
    Named,
    Quantity,
    Sequence,
    Unordered,
    names,
)
from .words import NO_UNIT
from .writing import LONGEST

_MOST_MEMBERS = 400
_DEEPEST = 8  # members inside members
_PAIRS = {"(": (")", "]"), "[": ("]", ")"), r"\{": (r"\}",), "{": ("}",)}
_INEQUALITIES = {"<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", r"\ne": "!="}
_CONNECTORS = frozenset({",", ";", r"\lor", r"\land"})
_AND = frozenset({(",", r"\lor"), (",", r"\land")})  # `1, 2, and 3`
_INFINITIES = frozenset({r"\infty", "inf", "infty", "infinity", r"\text{infinity}"})
_MATRIX = re.compile(r"\\(?:begin|end)\{[pb]?matrix\}")
_ANNOUNCED = re.compile(r"(?:the )?(?:(?:final|correct) )?answer(?: is)?:?", re.I)
_REPEATING = re.compile(
    r"([0-9]{0,50})\.([0-9]{0,50}?)"
    r"(?:\\(?:overline|bar|dot) ?\{([0-9]{1,50})\}|\\(?:bar|dot) ?([0-9])(?![0-9])"
    r"|\(([0-9]{1,50})\)"
    r"|([0-9])\6\6+(?:\.\.\.|\\[lc]?dots(?![A-Za-z])|…))(?![0-9])"
)
_LETTER = r"(?:\\(?:alpha|beta|gamma|lambda|theta|phi|omega) ?|[A-Za-z]'?)"
_NAME = rf"{_LETTER}(?:_(?:[A-Za-z0-9]|\{{[A-Za-z0-9,]*\}}))?"
_NOUN = (
    "area|perimeter|volume|length|width|height|total|sum|answer|probability|number|value|result|"
    "distance|time|speed|cost|price|profit|radius|angle|slope|mean|median|mode|average|remainder|"
    "product|difference|ratio|solution|count|ways"
)
_NAMING = re.compile(  # names of answers: x, m+n, f(2), a_{10}, AB, [ABC], (x,y)
    rf"{_NAME}(?:[+-]{_NAME})*|[A-Za-z](?:_[0-9]|')?\([^()]{{1,20}}\)|[A-Z]{{2,3}}|\|[A-Z]+\|"
    rf"|\[(?:[A-Z]{{1,3}}|\\text\{{[A-Z]+\}})\]|\([a-z](?:,[a-z])+\)"
    rf"|\\(?:angle|triangle) ?[A-Z]{{1,3}}|\\overline\{{[A-Z]+\}}"
    rf"|\\text\{{ ?(?:(?:the|final|total|maximum|minimum) )*(?i:{_NOUN}) ?\}}"
)
_COORDINATES = re.compile("[xyz][+-][xyz]|[+-].*[xyz].*[+-]")  # a line or a plane, not a name


def read(text: str) -> Answer:
    """The tree of an answer in canonical text; `Unreadable` if it is not understood."""
    if not text or len(text) > LONGEST:
        raise Unreadable(f"{len(text)} characters")
    return _answer(tokens_of(_REPEATING.sub(_repeating, text)), 0)


def _repeating(number: re.Match[str]) -> str:
    r"""`0.1\overline{6}` as a fraction."""
    whole, fixed = number[1] or "0", number[2]
    period = number[3] or number[4] or number[5] or number[6]
    below = 10 ** len(fixed) * (10 ** len(period) - 1)
    above = int(whole + fixed + period) - int(whole + fixed)
    return rf"(\frac{{{above}}}{{{below}}})"


def _answer(tokens: Tokens[str], depth: int) -> Answer:
    """One answer, or several separated by commas or words."""
    if depth > _DEEPEST:
        raise Unreadable("members inside members")
    tokens = bare(tokens)
    if not tokens:
        raise Unreadable("an empty answer")
    announced = TEXT.fullmatch(tokens[0]) if len(tokens) > 1 else None
    if announced and _ANNOUNCED.fullmatch(announced[1].strip()):
        tokens = tokens[2 if tokens[1] == ":" else 1 :]
    following = [*tokens[1:], ""]
    tokens = [t for t, after in zip(tokens, following, strict=True) if (t, after) not in _AND]
    pieces, connectors = split(tokens, _CONNECTORS)
    if len(pieces) > _MOST_MEMBERS:
        raise Unreadable(f"{len(pieces)} members")
    members = [_member(piece, depth) for piece in pieces]
    if len(members) == 1:
        return members[0]
    for piece in pieces:
        if re.fullmatch("0[0-9]+", "".join(piece)):
            raise Unreadable("a member that begins with 0, or a wrong separator of thousands")
    region = region_of(members, only_or=set(connectors) == {r"\lor"})
    return region if region is not None else _several(members)


def _several(members: list[Answer]) -> Answer:
    """A list; `x=1,2` is a named list, `x=3,y=4` assigns several variables."""
    named = [m for m in members if isinstance(m, Named) and m.name]
    if not named:
        return Unordered(tuple(x for member in members for x in listed(member)))
    if len({m.name for m in named}) == 1 and members[0] is named[0]:
        values = (_value(m) for m in members)
        return Named(named[0].name, Unordered(tuple(x for v in values for x in listed(v))))
    if len({m.name for m in named}) == len(members):
        return Assignment(tuple(sorted(named, key=lambda m: m.name)))
    raise Unreadable("values of several variables")


def _value(member: Answer) -> Answer:
    if isinstance(member, Named):
        if member.others:
            raise Unreadable("a chain in a list")
        return member.value
    return member


def listed(answer: Answer) -> tuple[Answer, ...]:
    """The answers of a list, or the one answer."""
    if isinstance(answer, Unordered) and not answer.is_set:
        return answer.members
    return (answer,)


def _member(tokens: Tokens[str], depth: int) -> Answer:
    tokens = bare(tokens)
    if not tokens:
        raise Unreadable("nothing between two commas")
    signs = [at for at, token in enumerate(tokens) if token in {r"\pm", r"\mp"}]
    if len(signs) == 1 and not (tokens[0] == r"\{" and closes_last(tokens)):
        before, after = tokens[: signs[0]], tokens[signs[0] + 1 :]
        both = [_member([*before, sign, *after], depth) for sign in "+-"]
        return _several(both)
    sides, _ = split(tokens, {"="})
    if len(sides) > 1:
        return _equal_sides([bare(side) for side in sides], depth)
    sides, found = split(tokens, frozenset(_INEQUALITIES))
    if len(sides) > 1:
        return _inequality([bare(side) for side in sides], [_INEQUALITIES[t] for t in found])
    sides, _ = split(tokens, {r"\in"})
    if len(sides) == 2:
        return _inside(bare(sides[0]), _member(sides[1], depth))
    united, _ = split(tokens, {r"\cup"})
    if len(united) > 1:
        region = region_of([_member(part, depth) for part in united], only_or=True)
        if region is None:
            raise Unreadable("a union of other things than intervals")
        return region
    return _object(tokens, depth)


def _inside(name: Tokens[str], place: Answer) -> Answer:
    r"""`x \in` a set or a region."""
    if len(name) != 1 or not re.fullmatch(_LETTER, name[0]):
        raise Unreadable("a set with something else than a variable before it")
    if isinstance(place, Unordered):
        return Named(name[0], place)
    region = region_of([place], only_or=True)
    if region is None:
        raise Unreadable("a variable in something else than a set")
    return region_of([region], only_or=True, name=name[0]) or region


def _equal_sides(sides: list[Tokens[str]], depth: int) -> Answer:
    """A named value, an equation with variables, or a chain of values."""
    called = [_naming("".join(side)) for side in sides]
    if all(called) and len(sides) == 2:
        return Equation(read_scalar(sides[0]), read_scalar(sides[1]))
    values = [
        _object(side, depth + 1) for side, name in zip(sides, called, strict=True) if not name
    ]
    if not values:
        raise Unreadable("a chain of names")
    name = ",".join(n for n in called if n)
    if not name and any(isinstance(v, Quantity) and names(v.scalar) for v in values):
        left, right = values if len(values) == 2 else (None, None)
        if not (isinstance(left, Quantity) and isinstance(right, Quantity)):
            raise Unreadable("a chain of equations")
        if left.unit != NO_UNIT or right.unit != NO_UNIT:
            raise Unreadable("an equation with units")
        return Equation(left.scalar, right.scalar)
    return Named(name, values[-1], tuple(values[:-1]))


def _naming(side: str) -> str | None:
    if side in CONSTANTS or side == r"\pi" or _COORDINATES.search(side):
        return None
    if not _NAMING.fullmatch(side):
        return None
    if "(" in side or "\\" in side:
        return side
    terms = sorted(re.findall(r"[+-][^+-]+", side if side[0] in "+-" else f"+{side}"))
    return "".join(terms).removeprefix("+")


def _inequality(sides: list[Tokens[str]], signs: list[str]) -> Answer:
    ends = [_infinity(side) or Quantity(read_scalar(side)) for side in sides]
    region = interval(ends, signs)
    if region is not None:
        return region
    match ends:
        case [Quantity(left), Quantity(right)]:
            if signs[0][0] == ">":
                left, right = right, left
            return Inequality(left, signs[0].replace(">", "<"), right)
        case _:
            raise Unreadable("a chain of inequalities")


def _infinity(tokens: Tokens[str]) -> Infinity | None:
    text = "".join(tokens)
    if text.removeprefix("+").removeprefix("-") in _INFINITIES:
        return Infinity(not text.startswith("-"))
    return None


def _object(tokens: Tokens[str], depth: int) -> Answer:
    """One side of an equation, or an answer without an equals sign."""
    tokens = bare(tokens)
    if not tokens:
        raise Unreadable("an empty answer")
    text = "".join(tokens)
    infinity = _infinity(tokens)
    if infinity is not None:
        return infinity
    word = numeral_of(text) or word_of(text)
    if word is not None:
        return word
    if text == r"\emptyset":
        return Unordered((), is_set=True)
    if text.startswith(r"\reals"):
        return without(_object(tokens[2:], depth + 1) if tokens[1:] else Unordered(()), tokens)
    brackets = tokens[0] == "(" and tokens[1:2] and _MATRIX.fullmatch(tokens[1])
    matrix = tokens[1:-1] if brackets and tokens[-1] == ")" else tokens
    if matrix and _MATRIX.fullmatch(matrix[0]):
        return _matrix(matrix, depth)
    if tokens and tokens[-1] in _PAIRS.get(tokens[0], ()) and closes_last(tokens):
        found = _bracketed(tokens, depth)
        if found is not None:
            return found
    ratio, _ = split(tokens, {":"})
    if len(ratio) > 1:
        return Sequence(":", tuple(quantity(part) for part in ratio), ":")
    return quantity(tokens)


def _bracketed(tokens: Tokens[str], depth: int) -> Answer | None:
    """A set, a point or an interval; None if the brackets only group a scalar."""
    inside = tokens[1:-1]
    if tokens[0] == r"\{":
        builder, _ = split(inside, {":", r"\mid", "|"})
        if len(builder) == 2:
            place = r"\in\reals"
            name = "".join(bare(builder[0])).removesuffix(place)
            region = region_of([_answer(builder[1], depth + 1)], only_or=True)
            if region is None or region.name != name:
                raise Unreadable("a set that is described by more than a condition")
            return region
        return Unordered(_set(inside, depth), is_set=True)
    pieces, _ = split(inside, {","})
    if len(pieces) < 2:
        return None
    if tokens[0] == "{":
        return Unordered(_set(inside, depth), is_set=True)
    return Sequence(tokens[0], tuple(_member(piece, depth + 1) for piece in pieces), tokens[-1])


def _set(inside: Tokens[str], depth: int) -> tuple[Answer, ...]:
    if not inside:
        return ()
    members = _answer(inside, depth + 1)
    if isinstance(members, Named | Assignment):
        raise Unreadable("a name in a set")
    return listed(members)


def _matrix(tokens: Tokens[str], depth: int) -> Answer:
    if depth or tokens[-1] != tokens[0].replace("begin", "end"):
        raise Unreadable("a matrix that does not end")
    rows = [row for row in split(tokens[1:-1], {r"\\"})[0] if row]
    if len(rows) > _MOST_MEMBERS:
        raise Unreadable(f"{len(rows)} rows")
    cells = [tuple(_object(cell, depth + 1) for cell in split(row, {"&"})[0]) for row in rows]
    return Sequence("matrix", tuple(Sequence("row", row, "row") for row in cells), "matrix")
