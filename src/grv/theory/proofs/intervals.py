"""Arithmetic that cannot be wrong by rounding: intervals of numbers, many at a time.

The four operations of a machine are correctly rounded (IEEE 754), so the exact result lies
between the neighbours of the rounded one. Every operation here moves its lower end one number down
and its upper end one up. So what is computed from intervals contains what is computed, without
rounding, from any of their points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers, of each of which a lower and an upper bound is known."""

    low: Floats
    high: Floats

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """A number that a machine can hold."""
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
            *(self.low * that.low, self.low * that.high),
            *(self.high * that.low, self.high * that.high),
        )
        return _outward(np.minimum.reduce(ends), np.maximum.reduce(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """By what is positive."""
        if not np.all(other.low > 0):
            raise ZeroDivisionError("an interval is divided only by one above 0")
        return self * _outward(1 / other.high, 1 / other.low)

    __radd__ = __add__
    __rmul__ = __mul__


def power(base: Interval, n: int) -> Interval:
    """base^n, by squaring; for a base from 0 on no wider than it must be."""
    result = Interval.exactly(1.0)
    for bit in f"{n:b}":
        result = result * result
        if bit == "1":
            result = result * base
    return result


def geometric(base: Interval, n: int) -> Interval:
    """1 + base + ... + base^(n-1), which is (1 - base^n) / (1 - base) also at 1, by doubling."""
    total, last = Interval.exactly(0.0), Interval.exactly(1.0)  # of k terms, and base^k
    for bit in f"{n:b}":
        total, last = total * (last + 1), last * last
        if bit == "1":
            total, last = total * base + 1, last * base
    return total


def _interval(value: Interval | float) -> Interval:
    return value if isinstance(value, Interval) else Interval.exactly(value)


def _outward(low: Floats, high: Floats) -> Interval:
    return Interval(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))
