r"""Exact real numbers: rationals, roots, cosines of rational angles, and generators.

A `Real` is a `Fraction`, or an `ExactNode`: an expression of numbers below it. A *generator* stands
for a number that has no algebraic equation that we know, such as pi or the sine of a variable: it
has a random rational value, close to the true one where there is one. So each node is an algebraic
number, and whether it is zero can be decided:

1. In interval arithmetic with few bits. If the interval does not contain 0, neither is the node 0.
2. Otherwise with enough bits: only 0 is closer to 0 than the bound of Burnikel, Funke, Mehlhorn,
   Schirra and Schmitt. A node that is the quotient of two algebraic integers, of which no
   conjugate is larger than u and l, in a field of degree D, is 0 or at least 1 / (u^(D-1) l).

If a node with generators is 0, the same expression of the true numbers is 0, except with the
chance that the random values are a root of a polynomial (Schwartz and Zippel).

All work is counted in estimated microseconds, and ends with `Undecided` beyond the limit.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

_MOST_BITS = 60_000  # of a fraction
_MOST_BITS_OF_A_POWER = 6_000  # for taking an exact root
_MOST_PRECISION = 30_000  # bits of an interval
_FIRST_PRECISION = 128
_WIDE_PRECISION = 192  # for signs
MOST_DEGREE = 60  # of a root
_LARGEST_LOGARITHM = 60_000  # of a value, to base 2

Interval = Any  # two floating-point numbers of mpmath, which has no types
Kind = Literal["sum", "product", "power", "root", "cosine", "generator"]


class Undecided(Exception):
    """The question is not decided: a limit of work, or no bound on the error."""


class NumberTooLarge(Undecided):
    """Numbers with more digits than allowed."""


class Undefined(Exception):
    """The expression has no value here."""


class ExactWork:
    """What is left of the work allowed for a comparison, in estimated microseconds."""

    def __init__(self, microseconds: float = 23_000) -> None:
        self._left = microseconds
        self._half = microseconds / 2

    @property
    def is_half_done(self) -> bool:
        """Whether less than half is left."""
        return self._left < self._half

    def spend(self, microseconds: float) -> None:
        """Count work; `Undecided` beyond the limit."""
        self._left -= microseconds
        if self._left < 0:
            raise Undecided("more work than allowed")


@dataclass(frozen=True, slots=True, eq=False)
class ExactNode:
    """A number that is not known to be rational.

    Attributes:
        kind: how it is made of its parts.
        parts: the numbers that it is made of.
        number: the exponent of a power, the degree of a root, the angle of a cosine as a part of
            pi, the random value of a generator.
        upper: the binary logarithm of u in the bound.
        lower: that of l.
        roots: the roots in it, with their degrees.
        conductor: the n such that all cosines in it are in the field of the n-th roots of 1.
        near: an interval that contains a generator's true value, if there is one.
        intervals: those computed so far.
    """

    kind: Kind
    parts: tuple[Real, ...]
    number: Fraction
    upper: float
    lower: float
    roots: frozenset[tuple[int, int]]
    conductor: int
    near: Interval | None
    intervals: dict[tuple[int, bool], Interval]


Real = Fraction | ExactNode
ZERO = Fraction(0)
ONE = Fraction(1)
_SIMPLE_COSINES = {
    Fraction(0): Fraction(1),
    Fraction(1, 3): Fraction(1, 2),
    Fraction(1, 2): Fraction(0),
    Fraction(2, 3): Fraction(-1, 2),
    Fraction(1): Fraction(-1),
}


def _library() -> Any:
    import mpmath.libmp

    return mpmath.libmp


class Field:
    """Arithmetic with exact real numbers. Equal roots are one node."""

    def __init__(self, work: ExactWork) -> None:
        self.work = work
        self._roots: list[tuple[Real, int, ExactNode]] = []
        self._serial = itertools.count()

    # Making numbers -----------------------------------------------------------------------------

    def rational(self, value: Fraction) -> Fraction:
        """The value; `Undecided` if it has too many digits."""
        bits = value.numerator.bit_length() + value.denominator.bit_length()
        self.work.spend(3 + (bits / 1_000) ** 1.7)
        if bits > _MOST_BITS:
            raise NumberTooLarge("numbers larger than allowed")
        return value

    def sum(self, terms: Sequence[Real]) -> Real:
        """The sum of the terms."""
        self.work.spend(5 + len(terms))
        total = ZERO
        multiples: dict[ExactNode, Fraction] = {}
        for coefficient, term in _multiples(terms):
            if term is None:
                total = self.rational(total + coefficient)
            else:
                multiples[term] = self.rational(multiples.get(term, ZERO) + coefficient)
        parts: list[Real] = [self.product([c, node]) for node, c in multiples.items() if c]
        if total:
            parts.append(total)
        if len(parts) < 2:
            return parts[0] if parts else ZERO
        bounds = [_bounds(part) for part in parts]
        lower = sum(low for _, low in bounds)
        upper = max(up + lower - low for up, low in bounds) + math.log2(len(parts))
        return self._node("sum", parts, ZERO, upper, lower)

    def product(self, factors: Sequence[Real]) -> Real:
        """The product of the factors."""
        self.work.spend(3)
        constant = ONE
        nodes: list[ExactNode] = []
        for factor in factors:
            if isinstance(factor, Fraction):
                constant = self.rational(constant * factor)
            else:
                nodes.append(factor)
        if not constant:
            return ZERO
        parts: list[Real] = [*nodes, constant] if constant != 1 else [*nodes]
        if len(parts) < 2:
            return parts[0] if parts else ONE
        bounds = [_bounds(part) for part in parts]
        upper = sum(up for up, _ in bounds)
        lower = sum(low for _, low in bounds)
        return self._node("product", parts, ZERO, upper, lower)

    def negative(self, value: Real) -> Real:
        """Minus the value."""
        return self.product([Fraction(-1), value])

    def difference(self, a: Real, b: Real) -> Real:
        """The first minus the second."""
        return self.sum([a, self.negative(b)])

    def power(self, base: Real, exponent: int) -> Real:
        """A whole power; `Undefined` for 0 to a power that is not positive."""
        if exponent <= 0 and self.is_zero(base):
            raise Undefined
        if exponent == 0:
            return ONE
        if exponent == 1:
            return base
        if isinstance(base, Fraction):
            bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
            if abs(base) == 1:
                exponent %= 2
            elif abs(exponent) * max(bits, 1) > _MOST_BITS:
                raise NumberTooLarge("numbers larger than allowed")
            return self.rational(base**exponent) if base else ZERO
        upper = base.upper
        lower = base.lower
        if exponent < 0:
            upper, lower = lower, upper
        size = abs(exponent)
        if size * max(upper, lower, 1) > 1e9:
            raise NumberTooLarge("numbers larger than allowed")
        number = Fraction(exponent)
        return self._node("power", [base], number, size * upper, size * lower)

    def quotient(self, a: Real, b: Real) -> Real:
        """The first divided by the second; `Undefined` for a divisor of 0."""
        return self.product([a, self.power(b, -1)])

    def root(self, radicand: Real, degree: int) -> Real:
        """The positive root of a positive number, or 0."""
        if degree > MOST_DEGREE:
            raise Undecided("a root of a high degree")
        if isinstance(radicand, Fraction):
            if not radicand:
                return ZERO
            exact = exact_root(radicand, degree)
            if exact is not None:
                return self.rational(exact)
        for other, its_degree, root in self._roots:
            if its_degree != degree:
                continue
            multiple = self._multiple(radicand, other, root, degree)
            if multiple is not None:
                return multiple
        upper, lower = _bounds(radicand)
        if upper >= lower:
            upper = (upper + (degree - 1) * lower) / degree
            lower = lower
        else:
            upper, lower = upper, ((degree - 1) * upper + lower) / degree
        node = self._node("root", [radicand], Fraction(degree), upper, lower)
        self._roots.append((radicand, degree, node))
        if len(self._roots) > 60:
            raise Undecided("too many roots")
        return node

    def _multiple(self, radicand: Real, other: Real, root: ExactNode, degree: int) -> Real | None:
        """The root as a multiple of a power of another root; None if it is no such multiple."""
        if isinstance(radicand, ExactNode) or isinstance(other, ExactNode):
            is_same = radicand is other or (
                isinstance(radicand, ExactNode)
                and isinstance(other, ExactNode)
                and self.is_zero(self.difference(radicand, other))
            )
            return root if is_same else None
        for exponent in range(1, min(degree, 7)):
            self.work.spend(5)
            ratio = self.rational(radicand / self.power(other, exponent))  # type: ignore[operator]
            multiple = exact_root(ratio, degree)
            if multiple is not None:
                return self.product([multiple, self.power(root, exponent)])
        return None

    def cosine(self, angle: Fraction) -> Real:
        """The cosine of a rational multiple of pi."""
        angle = abs(angle % 2)
        angle = min(angle, 2 - angle)
        if angle.denominator <= 3:
            return _SIMPLE_COSINES[angle]
        if angle.denominator > 400:
            raise Undecided("an angle with a large denominator")
        conductor = 2 * angle.denominator
        return ExactNode("cosine", (), angle, 1, 1, frozenset(), conductor, None, {})

    def generator(self, value: Fraction, near: Interval | None = None) -> ExactNode:
        """A number with a random rational value, and the interval of the true one."""
        upper, lower = _bounds(value)
        return ExactNode("generator", (), value, upper, lower, frozenset(), 1, near, {})

    def _node(
        self, kind: Kind, parts: Sequence[Real], number: Fraction, upper: float, lower: float
    ) -> ExactNode:
        self.work.spend(6 + 2 * len(parts))
        nodes = [part for part in parts if isinstance(part, ExactNode)]
        roots = frozenset[tuple[int, int]]().union(*(node.roots for node in nodes))
        if kind == "root":
            roots |= {(next(self._serial), int(number))}
        conductor = math.lcm(*(node.conductor for node in nodes))
        return ExactNode(kind, tuple(parts), number, upper, lower, roots, conductor, None, {})

    # Questions ----------------------------------------------------------------------------------

    def is_zero(self, value: Real) -> bool:
        """Whether the number is 0."""
        if isinstance(value, Fraction):
            return not value
        if not _contains_zero(self.interval(value, _FIRST_PRECISION)):
            return False
        degree = math.prod(degree for _, degree in value.roots) * _totient(value.conductor)
        needed = (degree - 1) * max(value.upper, 0) + max(value.lower, 0) + 8
        precision = int(min(needed, 1e9)) + 64
        for _ in range(6):
            if precision > _MOST_PRECISION:
                raise NumberTooLarge("more bits than allowed")
            interval = self.interval(value, precision)
            if not _contains_zero(interval):
                return False
            if _magnitude(interval) < -needed:
                return True
            precision = 2 * precision + 64
        raise Undecided("values that do not settle")

    def sign(self, value: Real) -> int:
        """-1, 0 or 1, of the true number."""
        if isinstance(value, Fraction):
            return (value > 0) - (value < 0)
        interval = self.interval(value, _WIDE_PRECISION, wide=True)
        if not _contains_zero(interval):
            return -1 if interval[0][0] else 1
        if self.is_zero(value):
            return 0
        raise Undecided("a sign")

    def floor(self, value: Real) -> int:
        """The largest whole number that is not larger."""
        if isinstance(value, Fraction):
            return math.floor(value)
        library = _library()
        interval = self.interval(value, _WIDE_PRECISION, wide=True)
        if _magnitude(interval) > 100:
            raise Undecided("a large number, rounded")
        lower, upper = (int(library.to_int(end, "f")) for end in interval)
        if lower == upper:
            return lower
        if upper == lower + 1:
            return upper if self.sign(self.difference(value, Fraction(upper))) >= 0 else lower
        raise Undecided("an unknown number, rounded")

    def rational_value(self, value: Real) -> Fraction | None:
        """The value with the random values of its generators; None if it has roots."""
        if isinstance(value, Fraction):
            return value
        if value.roots or value.conductor > 1:
            return None
        match value.kind:
            case "generator":
                return value.number
            case "power":
                base = self.rational_value(value.parts[0])
                if base is None:
                    return None
                power = self.power(base, int(value.number))
                return power if isinstance(power, Fraction) else None
            case _:
                parts = [self.rational_value(part) for part in value.parts]
                values = [part for part in parts if part is not None]
                if len(values) < len(parts):
                    return None
                whole = self.sum(values) if value.kind == "sum" else self.product(values)
                return whole if isinstance(whole, Fraction) else None

    def approximation(self, value: Real) -> float:
        """The number as a float; infinite if it is too large."""
        if isinstance(value, ExactNode):
            low, high = self.interval(value, 64, wide=True)
            return float(_library().to_float(low) + _library().to_float(high)) / 2
        try:
            return float(value)
        except OverflowError:
            return math.inf

    def interval(self, value: Real, precision: int, *, wide: bool = False) -> Interval:
        """An interval that contains the number; `wide` for the true one, not the random one."""
        library = _library()
        if isinstance(value, Fraction):
            self.work.spend(4 + precision / 2_000)
            return _rational_interval(value, precision)
        key = (precision, wide)
        if key in value.intervals:
            return value.intervals[key]
        parts = [self.interval(part, precision, wide=wide) for part in value.parts]
        self.work.spend((4 + (precision / 1_000) ** 1.6) * (1 + len(parts)))
        match value.kind:
            case "sum":
                interval = functools.reduce(lambda a, b: library.mpi_add(a, b, precision), parts)
            case "product":
                interval = functools.reduce(lambda a, b: library.mpi_mul(a, b, precision), parts)
            case "power":
                interval = self._power_interval(parts[0], int(value.number), precision)
            case "root":
                interval = _root_interval(parts[0], int(value.number), precision)
            case "cosine":
                self.work.spend(20 + (precision / 300) ** 2)
                angle = library.mpi_mul(
                    _pi(precision + 10),
                    _rational_interval(value.number, precision + 10),
                    precision + 10,
                )
                interval = library.mpi_cos(angle, precision)
            case "generator":
                exact = _rational_interval(value.number, precision)
                interval = value.near if wide and value.near is not None else exact
        if _magnitude(interval) > _LARGEST_LOGARITHM:
            raise NumberTooLarge("numbers larger than allowed")
        value.intervals[key] = interval
        return interval

    def _power_interval(self, base: Interval, exponent: int, precision: int) -> Interval:
        library = _library()
        self.work.spend(8 * abs(exponent).bit_length() * (1 + (precision / 1_000) ** 1.6))
        if exponent > 0:
            return library.mpi_pow_int(base, exponent, precision)
        if _contains_zero(base):
            raise Undecided("a divisor close to 0")
        one = _rational_interval(ONE, precision)
        return library.mpi_div(one, library.mpi_pow_int(base, -exponent, precision), precision)


def _multiples(
    terms: Sequence[Real], factor: Fraction = ONE
) -> Iterator[tuple[Fraction, ExactNode | None]]:
    """The terms of a sum as multiples of nodes, or of 1, where sums are not inside each other."""
    for term in terms:
        match term:
            case Fraction():
                yield factor * term, None
            case ExactNode("sum", parts):
                yield from _multiples(parts, factor)
            case ExactNode("product", (ExactNode() as node, Fraction() as multiple)):
                yield from _multiples([node], factor * multiple)
            case _:
                yield factor, term


def exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The root of a number that is not negative, if it is rational and not too long."""
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if value < 0 or (degree > 2 and bits > _MOST_BITS_OF_A_POWER):
        return None
    above = _integer_root(value.numerator, degree)
    below = _integer_root(value.denominator, degree) if above is not None else None
    return Fraction(above, below) if above is not None and below is not None else None


