r"""Reads one value: a number with its unit, a number in another base, words, a choice."""

from __future__ import annotations

import re
from collections.abc import Sequence as Tokens
from fractions import Fraction

from .scalars import Unreadable, negative, read_scalar
from .tree import Answer, Choice, Name, Number, Product, Quantity, Word
from .words import CURRENCIES, DEGREE, NO_UNIT, PERCENT, Unit, number_of, unit_of

_OPENING = frozenset({"(", "[", "{", r"\{", r"\lfloor", r"\lceil"})
_CLOSING = frozenset({")", "]", "}", r"\}", r"\rfloor", r"\rceil"})
TEXT = re.compile(r"\\text\{([^{}]*)\}")
_WORDS = re.compile(r"[A-Za-z]{2,}(?:[ -][A-Za-z]+){0,7}")
_CHOICE = re.compile(r"(?:option|choice)? ?\(([A-Za-z])\)|(?:option|choice) ?([A-Za-z])", re.I)
_NUMERAL = re.compile(r"\{?([0-9A-F]+)\}?_(?:([0-9]+)|\{\(?([0-9]+)\)?\}|\{\\text\{([a-z]+)\}\})")


def split(
    tokens: Tokens[str], separators: frozenset[str] | set[str]
) -> tuple[list[Tokens[str]], list[str]]:
    """The pieces between separators outside brackets, and the separators."""
    if separators.isdisjoint(tokens):
        return [tokens], []
    pieces = []
    found = []
    depth = 0
    start = 0
    for at, token in enumerate(tokens):
        if token in _OPENING or token.startswith(r"\begin"):
            depth += 1
        elif token in _CLOSING or token.startswith(r"\end"):
            depth -= 1
        elif token in separators and depth == 0:
            pieces.append(tokens[start:at])
            found.append(token)
            start = at + 1
    pieces.append(tokens[start:])
    return pieces, found


def closes_last(tokens: Tokens[str]) -> bool:
    """Whether the last token closes the first bracket."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0:
            return at == len(tokens) - 1
    return False


def bare(tokens: Tokens[str]) -> Tokens[str]:
    """The tokens without surrounding spaces and braces."""
    while tokens and tokens[0] == " ":
        tokens = tokens[1:]
    while tokens and tokens[-1] == " ":
        tokens = tokens[:-1]
    if not (len(tokens) > 2 and tokens[0] == "{" and tokens[-1] == "}" and closes_last(tokens)):
        return tokens
    is_one = len(split(tokens[1:-1], {",", r"\over", r"\choose"})[0]) == 1
    return bare(tokens[1:-1]) if is_one else tokens


def numeral_of(text: str) -> Answer | None:
    """A number in another base; None if the text has no base."""
    numeral = _NUMERAL.fullmatch(text)
    if numeral is None:
        return None
    digits, plain, braced, word = numeral.groups()
    base = number_of(word) if word else int((plain or braced)[:9])
    if base == 10 and digits.isdigit():
        return Quantity(Number(Fraction(digits)))
    if base is None or not 2 <= base <= 16:
        raise Unreadable("a subscript of a number that is not a base")
    return Word(f"{digits.lstrip('0') or '0'}_{base}")


def word_of(text: str) -> Answer | None:
    """Words, a number in words, or a choice; None if it is none of these."""
    choice = _CHOICE.fullmatch(TEXT.sub(r"\1", text).strip())
    if choice:
        return Choice((choice[1] or choice[2]).upper())
    found = TEXT.fullmatch(text)
    if found is None:
        return None
    words = found[1].strip()
    number = number_of(words)
    if number is not None:
        return Quantity(Number(Fraction(number)))
    if len(words) == 1 and words.isalpha():
        return Quantity(Name(words))
    if not _WORDS.fullmatch(words):
        raise Unreadable(f"{words!r} is not understood")
    return Word(words.casefold())


def quantity(tokens: Tokens[str]) -> Quantity:
    """A scalar and its unit."""
    tokens = bare(tokens)
    first = TEXT.fullmatch(tokens[0]) if tokens else None
    if first and first[1].strip().casefold() in {"negative", "minus"}:
        rest = quantity(tokens[1:])
        if "-" in tokens:
            raise Unreadable("two signs")
        return Quantity(negative(rest.scalar), rest.unit)
    currency = NO_UNIT
    signs = {t for t in tokens if t in CURRENCIES}
    if len(signs) == 1:
        currency = CURRENCIES[signs.pop()]
        tokens = bare([t for t in tokens if t not in CURRENCIES])
    body, multiplier, unit = _united(tokens)
    if currency != NO_UNIT and unit not in {NO_UNIT, currency}:
        raise Unreadable("two units")
    scalar = read_scalar(bare(body))
    if multiplier != 1:
        scalar = Product((Number(Fraction(multiplier)), scalar))
    return Quantity(scalar, unit if currency == NO_UNIT else currency)


def _united(tokens: Tokens[str]) -> tuple[Tokens[str], int, Unit]:
    """The tokens before the unit, the multiplier and the unit."""
    if tokens and tokens[-1] == "%":
        return tokens[:-1], 1, PERCENT
    degree = ["^", "{", r"\circ", "}"]
    for scale in ("C", "F"):
        if list(tokens[-5:]) in ([*degree, scale], [*degree, rf"\text{{{scale}}}"]):
            return tokens[:-5], 1, Unit(Fraction(1), ((f"degree {scale}", 1),))
    if list(tokens[-4:]) == degree and not _has_function(tokens):
        return tokens[:-4], 1, DEGREE
    at = next((at for at, token in enumerate(tokens) if TEXT.fullmatch(token)), None)
    if at is None:
        return tokens, 1, NO_UNIT
    words = "".join(TEXT.sub(r" \1 ", token) for token in tokens[at:])
    words = re.sub(r"\^\{?(-?[0-9])\}?", r"^\1", words.replace(r"\cdot", "*"))
    found = unit_of(re.sub(r" *([/^*]) *", r"\1", re.sub(" +", " ", words)))
    if found is None:
        raise Unreadable(f"{words.strip()!r} is not a unit")
    return tokens[:at], *found


def _has_function(tokens: Tokens[str]) -> bool:
    return any(re.fullmatch(r"\\?(?:arc)?(?:sin|cos|tan|cot|sec|csc)", token) for token in tokens)
