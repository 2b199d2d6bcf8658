r"""The exact value of a scalar at a point.

Numbers, roots and cosines of rational angles are exact. Everything else becomes a *generator* with
a random rational value (`exact`), the same one wherever the same number occurs:

- pi, and e as exp(1);
- exp(u) for each term of an exponent, so that exp(x+2y) is exp(x) exp(y)^2, and 2^x is exp(x ln 2);
- tan(u/2) for each term of an angle, so that sin and cos are rational functions of it;
- ln p, so that ln 12 is 2 ln 2 + ln 3;
- u! for each u that differs by more than an integer, the floor of each such u, and any other
  function.

A generator of a constant is close to the true value, so that signs are the true ones. One of
variables is any number.

The sign of |u|, with variables in u, is not that of one point: it is one of `signs`, and the
comparison goes through all of them. `\sqrt{u^2}` is |u|, whatever way u^2 is written: at a random
point only a square is a square. |u| and |v| have one sign if |uv| is a square.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .exact import (
    MOST_DEGREE,
    ONE,
    ZERO,
    ExactNode,
    Interval,
    NumberTooLarge,
    Real,
    Undecided,
    Undefined,
    exact_root,
)
from .forms import (
    coprime,
    is_logarithm,
    is_nonnegative,
    is_positive_square,
    merged,
    square_part,
    terms_of,
    terms_of_ln,
    without_i,
)
from .generators import AlgebraicGenerators, Point
from .tree import Call, Degrees, Name, Number, Power, Product, Scalar, Sum, names

_MOST_SIGNS = 4
_MOST_RATIO = 40  # numerator and denominator of the ratio of two exponents or angles
_LARGEST_FACTORIAL = 3_000
_LARGEST_BINOMIAL = 5_000
_MOST_SHIFT = 40  # between two factorials

_HALF = Fraction(1, 2)
_MOST_RADICANDS = 8
_LARGE_PRIMES = (2**31 - 1, 2**61 - 1, 2**89 - 1, 2**107 - 1)
_ARCS = frozenset({"arcsin", "arccos", "arctan"})


class Restart(Exception):
    """A base of exponents, angles or logarithms is finer now: evaluate again."""


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number of two exact real ones."""

    re: Real
    im: Real = ZERO

    @property
    def is_real(self) -> bool:
        """Whether the imaginary part is the number 0."""
        return isinstance(self.im, Fraction) and not self.im