def _integer_root(value: int, degree: int) -> int | None:
    """The root of an integer; None if it is irrational."""
    if degree == 2:
        root = math.isqrt(value)
    elif value < 2:
        root = value
    else:
        root = 1 << (value.bit_length() // degree + 1)
        while True:  # Newton's method, from above
            smaller = ((degree - 1) * root + value // root ** (degree - 1)) // degree
            if smaller >= root:
                break
            root = smaller
    return root if root**degree == value else None


def _bounds(value: Real) -> tuple[float, float]:
    """The logarithms of u and l."""
    if isinstance(value, ExactNode):
        return value.upper, value.lower
    return float(abs(value.numerator).bit_length()), float(value.denominator.bit_length())


def _totient(n: int) -> int:
    count = n
    factor = 2
    rest = n
    while factor * factor <= rest:
        if rest % factor == 0:
            count -= count // factor
            while rest % factor == 0:
                rest //= factor
        factor += 1
    return count - count // rest if rest > 1 else count


def _rational_interval(value: Fraction, precision: int) -> Interval:
    from_rational = _library().from_rational
    above = value.numerator
    below = value.denominator
    return from_rational(above, below, precision, "f"), from_rational(above, below, precision, "c")


def _root_interval(radicand: Interval, degree: int, precision: int) -> Interval:
    library = _library()
    lower, upper = radicand
    zero = library.fzero
    if library.mpf_lt(lower, zero):
        lower = zero
    if degree == 2:
        return library.mpi_sqrt((lower, upper), precision)
    ends = [
        zero if end == zero else library.mpf_nthroot(end, degree, precision + 8, direction)
        for end, direction in ((lower, "f"), (upper, "c"))
    ]
    slack = _rational_interval(Fraction(1, 1 << precision), precision)[1]
    one = library.fone
    return (
        library.mpf_mul(ends[0], library.mpf_sub(one, slack, precision + 8, "f"), precision, "f"),
        library.mpf_mul(ends[1], library.mpf_add(one, slack, precision + 8, "c"), precision, "c"),
    )


def _pi(precision: int) -> Interval:
    library = _library()
    return library.mpf_pi(precision, "f"), library.mpf_pi(precision, "c")


def _contains_zero(interval: Interval) -> bool:
    library = _library()
    lower, upper = interval
    return bool(library.mpf_sign(lower) <= 0 <= library.mpf_sign(upper))


def _magnitude(interval: Interval) -> float:
    """An upper bound on the binary logarithm of the largest absolute value."""
    sizes = [end[2] + end[3] for end in interval if end[1]]
    if any(not end[1] and end[2] for end in interval):
        return math.inf
    return max(sizes, default=-math.inf)
