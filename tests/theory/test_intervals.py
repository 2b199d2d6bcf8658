"""Interval arithmetic: what it says contains the truth, by fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.theory.proofs.intervals import Interval, geometric, power
from support.examples import examples

numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 1e-300, -5e-324, 0.1])
shares = st.floats(0, 1)


def interval(ends: tuple[float, float]) -> Interval:
    return Interval(np.array([min(ends)]), np.array([max(ends)]))


def point(ends: tuple[float, float], at: float) -> Fraction:
    low, high = sorted(map(Fraction, ends))
    return low + Fraction(at) * (high - low)


def contains(found: Interval, exact: Fraction) -> bool:
    return Fraction(float(found.low[0])) <= exact <= Fraction(float(found.high[0]))


@given(*[st.tuples(numbers, numbers)] * 2, shares, shares)
def test_sums_and_products_contain_those_of_all_points(
    xs: tuple[float, float], ys: tuple[float, float], at_x: float, at_y: float
) -> None:
    x, y = point(xs, at_x), point(ys, at_y)
    ours, theirs = interval(xs), interval(ys)

    assert contains(ours + theirs, x + y)
    assert contains(ours - theirs, x - y)
    assert contains(ours * theirs, x * y)
    assert contains(1.0 - ours, 1 - x)
    assert contains(3.0 * ours, 3 * x)
    if min(ys) > 1e-6:
        assert contains(ours / theirs, x / y)


@settings(max_examples=examples(40))
@given(st.tuples(shares, shares), shares, st.integers(1, 30))
def test_so_do_powers_and_geometric_sums(ends: tuple[float, float], at: float, n: int) -> None:
    x = point(ends, at)

    assert contains(power(interval(ends), n), x**n)
    assert contains(geometric(interval(ends), n), sum((x**k for k in range(n)), Fraction(0)))


def test_they_are_no_wider_than_they_must_be() -> None:
    found = geometric(interval((0.5, 1.0)), 100)

    assert found.low[0] == pytest.approx(2, rel=1e-13)
    assert found.high[0] == pytest.approx(100, rel=1e-13)


def test_a_divisor_must_be_positive() -> None:
    with pytest.raises(ZeroDivisionError, match="the divisor must be a positive interval"):
        interval((1, 2)) / interval((0, 1))
