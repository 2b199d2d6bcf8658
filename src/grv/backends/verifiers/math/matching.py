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

import math
from fractions import Fraction

from .equality import AnswerComparison, approximation, degree, substituted
from .exact import Undecided
from .regions import ALL, Line, is_interval
from .scalars import Unreadable, negative, read_scalar, tokens_of
from .tree import (
    Answer,
    Assignment,
    Call,
    Cases,
    Choice,
    Congruence,
    Degrees,
    Equation,
    Infinity,
    Labelled,
    Name,
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
    Sum,
    Unordered,
    Word,
    mentions,
    names,
)
from .words import DEGREE, NO_UNIT, PERCENT, Unit

_INDICES = frozenset("kmn")
_OTHERWISE = (Word("otherwise"), Word("else"))


def match(reference: Answer, candidate: Answer, seed: str) -> bool:
    """Whether the candidate's answer equals the reference; `Undecided` if that is not known."""
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
        self._comparison = AnswerComparison(seed)
        self._line = Line(self._comparison)

    def match(self, reference: Answer, candidate: Answer) -> bool:
        match reference, candidate:
            case (Named(), _) | (_, Named()):
                return self._named(reference, candidate)
            case Quantity(), Quantity():
                return self._quantities(reference, candidate)
            case (Labelled(), _) | (_, Labelled()):
                return self._labelled(reference, candidate)
            case (Choice(letter), Quantity(Name(name))) | (Quantity(Name(name)), Choice(letter)):
                return letter == name.upper()
            case (Infinity(), Infinity()) | (Word(), Word()) | (Choice(), Choice()):
                return reference == candidate
            case Equation(), Equation():
                return self._proportional(reference, candidate)
            case Congruence(), Congruence():
                return self._congruent(reference, candidate)
            case (SolutionFamily(), _) | (_, SolutionFamily()):
                return self._families(reference, candidate)
            case Cases(), Cases():
                return self._cases(reference, candidate)
            case (Assignment(), _) | (_, Assignment()):
                return self._assigned(reference, candidate)
            case Sequence(opening, these, closing), Sequence(other, those, end):
                return (opening, closing) == (other, end) and self._in_order(these, those)
            case (Sequence("(", these, ")"), Unordered(those, is_set=False)) | (
                Unordered(these, is_set=False),
                Sequence("(", those, ")"),
            ):
                return self._in_order(these, those)
            case Unordered(these), Unordered(those):
                words = {reference.word, candidate.word} - {""}
                if len(words) > 1 and any(map(_is_named_thing, these)):
                    return False
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
        these = _as_assignment(reference)
        those = _as_assignment(candidate)
        if these is not reference or those is not candidate:
            return self.match(these, those)
        match reference, candidate:
            case Named(a, value), Named(b, other):
                is_graph = {a[1:], b[1:]} == {"", "(x)"} and "y" in {a, b}  # y = f(x)
                return (a == b or not a or not b or is_graph) and self.match(value, other)
            case (Named() as named, Equation() as equation) | (
                Equation() as equation,
                Named() as named,
            ):
                other_equation = _as_equation(named)
                return other_equation is not None and self._proportional(other_equation, equation)
            case Named(value=value), _:
                return self.match(value, candidate)
            case _, Named(value=value):
                return self.match(reference, value)
        return False

    def _is_true(self, named: Named) -> bool:
        return all(self.match(named.value, other) for other in named.others)

    def _labelled(self, reference: Answer, candidate: Answer) -> bool:
        """`(C) 12` is C, and is 12; if both sides have both, both count."""
        match reference, candidate:
            case Labelled(letter, value), Labelled(other, its_value):
                return letter == other and self.match(value, its_value)
            case (Labelled(letter), Choice(other)) | (Choice(letter), Labelled(other)):
                return letter == other
            case (Labelled(letter), Quantity(Name(other))) | (
                Quantity(Name(letter)),
                Labelled(other),
            ):
                return letter == other
            case Labelled(_, value), _:
                return self.match(value, candidate)
            case _, Labelled(_, value):
                return self.match(reference, value)
        return False

    def _assigned(self, reference: Answer, candidate: Answer) -> bool:
        """Values of several variables: by their names; those of a point in alphabetic order."""
        match reference, candidate:
            case Assignment(these), Assignment(those):
                others = {member.name: member for member in those}
                names_ = [member.name for member in these]
                if sorted(names_) != sorted(others):
                    return False
                return self._in_order(these, tuple(others[name] for name in names_))
            case (Assignment() as assignment, Sequence("(", those, ")")) | (
                Sequence("(", those, ")"),
                Assignment() as assignment,
            ):
                values = tuple(member.value for member in _in_alphabetic_order(assignment))
                return self._in_order(values, those)
            case _:
                return False

    def _quantities(self, reference: Quantity, candidate: Quantity) -> bool:
        a = reference.scalar
        b = candidate.scalar
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
        return self._comparison.equal(reference, candidate)

    def _proportional(self, these: Equation, those: Equation) -> bool:
        """Whether two equations are multiples of each other."""
        a, b = (Sum((side.left, negative(side.right))) for side in (these, those))
        return self._comparison.proportional(a, b)

    def _congruent(self, these: Congruence, those: Congruence) -> bool:
        """One left side and one modulus, and right sides that differ by multiples of it."""
        if not self._equal(these.left, those.left) or not self._equal(these.modulus, those.modulus):
            return False
        return self._is_multiple(Sum((these.right, negative(those.right))), these.modulus)

    def _is_multiple(self, scalar: Scalar, period: Scalar) -> bool:
        """Whether a scalar is a whole multiple of another."""
        values = approximation(scalar), approximation(period)
        if values[0] is None or not values[1] or abs(values[0] / values[1]) > 1e6:
            raise Undecided("a multiple")
        count = round((values[0] / values[1]).real)
        return self._equal(scalar, Product((Number(Fraction(count)), period)))

    def _families(self, reference: Answer, candidate: Answer) -> bool:
        """Arithmetic progressions: the same numbers, whatever the index is called."""
        if not isinstance(reference, SolutionFamily):
            return False
        sides = [_as_family(side) for side in (reference, candidate)]
        if sides[0] is None or sides[1] is None:
            return False
        these, those = (self._progressions(side) for side in sides if side is not None)
        period = these[0][1]
        counts: list[int] = []
        for _, other in (*these, *those):
            values = approximation(other), approximation(period)
            if not values[0] or not values[1]:
                raise Undecided("a family that is not an arithmetic progression")
            ratio = Fraction(abs(values[0] / values[1])).limit_denominator(12)
            if not self._is_same_size(other, Product((Number(ratio), period))):
                return False
            counts.append(ratio.numerator * 27720 // ratio.denominator)
        common = math.lcm(*counts)
        longest = Product((Number(Fraction(common, 27720)), period))
        left = iter(counts)
        offsets: list[list[Scalar]] = []
        for side in (these, those):
            starts: list[Scalar] = []
            for start, step in side:
                steps = range(min(common // next(left), 60))
                starts += [Sum((start, Product((Number(Fraction(at)), step)))) for at in steps]
            offsets.append(starts)
        if len(offsets[0]) != len(offsets[1]) or len(offsets[0]) > 24:
            return False
        unused = offsets[1]
        for start in offsets[0]:
            same = next(
                (x for x in unused if self._is_multiple(Sum((start, negative(x))), longest)), None
            )
            if same is None:
                return False
            unused.remove(same)
        return True

    def _is_same_size(self, a: Scalar, b: Scalar) -> bool:
        return self._equal(a, b) or self._equal(a, negative(b))

    def _progressions(self, family: SolutionFamily) -> list[tuple[Scalar, Scalar]]:
        """The start and the step of each member."""
        progressions: list[tuple[Scalar, Scalar]] = []
        for member in family.members:
            start = substituted(member, {family.index: Fraction(0)})
            step = Sum((substituted(member, {family.index: Fraction(1)}), negative(start)))
            line = Sum((start, Product((step, Name(family.index)))))
            if names(member) != {family.index} or not self._equal(member, line):
                raise Undecided("a family that is not an arithmetic progression")
            progressions.append((start, step))
        return progressions

    def _cases(self, reference: Cases, candidate: Cases) -> bool:
        """The same values under the same conditions, in any order."""
        these, those = (_with_conditions(cases) for cases in (reference, candidate))
        if len(these) != len(those):
            return False
        left = list(those)
        for value, condition in these:
            same = next(
                (x for x in left if self.match(condition, x[1]) and self.match(value, x[0])), None
            )
            if same is None:
                return False
            left.remove(same)
        return True

    def _regions(self, reference: Answer, candidate: Answer) -> bool:
        """The same set of numbers, of the same variable if both sides name one."""
        sides: list[tuple[str | None, Shape]] = []
        for side in (reference, candidate):
            match side:
                case Region(name, shape):
                    sides.append((name, shape))
                case Unordered(members):
                    if not members or not all(map(is_interval, members)):
                        return False
                    intervals = tuple(x for x in members if isinstance(x, Sequence))
                    sides.append((None, Shape("or", intervals)))
                case Sequence():
                    if not is_interval(side):
                        return False
                    sides.append((None, Shape("or", (side,))))
                case _:
                    return False
        (name, this), (other, that) = sides
        if None not in {name, other} and name != other:
            return False
        match this, that:
            case (
                Shape("or", (RelationChain((a, b), (sign,)),)),
                Shape("or", (RelationChain((c, d), (other_sign,)),)),
            ) if name is None or not _is_linear(this):
                return self._same_inequality((a, sign, b), (c, other_sign, d))
        these = self._line.intervals(this)
        those = self._line.intervals(that)
        return bool(these) and self._line.same(these, those)

    def _same_inequality(self, these: _Inequality, those: _Inequality) -> bool:
        """Whether one is a positive multiple of the other."""
        differences: list[tuple[Scalar, str]] = []
        for left, sign, right in (these, those):
            if isinstance(left, Infinity) or isinstance(right, Infinity):
                return False
            low = left.scalar
            high = right.scalar
            if sign[0] == ">":
                low, high, sign = high, low, sign.replace(">", "<")
            differences.append((Sum((low, negative(high))), sign))
        (a, sign), (b, other) = differences
        if sign != other:
            return False
        return self._comparison.proportional(a, b, positive=sign != "!=")

    def _in_order(self, these: tuple[Answer, ...], those: tuple[Answer, ...]) -> bool:
        return len(these) == len(those) and all(map(self.match, these, those))

    def _in_any_order(self, these: tuple[Answer, ...], those: tuple[Answer, ...]) -> bool:
        if len(these) != len(those):
            return False
        left = sorted(those, key=self._rough)
        for this in sorted(these, key=self._rough):
            rough = self._rough(this)
            for at, that in enumerate(left):
                if _may_be_equal(rough, self._rough(that)) and self.match(this, that):
                    del left[at]
                    break
            else:
                return False
        return True

    def _rough(self, answer: Answer) -> tuple[float, ...]:
        """The approximate value, for sorting, so that equal answers come together."""
        match answer:
            case Quantity(scalar, unit) if unit == NO_UNIT:
                value = approximation(scalar)
                return () if value is None else (round(value.real, 9), round(value.imag, 9))
            case Sequence(members=members):
                return tuple(x for member in members for x in self._rough(member))
            case _:
                return ()


_Inequality = tuple[Quantity | Infinity, str, Quantity | Infinity]


def _is_named_thing(answer: Answer) -> bool:
    """Whether it is a word or a letter: of these, "and" and "or" are different answers."""
    match answer:
        case Word() | Choice() | Quantity(Name()):
            return True
        case _:
            return False


def _may_be_equal(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether rough values do not show that two answers differ."""
    if len(a) != len(b):
        return True
    return all(abs(x - y) <= 1e-6 * (1 + abs(x) + abs(y)) for x, y in zip(a, b, strict=True))


def _is_linear(shape: Shape) -> bool:
    """Whether an inequality has one variable and is written without powers of it."""
    match shape:
        case Shape("or", (RelationChain(sides),)):
            scalars = [side.scalar for side in sides if isinstance(side, Quantity)]
            return all(degree(scalar) <= 1 or _is_absolute(scalar) for scalar in scalars)
        case _:
            return False


def _is_absolute(scalar: Scalar) -> bool:
    return isinstance(scalar, Call) and scalar.function == "abs"


def _as_assignment(answer: Answer) -> Answer:
    """`(x,y)=(3,4)` as `x=3, y=4`; other answers as they are."""
    match answer:
        case Named(name, Sequence("(", members, ")"), ()) if name.startswith("("):
            variables = name.strip("()").split(",")
            if len(variables) == len(members) == len(set(variables)):
                named = zip(variables, members, strict=True)
                return Assignment(tuple(Named(variable, value) for variable, value in named))
    return answer


def _in_alphabetic_order(assignment: Assignment) -> tuple[Named, ...]:
    """The values in the order of their Latin names; as written if there are other names."""
    if all(member.name[0].isalpha() for member in assignment.members):
        return tuple(sorted(assignment.members, key=lambda member: member.name))
    return assignment.members


def _as_family(answer: Answer) -> SolutionFamily | None:
    """A family; also an expression of one index without the words that it is an integer."""
    match answer:
        case SolutionFamily():
            return answer
        case Unordered(members):
            families = [_as_family(member) for member in members]
            known = [family for family in families if family is not None]
            if len(known) < len(members) or len({family.index for family in known}) != 1:
                return None
            return SolutionFamily(
                tuple(x for family in known for x in family.members), known[0].index
            )
        case Quantity(scalar, unit) if unit == NO_UNIT:
            variables = names(scalar)
            index = next(iter(variables), "")
            return SolutionFamily((scalar,), index) if variables and variables <= _INDICES else None
        case _:
            return None


def _with_conditions(cases: Cases) -> list[tuple[Answer, Answer]]:
    """The rows, with the condition that "otherwise" stands for."""
    *first, (value, condition) = cases.rows
    if condition not in _OTHERWISE:
        return list(cases.rows)
    shapes: list[Shape] = []
    name = None
    for _, other in first:
        if not isinstance(other, Region):
            return list(cases.rows)
        name = other.name
        shapes.append(other.shape)
    rest = Region(name, Shape("without", (ALL, *shapes)))
    return [*first, (value, rest)]


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
