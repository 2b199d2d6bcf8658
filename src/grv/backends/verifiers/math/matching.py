r"""Whether an answer equals the reference: members, units and names match, scalars are equal.

These rules accept what a strict reading would refuse:

- A unit on one side only is ignored. Units on both sides must be of the same kind and are
  converted: 50 mm is 5 cm.
- `x%` is x/100. If the reference has the percent sign and x > 1, x alone is accepted too.
- `x = 5` is 5, and `f(2) = 7`, `m + n = 7`, `AB = 7` are 7. `2x = 10` is neither 5 nor 10.
- Lists and sets have no order, and equal each other. In round brackets the order counts; the
  brackets are optional.
- `x > 3` is the interval `(3,\infty)`.
- A rounded decimal is a different number.
"""

from __future__ import annotations

from fractions import Fraction

from .scalars import Unreadable, negative, read_scalar, tokens_of
from .tree import (
    Answer,
    Assignment,
    Choice,
    Degrees,
    Equation,
    Inequality,
    Infinity,
    Name,
    Named,
    Number,
    Product,
    Quantity,
    Region,
    Scalar,
    Sequence,
    Sum,
    Unordered,
    Word,
    mentions,
)
from .values import WorkLimit, equal, proportional, rough
from .words import DEGREE, PERCENT, Unit


def match(reference: Answer, candidate: Answer, seed: str) -> bool:
    """Whether the candidate's answer equals the reference; `Unreadable` if that is undecidable."""
    return _Matching(seed).match(_alone(reference), _alone(candidate))


def _alone(answer: Answer) -> Answer:
    """The member of a set with only one."""
    match answer:
        case Unordered((Quantity() as only,)):
            return only
        case _:
            return answer


class _Matching:
    def __init__(self, seed: str) -> None:
        self._work = WorkLimit(seed)

    def match(self, reference: Answer, candidate: Answer) -> bool:
        match reference, candidate:
            case (Named(), _) | (_, Named()):
                return self._named(reference, candidate)
            case Quantity(), Quantity():
                return self._quantities(reference, candidate)
            case (Choice(letter), Quantity(Name(name))) | (Quantity(Name(name)), Choice(letter)):
                return letter == name.upper()
            case (Infinity(), Infinity()) | (Word(), Word()) | (Choice(), Choice()):
                return reference == candidate
            case Equation() | Inequality(), Equation() | Inequality():
                return self._proportional(reference, candidate)
            case Assignment(these), Assignment(those):
                same = [m.name for m in these] == [m.name for m in those]
                return same and self._in_order(these, those)
            case (Assignment(these), Sequence("(", those, ")")) | (
                Sequence("(", those, ")"),
                Assignment(these),
            ):
                return self._in_order(tuple(m.value for m in these), those)
            case Sequence(opening, these, closing), Sequence(other, those, end):
                return (opening, closing) == (other, end) and self._in_order(these, those)
            case (Sequence("(", these, ")"), Unordered(those, is_set=False)) | (
                Unordered(these, is_set=False),
                Sequence("(", those, ")"),
            ):
                return self._in_order(these, those)
            case Unordered(these), Unordered(those):
                return self._in_any_order(these, those)
            case (Region(), Region() | Sequence()) | (Sequence() | Unordered(), Region()):
                return self._regions(reference, candidate)
            case _:
                return False

    def _named(self, reference: Answer, candidate: Answer) -> bool:
        """Named values: the names are equal, or one side has no name."""
        for side in (reference, candidate):
            if isinstance(side, Named) and not self._is_true(side):
                return False
        match reference, candidate:
            case Named(a, these), Named(b, those):
                return (a == b or not a or not b) and self.match(these, those)
            case (Named() as named, Equation() as equation) | (
                Equation() as equation,
                Named() as named,
            ):
                other = _as_equation(named)
                return other is not None and self._proportional(other, equation)
            case Named(value=value), _:
                return self.match(value, candidate)
            case _, Named(value=value):
                return self.match(reference, value)
        return False

    def _is_true(self, named: Named) -> bool:
        return all(self.match(named.value, other) for other in named.others)

    def _quantities(self, reference: Quantity, candidate: Quantity) -> bool:
        a, b = reference.scalar, candidate.scalar
        units = reference.unit, candidate.unit
        if units[0].dimension == units[1].dimension:
            return self._equal(_scaled(a, units[0]), _scaled(b, units[1]))
        if units[0].dimension and units[1].dimension:
            return False
        if PERCENT in units:
            as_part = self._equal(*map(_scaled, (a, b), units))
            return as_part or (units[0] == PERCENT and _greater_than_one(a) and self._equal(a, b))
        if DEGREE in units and (mentions(a, "pi") or mentions(b, "pi")):
            return self._equal(
                *(Degrees(x) if u == DEGREE else x for x, u in zip((a, b), units, strict=True))
            )
        return self._equal(a, b)

    def _equal(self, reference: Scalar, candidate: Scalar) -> bool:
        return equal(reference, candidate, self._work)

    def _proportional(self, these: Equation | Inequality, those: Equation | Inequality) -> bool:
        """Whether two equations are multiples of each other, or two inequalities with one sign."""
        sign = getattr(these, "sign", "=")
        a, b = (Sum((each.left, negative(each.right))) for each in (these, those))
        return sign == getattr(those, "sign", "=") and proportional(
            a, b, self._work, positive=sign in {"<", "<="}
        )

    def _regions(self, reference: Answer, candidate: Answer) -> bool:
        """Intervals in any order, of the same variable if both sides name one."""
        sides: list[tuple[str | None, tuple[Answer, ...]]] = []
        for side in (reference, candidate):
            match side:
                case Region(name, intervals):
                    sides.append((name, intervals))
                case Unordered(members):
                    sides.append((None, members))
                case Sequence():
                    sides.append((None, (side,)))
                case _:
                    return False
        (name, these), (other, those) = sides
        return (None in {name, other} or name == other) and self._in_any_order(these, those)

    def _in_order(self, these: tuple[Answer, ...], those: tuple[Answer, ...]) -> bool:
        return len(these) == len(those) and all(map(self.match, these, those))

    def _in_any_order(self, these: tuple[Answer, ...], those: tuple[Answer, ...]) -> bool:
        if len(these) != len(those):
            return False
        left = sorted(those, key=self._rough)
        for this in sorted(these, key=self._rough):
            at = next((at for at, that in enumerate(left) if self.match(this, that)), None)
            if at is None:
                return False
            del left[at]
        return True

    def _rough(self, answer: Answer) -> tuple[float, ...]:
        """The approximate value, for sorting, so that equal answers come together."""
        match answer:
            case Quantity(scalar):
                return rough(scalar, self._work)
            case Sequence(members=members):
                return tuple(x for member in members for x in self._rough(member))
            case _:
                return ()


def _as_equation(named: Named) -> Equation | None:
    match named:
        case Named(name, Quantity(scalar)) if "," not in name:
            try:
                return Equation(read_scalar(tokens_of(name)), scalar)
            except Unreadable:
                return None
        case _:
            return None


def _scaled(scalar: Scalar, unit: Unit) -> Scalar:
    return scalar if unit.factor == 1 else Product((Number(unit.factor), scalar))


def _greater_than_one(scalar: Scalar) -> bool:
    return isinstance(scalar, Number) and abs(scalar.value) > Fraction(1)
