r"""Values of scalars: exact rationals if possible, otherwise numbers with as many bits as needed.

A scalar evaluates to a `Fraction`, or, after a root, a constant or a function makes it irrational,
to a complex number of mpmath. Two values are equal if

1. both are fractions, and the same; or
2. they differ by less than 2^-(128 + b), evaluated with 256 + 2b bits, where b is twice the bits of
   the largest fraction involved plus three times the largest absolute binary exponent of any other
   intermediate value: the cosine of x is as close to 1 as the square of x is to 0. So 1/2^99 and
   1/2^98, or sqrt(2) and sqrt(2) + 10^-300, are never confused.

Variables get values drawn from a seed that the candidate does not know. All work is limited: larger
numbers raise `Unreadable`.
"""

from __future__ import annotations

import functools
import math
import random
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from .scalars import Unreadable
from .tree import Call, Degrees, Name, Number, Power, Product, Scalar, Sum, names, parts

_MOST_BITS = 40_000  # of one integer
_MOST_BITS_OF_A_POWER = 2_000  # for taking an exact root
_MOST_PRECISION = 12_000  # bits of a number that is not exact
_MOST_WORK = 400_000_000  # for one comparison: about half a second
_LARGEST_SIZE = 20_000  # binary exponent of a number that is not exact
_LARGEST_FACTORIAL = 3_000
_LARGEST_BINOMIAL = 5_000
_ENOUGH_POINTS = 3

_threads = threading.local()

Point = Mapping[str, Fraction]
Value = Any  # a Fraction, or mpmath's mpc, which has no types


class Undefined(Exception):
    """There is no value at this point."""


