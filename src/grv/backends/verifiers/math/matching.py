r"""Whether an answer is the reference: members, units and names matched, scalars compared.

The rules, where a strict reading would refuse what people accept:

- A unit on one side only does not count; on both sides it must be the same.
- `x%` is x/100; where the other side has no unit and x is greater than 1, it may also be x.
- `x = 5` is 5, and `f(2) = 7`, `m + n = 7`, `AB = 7` are 7. `2x = 10` is neither 5 nor 10.
- Answers one after the other, and sets, are in any order and equal to one another; between round
  brackets the order counts, and may be given without them.
- `x > 3` is the interval `(3,\infty)`.
- A rounded decimal is another number.
"""

from __future__ import annotations

from fractions import Fraction

from .rendering import render
from .scalars import Unreadable, negative
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
    Sum,
    Word,
    names,
)
from .values import Comparing, equal, proportional

Pairs = list[tuple[str, str]]  # what was found equal, in LaTeX: the reference's, the candidate's

_PERCENT = Number(Fraction(1, 100))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


def match(reference: Answer, candidate: Answer, seed: str) -> Pairs | None:
    """What was found equal, pair by pair; None where the answers differ.

    Words and infinities are equal or not as they stand, and in no pair.

    Raises:
        Unreadable: it cannot be told.
    """
    return _Matching(seed).match(reference, candidate)


class _Matching:
    def __init__(self, seed: str) -> None:
        self._comparing = Comparing(seed)

    def match(self, reference: Answer, candidate: Answer) -> Pairs | None:
        reference, candidate = self._settled(reference, candidate)
        match reference, candidate:
            case Quantity(), Quantity():
                return self._quantities(reference, candidate)
            case Infinity(a), Infinity(b):
                return [] if a is b else None
            case Word(a), Word(b):
                return [] if a == b else None
            case Equation(), Equation():
                return self._equations(reference, candidate)
            case Inequality(), Inequality():
                return self._inequalities(reference, candidate)
            case Sequence(opening, these, closing), Sequence(other, those, end):
                return self._in_order(these, those) if (opening, closing) == (other, end) else None
            case Sequence("(", these, ")"), Collection("list", those):
                return self._in_order(these, those)
            case Collection("list", these), Sequence("(", those, ")"):
                return self._in_order(these, those)
            case Collection(kind, these), Collection(other, those):
                return self._in_any_order(these, those) if _alike(kind, other) else None
            case Collection("set" | "list", (only,)), Quantity():
                return self.match(only, candidate)
            case Quantity(), Collection("set" | "list", (only,)):
                return self.match(reference, only)
            case _:
                return None

    def _settled(self, reference: Answer, candidate: Answer) -> tuple[Answer, Answer]:
        """Both in the form that lets them be compared: without names, intervals as intervals."""
        match reference, candidate:
            case Equation(), Equation():
                pass
            case Equation(left=Name(), right=value), _:
                reference = value
            case _, Equation(right=value, name=name) if name is not None:
                candidate = value
            case _, Equation(right=value) if self._states_a_fact(candidate):
                candidate = value
        return _as_interval(reference), _as_interval(candidate)

    def _states_a_fact(self, equation: Answer) -> bool:
        """Whether it is true without variables, as `2 + 3 = 5`."""
        match equation:
            case Equation(left, Quantity(right)) if left and not names(left) | names(right):
                return equal(left, right, self._comparing)
            case _:
                return False

    def _quantities(self, reference: Quantity, candidate: Quantity) -> Pairs | None:
        a, b = reference.scalar, candidate.scalar
        units = {reference.unit, candidate.unit}
        if len(units) == 2 and "" not in units:
            return None
        if len(units) == 1 or "%" not in units:
            return self._scalars(a, b)
        if reference.unit == "%":
            as_part = self._scalars(Product((a, _PERCENT)), b)
        else:
            as_part = self._scalars(a, Product((b, _PERCENT)))
        return as_part or (self._scalars(a, b) if _greater_than_one(a) else None)

    def _scalars(self, reference: Scalar, candidate: Scalar) -> Pairs | None:
        if not equal(reference, candidate, self._comparing):
            return None
        return [(render(reference), render(candidate))]

    def _equations(self, reference: Equation, candidate: Equation) -> Pairs | None:
        if reference.name is not None and reference.name == candidate.name:
            return self.match(reference.right, candidate.right)
        a, b = _difference(reference), _difference(candidate)
        if a is None or b is None:
            return [] if reference == candidate else None
        if not proportional(a, b, self._comparing):
            return None
        return [(f"{render(a)}=0", f"{render(b)}=0")]

    def _inequalities(self, reference: Inequality, candidate: Inequality) -> Pairs | None:
        a, b = _oriented(reference), _oriented(candidate)
        if a is None or b is None:
            raise Unreadable("a chain of inequalities")
        if a[1] != b[1]:
            return None
        if not proportional(a[0], b[0], self._comparing, positive=a[1] != "!="):
            return None
        sign = {"<": "<", "<=": r"\le ", "!=": r"\ne "}[a[1]]
        return [(f"{render(a[0])}{sign}0", f"{render(b[0])}{sign}0")]

    def _in_order(self, these: tuple[Answer, ...], those: tuple[Answer, ...]) -> Pairs | None:
        if len(these) != len(those):
            return None
        pairs: Pairs = []
        for this, that in zip(these, those, strict=True):
            found = self.match(this, that)
            if found is None:
                return None
            pairs += found
        return pairs

    def _in_any_order(self, these: tuple[Answer, ...], those: tuple[Answer, ...]) -> Pairs | None:
        if len(these) != len(those):
            return None
        pairs, left = [], list(those)
        for this in these:
            for at, that in enumerate(left):
                found = self.match(this, that)
                if found is not None:
                    pairs += found
                    del left[at]
                    break
            else:
                return None
        return pairs


