r"""Reading an answer: from canonical text to a tree, or `Unreadable`.

Here the text is cut into members, sides and units; `math_scalars` reads what has a value. The text
is never evaluated, and what has two readings is not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as Tokens
from fractions import Fraction

from .scalars import Unreadable, read_scalar, tokens_of
from .text import LONGEST
from .tree import (
    Answer,
    Collection,
    Equation,
    Inequality,
    Infinity,
    Name,
    Number,
    Product,
    Quantity,
    Scalar,
    Sequence,
    Word,
)

_MOST_MEMBERS = 60
_DEEPEST = 8  # members inside members
_OPENING = frozenset({"(", "[", "{", r"\{"})
_CLOSING = frozenset({")", "]", "}", r"\}"})
_PAIRS = {"(": (")", "]"), "[": ("]", ")"), r"\{": (r"\}",), "{": ("}",)}
_INEQUALITIES = {"<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", r"\ne": "!="}
_INFINITIES = frozenset({r"\infty", "inf", "infty", "infinity"})
_MATRIX = re.compile(r"\\(begin|end)\{[pb]?matrix\}")
_OR = re.compile(
    r",?(?:\\text\{,? ?(?:or|and)\}|(?<![A-Za-z\\])(?:or|and)(?![A-Za-z])|\\lor|\\vee) ?"
)
_MEMBER_OF = re.compile(r"[A-Za-z]\\in ?")
_WORDS = re.compile(r"[A-Za-z]+(?:[ -][A-Za-z]+){0,7}|\([A-Za-z]\)")
_REPEATING = re.compile(r"([0-9]{0,50})\.([0-9]{0,50})\\overline\{([0-9]{1,50})\}")
_NAMING = re.compile(  # a left side that only names the answer: m+n, f(2), a_{10}, AB, [ABC]
    r"(?:\\angle ?|\\text\{[^{}]*\}|\\overline\{[A-Z]+\}"
    r"|\\(?:triangle|alpha|beta|theta|phi|omega) ?"
    r"|[A-Za-z]'?(?:_(?:[A-Za-z0-9]|\{[A-Za-z0-9,+-]*\}))?|\|[A-Z]+\||\[[A-Z]+\]"
    r"|(?<=[A-Za-z}])\([^()]{1,20}\)|(?<=[A-Za-z}'\])|])[+-](?=[A-Za-z\\|\[])| )+"
)
_FUNCTION = re.compile("sin|cos|tan|cot|sec|csc")
_BARE_UNITS = "cm|mm|km|kg|mg|ml|mi|ft|in|yd|lb|oz|hr|mph"
_TEXT_UNIT = re.compile(r"(?P<body>.+?) ?\\text\{(?P<unit>[^{}]*)\}(?:\^\{?(?P<power>[23])\}?)?")
_WORD_UNIT = re.compile(
    rf"(?P<body>.*[0-9)}}!]) ?(?P<unit>(?<= )[A-Za-z]{{3,}}(?: [A-Za-z]+)*|{_BARE_UNITS})"
    r"(?:\^\{?(?P<power>[23])\}?)?"
)
_MULTIPLIERS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_NOT_UNITS = re.compile(
    r"[^a-z .]|\b(?:and|or|not|no|none|over|minus|plus|times|point|half|halves|thirds?|quarters?|"
    r"fifths?|tenths?|dozens?|hundreds?|thousands?|millions?|billions?|trillions?|squared|cubed|"
    r"mod|modulo|base|if|except|but|for|where|to|by|less|more|than|approximately|about|least|most|"
    r"rounded|negative|score|pairs?|only|sin|cos|tan|log|sqrt|exp)\b"
)
_SAME_UNITS = {
    "percent": "%", "per cent": "%", "degree": "degree", "centimeter": "cm", "centimetre": "cm",
    "millimeter": "mm", "kilometer": "km", "kilogram": "kg", "feet": "ft", "foot": "ft",
    "inches": "in", "inche": "in", "inch": "in", "hour": "hr", "minute": "min", "second": "sec",
}  # fmt: skip


def read(text: str) -> Answer:
    """The tree of an answer in canonical text.

    Raises:
        Unreadable: it is not understood, or has more than one meaning.
    """
    if not text or len(text) > LONGEST:
        raise Unreadable(f"{len(text)} characters")
    text = _REPEATING.sub(_repeating, text)
    alternatives = _OR.sub(",", text)
    answer = _members(tokens_of(_MEMBER_OF.sub("", alternatives, count=1)), 0)
    if alternatives != text and any(isinstance(x, Inequality) for x in _listed(answer)):
        raise Unreadable("inequalities joined by words")
    return answer


def _repeating(number: re.Match[str]) -> str:
    r"""`0.1\overline{6}` as a fraction."""
    whole, fixed, period = number.groups()
    below = 10 ** len(fixed) * (10 ** len(period) - 1)
    above = int((whole or "0") + fixed + period) - int((whole or "0") + fixed)
    return rf"(\frac{{{above}}}{{{below}}})"


def _members(tokens: Tokens[str], depth: int) -> Answer:
    """One answer, or several with commas between them."""
    if depth > _DEEPEST:
        raise Unreadable("members inside members")
    pieces = _split(tokens, {","})
    if len(pieces) > _MOST_MEMBERS:
        raise Unreadable(f"{len(pieces)} members")
    members = tuple(_member(piece, depth) for piece in pieces)
    if len(members) == 1:
        return members[0]
    return Collection("list", tuple(x for member in members for x in _listed(member)))


def _listed(answer: Answer) -> tuple[Answer, ...]:
    """The answers of a list, or the one answer."""
    match answer:
        case Collection("list", members):
            return members
        case _:
            return (answer,)


def _split(tokens: Tokens[str], separators: set[str]) -> list[Tokens[str]]:
    """The pieces between separators that are in no brackets."""
    pieces, depth, start = [], 0, 0
    for at, token in enumerate(tokens):
        if token in _OPENING or token.startswith(r"\begin"):
            depth += 1
        elif token in _CLOSING or token.startswith(r"\end"):
            depth -= 1
        elif token in separators and depth == 0:
            pieces.append(tokens[start:at])
            start = at + 1
    pieces.append(tokens[start:])
    return pieces


def _member(tokens: Tokens[str], depth: int) -> Answer:
    if tokens.count(r"\pm") == 1 and not (tokens[0] == r"\{" and _closes_last(tokens)):
        signed = (_member([sign if t == r"\pm" else t for t in tokens], depth) for sign in "+-")
        return Collection("list", tuple(signed))
    if not tokens:
        raise Unreadable("nothing between two commas")
    sides = _split(tokens, {"="})
    if len(sides) > 1:
        return _equation(sides, depth)
    sides = _split(tokens, set(_INEQUALITIES))
    if len(sides) > 1:
        signs = [_INEQUALITIES[t] for t in tokens if t in _INEQUALITIES]
        if len(signs) != len(sides) - 1:
            raise Unreadable("an inequality in brackets")
        return Inequality(tuple(read_scalar(side) for side in sides), tuple(signs))
    united = _split(tokens, {r"\cup"})
    if len(united) > 1:
        return Collection("union", tuple(_bracketed(part, depth) for part in united))
    return _object(tokens, depth)


def _equation(sides: list[Tokens[str]], depth: int) -> Answer:
    left = "".join(sides[0])
    right = _object(sides[-1], depth)
    if _NAMING.fullmatch(left):
        if len(sides) > 2:
            for side in sides[1:-1]:
                read_scalar(side)
        try:
            scalar = read_scalar(sides[0])
        except Unreadable:
            scalar = None
        return Equation(scalar, right, name=left)
    if len(sides) > 2:
        raise Unreadable("a chain of equations")
    return Equation(read_scalar(sides[0]), right)


def _bracketed(tokens: Tokens[str], depth: int) -> Answer:
    answer = _object(tokens, depth)
    if not isinstance(answer, Sequence | Collection):
        raise Unreadable("a union of what are no sets")
    return answer


def _object(tokens: Tokens[str], depth: int) -> Answer:
    """What stands on one side of an equation, or alone."""
    text = "".join(tokens)
    if text.removeprefix("+").removeprefix("-") in _INFINITIES:
        return Infinity(not text.startswith("-"))
    words = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    if _WORDS.fullmatch(words) and words != "pi":
        return _word(words)
    if text == r"\emptyset":
        return Collection("set", ())
    if tokens and _MATRIX.fullmatch(tokens[0]):
        return _matrix(tokens, depth)
    if tokens and tokens[-1] in _PAIRS.get(tokens[0], ()) and _closes_last(tokens):
        inside = tokens[1:-1]
        pieces = _split(inside, {","}) if inside else []
        if tokens[0] in {r"\{", "{"} and (len(pieces) > 1 or tokens[0] == r"\{"):
            return Collection("set", _listed(_members(inside, depth + 1)) if inside else ())
        if len(pieces) > 1:
            members = tuple(_member(piece, depth + 1) for piece in pieces)
            return Sequence(tokens[0], members, tokens[-1])
    return _quantity(text)


def _closes_last(tokens: Tokens[str]) -> bool:
    """Whether the first bracket is closed by the last one."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0:
            return at == len(tokens) - 1
    return False


