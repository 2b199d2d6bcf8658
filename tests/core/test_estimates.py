"""Costs estimated from what was paid: running means, before them a guess."""

from __future__ import annotations

import pytest

from grv.core.estimates import Estimates
from grv.core.values import Costs, Measured


def test_before_any_payment_the_estimate_is_the_guess() -> None:
    guess = Measured(1, 10)
    estimates = Estimates(guess)

    assert estimates.mean is guess
    assert estimates.dearest is guess
    estimates.see("generate", 0, 0.0)  # no candidates: nothing changes
    assert estimates.mean is guess


def test_the_guess_counts_until_the_first_payment() -> None:
    estimates = Estimates(Measured(1, 10))
    estimates.see("generate", 3, 9.0)
    estimates.see("verify", 1, 30.0)

    assert estimates.mean == Costs(3, 30)
    estimates.see("verify", 1, 5.0)
    assert estimates.mean == Costs(3, 17.5)


def test_scoring_keeps_its_share_of_a_candidates_cost() -> None:
    estimates = Estimates(Costs(generate=3, verify=10, score=1))
    estimates.see("generate", 1, 12.0)

    assert estimates.mean == Costs(generate=9, verify=10, score=3)


def test_what_is_free_is_still_estimated_above_zero() -> None:
    estimates = Estimates(Measured(1, 10))
    estimates.see("verify", 999, 0.0)

    assert estimates.mean.verify == pytest.approx(0.01)


def test_the_dearest_is_at_least_the_guess() -> None:
    estimates = Estimates(Measured(1, 10))
    estimates.see("generate", 4, 2.0)
    estimates.see("verify", 1, 25.0)
    estimates.see("verify", 1, 5.0)

    assert estimates.dearest == Costs(1, 25)