class WorkLimit:
    """The limit on the work of one comparison, in bits, and the seed of its points."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self._left = _MOST_WORK

    def spend(self, work: int) -> None:
        """Count work; `Unreadable` if it exceeds the limit."""
        self._left -= work
        if self._left < 0:
            raise Unreadable("more work than allowed")


def agree(
    work: WorkLimit,
    left: Callable[[Evaluation], Value],
    right: Callable[[Evaluation], Value],
) -> bool:
    """Whether both values are equal, evaluated with as many bits as needed.

    Raises:
        Unreadable: more bits are needed than allowed.
        Undefined: one side has no value.
    """
    precision = 256
    for _ in range(4):
        evaluation = Evaluation(precision, work)
        a, b = left(evaluation), right(evaluation)
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return a == b
        needed = 256 + 2 * evaluation.bits
        if needed > _MOST_PRECISION:
            raise Unreadable("more bits than allowed")
        if precision >= needed:
            return evaluation.close(a, b)
        precision = needed + 64
    raise Unreadable("values that do not settle")


def equal(a: Scalar, b: Scalar, work: WorkLimit) -> bool:
    """Whether two scalars are equal, at every point tried; `Unreadable` if that is undecidable."""
    variables = names(a) | names(b)
    if not variables:
        try:
            return agree(work, _at(a, {}), _at(b, {}))
        except Undefined as exc:
            raise Unreadable("no value") from exc
    tried = 0
    for point in _points(variables, work.seed, whole=_is_discrete(a) or _is_discrete(b)):
        try:
            if not agree(work, _at(a, point), _at(b, point)):
                return False
        except Undefined:
            continue
        tried += 1
    if tried < _ENOUGH_POINTS:
        raise Unreadable("no value at most points")
    return True


def rough(scalar: Scalar, work: WorkLimit) -> tuple[float, ...]:
    """The approximate value, as a point of the plane; empty if not easily known."""
    if names(scalar):
        return ()
    try:
        value = complex(Evaluation(64, work).value(scalar))
    except (Undefined, OverflowError, ValueError, ZeroDivisionError):
        return ()
    return (round(value.real, 9), round(value.imag, 9))


def proportional(a: Scalar, b: Scalar, work: WorkLimit, *, positive: bool = False) -> bool:
    """Whether `a` is a nonzero constant times `b`, so that `a = 0` and `b = 0` are one equation.

    `positive` requires a positive constant. Raises `Unreadable` if that is undecidable.
    """
    variables = names(a)
    if not variables:
        raise Unreadable("an equation without variables")
    if variables != names(b):
        return False
    points = _points(variables, work.seed, whole=_is_discrete(a) or _is_discrete(b))
    try:
        first = next(p for p in points if not _vanishes(a, p, work))
        if _vanishes(b, first, work):
            return False
        if positive and len({Evaluation(256, work).real_sign(x, first) for x in (a, b)}) > 1:
            return False
        return all(agree(work, _crossed(a, p, b, first), _crossed(b, p, a, first)) for p in points)
    except (Undefined, StopIteration) as exc:
        raise Unreadable("no value at a point") from exc


def _at(scalar: Scalar, point: Point) -> Callable[[Evaluation], Value]:
    return lambda evaluation: evaluation.value(scalar, point)


def _crossed(a: Scalar, p: Point, b: Scalar, q: Point) -> Callable[[Evaluation], Value]:
    return lambda evaluation: evaluation.times(evaluation.value(a, p), evaluation.value(b, q))


def _vanishes(scalar: Scalar, point: Point, work: WorkLimit) -> bool:
    return agree(work, _at(scalar, point), lambda _: Fraction(0))


def _is_discrete(scalar: Scalar) -> bool:
    """Whether it has a value only if its variables are integers."""
    if isinstance(scalar, Call) and scalar.function in {"factorial", "binomial"} and names(scalar):
        return True
    return any(map(_is_discrete, parts(scalar)))


def _points(variables: frozenset[str], seed: str, *, whole: bool) -> list[Point]:
    """The points to compare at: with values above 1, below 1 and negative."""
    draw = random.Random(seed)
    if whole:
        return [{v: Fraction(draw.randint(5, 60)) for v in sorted(variables)} for _ in range(8)]
    ranges = [(14, 97), (14, 97), (14, 97), (1, 10), (-97, -14), (-97, -1)]
    return [
        {v: Fraction(draw.randint(low, high), draw.choice((7, 11, 13))) for v in sorted(variables)}
        for low, high in ranges
    ]


class Evaluation:
    """One evaluation at one precision. It records the sizes of its numbers."""

    def __init__(self, precision: int, work: WorkLimit) -> None:
        self._precision = precision
        self._work = work
        self._longest = 0  # bits of the largest fraction
        self._size = 0  # the largest binary exponent of an inexact value

    @functools.cached_property
    def _mp(self) -> Any:
        """The mpmath context of this thread, set to this precision."""
        if not hasattr(_threads, "context"):
            import mpmath

            _threads.context = mpmath.MPContext()
        _threads.context.prec = self._precision
        return _threads.context

    @property
    def bits(self) -> int:
        """The bits that a difference may have, from fractions and from inexact values."""
        return 2 * self._longest + 3 * self._size

    def close(self, a: Value, b: Value) -> bool:
        """Whether two values differ by no more than rounding errors."""
        difference = abs(self._inexact(a) - self._inexact(b))
        return bool(difference < self._mp.ldexp(1, -128 - self.bits))

    def real_sign(self, scalar: Scalar, point: Point) -> int:
        """-1, 0 or 1."""
        return int(self._mp.sign(self._inexact(self.value(scalar, point)).real))

    def value(self, scalar: Scalar, point: Point | None = None) -> Value:
        """The value of a scalar with its variables at `point`."""
        match scalar:
            case Number(value):
                return self._exact(value)
            case Name(name):
                return self._named(name, point or {})
            case Sum(terms):
                total: Value = Fraction(0)
                for term in terms:
                    total = self._plus(total, self.value(term, point))
                return total
            case Product(factors):
                product: Value = Fraction(1)
                for factor in factors:
                    product = self.times(product, self.value(factor, point))
                return product
            case Power(base, exponent):
                return self._power(self.value(base, point), self.value(exponent, point))
            case Degrees(amount):
                return self.times(self.value(amount, point), self._mp.mpc(self._mp.pi / 180))
            case Call(function, arguments):
                return self._call(function, [self.value(x, point) for x in arguments])

    def _named(self, name: str, point: Point) -> Value:
        if name in point:
            return self._exact(point[name])
        constants = {"pi": self._mp.pi, "e": self._mp.e, "i": self._mp.mpc(0, 1)}
        return self._mp.mpc(+constants[name])

    def _exact(self, value: Fraction) -> Fraction:
        bits = value.numerator.bit_length() + value.denominator.bit_length()
        self._work.spend(2_000 + 100 * bits)
        self._longest = max(self._longest, bits)
        if bits > _MOST_BITS:
            raise Unreadable("numbers larger than allowed")
        return value

    def _inexact(self, value: Value) -> Any:
        if isinstance(value, Fraction):
            return self._mp.mpc(self._mp.mpf(value.numerator) / value.denominator)
        return value

    def _sized(self, value: Any) -> Any:
        """The inexact value; records its exponent."""
        self._work.spend(20_000 + 20 * self._precision)
        size = self._mp.mag(value) if value else 0
        if not self._mp.isfinite(value) or abs(size) > _LARGEST_SIZE:
            raise Unreadable("numbers larger than allowed")
        self._size = max(self._size, abs(int(size)))
        return value

    def _settled(self, value: Any, scale: Any) -> Any:
        """Zero if the value is only a rounding error of numbers with the binary exponent `scale`.

        A rounding error shrinks with the precision, so its size must not raise the precision.
        """
        noise = value and self._mp.mag(value) < scale - self._precision + 16
        return self._mp.mpc(0) if noise else value

    def _plus(self, a: Value, b: Value) -> Value:
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return self._exact(a + b)
        a, b = self._inexact(a), self._inexact(b)
        return self._sized(self._settled(a + b, max(self._mp.mag(a), self._mp.mag(b))))

    def times(self, a: Value, b: Value) -> Value:
        """The product of two values."""
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return self._exact(a * b)
        return self._sized(self._inexact(a) * self._inexact(b))

    def _power(self, base: Value, exponent: Value) -> Value:
        if isinstance(base, Fraction) and isinstance(exponent, Fraction):
            if exponent.denominator == 1:
                return self._whole_power(base, exponent.numerator)
            root = _exact_root(base, exponent.denominator)
            if root is not None:
                return self._whole_power(root, exponent.numerator)
            if base < 0 and exponent.denominator % 2:  # the real root, as schools define it
                sign = -1 if exponent.numerator % 2 else 1
                return self.times(Fraction(sign), self._power(-base, exponent))
        if not base:
            if isinstance(exponent, Fraction) and exponent > 0:
                return Fraction(0)
            raise Undefined
        if exponent == Fraction(1, 2):
            self._work.spend(1000 * self._precision)
            return self._sized(self._mp.sqrt(self._inexact(base)))
        return self._exp(self._inexact(exponent) * self._log(base))

    def _whole_power(self, base: Fraction, exponent: int) -> Fraction:
        if not base and exponent <= 0:
            raise Undefined
        if abs(base) != 1 and base:
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if abs(exponent) * max(bits - 1, 1) > _MOST_BITS:
                raise Unreadable("numbers larger than allowed")
        else:
            exponent = exponent % 2 if base == -1 else 1
        return self._exact(base**exponent)

    def _exp(self, value: Any) -> Any:
        if abs(value) > _LARGEST_SIZE:
            raise Unreadable("numbers larger than allowed")
        self._work.spend(self._precision**2)
        return self._sized(self._mp.exp(value))

    def _log(self, value: Value) -> Any:
        if not value:
            raise Undefined
        self._work.spend(self._precision**2)
        return self._sized(self._mp.log(self._inexact(value)))

    def _call(self, function: str, arguments: list[Value]) -> Value:
        value = arguments[0]
        match function:
            case "abs":
                return abs(value) if isinstance(value, Fraction) else self._mp.mpc(abs(value))
            case "factorial":
                return self._exact(Fraction(math.factorial(_whole(value, _LARGEST_FACTORIAL))))
            case "binomial":
                chosen = _whole(arguments[1], _LARGEST_BINOMIAL)
                return self._exact(Fraction(math.comb(_whole(value, _LARGEST_BINOMIAL), chosen)))
            case "floor" | "ceiling":
                if not isinstance(value, Fraction):
                    raise Unreadable("an irrational number, rounded")
                return Fraction(math.floor(value) if function == "floor" else math.ceil(value))
            case "exp":
                return self._exp(self._inexact(value))
            case "ln":
                return self._log(value)
            case "log":  # to an unnamed base: equal only to another such logarithm
                return self._sized(self._log(value) / self._mp.apery)
            case "log_base":
                below = self._log(value)
                if not below:
                    raise Undefined
                return self._sized(self._log(arguments[1]) / below)
            case _:
                return self._trigonometric(function, self._inexact(value))

    def _trigonometric(self, function: str, value: Any) -> Any:
        name = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}.get(function, function)
        if abs(value) > 10**6:
            raise Unreadable("numbers larger than allowed")
        self._work.spend(3 * self._precision**2)
        try:
            result = self._mp.mpc(getattr(self._mp, name)(value))
        except (ZeroDivisionError, ValueError) as exc:
            raise Undefined from exc
        return self._sized(self._settled(result, self._mp.mag(value) if value else 0))


def _whole(value: Value, most: int) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or value < 0:
        raise Undefined
    if value > most:
        raise Unreadable("numbers larger than allowed")
    return value.numerator


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The root of a positive number, if it is rational."""
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if value <= 0 or degree > 64 or (degree > 2 and bits > _MOST_BITS_OF_A_POWER):
        return Fraction(0) if not value else None
    above, below = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    return Fraction(above, below) if above and below else None


def _integer_root(value: int, degree: int) -> int:
    """The root of a positive integer; 0 if it is irrational."""
    if degree == 2:
        root = math.isqrt(value)
    else:
        low, high = 1, 1 << (value.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
        root = low
    return root if root**degree == value else 0