def _word(words: str) -> Answer:
    """One letter is a variable or a choice, `(B)` as `B`; more are words."""
    letter = words.strip("()")
    if len(letter) == 1:
        return Quantity(Name(letter))
    return Word(words.casefold() if len(words) > 2 or words[1:].islower() else words)


def _matrix(tokens: Tokens[str], depth: int) -> Answer:
    if depth or tokens[-1] != tokens[0].replace("begin", "end"):
        raise Unreadable("a matrix that does not end")
    rows = [row for row in _split(tokens[1:-1], {r"\\"}) if row]
    if len(rows) > _MOST_MEMBERS:
        raise Unreadable(f"{len(rows)} rows")
    cells = [tuple(_object(cell, depth + 1) for cell in _split(row, {"&"})) for row in rows]
    return Sequence("matrix", tuple(Sequence("row", row, "row") for row in cells), "matrix")


def _quantity(text: str) -> Quantity:
    """A scalar and its unit."""
    if text.endswith("%"):
        return Quantity(_scalar(text.removesuffix("%")), "%")
    if text.endswith(r"^{\circ}") and not _FUNCTION.search(text):
        return Quantity(_scalar(text.removesuffix(r"^{\circ}")), "degree")
    found = _TEXT_UNIT.fullmatch(text) or _WORD_UNIT.fullmatch(text)
    if found is None:
        return Quantity(_scalar(text))
    first, _, rest = found["unit"].strip(" .").casefold().partition(" ")
    if first in _MULTIPLIERS:
        scalar: Scalar = Number(Fraction(10 ** _MULTIPLIERS[first]))
        scalar = Product((_scalar(found["body"]), scalar))
        return Quantity(scalar, _unit(rest, found["power"]))
    return Quantity(_scalar(found["body"]), _unit(f"{first} {rest}", found["power"]))


def _scalar(text: str) -> Scalar:
    return read_scalar(tokens_of(text))


def _unit(words: str, power: str | None) -> str:
    unit = words.strip(" .")
    if _NOT_UNITS.search(unit):
        raise Unreadable(f"{unit!r} is no unit")
    unit = unit if unit.endswith("ss") else unit.removesuffix("s")
    unit = _SAME_UNITS.get(unit, unit)
    return f"{unit}^{power}" if power else unit
