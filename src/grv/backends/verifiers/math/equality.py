r"""Whether two scalars are equal, with a bound on the chance that the answer "yes" is wrong.

1. Scalars that are the same up to the order of terms and factors are equal.
2. Otherwise both are evaluated exactly (`evaluation`), constants once, expressions at random
   points. A difference at one point shows that they differ.
3. Two expressions are equal if they agree at all points at which both are defined, are defined at
   the same points, and there are at least two. The difference of two expressions with n variables
   and generators is an algebraic function; if it is not 0, it is 0 at no more than a share d/S of
   the points, where d is its degree and S the number of values drawn from (Schwartz and Zippel).
   With S = 2^36 and d <= 2^16 two points err with a chance below 2^-40.

Everything else raises `Undecided`: it is not equal.
"""

from __future__ import annotations

import cmath
import contextlib
import hashlib
import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from .evaluation import Complex, Evaluation, Restart
from .exact import ExactWork, Field, NumberTooLarge, Undecided, Undefined
from .generators import AlgebraicGenerators, Place, Point
from .tree import Call, Degrees, Name, Number, Power, Product, Scalar, Sum, mentions, names, parts

_LARGEST_DEGREE = 1 << 16
_BITS = 36  # of the numerators of points
_LOW_DEGREE = 400
_MANY_BITS = 240  # for a lower degree
_HIGH_DEGREE = 200
_FEWER_BITS = 20  # for a higher degree
_DEGREE_OF_A_FUNCTION = 80
_LARGE_PRIME = 2**31 - 1
_LARGER_PRIME = 2**37 - 25

T = TypeVar("T")


