"""The constants of the theorems, and how they hang together."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.theory.constants import (
    alternate_against_verify_all,
    alternate_against_verify_all_monotone,
    alternate_constant,
    balanced_constant,
    best_round,
    best_share,
    guarded_constant,
    hedged_against_verify_all,
    least_against_verify_all,
    least_common_constant,
    least_constant,
    rounds_constant,
    tradeoff,
)

ratios = st.builds(Fraction, st.integers(1, 10**4), st.integers(1, 1000))
rates = st.floats(0, 1)


@pytest.mark.parametrize("rho", [1, 2, 3, 10, 100, 1000])
def test_at_whole_ratios_the_constants_are_those_of_the_table(rho: int) -> None:
    exact = Fraction(rho)

    assert balanced_constant(exact) == pytest.approx(2 - 1 / (1 + rho))
    assert balanced_constant(exact) == pytest.approx(least_constant(exact))
    assert alternate_constant(exact) == pytest.approx(3 - 2 / (1 + rho))


@given(ratios)
def test_balanced_stays_below_two_and_alternate_below_three(rho: Fraction) -> None:
    assert least_constant(rho) <= balanced_constant(rho) * (1 + 1e-12)
    assert balanced_constant(rho) < 2
    assert least_constant(rho) <= alternate_constant(rho) * (1 + 1e-12)
    assert alternate_constant(rho) < 3


@given(ratios, rates)
def test_alternate_is_within_three_of_verifying_everything(rho: Fraction, rate: float) -> None:
    for pass_rate in (rate, 0.0):
        assert 1 <= alternate_against_verify_all(rho, pass_rate) <= 1 + 2 * (1 - pass_rate)
        assert alternate_against_verify_all_monotone(rho, pass_rate) <= 1.5


def test_below_one_and_a_half_alternate_verifies_everything() -> None:
    assert alternate_constant(1.4) == pytest.approx(2.4)
    assert alternate_against_verify_all(1.4) == 1
    assert alternate_against_verify_all_monotone(1.4) == 1


@given(ratios)
def test_hedged_is_within_seven_of_verifying_everything(rho: Fraction) -> None:
    assert hedged_against_verify_all(rho) <= 7 - 2 / (1 + rho) + 1e-9


@given(ratios)
def test_the_best_round_is_the_best_of_all(rho: Fraction) -> None:
    best = best_round(rho)
    sizes = {1, best - 1, best + 1, best + 2, 2 * best, math.floor(1 + rho)} - {0}

    assert all(rounds_constant(best, rho) <= rounds_constant(g, rho) + 1e-12 for g in sizes)


def test_between_whole_ratios_a_larger_round_may_be_better() -> None:
    assert best_round(0.99) == 2
    assert rounds_constant(1, 0.99) == pytest.approx(1.99)
    assert rounds_constant(2, 0.99) == pytest.approx(2.99 / 1.99)
    assert best_round(10) == 11


def test_the_guard() -> None:
    assert guarded_constant(2, 0.5) == 4
    assert guarded_constant(balanced_constant(10), 1) == pytest.approx(2 * 21 / 11 + 1)
    with pytest.raises(UsageError, match="a guard needs a constant of at least 1"):
        guarded_constant(0.5, 1)
    with pytest.raises(UsageError, match="an allowance of at least 0, not 2 and -1"):
        guarded_constant(2, -1)


@pytest.mark.parametrize(("rho", "least"), [(3, 2.0), (10, 2.397), (100, 2.801)])
def test_a_common_constant(rho: float, least: float) -> None:
    assert least_common_constant(rho) == pytest.approx(least, abs=5e-4)


@given(st.floats(0.01, 1e4))
def test_the_best_share_gives_the_most(rho: float) -> None:
    share, common = best_share(rho), least_common_constant(rho)

    assert 0 < share < 1
    assert tradeoff(rho, share, common, common) == pytest.approx(1)
    for other in np.linspace(0.001, 0.999, 50):
        assert tradeoff(rho, float(other), common, common) <= 1 + 1e-9


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 2, math.nan])
def test_a_share_is_between_nothing_and_everything(wrong: float) -> None:
    with pytest.raises(UsageError, match="the share must be between 0 and 1"):
        tradeoff(10, wrong, 2, 2)


@given(st.floats(0.5, 1e4), st.floats(0, 3))
def test_what_a_constant_against_the_optimum_costs_against_verify_all(
    rho: float, more: float
) -> None:
    """The least C2, found by trying shares: none may ask for more, and one asks for as much."""
    c1 = least_constant(rho) + more
    c2 = least_against_verify_all(rho, c1)
    shares = 1 / (1 + np.exp(np.linspace(-14, 14, 1001)))
    asked = [tradeoff(rho, float(share), c1, c2) for share in shares]

    assert max(asked) <= 1 + 1e-9
    assert c2 == 1 or max(asked) == pytest.approx(1, abs=1e-3)


def test_the_ends_of_the_trade_off() -> None:
    assert least_against_verify_all(10, 1.9) == math.inf  # no policy has this constant
    assert least_against_verify_all(10, least_constant(10)) == pytest.approx(21)
    assert least_against_verify_all(10, 2) == pytest.approx(5.5)
    assert least_against_verify_all(10, 1e9) == 1
    common = least_common_constant(10)
    assert least_against_verify_all(10, common) == pytest.approx(common)


@given(st.integers(1, 10**5))
def test_no_policy_of_ours_is_below_the_limits(rho: int) -> None:
    alternate = (alternate_constant(rho), alternate_against_verify_all(rho))

    assert alternate[1] >= least_against_verify_all(rho, alternate[0])
    assert tradeoff(rho, best_share(rho), *alternate) <= 1
    assert max(alternate) >= least_common_constant(rho)


def test_as_ratios_grow_alternate_reaches_the_limit() -> None:
    assert tradeoff(1e8, best_share(1e8), alternate_constant(1e8), 3) == pytest.approx(1, abs=1e-3)
