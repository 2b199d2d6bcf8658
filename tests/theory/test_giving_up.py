"""Giving up: the rule loses at most twice as much as knowing, and no fixed limit is better."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.theory.proofs.giving_up import (
    WORST,
    WORST_IF_WORTH_IT,
    expected_cost_to_go,
    expected_loss,
    loss,
    loss_of_knowing,
)

costs = st.floats(1e-6, 1e6) | st.just(math.inf)
values = st.floats(1e-3, 1e3)


@given(cost=costs, value=values)
def test_the_loss_is_at_most_twice_that_of_knowing(cost: float, value: float) -> None:
    assert loss(cost, value) <= WORST * loss_of_knowing(cost, value)


@given(value=values, share=st.floats(0.01, 10))
def test_no_other_limit_is_better_at_its_worst(value: float, share: float) -> None:
    limit = share * value
    just_missed = math.nextafter(limit, math.inf)

    worst = loss(just_missed, value, limit) / loss_of_knowing(just_missed, value)

    assert worst >= WORST * (1 - 1e-12)


def test_never_is_more_spent_than_it_is_worth() -> None:
    assert loss(math.inf, 5) == 5 + 5
    assert loss_of_knowing(math.inf, 5) == 5


@given(mean=st.floats(1e-6, 1e6), value=values)
def test_at_a_constant_rate_it_loses_little_where_it_was_worth_trying(
    mean: float, value: float
) -> None:
    known = min(mean, value)  # with a known rate: try forever, or do not start
    bound = WORST_IF_WORTH_IT if mean <= value else WORST

    assert expected_loss(mean, value) <= bound * known * (1 + 1e-12)


def test_the_worst_prompt_worth_trying_costs_half_of_its_value_on_average() -> None:
    shares = [expected_loss(mean, 1.0) / mean for mean in (0.1, 0.3, 0.5, 0.7, 1.0)]

    assert max(shares) == shares[2] == pytest.approx(WORST_IF_WORTH_IT)
    assert shares[-1] == pytest.approx(1.0)


def test_the_closed_form_is_the_mean_over_exponential_costs() -> None:
    generator = random.Random(0)
    for mean, value in ((2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.1, 1.0)):
        drawn = [loss(generator.expovariate(1 / mean), value) for _ in range(40_000)]
        error = 4 * value / math.sqrt(len(drawn))  # losses are at most twice the value
        assert sum(drawn) / len(drawn) == pytest.approx(expected_loss(mean, value), abs=error)
    assert expected_loss(math.inf, 3) == 6


def test_an_answer_is_expected_to_cost_what_was_spent_in_vain() -> None:
    """The mean of the rate, given nothing for so much, by summing over rates."""
    spent = 7.0
    rates = [0.001 * i for i in range(1, 20_000)]
    weights = [math.exp(-rate * spent) for rate in rates]
    mean_rate = sum(map(math.prod, zip(rates, weights, strict=True))) / sum(weights)

    assert 1 / mean_rate == pytest.approx(expected_cost_to_go(spent), rel=0.01)