class AnswerComparison:
    """Compares scalars, with a limit on the work and with random points that depend on a seed."""

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(seed.encode("utf-8", "replace")).digest()
        self.work = ExactWork()
        self._radicands: dict[Scalar, dict[Place, Fraction]] = {}

    def equal(self, a: Scalar, b: Scalar) -> bool:
        """Whether two scalars are equal; `Undecided` if that is not known."""
        if sorted_form(a) == sorted_form(b):
            return True
        variables = names(a) | names(b)
        if not variables:
            return self._equal_constants(a, b)
        if degree(a) + degree(b) > _LARGEST_DEGREE:
            raise Undecided("a high degree")
        if not (mentions(a, "i") or mentions(b, "i")):
            same = self._equal_at_points(a, b, variables, is_complex=False)
            if same is not None:
                return same
        same = self._equal_at_points(a, b, variables, is_complex=True)
        if same is None:
            raise Undecided("different domains")
        return same

    def proportional(self, a: Scalar, b: Scalar, *, positive: bool = False) -> bool:
        """Whether `a` is a nonzero constant times `b`: then `a = 0` and `b = 0` are one equation.

        `positive` requires a positive constant.
        """
        variables = names(a)
        if not variables:
            raise Undecided("an equation without variables")
        if variables != names(b):
            return False
        draw = random.Random(self._seed)
        for _ in range(6):
            point = {name: Fraction(draw.randint(2, 200)) for name in sorted(variables)}
            a_there = substituted(a, point)
            b_there = substituted(b, point)
            try:
                if self._sign(a_there) == 0:
                    continue
                if self._sign(b_there) == 0:
                    return False
                if positive and self._sign(a_there) != self._sign(b_there):
                    return False
            except Undefined:
                continue
            return self.equal(Product((a, b_there)), Product((b, a_there)))
        raise Undecided("no value at most points")

    def sign(self, scalar: Scalar) -> int:
        """The sign of a real constant."""
        try:
            return self._sign(scalar)
        except Undefined:
            raise Undecided("no value") from None

    def _sign(self, scalar: Scalar) -> int:
        def sign(evaluation: Evaluation, generators: AlgebraicGenerators) -> int:
            value = evaluation.value(scalar)
            if not generators.field.is_zero(value.im):
                raise Undecided("a complex number")
            return generators.field.sign(value.re)

        return self._evaluated({}, (), sign, is_complex=True)[0]

    def _equal_constants(self, a: Scalar, b: Scalar) -> bool:
        def same(evaluation: Evaluation, generators: AlgebraicGenerators) -> bool:
            return evaluation.is_zero(evaluation.minus(evaluation.value(a), evaluation.value(b)))

        try:
            return self._evaluated({}, (), same, is_complex=True)[0]
        except Undefined:
            raise Undecided("no value") from None

    def _equal_at_points(
        self, a: Scalar, b: Scalar, variables: frozenset[str], *, is_complex: bool
    ) -> bool | None:
        """Whether they agree at random points; None if their domains differ or are empty."""
        agreed = 0
        doubt = ""
        for point in self._points(variables, degree(a) + degree(b)):
            try:
                is_same = self._agree(a, b, point, is_complex=is_complex)
            except Undecided as reason:
                is_needless = isinstance(reason, NumberTooLarge) and self._is_huge(point)
                if agreed < 2 or not is_needless:
                    doubt = str(reason)  # another point may show that they differ
                continue
            except _OneSided:
                return None
            except Undefined:
                continue
            if not is_same:
                return False
            agreed += 1
            if agreed >= 2 and self.work.is_half_done:
                break
        if doubt:
            raise Undecided(doubt)
        return True if agreed >= 2 else None

    def _is_huge(self, point: Point) -> bool:
        """Whether a point is one of those that only look for differences far away."""
        return any(abs(value) > 1 << (_BITS + 2) for value in point.values())

    def _points(self, variables: frozenset[str], highest: int) -> list[Point]:
        """Points of several sizes and signs, with large prime denominators and with integers."""
        draw = random.Random(self._seed)
        positive = (1,)
        negative = (-1,)
        either = (1, -1)
        kinds = [
            (positive, _LARGE_PRIME),
            (negative, _LARGE_PRIME),
            (either, 1),
            (positive, 1),
            (positive, _LARGER_PRIME),
            (negative, _LARGER_PRIME),
        ]
        bits = [_BITS] * len(kinds)
        if highest <= _LOW_DEGREE:
            kinds += [(positive, 1), (negative, 1)]
            bits += [_MANY_BITS, _MANY_BITS]
        if highest > _HIGH_DEGREE:
            kinds = [(positive, 1), (negative, 1), (either, 1), (either, 1), (either, 1)]
            bits = [_FEWER_BITS] * len(kinds)
        return [
            {
                name: Fraction(draw.choice(signs) * (draw.getrandbits(size) + 2), denominator)
                for name in sorted(variables)
            }
            for (signs, denominator), size in zip(kinds, bits, strict=True)
        ]

    def _agree(self, a: Scalar, b: Scalar, point: Point, *, is_complex: bool) -> bool:
        """Whether they agree at a point, whatever the signs of absolute values are elsewhere.

        Raises:
            Undefined: neither has a value.
            _OneSided: only one has a value.
        """

        def same(evaluation: Evaluation, generators: AlgebraicGenerators) -> bool:
            values: list[Complex] = []
            for scalar in (a, b):
                with contextlib.suppress(Undefined):
                    values.append(evaluation.value(scalar))
            match values:
                case [x, y]:
                    return evaluation.is_zero(evaluation.minus(x, y))
                case [_]:
                    raise _OneSided
                case _:
                    raise Undefined

        agrees, count = self._evaluated(point, (), same, is_complex=is_complex)
        if not agrees:
            return False
        for signs in itertools.product((1, -1), repeat=count):
            if -1 in signs and not self._evaluated(point, signs, same, is_complex=True)[0]:
                raise Undecided("absolute values that may have other signs elsewhere")
        return True

    def _evaluated(
        self,
        point: Point,
        signs: tuple[int, ...],
        compute: Callable[[Evaluation, AlgebraicGenerators], T],
        *,
        is_complex: bool,
    ) -> tuple[T, int]:
        """The result of a computation at a point, and the number of independent signs."""
        seed = self._seed + repr(sorted(point.items())).encode()
        generators = AlgebraicGenerators(
            Field(self.work), random.Random(seed), signs, self._radicands
        )
        evaluation = Evaluation(point, generators, is_complex=is_complex)
        while True:
            try:
                result = compute(evaluation, generators)
            except Restart:
                generators.again()
            else:
                return result, len(generators.sizes)


