"""Forms of scalars and numbers, as they are written: terms, factors, squares."""

from __future__ import annotations

import math
from fractions import Fraction

from .exact import ONE, ZERO, Undecided, exact_root
from .tree import Call, Degrees, Name, Number, Power, Product, Scalar, Sum

_MOST_TERMS = 40
_SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)


def terms_of(scalar: Scalar) -> list[tuple[Fraction, Scalar]]:
    """The terms of a sum with rational coefficients; products of sums are multiplied out."""
    match scalar:
        case Number(value):
            return [(value, Number(ONE))]
        case Sum(parts):
            terms = [term for part in parts for term in terms_of(part)]
        case Product(factors):
            terms = [(ONE, Number(ONE))]
            for factor in factors:
                others = terms_of(factor)
                if len(terms) * len(others) > _MOST_TERMS:
                    raise Undecided("a long sum")
                terms = [(a * b, _joined(s, t)) for a, s in terms for b, t in others]
        case Power(base, Number(exponent)) if exponent.denominator == 1:
            others = terms_of(base)
            if len(others) == 1 and (exponent > 0 or others[0][0]):
                coefficient, term = others[0]
                power: Scalar = Power(term, Number(exponent))
                power = term if isinstance(term, Number) else power
                terms = [(coefficient**exponent.numerator, power)] if abs(exponent) < 99 else []
                if not terms:
                    raise Undecided("a large power")
            elif 1 < exponent <= 4:
                return terms_of(Product((base,) * exponent.numerator))
            else:
                terms = [(ONE, scalar)]
        case Degrees(amount):
            return terms_of(Product((Number(Fraction(1, 180)), Name("pi"), amount)))
        case Call("ln", (Power(base, exponent),)) if not isinstance(exponent, Number):
            return terms_of(Product((exponent, Call("ln", (base,)))))
        case Call("ln", (inside,)):
            terms = terms_of_ln(inside)
        case _:
            terms = [(ONE, scalar)]
    if len(terms) > _MOST_TERMS:
        raise Undecided("a long sum")
    return terms


def merged(terms: list[tuple[Fraction, Scalar]]) -> list[tuple[Fraction, Scalar]]:
    """Equal terms as one."""
    coefficients: dict[Scalar, Fraction] = {}
    for coefficient, term in terms:
        coefficients[term] = coefficients.get(term, ZERO) + coefficient
    return [(coefficient, term) for term, coefficient in coefficients.items() if coefficient]


def is_nonnegative(scalar: Scalar) -> bool:
    """Whether a scalar is written so that it cannot be negative, for real variables."""
    match scalar:
        case Number(value):
            return value >= 0
        case Name(name):
            return name in {"pi", "e"}
        case Sum(parts) | Product(parts):
            return all(map(is_nonnegative, parts))
        case Power(base, Number(exponent)):
            is_even = exponent.denominator % 2 == 0 or exponent.numerator % 2 == 0
            return is_even or is_nonnegative(base)
        case Power(base, _):
            return is_nonnegative(base)
        case Call(function, _):
            return function in {"abs", "exp", "cosh"}
        case _:
            return False


def is_positive_square(scalar: Scalar) -> bool:
    """Whether a scalar is written as a square of something that is not negative."""
    match scalar:
        case Number(value):
            return value >= 0
        case Product(factors):
            return all(map(is_positive_square, factors))
        case Power(Name("e"), _) | Call("exp", _):
            return True
        case Power(base, Number(exponent)):
            return exponent.denominator == 1 and exponent % 2 == 0 and is_nonnegative(base)
        case _:
            return False


def is_logarithm(term: Scalar, base: Scalar) -> bool:
    """Whether a term is a logarithm to this base."""
    return isinstance(term, Call) and term.function == "log_base" and term.arguments[0] == base


def _joined(a: Scalar, b: Scalar) -> Scalar:
    """The product of two terms, with its factors in a fixed order."""
    factors: list[Scalar] = []
    for term in (a, b):
        match term:
            case Number(value) if value == 1:
                pass
            case Product(parts):
                factors += parts
            case _:
                factors.append(term)
    if not factors:
        return Number(ONE)
    return factors[0] if len(factors) == 1 else Product(tuple(sorted(factors, key=repr)))


def terms_of_ln(inside: Scalar) -> list[tuple[Fraction, Scalar]]:
    """The logarithm of a product with positive constants, as a sum."""
    match inside:
        case Number(value) if value > 0:
            terms = [(Fraction(count), prime) for prime, count in _factors(value.numerator)]
            terms += [(Fraction(-count), prime) for prime, count in _factors(value.denominator)]
            return [(count, Call("ln", (Number(Fraction(prime)),))) for count, prime in terms]
        case Power(base, Number(exponent)) if is_nonnegative(base) or exponent.numerator % 2:
            return [(exponent * count, term) for count, term in terms_of_ln(base)]
        case Product(factors) if any(map(is_nonnegative, factors)):
            known = [factor for factor in factors if is_nonnegative(factor)]
            rest = tuple(factor for factor in factors if not is_nonnegative(factor))
            terms_ = [term for factor in known for term in terms_of_ln(factor)]
            return [*terms_, (ONE, Call("ln", (Product(rest),)))] if rest else terms_
        case _:
            return [(ONE, Call("ln", (inside,)))]


def _factors(number: int) -> list[tuple[int, int]]:
    """The prime factors below 1,000 with their powers, and what is left."""
    factors: list[tuple[int, int]] = []
    for prime in (2, *range(3, 1_000, 2)):
        count = 0
        while number % prime == 0 and number > 1 and count < 10_000:
            number //= prime
            count += 1
        if count:
            factors.append((prime, count))
        if number == 1:
            break
    return [*factors, (number, 1)] if number > 1 else factors


def without_i(term: Scalar) -> tuple[int, Scalar] | None:
    """The exponent of i in a term, and the rest; None if it is not a factor."""
    match term:
        case Name("i"):
            return 1, Number(ONE)
        case Product(factors) if Name("i") in factors:
            rest = [factor for factor in factors if factor != Name("i")]
            others: Scalar = Number(ONE)
            for factor in rest:
                others = _joined(others, factor)
            return len(factors) - len(rest), others
        case _:
            return None


def square_part(value: Fraction) -> Fraction | None:
    """The root of a number without its small factors, which may be those of a constant.

    None if what is left is not a square.
    """
    rest = [value.numerator, value.denominator]
    for at, number in enumerate(rest):
        for prime in _SMALL_PRIMES:
            while number % prime == 0:
                number //= prime
        rest[at] = number
    return exact_root(Fraction(*rest), 2)


def coprime(numbers: list[int]) -> list[int]:
    """Numbers above 1 without common factors, of which all of these are products."""
    pieces: list[int] = []
    waiting = [number for number in numbers if number > 1]
    steps = 0
    while waiting:
        steps += 1
        if steps > 2_000:
            raise Undecided("too many factors")
        number = waiting.pop()
        for at, piece in enumerate(pieces):
            common = math.gcd(number, piece)
            if common > 1:
                del pieces[at]
                waiting += [x for x in (common, number // common, piece // common) if x > 1]
                break
        else:
            pieces.append(number)
    return pieces
