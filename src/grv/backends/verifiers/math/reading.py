r"""Reads an answer: canonical text becomes a tree, or `Unreadable` is raised.

This module splits the text into members, sides and units; `scalars` reads values. The whole text
must be understood: an ambiguous text, and a text with an unknown word or sign, is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as Tokens
from fractions import Fraction
from typing import Literal

from .quantities import TEXT, bare, closes_last, numeral_of, quantity, split, word_of
from .regions import ALL, is_interval
from .scalars import FUNCTION_LETTERS, Unreadable, read_scalar, tokens_of
from .tree import (
    CONSTANTS,
    Answer,
    Assignment,
    Cases,
    Congruence,
    Equation,
    Infinity,
    Labelled,
    Named,
    Number,
    Product,
    Quantity,
    Region,
    RelationChain,
    Scalar,
    Sequence,
    Shape,
    SolutionFamily,
    Unordered,
    names,
)
from .words import NO_UNIT
from .writing import LONGEST

_MOST_MEMBERS = 400
_MOST_SIDES = 40
_DEEPEST = 8  # members inside members
_PAIRS = {"(": (")", "]"), "[": ("]", ")"), r"\{": (r"\}",), "{": ("}",)}
_WORDS = {r"\lor": "or", r"\land": "and"}
_SET_OPERATIONS: tuple[tuple[str, Literal["or", "and", "without"]], ...] = (
    (r"\cup", "or"),
    (r"\cap", "and"),
    (r"\setminus", "without"),
    (r"\backslash", "without"),
)
_MODULO = frozenset({r"\pmod", r"\mod", r"\bmod"})
_IF = frozenset({"if", "for", "when", "where", "as"})
_INDEX = re.compile(
    r"(?:,|;| |\(|\\text\{,? ?(?:where|for|with|for any|for all|for some|for integers?) ?\})*"
    r"([a-zA-Z])\\in\\integers\)?$"
)
_LABEL = re.compile(  # (C), C), C: and so on
    r"\\text\{ ?\(?([A-H])[).:] ?\}|\((?:\\text\{)?([A-H])\}?\)|\(\\text\{([A-H])\}\)"
)
_VALUE_STARTS = frozenset({r"\frac", r"\sqrt", r"\dollar"})
_INDEPENDENT = frozenset("xtn")  # variables that a function may be of
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
_APPLIED = re.compile(r"([A-Za-z](?:_[0-9]|')?)\(([^()]{1,20})\)")
_NAMING = re.compile(  # names of answers: x, m+n, f(2), a_{10}, AB, [ABC], (x,y)
    rf"{_NAME}(?:[+-]{_NAME})*|[A-Z]{{2,3}}|\|[A-Z]+\|"
    rf"|\[(?:[A-Z]{{1,3}}|\\text\{{[A-Z]+\}})\]|\({_LETTER}(?:,{_LETTER})+\)"
    rf"|\\(?:angle|triangle) ?[A-Z]{{1,3}}|\\overline\{{[A-Z]+\}}"
    rf"|\\text\{{ ?(?:(?:the|final|total|maximum|minimum) )*(?i:{_NOUN}) ?\}}"
)
_COORDINATES = re.compile("[xyz][+-][xyz]|[+-].*[xyz].*[+-]")  # a line or a plane, not a name


def read(text: str) -> Answer:
    """The tree of an answer in canonical text; `Unreadable` if it is not understood."""
    if not text or len(text) > LONGEST:
        raise Unreadable(f"{len(text)} characters")
    return _answer(tokens_of(_REPEATING.sub(_repeating, text)), 0)


def is_constant(text: str) -> bool:
    """Whether canonical text is a value without variables."""
    try:
        answer = read(text)
    except Unreadable:
        return False
    return isinstance(answer, Quantity) and not names(answer.scalar)


def _repeating(number: re.Match[str]) -> str:
    r"""`0.1\overline{6}` as a fraction."""
    whole = number[1] or "0"
    fixed = number[2]
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
    index = _index(tokens)
    if index is not None:
        return _family(_answer(tokens[: -len(index[1])], depth + 1), index[0])
    pieces, connectors = split(tokens, _CONNECTORS)
    if len(pieces) > _MOST_MEMBERS:
        raise Unreadable(f"{len(pieces)} members")
    members = [_member(piece, depth) for piece in pieces]
    if len(members) == 1:
        return members[0]
    for piece in pieces:
        if re.fullmatch("0[0-9]+", "".join(piece)):
            raise Unreadable("a member that begins with 0, or a wrong separator of thousands")
    region = _conditions(members, set(connectors))
    return region if region is not None else _several(members, _WORDS.get(connectors[-1], ""))


def _index(tokens: Tokens[str]) -> tuple[str, Tokens[str]] | None:
    r"""The index of a family, as in `, k\in\integers`, and its tokens; None if there is none."""
    text = "".join(tokens[-7:])
    found = _INDEX.search(text)
    if found is None:
        return None
    size = 0
    count = 0
    while size < len(found[0]):
        count += 1
        size += len(tokens[-count])
    return found[1], tokens[-count:]


def _family(answer: Answer, index: str) -> Answer:
    """The values of an answer for every integer."""
    name = answer.name if isinstance(answer, Named) and not answer.others else ""
    value = answer.value if isinstance(answer, Named) and not answer.others else answer
    scalars: list[Scalar] = []
    for member in value.members if isinstance(value, Unordered) else (value,):
        if not isinstance(member, Quantity) or member.unit != NO_UNIT:
            raise Unreadable("a family of other things than numbers")
        scalars.append(member.scalar)
    family = SolutionFamily(tuple(scalars), index)
    return Named(name, family) if name else family


def _conditions(members: list[Answer], connectors: set[str]) -> Answer | None:
    """The set that conditions describe together; None if there are no conditions."""
    regions = [m for m in members if isinstance(m, Region)]
    if connectors == {r"\lor"} and (regions or all(map(is_interval, members))):
        return united(members, "or")
    if not regions:
        return None
    first, *others = members
    if isinstance(first, Region) and len(regions) == 1:  # x is not 1, 2
        match first.shape:
            case Shape("or", (RelationChain((side, _), ("!=",)),)):
                ends = [m for m in others if isinstance(m, Quantity)]
                if len(ends) == len(others):
                    chains = [Shape("or", (RelationChain((side, end), ("!=",)),)) for end in ends]
                    return Region(first.name, Shape("and", (first.shape, *chains)))
    if len(regions) < len(members) or r"\lor" in connectors:
        raise Unreadable("conditions with other things")
    if len({region.name for region in regions}) == len(regions):
        return Unordered(tuple(regions))
    return united(members, "and")


def united(
    members: Tokens[Answer],
    operation: Literal["or", "and", "without"],
    name: str | None = None,
) -> Region:
    """The set that is made of other sets."""
    called = {name} if name else set()
    shapes: list[Sequence | RelationChain | Shape] = []
    for member in members:
        match member:
            case Region(variable, shape):
                called |= {variable} if variable else set()
                shapes.append(shape)
            case Sequence() if is_interval(member):
                shapes.append(member)
            case Named(variable, Quantity() as point, ()) if operation == "or":  # x = 1
                called |= {variable} if variable else set()
                shapes.append(Sequence("[", (point, point), "]"))
            case Unordered(points) if member.is_set:
                shapes.append(Shape("or", tuple(Sequence("[", (p, p), "]") for p in points)))
            case _:
                raise Unreadable("a union of other things than intervals")
    if len(called) > 1:
        raise Unreadable("conditions on several variables")
    return Region(called.pop() if called else None, Shape(operation, tuple(shapes)))


def _several(members: list[Answer], word: str = "") -> Answer:
    """A list; `x=1,2` is a named list, `x=3,y=4` assigns several variables."""
    named = [m for m in members if isinstance(m, Named) and m.name]
    if not named:
        return Unordered(tuple(x for member in members for x in listed(member)), word=word)
    if len({m.name for m in named}) == 1 and members[0] is named[0]:
        values = (_value(m) for m in members)
        return Named(named[0].name, Unordered(tuple(x for v in values for x in listed(v))))
    if len({m.name for m in named}) == len(members):
        return Assignment(tuple(named))
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
    """One member of a list: an equation, an inequality, a value, or two with plus or minus."""
    signs = [at for at, token in enumerate(tokens) if token in {r"\pm", r"\mp"}]
    if len(signs) == 1 and not (tokens[0] == r"\{" and closes_last(tokens)):
        before = tokens[: signs[0]]
        after = tokens[signs[0] + 1 :]
        both = [_member([*before, sign, *after], depth) for sign in "+-"]
        return _several(both)
    sides, _ = split(tokens, {r"\equiv"})
    if len(sides) == 2:
        return _congruence(bare(sides[0]), bare(sides[1]))
    sides, _ = split(tokens, {"="})
    if len(sides) > 1:
        return _equal_sides([bare(side) for side in sides], depth)
    sides, found = split(tokens, frozenset(_INEQUALITIES))
    if len(sides) > 1:
        return _inequality([bare(side) for side in sides], [_INEQUALITIES[t] for t in found])
    sides, _ = split(tokens, {r"\in"})
    if len(sides) == 2:
        return _inside(bare(sides[0]), _member(sides[1], depth + 1))
    return _set_expression(tokens, depth)


def _set_expression(tokens: Tokens[str], depth: int) -> Answer:
    """Sets joined by signs, or one object."""
    if depth > _DEEPEST:
        raise Unreadable("members inside members")
    for sign, operation in _SET_OPERATIONS:
        pieces, _ = split(tokens, {sign})
        if len(pieces) > 1:
            members = [_set_expression(bare(piece), depth + 1) for piece in pieces]
            sets = [m.members for m in members if isinstance(m, Unordered) and m.is_set]
            if operation == "or" and len(sets) == len(members):
                return Unordered(tuple(x for each in sets for x in each), is_set=True)
            return united(members, operation)
    tokens = bare(tokens)
    if tokens and tokens[0] == r"\reals":
        if len(tokens) == 1:
            return Region(None, ALL)
        if tokens[1] == "-":
            return united([Region(None, ALL), _object(tokens[2:], depth + 1)], "without")
    return _object(tokens, depth)


def _inside(name: Tokens[str], place: Answer) -> Answer:
    r"""`x \in` a set or a region."""
    if len(name) != 1 or not re.fullmatch(_LETTER, name[0]):
        raise Unreadable("a set with something else than a variable before it")
    if isinstance(place, Unordered):
        return Named(name[0], place)
    return united([place], "or", name[0])


def _congruence(left: Tokens[str], right: Tokens[str]) -> Answer:
    """`x = a (mod m)`."""
    at = next((at for at, token in enumerate(right) if token in _MODULO), None)
    if at is None:
        raise Unreadable("a congruence without a modulus")
    residue = right[: at - 1] if at and right[at - 1] == "(" else right[:at]
    modulus = right[at + 1 : -1] if len(residue) < at else right[at + 1 :]
    return Congruence(read_scalar(left), read_scalar(bare(residue)), read_scalar(bare(modulus)))


def _equal_sides(sides: list[Tokens[str]], depth: int) -> Answer:
    """A named value, an equation with variables, or a chain of values."""
    if len(sides) > _MOST_SIDES:
        raise Unreadable(f"{len(sides)} sides")
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
    """The name that a side of an equation gives to the other; None if it is an expression."""
    if side in CONSTANTS or side == r"\pi" or _COORDINATES.search(side):
        return None
    applied = _APPLIED.fullmatch(side)
    if applied:
        function, argument = applied.groups()
        is_function = function[0] in FUNCTION_LETTERS or (function == "E" and argument.isupper())
        is_index = (
            argument in _INDEPENDENT and argument != function and function not in _INDEPENDENT
        )
        return side if is_function or is_index else None
    if not _NAMING.fullmatch(side):
        return None
    if "(" in side or "\\" in side:
        return side
    terms = sorted(re.findall(r"[+-][^+-]+", side if side[0] in "+-" else f"+{side}"))
    return "".join(terms).removeprefix("+")


def _inequality(sides: list[Tokens[str]], signs: list[str]) -> Answer:
    ends = tuple(_infinity(side) or Quantity(read_scalar(side)) for side in sides)
    directions = {sign[0] for sign in signs}
    if len(directions) > 1 or (len(sides) > 2 and "!" in directions):
        raise Unreadable("a chain of inequalities")
    variables = {name for end in ends if isinstance(end, Quantity) for name in names(end.scalar)}
    if not variables:
        raise Unreadable("an inequality without a variable")
    name = variables.pop() if len(variables) == 1 else None
    return Region(name, Shape("or", (RelationChain(ends, tuple(signs)),)))


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
    if len(tokens) > 2 and (tokens[0] == "]" or tokens[-1] == "["):  # ]1,2[ is (1,2)
        opening = "(" if tokens[0] == "]" else tokens[0]
        closing = ")" if tokens[-1] == "[" else tokens[-1]
        tokens = [opening, *tokens[1:-1], closing]
    text = "".join(tokens)
    infinity = _infinity(tokens)
    if infinity is not None:
        return infinity
    word = numeral_of(text) or word_of(text)
    if word is not None:
        return word
    if text == r"\emptyset":
        return Unordered((), is_set=True)
    labelled = _labelled(tokens, depth)
    if labelled is not None:
        return labelled
    if tokens[0] == r"\begin{cases}":
        return _cases(tokens, depth)
    brackets = tokens[0] == "(" and tokens[1:2] and _MATRIX.fullmatch(tokens[1])
    matrix = tokens[1:-1] if brackets and tokens[-1] == ")" else tokens
    start = next((at for at, token in enumerate(tokens) if _MATRIX.fullmatch(token)), 0)
    if start and not brackets:
        return _multiplied(tokens[:start], _matrix(tokens[start:], depth))
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


def _labelled(tokens: Tokens[str], depth: int) -> Answer | None:
    """The letter of a choice and its value; None if there is no letter."""
    label = _LABEL.match("".join(tokens[:4]))
    if label is None:
        return None
    size = 0
    count = 0
    while size < label.end():
        size += len(tokens[count])
        count += 1
    rest = bare(tokens[count:])
    if not rest or not (rest[0][0].isdigit() or rest[0] in _VALUE_STARTS or TEXT.match(rest[0])):
        return None
    return Labelled(label[1] or label[2] or label[3], _object(rest, depth + 1))


def _cases(tokens: Tokens[str], depth: int) -> Answer:
    """Values with their conditions."""
    if depth > 1 or tokens[-1] != r"\end{cases}":
        raise Unreadable("cases that do not end")
    rows = [row for row in split(tokens[1:-1], {r"\\"})[0] if bare(row)]
    if not 1 < len(rows) <= 12:
        raise Unreadable(f"{len(rows)} cases")
    read_rows: list[tuple[Answer, Answer]] = []
    for row in rows:
        cells, _ = split(row, {"&"})
        if len(cells) != 2:
            raise Unreadable("a case without a condition")
        value = bare(cells[0])
        value = bare(value[:-1]) if value and value[-1] in {",", ";"} else value
        condition = bare(cells[1])
        condition = bare(condition[:-1]) if condition and condition[-1] == "," else condition
        word = TEXT.fullmatch(condition[0]) if condition else None
        if word and word[1].strip(" ,").casefold() in _IF and condition[1:]:
            condition = condition[1:]
        read_rows.append((_object(value, depth + 1), _answer(condition, depth + 1)))
    return Cases(tuple(read_rows))


def _bracketed(tokens: Tokens[str], depth: int) -> Answer | None:
    """A set, a point or an interval; None if the brackets only group a scalar."""
    inside = tokens[1:-1]
    if tokens[0] == r"\{":
        builder, _ = split(inside, {":", r"\mid", "|"})
        if len(builder) == 2:
            place = r"\in\reals"
            name = "".join(bare(builder[0])).removesuffix(place)
            region = _answer(builder[1], depth + 1)
            if not isinstance(region, Region) or region.name != name:
                raise Unreadable("a set that is described by more than a condition")
            return region
        return Unordered(_set(inside, depth), is_set=True)
    pieces, separators = split(inside, {",", ";"})
    if len(pieces) < 2:
        return None
    if len(set(separators)) > 1:
        raise Unreadable("two separators")
    if tokens[0] == "{":
        return Unordered(_set(inside, depth), is_set=True)
    members = tuple(_member(piece, depth + 1) for piece in pieces)
    return Sequence(tokens[0], members, tokens[-1])


def _set(inside: Tokens[str], depth: int) -> tuple[Answer, ...]:
    if not inside:
        return ()
    members = _answer(inside, depth + 1)
    if isinstance(members, Named | Assignment):
        raise Unreadable("a name in a set")
    return listed(members)


def _multiplied(factor: Tokens[str], matrix: Answer) -> Answer:
    """A matrix with each entry multiplied by a scalar."""
    factor = bare(factor)
    if factor and factor[-1] in {r"\cdot", r"\times", "*"}:
        factor = factor[:-1]
    scalar = Number(Fraction(-1)) if list(factor) == ["-"] else read_scalar(factor)
    if not isinstance(matrix, Sequence):
        raise Unreadable("a product with a matrix")
    rows: list[Answer] = []
    for row in matrix.members:
        entries = row.members if isinstance(row, Sequence) else ()
        scalars = [entry.scalar for entry in entries if isinstance(entry, Quantity)]
        if len(scalars) < len(entries):
            raise Unreadable("a product with a matrix")
        products = tuple(Quantity(Product((scalar, entry))) for entry in scalars)
        rows.append(Sequence("row", products, "row"))
    return Sequence("matrix", tuple(rows), "matrix")


def _matrix(tokens: Tokens[str], depth: int) -> Answer:
    if depth or tokens[-1] != tokens[0].replace("begin", "end"):
        raise Unreadable("a matrix that does not end")
    rows = [row for row in split(tokens[1:-1], {r"\\"})[0] if row]
    if len(rows) > _MOST_MEMBERS:
        raise Unreadable(f"{len(rows)} rows")
    cells = [tuple(_object(cell, depth + 1) for cell in split(row, {"&"})[0]) for row in rows]
    return Sequence("matrix", tuple(Sequence("row", row, "row") for row in cells), "matrix")
