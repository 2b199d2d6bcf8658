"""Interval arithmetic on arrays, safe against rounding errors.

The four basic operations are correctly rounded (IEEE 754), so the exact result lies between the two
neighbours of the rounded one. Every operation here moves its lower end one float down and its upper
end one float up. So a result contains the exact result for any points of the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An array of numbers, with a lower and an upper bound for each."""

    low: Floats
    high: Floats

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """The interval that contains only this float."""
        one = np.asarray(value, dtype=np.float64)
        return cls(one, one)

    def __add__(self, other: Interval | float) -> Interval:
        that = _interval(other)
        return _outward(self.low + that.low, self.high + that.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | float) -> Interval:
        return self + -_interval(other)

    def __rsub__(self, other: float) -> Interval:
        return _interval(other) - self

    def __mul__(self, other: Interval | float) -> Interval:
        that = _interval(other)
        ends = (
            self.low * that.low,
            self.low * that.high,
            self.high * that.low,
            self.high * that.high,
        )
        return _outward(np.minimum.reduce(ends), np.maximum.reduce(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """Divide by a positive interval."""
        if not np.all(other.low > 0):
            raise ZeroDivisionError("the divisor must be a positive interval")
        return self * _outward(1 / other.high, 1 / other.low)

    __radd__ = __add__
    __rmul__ = __mul__


def power(base: Interval, n: int) -> Interval:
    """base^n, by squaring; as narrow as possible up to rounding if the base is not negative."""
    result = Interval.exactly(1.0)
    for bit in f"{n:b}":
        result = result * result
        if bit == "1":
            result = result * base
    return result


def geometric(base: Interval, n: int) -> Interval:
    """1 + base + ... + base^(n-1), by doubling; unlike (1 - base^n) / (1 - base) defined at 1."""
    # the sum of k terms, and base^k
    total = Interval.exactly(0.0)
    last = Interval.exactly(1.0)
    for bit in f"{n:b}":
        total = total * (last + 1)
        last = last * last
        if bit == "1":
            total = total * base + 1
            last = last * base
    return total


def _interval(value: Interval | float) -> Interval:
    return value if isinstance(value, Interval) else Interval.exactly(value)


def _outward(low: Floats, high: Floats) -> Interval:
    return Interval(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))