class _OneSided(Exception):
    """Only one of two scalars has a value at a point."""


def approximation(scalar: Scalar) -> complex | None:
    """A constant as a floating-point number; None if that is not easily known."""
    try:
        return _approximation(scalar)
    except (ArithmeticError, ValueError, LookupError, TypeError):
        return None


def _approximation(scalar: Scalar) -> complex:
    match scalar:
        case Number(value):
            return complex(value)
        case Name(name):
            return {"pi": complex(math.pi), "e": complex(math.e), "i": 1j}[name]
        case Sum(terms):
            return sum(map(_approximation, terms))
        case Product(factors):
            return math.prod(map(_approximation, factors))
        case Power(base, exponent):
            below = _approximation(base)
            if below.imag == 0 and below.real < 0 and _is_odd_root(exponent):
                return -((-below) ** _approximation(exponent))
            return complex(below ** _approximation(exponent))
        case Call("ln", (inside,)):
            return cmath.log(_approximation(inside))
        case _:
            raise ValueError


def _is_odd_root(exponent: Scalar) -> bool:
    """Whether it is one over an odd number above 1."""
    match exponent:
        case Number(value):
            return value.numerator == 1 and value.denominator > 1 and value.denominator % 2 == 1
        case Power(Number(value), Number(power)):
            return power == -1 and value.denominator == 1 and value > 1 and value % 2 == 1
        case _:
            return False


def degree(scalar: Scalar) -> int:
    """A bound on the degree of a scalar as an algebraic function of variables and generators."""
    match scalar:
        case Number():
            return 0
        case Name():
            return 1
        case Power(base, Number(exponent)):
            size = abs(exponent.numerator) * exponent.denominator
            return min(degree(base) * max(size, 1), _LARGEST_DEGREE + 1)
        case Call() | Power():
            return _DEGREE_OF_A_FUNCTION + sum(map(degree, parts(scalar)))
        case _:
            return min(sum(map(degree, parts(scalar))), _LARGEST_DEGREE + 1)


def sorted_form(scalar: Scalar) -> str:
    """A text that is the same for scalars that differ in the order of terms and factors only."""
    match scalar:
        case Number(value):
            return (
                str(value)
                if max(map(int.bit_length, value.as_integer_ratio())) < 9_000
                else hex(value.numerator) + hex(value.denominator)
            )
        case Name(name):
            return name
        case Sum():
            kind = "+"
            inside = sorted(map(sorted_form, parts(scalar)))
        case Product():
            kind = "*"
            inside = sorted(map(sorted_form, parts(scalar)))
        case Power():
            kind = "^"
            inside = list(map(sorted_form, parts(scalar)))
        case Degrees():
            kind = "degrees"
            inside = list(map(sorted_form, parts(scalar)))
        case Call(function):
            kind = function
            inside = list(map(sorted_form, parts(scalar)))
    return f"{kind}({' '.join(inside)})"


def substituted(scalar: Scalar, point: Point) -> Scalar:
    """The scalar with numbers for its variables."""
    match scalar:
        case Number():
            return scalar
        case Name(name):
            return Number(point[name]) if name in point else scalar
        case Sum(terms):
            return Sum(tuple(substituted(term, point) for term in terms))
        case Product(factors):
            return Product(tuple(substituted(factor, point) for factor in factors))
        case Power(base, exponent):
            return Power(substituted(base, point), substituted(exponent, point))
        case Degrees(amount):
            return Degrees(substituted(amount, point))
        case Call(function, arguments):
            return Call(function, tuple(substituted(x, point) for x in arguments))
