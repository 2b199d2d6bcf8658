"""What stands for numbers without a known algebraic equation: random rational values."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .exact import ExactNode, Field, Interval, NumberTooLarge, Real, Undecided
from .tree import Scalar

_NEAR_BITS = 80  # of the interval around a constant
_RANDOM_BITS = 48
_MOST_RESTARTS = 12

Point = Mapping[str, Fraction]
Place = tuple[tuple[str, Fraction], ...]  # a point, as a key


@dataclass(slots=True)
class AlgebraicGenerators:
    """What two evaluations at one point share: the generators and the signs."""

    field: Field
    draw: random.Random
    signs: tuple[int, ...] = ()
    radicands: dict[Scalar, dict[Place, Fraction]] = dataclasses.field(default_factory=dict)
    nested: list[Real] = dataclasses.field(default_factory=list)
    sizes: list[Fraction] = dataclasses.field(default_factory=list)  # |u| of each independent sign
    exponents: list[tuple[Real, Real]] = dataclasses.field(default_factory=list)
    angles: list[tuple[Real, Real]] = dataclasses.field(default_factory=list)
    coprimes: list[int] = dataclasses.field(default_factory=list)
    logarithms: dict[int, ExactNode] = dataclasses.field(default_factory=dict)
    others: list[tuple[str, tuple[Real, ...], Real]] = dataclasses.field(default_factory=list)
    restarts: int = 0

    def again(self) -> None:
        """Forget what depends on numbers that an earlier evaluation made."""
        self.restarts += 1
        if self.restarts > _MOST_RESTARTS:
            raise Undecided("too many exponents or angles")
        self.sizes.clear()
        self.nested.clear()
        self.exponents.clear()
        self.others.clear()

    def any_value(self, *, positive: bool = False) -> Fraction:
        """The random value of a generator that may be any number."""
        value = Fraction(self.draw.getrandbits(_RANDOM_BITS) | 1, 1 << (_RANDOM_BITS - 3))
        is_negative = not positive and self.draw.random() < 0.5
        return -value if is_negative else value

    def close_to(self, compute: Callable[[Any, int], Interval]) -> ExactNode:
        """A generator close to a constant, which `compute` gives as an interval of mpmath."""
        import mpmath.libmp as library

        self.field.work.spend(150)
        lower, upper = compute(library, _NEAR_BITS + 80)
        if library.mpf_sign(lower) * library.mpf_sign(upper) <= 0:
            raise Undecided("a constant that may be 0")
        above, below = library.to_rational(lower)
        size = abs(Fraction(above, below))
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        if abs(exponent) > 20_000:
            raise NumberTooLarge("numbers larger than allowed")
        step = Fraction(2) ** (exponent - _NEAR_BITS)
        value = step * (Fraction(above, below) // step)
        value += step * Fraction(self.draw.getrandbits(_RANDOM_BITS), 1 << _RANDOM_BITS)
        width = 2 * step
        near = (
            library.from_rational(*(value - width).as_integer_ratio(), _NEAR_BITS + 80, "f"),
            library.from_rational(*(value + width).as_integer_ratio(), _NEAR_BITS + 80, "c"),
        )
        return self.field.generator(value, near)

    def keyed(self, name: str, arguments: tuple[Real, ...], make: Callable[[], Real]) -> Real:
        """The generator of a function of these arguments."""
        for other, values, node in self.others:
            if other == name and len(values) == len(arguments):
                pairs = zip(values, arguments, strict=True)
                if all(self.field.is_zero(self.field.difference(a, b)) for a, b in pairs):
                    return node
        node = make()
        self.others.append((name, arguments, node))
        if len(self.others) > 60:
            raise Undecided("too many functions")
        return node