class Evaluation:
    """Evaluates scalars at one point.

    Args:
        point: the values of the variables.
        generators: what the evaluations share.
        is_complex: whether the square root of a negative number is imaginary; otherwise it is
            undefined.
    """

    def __init__(self, point: Point, generators: AlgebraicGenerators, *, is_complex: bool) -> None:
        self._point = point
        self._place = tuple(sorted(point.items()))
        self._generators = generators
        self._field = generators.field
        self._is_complex = is_complex

    def value(self, scalar: Scalar) -> Complex:
        """The value of a scalar; `Undefined` or `Undecided` if it has none."""
        self._field.work.spend(5)
        match scalar:
            case Number(value):
                return Complex(self._field.rational(value))
            case Name(name):
                return self._named(name)
            case Sum(terms):
                values = [self.value(term) for term in terms]
                return Complex(
                    self._field.sum([value.re for value in values]),
                    self._field.sum([value.im for value in values]),
                )
            case Product(factors):
                product = Complex(ONE)
                for factor in factors:
                    product = self.times(product, self.value(factor))
                return product
            case Power(base, exponent):
                return self._power(base, exponent)
            case Degrees(amount):
                angle = Fraction(1, 180)
                return self.times(
                    self.value(amount), Complex(self._field.product([angle, self._pi()]))
                )
            case Call(function, arguments):
                return self._call(function, arguments)

    # Arithmetic ---------------------------------------------------------------------------------

    def times(self, a: Complex, b: Complex) -> Complex:
        """The product."""
        field = self._field
        if a.is_real and b.is_real:
            return Complex(field.product([a.re, b.re]))
        return Complex(
            field.difference(field.product([a.re, b.re]), field.product([a.im, b.im])),
            field.sum([field.product([a.re, b.im]), field.product([a.im, b.re])]),
        )

    def minus(self, a: Complex, b: Complex) -> Complex:
        """The difference."""
        field = self._field
        return Complex(field.difference(a.re, b.re), field.difference(a.im, b.im))

    def is_zero(self, value: Complex) -> bool:
        """Whether the number is 0."""
        return self._field.is_zero(value.re) and self._field.is_zero(value.im)

    def _inverse(self, value: Complex) -> Complex:
        field = self._field
        if value.is_real:
            return Complex(field.power(value.re, -1))
        size = field.sum([field.power(value.re, 2), field.power(value.im, 2)])
        return Complex(
            field.quotient(value.re, size), field.negative(field.quotient(value.im, size))
        )

    def _whole_power(self, base: Complex, exponent: int) -> Complex:
        if base.is_real:
            return Complex(self._field.power(base.re, exponent))
        if exponent < 0:
            return self._whole_power(self._inverse(base), -exponent)
        if self._field.is_zero(base.re):  # a power of i
            size = self._field.power(base.im, exponent)
            if exponent % 4 > 1:
                size = self._field.negative(size)
            return Complex(ZERO, size) if exponent % 2 else Complex(size)
        if exponent > 1_000:
            raise Undecided("a large power of a complex number")
        power = Complex(ONE)
        for bit in f"{exponent:b}":
            power = self.times(power, power)
            if bit == "1":
                power = self.times(power, base)
        return power

    def _real(self, value: Complex) -> Real:
        if value.is_real or self._field.is_zero(value.im):
            return value.re
        raise Undecided("a function of a complex number")

    def _simplified(self, value: Complex) -> Complex:
        """The number, as a real one if it is real."""
        if value.is_real or not self._field.is_zero(value.im):
            return value
        return Complex(value.re)

    # Powers and roots ---------------------------------------------------------------------------

    def _power(self, base: Scalar, exponent: Scalar) -> Complex:
        if isinstance(base, Name) and base.name == "e" and "e" not in self._point:
            return self._exp(exponent)
        raised = self.value(exponent)
        is_variable = bool(names(exponent))
        if raised.is_real and isinstance(raised.re, Fraction) and not is_variable:
            number = raised.re
            root = self._root(self.value(base), number.denominator, base)
            return self._whole_power(root, number.numerator)
        logarithms = terms_of(exponent)
        if all(is_logarithm(term, base) for _, term in logarithms):
            return self._power_of_logarithms(logarithms)
        below = self.value(base)
        if not is_variable and self.is_zero(below):
            raise Undefined
        if not names(base) and below.is_real and self._field.sign(below.re) < 0:
            return self._negative_power(base, exponent)
        return self._exp(Product((exponent, Call("ln", (base,)))))

    def _power_of_logarithms(self, terms: list[tuple[Fraction, Scalar]]) -> Complex:
        """A number to a sum of logarithms to the same base."""
        product = Complex(ONE)
        for coefficient, term in terms:
            if isinstance(term, Call):
                product = self.times(product, self._power_of(term.arguments[1], coefficient))
        return product

    def _negative_power(self, base: Scalar, exponent: Scalar) -> Complex:
        """A negative constant to an exponent with variables, which are taken as integers."""
        sign = ONE
        for coefficient, term in terms_of(exponent):
            if coefficient.denominator != 1:
                raise Undecided("a root of a negative number")
            if not names(term):
                value = self._real(self.value(term))
                whole = coefficient * value if isinstance(value, Fraction) else _HALF
                if whole.denominator != 1:
                    raise Undecided("a root of a negative number")
                sign *= (-1) ** (whole.numerator % 2)
            elif coefficient.numerator % 2:
                sign *= self._sign_of(abs(self._rational(self.value(term))) + 3)
        size = self._exp(Product((exponent, Call("ln", (Product((Number(Fraction(-1)), base)),)))))
        return self.times(Complex(sign), size)

    def _root(self, radicand: Complex, degree: int, inside: Scalar) -> Complex:
        """The root of `inside`: the real one for odd degrees, otherwise the principal one."""
        field = self._field
        if degree == 1:
            return radicand
        if degree > MOST_DEGREE:
            raise Undecided("a root of a high degree")
        if degree > 2 and degree % 2 == 0:
            square_root = self._root(radicand, 2, inside)
            return self._root(square_root, degree // 2, Power(inside, Number(_HALF)))
        radicand = self._simplified(radicand)
        if not radicand.is_real:
            if degree != 2 or names(inside):
                raise Undecided("a root of a complex number")
            return self._complex_root(radicand)
        value = radicand.re
        if field.sign(value) >= 0:
            return Complex(self._positive_root(value, degree, inside))
        root = self._positive_root(field.negative(value), degree, inside)
        if degree % 2:
            return Complex(field.negative(root))
        if not self._is_complex:
            raise Undefined
        return Complex(ZERO, root)

    def _positive_root(self, value: Real, degree: int, inside: Scalar) -> Real:
        """The positive root; if it may be that of a square, with the sign of an absolute value.

        A root that is no square has one sign everywhere: its sign is that of no expression.
        """
        field = self._field
        if degree != 2 or not names(inside) or is_positive_square(inside):
            return field.root(value, degree)
        rational = field.rational_value(value)
        if rational is None:
            return self._nested_root(value)
        if not rational:
            return ZERO
        square = square_part(rational)
        if square is not None:
            return field.product([self._sign_of(square), field.root(rational, 2)])
        for place, other in self._generators.radicands.setdefault(inside, {}).items():
            if place != self._place and exact_root(abs(rational * other), 2) is not None:
                raise Undecided("a root of a square")
        if len(self._generators.radicands[inside]) < _MOST_RADICANDS:
            self._generators.radicands[inside][self._place] = rational
        return field.root(value, 2)

    def _nested_root(self, value: Real) -> Real:
        """The root of an expression with roots, which may be a square of such an expression."""
        root = self._field.root(value, 2)
        nested = self._generators.nested
        place = next((at for at, other in enumerate(nested) if other is root), len(nested))
        if place == len(nested):
            nested.append(root)
        if place >= len(_LARGE_PRIMES):
            raise Undecided("too many roots of roots")
        return self._field.product([self._sign_of(Fraction(_LARGE_PRIMES[place])), root])

    def _complex_root(self, radicand: Complex) -> Complex:
        field = self._field
        squares = [field.power(radicand.re, 2), field.power(radicand.im, 2)]
        size = field.root(field.sum(squares), 2)
        re = field.root(field.product([_HALF, field.sum([size, radicand.re])]), 2)
        im = field.root(field.product([_HALF, field.difference(size, radicand.re)]), 2)
        return Complex(re, im if field.sign(radicand.im) > 0 else field.negative(im))

    def _sign_of(self, size: Fraction) -> Fraction:
        """The sign that |u| has in this evaluation, relative to its own."""
        generators = self._generators
        sizes = generators.sizes
        for count in range(len(sizes) + 1):
            for chosen in itertools.combinations(range(len(sizes)), count):
                product = self._field.rational(size * math.prod(sizes[at] for at in chosen))
                if square_part(product) is not None:
                    signs = generators.signs
                    return Fraction(math.prod(signs[at] for at in chosen if at < len(signs)))
        if len(sizes) == _MOST_SIGNS:
            raise Undecided("too many absolute values")
        sizes.append(size)
        return Fraction(
            generators.signs[len(sizes) - 1] if len(sizes) <= len(generators.signs) else 1
        )

    # Constants ----------------------------------------------------------------------------------

    def _named(self, name: str) -> Complex:
        if name in self._point:
            return Complex(self._field.rational(self._point[name]))
        match name:
            case "pi":
                return Complex(self._pi())
            case "e":
                return self._exp(Number(ONE))
            case "i":
                return Complex(ZERO, ONE)
        raise Undecided(f"{name!r} has no value")

    def _pi(self) -> Real:
        def interval(library: Any, precision: int) -> Interval:
            return library.mpf_pi(precision, "f"), library.mpf_pi(precision, "c")

        generators = self._generators
        return generators.keyed("pi", (), lambda: generators.close_to(interval))

    # Terms of an exponent or an angle -----------------------------------------------------------

    def _ratio(self, value: Real, base: Real) -> Fraction | None:
        """The ratio of two numbers, if it is rational and simple."""
        field = self._field
        if isinstance(value, Fraction) and isinstance(base, Fraction):
            ratio = value / base
        else:
            quotient = field.approximation(value) / field.approximation(base)
            if not math.isfinite(quotient):
                return None
            ratio = Fraction(quotient).limit_denominator(_MOST_RATIO)
            scaled = field.product([ratio, base])
            if abs(quotient - float(ratio)) > 1e-9 or not field.is_zero(
                field.difference(value, scaled)
            ):
                return None
        is_simple = max(abs(ratio.numerator), ratio.denominator) <= _MOST_RATIO
        return ratio if is_simple else None

    # Exponentials and logarithms ----------------------------------------------------------------

    def _exp(self, exponent: Scalar) -> Complex:
        """The exponential of a sum: the product of the exponentials of its terms."""
        product = Complex(ONE)
        imaginary: list[tuple[Fraction, Scalar]] = []
        for coefficient, term in merged(terms_of(exponent)):
            without = without_i(term)
            if without is not None:
                turns, rest = without
                if turns % 2:
                    imaginary.append((coefficient * (-1) ** (turns // 2), rest))
                    continue
                coefficient *= (-1) ** (turns // 2)
                term = rest
            product = self.times(product, self._exp_of_term(coefficient, term))
        if imaginary:
            cosine, sine = self._turn(imaginary)
            product = self.times(product, Complex(cosine, sine))
        return product

    def _exp_of_term(self, coefficient: Fraction, term: Scalar) -> Complex:
        field = self._field
        if isinstance(term, Call) and term.function == "ln":
            return self._power_of(term.arguments[0], coefficient)
        value = self._real(self._simplified(self.value(term)))
        if field.is_zero(value):
            return Complex(ONE)
        exponent = field.product([coefficient, value])
        generators = self._generators
        for base, power in generators.exponents:
            ratio = self._ratio(exponent, base)
            if ratio is not None:
                root = field.root(power, ratio.denominator)
                return Complex(field.power(root, ratio.numerator))
        if names(term):
            node: Real = generators.any_value(positive=True)
        else:
            argument = field.interval(exponent, 300, wide=True)
            if abs(field.approximation(exponent)) > 12_000:
                raise NumberTooLarge("numbers larger than allowed")
            node = generators.close_to(lambda library, bits: library.mpi_exp(argument, bits))
        generators.exponents.append((exponent, node))
        return Complex(node)

    def _power_of(self, base: Scalar, exponent: Fraction) -> Complex:
        value = self._real(self._simplified(self.value(base)))
        if self._field.sign(value) <= 0:
            raise Undefined
        root = self._root(Complex(value), exponent.denominator, base)
        return self._whole_power(root, exponent.numerator)

    def _ln(self, argument: Scalar) -> Real:
        field = self._field
        match argument:
            case Name("e") if "e" not in self._point:
                return ONE
            case Call("abs", (inside,)):  # no matter what sign it has
                return field.product([_HALF, self._ln(Power(inside, Number(Fraction(2))))])
            case Power(base, Number(exponent)) if exponent.denominator == 1 and exponent % 2:
                return field.product([exponent, self._ln(base)])
            case Power(base, Number(exponent)) if exponent.denominator > 1:
                value = self._real(self._simplified(self.value(base)))
                if field.sign(value) > 0:
                    return field.product([exponent, self._ln(base)])
            case Power(Name("e"), exponent_) if "e" not in self._point:
                return self._real(self._simplified(self.value(exponent_)))
            case Call("exp", (inside,)):
                return self._real(self._simplified(self.value(inside)))
            case Power(base, exponent_) if names(exponent_):
                return field.product([self._real(self.value(exponent_)), self._ln(base)])
        terms = terms_of_ln(argument)
        if terms != [(ONE, Call("ln", (argument,)))]:
            logarithms = [(c, self._ln(t.arguments[0])) for c, t in terms if isinstance(t, Call)]
            return field.sum([field.product([c, logarithm]) for c, logarithm in logarithms])
        value = self._real(self._simplified(self.value(argument)))
        sign = field.sign(value)
        if sign < 0 and self._is_complex:
            raise Undecided("the logarithm of a negative number")
        if sign <= 0:
            raise Undefined
        if isinstance(value, Fraction):
            above = self._ln_of_integer(value.numerator)
            below = self._ln_of_integer(value.denominator)
            return field.difference(above, below)
        return self._ln_of_node(value, bool(names(argument)))

    def _ln_of_integer(self, value: int) -> Real:
        """By a factorization into coprime numbers, which gets finer as they come."""
        if value == 1:
            return ZERO
        if value.bit_length() > 2_000:
            raise NumberTooLarge("the logarithm of a large number")
        generators = self._generators
        terms: list[Real] = []
        rest = value
        for base in generators.coprimes:
            count = 0
            while rest % base == 0:
                rest //= base
                count += 1
            if count:
                terms.append(self._field.product([Fraction(count), self._ln_of_base(base)]))
        if rest > 1:
            pieces = coprime([*generators.coprimes, rest])
            is_finer = not set(generators.coprimes) <= set(pieces)
            generators.coprimes = pieces
            if is_finer:
                for base in set(generators.logarithms) - set(pieces):
                    del generators.logarithms[base]
                raise Restart
            terms.append(self._ln_of_integer(rest))
        return self._field.sum(terms)

    def _ln_of_base(self, base: int) -> ExactNode:
        generators = self._generators
        if base not in generators.logarithms:
            value = self._field.interval(Fraction(base), 300)
            generators.logarithms[base] = generators.close_to(
                lambda library, bits: library.mpi_log(value, bits)
            )
        return generators.logarithms[base]

    def _ln_of_node(self, value: ExactNode, is_variable: bool) -> Real:
        """The logarithm of an irrational number: a simple multiple of another, or a new one."""
        field = self._field
        generators = self._generators
        for _, (other,), node in [entry for entry in generators.others if entry[0] == "ln"]:
            size = math.log(abs(field.approximation(value)) or 1)
            base = math.log(abs(field.approximation(other)) or 1)
            ratio = Fraction(size / base).limit_denominator(6) if base else ZERO
            if not ratio or abs(size - float(ratio) * base) > 1e-9 or abs(ratio) > 6:
                continue
            these = field.power(value, ratio.denominator)
            those = field.power(other, ratio.numerator)
            if field.is_zero(field.difference(these, those)):
                return field.product([ratio, node])
        if is_variable:
            return generators.keyed("ln", (value,), generators.any_value)
        argument = field.interval(value, 300, wide=True)
        return generators.keyed(
            "ln",
            (value,),
            lambda: generators.close_to(lambda lib, bits: lib.mpi_log(argument, bits)),
        )

    # Trigonometry -------------------------------------------------------------------------------

    def _turn(self, terms: list[tuple[Fraction, Scalar]]) -> tuple[Real, Real]:
        """The cosine and the sine of a sum of terms."""
        field = self._field
        turn = Complex(ONE)
        for coefficient, term in merged(terms):
            if term == Name("pi"):
                cosine = field.cosine(coefficient)
                sine = field.cosine(coefficient - _HALF)
            else:
                cosine, sine = self._turn_of_term(coefficient, term)
            turn = self.times(turn, Complex(cosine, sine))
        return turn.re, turn.im

    def _turn_of_term(self, coefficient: Fraction, term: Scalar) -> tuple[Real, Real]:
        field = self._field
        generators = self._generators
        if isinstance(term, Call) and term.function in _ARCS and coefficient.denominator == 1:
            whole = self._whole_power(self._turn_of_arc(term), coefficient.numerator)
            return whole.re, whole.im
        value = self._real(self._simplified(self.value(term)))
        if field.is_zero(value):
            return ONE, ZERO
        angle = field.product([coefficient, value])
        for at, (base, node) in enumerate(generators.angles):
            ratio = self._ratio(angle, base)
            if ratio is None:
                continue
            if ratio.denominator > 1:
                finer = field.product([Fraction(1, ratio.denominator), base])
                generators.angles[at] = (finer, self._half_tangent(finer, bool(names(term))))
                raise Restart
            whole = self._whole_power(self._turn_of(node), ratio.numerator)
            return whole.re, whole.im
        node = self._half_tangent(angle, bool(names(term)))
        generators.angles.append((angle, node))
        turn = self._turn_of(node)
        return turn.re, turn.im

    def _half_tangent(self, angle: Real, is_variable: bool) -> Real:
        if is_variable:
            return self._generators.any_value()
        half = self._field.interval(self._field.product([_HALF, angle]), 300, wide=True)
        if abs(self._field.approximation(angle)) > 10**6:
            raise Undecided("a large angle")
        return self._generators.close_to(lambda library, bits: library.mpi_tan(half, bits))

    def _turn_of(self, tangent: Real) -> Complex:
        """(1 + it)^2 / (1 + t^2): the cosine and the sine by the tangent t of the half angle."""
        field = self._field
        square = field.power(tangent, 2)
        inverse = field.power(field.sum([ONE, square]), -1)
        return Complex(
            field.product([field.difference(ONE, square), inverse]),
            field.product([Fraction(2), tangent, inverse]),
        )

    def _turn_of_arc(self, arc: Call) -> Complex:
        """The cosine and the sine of an inverse function."""
        field = self._field
        value = self._real(self._simplified(self.value(arc.arguments[0])))
        if arc.function == "arctan":
            square = field.sum([ONE, field.power(value, 2)])
            inverse = field.power(self._positive_root(square, 2, arc), -1)
            return Complex(inverse, field.product([value, inverse]))
        rest = field.difference(ONE, field.power(value, 2))
        if field.sign(rest) < 0:
            raise Undefined
        other = self._positive_root(rest, 2, arc)
        return Complex(value, other) if arc.function == "arccos" else Complex(other, value)

    def _arc(self, function: str, argument: Scalar) -> Real:
        """An inverse function: a rational multiple of pi if it is a simple one."""
        field = self._field
        if function == "arccos":
            half_turn = field.product([_HALF, self._pi()])
            return field.difference(half_turn, self._arc("arcsin", argument))
        value = self._real(self._simplified(self.value(argument)))
        sign = field.sign(value)
        if sign == 0:
            return ZERO
        if sign < 0:
            opposite = Product((Number(Fraction(-1)), argument))
            return field.negative(self._arc(function, opposite))
        if function == "arcsin" and field.sign(field.difference(ONE, value)) < 0:
            raise Undefined
        near = field.approximation(value)
        radians = math.atan(near) if function == "arctan" else math.asin(min(1.0, near))
        turn = Fraction(radians / math.pi).limit_denominator(24)
        if not names(argument) and abs(radians / math.pi - float(turn)) < 1e-9:
            cosine = field.cosine(turn)
            sine = field.cosine(turn - _HALF)
            exact = sine if function == "arcsin" else field.quotient(sine, cosine)
            if field.is_zero(field.difference(value, exact)):
                return field.product([turn, self._pi()])
        generators = self._generators
        if names(argument):
            return generators.keyed(function, (value,), lambda: generators.any_value(positive=True))
        if function == "arcsin":  # arctan(v / sqrt(1 - v^2))
            rest = field.root(field.difference(ONE, field.power(value, 2)), 2)
            value = field.quotient(value, rest)
        interval = field.interval(value, 300, wide=True)
        return generators.keyed(
            "arctan",
            (value,),
            lambda: generators.close_to(lambda library, bits: library.mpi_atan(interval, bits)),
        )

    # Other functions ----------------------------------------------------------------------------

    def _call(self, function: str, arguments: tuple[Scalar, ...]) -> Complex:
        field = self._field
        first = arguments[0]
        match function:
            case "exp":
                return self._exp(first)
            case "ln":
                return Complex(self._ln(first))
            case "log":  # to an unnamed base: equal only to another such logarithm
                base = self._generators.keyed(
                    "unnamed base", (), lambda: self._generators.any_value(positive=True)
                )
                return Complex(field.quotient(self._ln(first), base))
            case "log_base":
                return Complex(field.quotient(self._ln(arguments[1]), self._ln(first)))
            case "sin" | "cos" | "tan" | "cot" | "sec" | "csc":
                return Complex(self._trigonometric(function, first))
            case "sinh" | "cosh" | "tanh":
                return self._hyperbolic(function, first)
            case "arcsin" | "arccos" | "arctan":
                return Complex(self._arc(function, first))
            case "abs":
                return Complex(self._absolute(first))
            case "floor":
                return Complex(self._floor(first))
            case "ceiling":
                opposite = Product((Number(Fraction(-1)), first))
                return Complex(field.negative(self._floor(opposite)))
            case "factorial":
                return Complex(self._factorial(self._rational(self.value(first)), names(first)))
            case "binomial":
                return Complex(self._binomial(*arguments))
            case "permutations":
                return Complex(self._permutations(*arguments))
            case "max" | "min":
                return Complex(self._extreme(function, arguments))
            case "gcd" | "lcm":
                values = [self._whole(argument) for argument in arguments]
                whole = math.gcd(*values) if function == "gcd" else math.lcm(*values)
                return Complex(field.rational(Fraction(whole)))
        values_ = tuple(self._real(self.value(argument)) for argument in arguments)
        return Complex(self._generators.keyed(function, values_, self._generators.any_value))

    def _rational(self, value: Complex) -> Fraction:
        real = self._real(self._simplified(value))
        if isinstance(real, ExactNode):
            raise Undecided("a function of an irrational number")
        return real

    def _whole(self, scalar: Scalar) -> int:
        value = self._rational(self.value(scalar))
        if value.denominator != 1 or names(scalar):
            raise Undecided("a function of integers")
        return value.numerator

    def _trigonometric(self, function: str, argument: Scalar) -> Real:
        field = self._field
        cosine, sine = self._turn(terms_of(argument))
        match function:
            case "sin":
                return sine
            case "cos":
                return cosine
            case "tan":
                return field.quotient(sine, cosine)
            case "cot":
                return field.quotient(cosine, sine)
            case "sec":
                return field.power(cosine, -1)
            case _:
                return field.power(sine, -1)

    def _hyperbolic(self, function: str, argument: Scalar) -> Complex:
        field = self._field
        grown = self._real(self._exp(argument))
        shrunk = field.power(grown, -1)
        sine = field.product([_HALF, field.difference(grown, shrunk)])
        cosine = field.product([_HALF, field.sum([grown, shrunk])])
        match function:
            case "sinh":
                return Complex(sine)
            case "cosh":
                return Complex(cosine)
            case _:
                return Complex(field.quotient(sine, cosine))

    def _absolute(self, argument: Scalar) -> Real:
        field = self._field
        value = self._simplified(self.value(argument))
        if not value.is_real:
            squares = [field.power(value.re, 2), field.power(value.im, 2)]
            return self._positive_root(field.sum(squares), 2, argument)
        sign = field.sign(value.re)
        size = value.re if sign >= 0 else field.negative(value.re)
        if is_nonnegative(argument):
            return value.re  # with the sign that it has in this evaluation
        if not names(argument) or sign == 0:
            return size
        rational = field.rational_value(size)
        if rational is None:
            raise Undecided("the absolute value of a root")
        return field.product([self._sign_of(abs(rational)), size])

    def _extreme(self, function: str, arguments: tuple[Scalar, ...]) -> Real:
        """max(a, b) is (a + b + |a - b|) / 2."""
        field = self._field
        extreme, *others = arguments
        for other in others:
            difference = Sum((extreme, Product((Number(Fraction(-1)), other))))
            distance: Scalar = Call("abs", (difference,))
            if function == "min":
                distance = Product((Number(Fraction(-1)), distance))
            extreme = Product((Number(_HALF), Sum((extreme, other, distance))))
        return self._real(self.value(extreme)) if others else field.sum([])

    def _floor(self, argument: Scalar) -> Real:
        value = self._real(self._simplified(self.value(argument)))
        if not names(argument):
            return Fraction(self._field.floor(value))
        rational = self._rational(Complex(value))
        part = rational % 1
        node = self._generators.keyed("floor", (part,), self._generators.any_value)
        return self._field.sum([node, rational - part])

    def _factorial(self, value: Fraction, variables: frozenset[str]) -> Real:
        if not variables:
            if value.denominator != 1 or value < 0:
                raise Undefined
            if value > _LARGEST_FACTORIAL:
                raise NumberTooLarge("numbers larger than allowed")
            self._field.work.spend((float(value) / 30) ** 1.6)
            return self._field.rational(Fraction(math.factorial(value.numerator)))
        generators = self._generators
        for _, (base,), node in [e for e in generators.others if e[0] == "factorial"]:
            if not isinstance(base, Fraction):
                continue
            shift = value - base
            if shift.denominator != 1 or abs(shift) > _MOST_SHIFT:
                continue
            low, high = sorted((base, value))
            steps = [low + step for step in range(1, int(high - low) + 1)]
            product = self._field.product(steps)
            if shift < 0:
                product = self._field.power(product, -1)
            return self._field.product([node, product])
        return generators.keyed("factorial", (value,), lambda: generators.any_value(positive=True))

    def _binomial(self, above: Scalar, below: Scalar) -> Real:
        field = self._field
        variables = names(above) | names(below)
        n = self._rational(self.value(above))
        k = self._rational(self.value(below))
        if not variables:
            if n.denominator != 1 or k.denominator != 1 or n < 0 or k < 0:
                raise Undefined
            if n > _LARGEST_BINOMIAL:
                raise NumberTooLarge("numbers larger than allowed")
            field.work.spend((float(n) / 30) ** 1.6)
            return field.rational(Fraction(math.comb(n.numerator, k.numerator)))
        if not names(below) and k.denominator == 1 and 0 <= k <= _MOST_SHIFT:
            factors = [(n - step) / (step + 1) for step in range(k.numerator)]
            return field.product([field.rational(factor) for factor in factors])
        parts = [self._factorial(x, variables) for x in (n, k, n - k)]
        return field.quotient(parts[0], field.product(parts[1:]))

    def _permutations(self, above: Scalar, below: Scalar) -> Real:
        n = self._rational(self.value(above))
        k = self._rational(self.value(below))
        variables = names(above) | names(below)
        parts = [self._factorial(x, variables) for x in (n, n - k)]
        return self._field.quotient(*parts)