def _as_interval(answer: Answer) -> Answer:
    r"""`1 < x \le 2` as `(1,2]`, `x > 3` as `(3,\infty)`; anything else as it is."""
    if not isinstance(answer, Inequality) or "!=" in answer.signs:
        return answer
    match answer.sides, answer.signs:
        case (low, Name(), high), (first, second) if first[0] == second[0]:
            if names(low) or names(high):
                return answer
            if first[0] == ">":
                low, high, first, second = high, low, _FLIPPED[second], _FLIPPED[first]
            opening, closing = "[" if "=" in first else "(", "]" if "=" in second else ")"
            return Sequence(opening, (Quantity(low), Quantity(high)), closing)
        case (Name(), bound), (sign,) if not names(bound):
            return _ray(bound, sign)
        case (bound, Name()), (sign,) if not names(bound):
            return _ray(bound, _FLIPPED[sign])
        case _:
            return answer


def _ray(bound: Scalar, sign: str) -> Answer:
    if sign[0] == ">":
        return Sequence("[" if "=" in sign else "(", (Quantity(bound), Infinity(True)), ")")
    return Sequence("(", (Infinity(False), Quantity(bound)), "]" if "=" in sign else ")")


def _difference(equation: Equation) -> Scalar | None:
    """Left side minus right side."""
    if equation.left is None or not isinstance(equation.right, Quantity) or equation.right.unit:
        return None
    return Sum((equation.left, negative(equation.right.scalar)))


def _oriented(inequality: Inequality) -> tuple[Scalar, str] | None:
    """The difference of its sides, and `<`, `<=` or `!=` to 0."""
    if len(inequality.sides) != 2:
        return None
    (left, right), (sign,) = inequality.sides, inequality.signs
    if sign[0] == ">":
        left, right, sign = right, left, _FLIPPED[sign]
    return Sum((left, negative(right))), sign


def _alike(kind: str, other: str) -> bool:
    return kind == other or {kind, other} == {"set", "list"}


def _greater_than_one(scalar: Scalar) -> bool:
    return isinstance(scalar, Number) and abs(scalar.value) > 1
