"""The price of a failure: the statements of docs/theory/failure-price.md, with exact checks."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.values import Costs
from grv.policies import Alternate, Balanced
from grv.theory.constants import alternate_constant, balanced_constant
from grv.theory.optimum import (
    Law,
    best_threshold,
    optimum,
    rule_cost,
    threshold_cost,
)
from grv.theory.proofs.continuation import continuation_value, pool_values
from grv.theory.proofs.continuous import ContinuousLaw
from grv.theory.proofs.continuous import best_threshold as continuous_best_threshold
from grv.theory.proofs.continuous import optimum as continuous_optimum
from grv.theory.proofs.steps import step_cost
from grv.theory.rounds import StepLaw
from grv.theory.stars.bounds import StarInstance
from support.examples import examples

prices = st.builds(
    lambda generate, verify, share: Costs(generate, verify, failure=share * verify),
    st.floats(0.01, 100),
    st.floats(0.01, 100),
    st.floats(0.01, 1),
)


@st.composite
def laws(draw: st.DrawFn) -> Law:
    passes = draw(st.lists(st.floats(1e-3, 1) | st.just(0.0), min_size=1, max_size=4).filter(any))
    masses = draw(st.lists(st.floats(0.01, 1), min_size=len(passes), max_size=len(passes)))
    return Law(tuple(range(len(passes))), tuple(masses), tuple(passes))


def test_a_law_worked_out_by_hand() -> None:
    # A quarter of the candidates score 1 and half of these pass. At 2 a failure: (1 + 2/4)/(1/8)
    # is 12, and the pass costs 8 more.
    law = Law(scores=(0, 1), masses=(3, 1), passes=(0.0, 0.5))
    costs = Costs(1, 10, failure=2)
    assert threshold_cost(law, 1, costs) == pytest.approx(20)
    assert optimum(law, costs).cost == pytest.approx(20)
    assert optimum(law, costs).tau == pytest.approx(2 / 12)
    assert optimum(law, Costs(1, 10)).cost == pytest.approx(28)


@given(laws(), prices)
def test_the_optimum_and_the_threshold_are_those_of_the_failure(law: Law, costs: Costs) -> None:
    more = costs.verify - costs.failure
    planned = optimum(law, costs.planning)
    assert optimum(law, costs).cost == pytest.approx(planned.cost + more)
    assert optimum(law, costs).tau == planned.tau
    best = best_threshold(law, costs)
    # Thresholds of equal cost may change places by rounding.
    cheapest = best_threshold(law, costs.planning)
    assert threshold_cost(law, best.score, costs.planning) == pytest.approx(cheapest.cost)
    assert best.cost == pytest.approx(cheapest.cost + more)


@given(st.floats(0.05, 1), st.floats(0.05, 1), prices)
def test_a_rule_costs_what_the_sum_over_its_candidates_says(
    q: float, share: float, costs: Costs
) -> None:
    """Each candidate is verified with probability q, and passes with probability `share` then."""
    s = q * share
    reached = 1.0
    total = 0.0
    while reached > 1e-15:
        price = share * costs.verify + (1 - share) * costs.failure
        total += reached * (costs.candidate + q * price)
        reached *= 1 - s
    assert rule_cost(q, s, costs) == pytest.approx(total, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_policy_costs_less_than_the_optimum_with_both_prices(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        atoms = chance.randint(2, 3)
        passes = [chance.uniform(0.05, 1) for _ in range(atoms)]
        law = Law(
            tuple(map(float, range(atoms))),
            tuple(chance.uniform(0.1, 1) for _ in range(atoms)),
            tuple(passes),
        )
        verify = chance.uniform(0.3, 12)
        costs = Costs(1, verify, failure=verify * chance.uniform(0.05, 1))
        values = pool_values(law, costs, cap=8)
        empty = values[(0,) * atoms]
        j = optimum(law, costs).cost
        assert empty.low * (1 - 1e-9) <= j <= empty.high * (1 + 1e-9)
        assert empty.high - empty.low <= 0.02 * j  # narrow enough to mean something
        wrong = optimum(law, Costs(1, costs.verify)).cost
        if costs.failure < 0.8 * costs.verify:
            assert wrong > empty.high  # the optimum without a price of failures is another number
        one = (*(0,) * (atoms - 1), 1)
        stored = continuation_value([law.passes[-1]], law, costs)
        assert values[one].low * (1 - 1e-9) <= stored <= values[one].high * (1 + 1e-9)


@settings(max_examples=examples(25))
@given(
    st.sampled_from([1.0, 2.0, 5.0, 10.0]),
    st.floats(1, 20),
    st.floats(0.02, 1),
    st.floats(0.05, 1),
)
def test_constants_carry_over(rho: float, times: float, q: float, p: float) -> None:
    """The exact cost of a path on a step law at the failure's price, and b for the pass."""
    costs = Costs(1, rho * times, failure=rho)
    b = costs.verify - costs.failure
    j = rule_cost(q, q * p, costs)
    for slots, constant in (
        (Balanced().slots(costs.planning), balanced_constant(rho)),
        (Alternate().slots(costs.planning), alternate_constant(rho)),
    ):
        spent = step_cost(slots, StepLaw(q, p), rho).high + b
        assert spent <= constant * j * (1 + 1e-9)


def test_continuous_laws_have_the_same_optimum() -> None:
    costs = Costs(1, 10, failure=2)
    law = ContinuousLaw(lambda u: u, lambda score: score**3)
    planned = continuous_optimum(law, costs.planning)
    found = continuous_optimum(law, costs)
    assert found.tau == planned.tau
    assert found.cost == pytest.approx(planned.cost + 8)
    threshold = continuous_best_threshold(law, costs)
    assert threshold.score == pytest.approx(continuous_best_threshold(law, costs.planning).score)
    assert threshold.cost == pytest.approx(found.cost, rel=1e-6)


def test_the_star_instance_is_priced_as_its_law() -> None:
    costs = Costs(1, 10, failure=2)
    instance = StarInstance((0.0, 1.0, 2.0), (0.5, 1.0, 0.25))
    for target in range(3):
        expected = optimum(instance.law(target), costs).cost
        assert instance.optimum(target, costs) == pytest.approx(expected)
