"""The inequalities behind the bounds of rounds, each where the proof uses it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.theory.constants import (
    alternate_constant,
    equal_rounds_constant,
    full_rounds_constant,
)
from grv.theory.rounds import (
    RoundPlan,
    StepLaw,
    alternate_cost_bound,
    alternate_rounds,
    chance_above,
    equal_rounds,
    expected_cost_bound,
    exponential_coefficient,
    exponential_gain,
    room_for_first,
    spread_gain,
)
from grv.theory.slots import alternate_draws

shares = st.floats(1e-9, 1)
ratios = st.floats(0.01, 1000)
STEPS = [StepLaw(q, p) for q in np.geomspace(1e-7, 1, 60) for p in (1.0, 0.7, 0.1, 1e-3)]
RATIOS = [*np.geomspace(0.05, 300, 80), *range(1, 40), *(n + 0.4999 for n in range(1, 40))]


@pytest.mark.parametrize("q", [1e-9, 0.01, 0.3, 1.0])
def test_one_of_k_is_above_with_the_chance_that_not_all_are_below(q: float) -> None:
    for k in (1, 2, 11, 1000):
        assert chance_above(q, k) == pytest.approx(float(1 - (1 - Fraction(q)) ** k))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.integers(1, 6), st.data())
def test_the_best_of_k_passes_no_less_often_than_the_step_law_says(
    h: list[float], k: int, data: st.DataObject
) -> None:
    """(i), by enumeration: E h(M) >= (1 - a^k) p, for scores with atoms."""
    chances = sorted(h)
    masses = data.draw(
        st.lists(st.integers(1, 9), min_size=len(h), max_size=len(h)).map(
            lambda xs: [x / sum(xs) for x in xs]
        )
    )
    below = [*itertools.accumulate(masses, initial=0.0)]
    below[-1] = 1.0
    best = sum(
        (below[i + 1] ** k - below[i] ** k) * chance for i, chance in enumerate(chances)
    )  # the maximum is at the i-th atom
    for t in range(len(h)):
        q = 1 - below[t]
        s = sum(m * chance for m, chance in zip(masses[t:], chances[t:], strict=True))
        assert best >= chance_above(min(q, 1.0), k) * s / q - 1e-9


@given(shares, st.floats(0, 1e4))
def test_a_spread_of_draws_loses_nothing(q: float, r: float) -> None:
    """(ii)."""
    assert spread_gain(q, r) >= -1e-9 * (1 + r) * q


@given(st.floats(0.5, 0.75), st.floats(1e-6, 500))
def test_lemma_a(theta: float, x: float) -> None:
    assert exponential_gain(theta, x) >= -1e-15


def test_lemma_a_fails_outside_its_range() -> None:
    assert exponential_gain(0.45, 50.0) < 0
    assert exponential_gain(0.9, 3.0) < 0


@given(st.fractions(Fraction(1, 2), Fraction(3, 4)), st.integers(1, 40))
def test_every_coefficient_of_lemma_a_is_non_negative(theta: Fraction, k: int) -> None:
    assert exponential_coefficient(theta, k) >= 0
    assert exponential_coefficient(theta, k) == 0 or k > 2


def test_the_coefficients_are_those_of_the_function() -> None:
    theta, x = Fraction(2, 3), 0.7
    series = sum(
        float(exponential_coefficient(theta, k)) * x**k / math.factorial(k) for k in range(1, 30)
    )

    assert series == pytest.approx(exponential_gain(2 / 3, x) * x * math.exp(x))


@given(shares)
def test_one_over_q_is_at_least_one_over_z_and_a_half(q: float) -> None:
    z = math.inf if q == 1 else -math.log1p(-q)

    assert 1 / q >= (1 / z + 0.5) * (1 - 1e-12)


@pytest.mark.parametrize("rho", RATIOS)
def test_the_first_round_has_room(rho: float) -> None:
    """Lemma B's condition on the first round, for both policies and every share."""
    both = [equal_rounds(rho)] if rho >= 1 else []
    both += [alternate_rounds(rho)] if rho >= 1.5 else []
    for rounds in both:
        for law in STEPS:
            room = room_for_first(rounds, law.q)
            assert rounds.first.cost / rounds.later.cost <= room * (1 + 1e-7)  # 1/q is cancelled


@pytest.mark.parametrize("rho", RATIOS)
def test_the_bound_on_the_cost_is_within_the_constant(rho: float) -> None:
    """Theorems 1 and 2, from the bound that their proofs start with."""
    cases: list[tuple[RoundPlan, float]] = [(equal_rounds(rho), equal_rounds_constant(rho))]
    if rho >= 1.5:  # below, Alternate verifies everything, and its rounds are not two draws
        cases.append((alternate_rounds(rho), full_rounds_constant(rho)))
    for rounds, constant in cases:
        for law in STEPS:
            bound = expected_cost_bound(rounds, law)
            assert bound <= constant * law.optimum(rho) * (1 + 1e-9)


@given(st.floats(1.5, 1000), shares, st.floats(1e-3, 1))
def test_alternate_keeps_its_exact_constant(rho: float, q: float, p: float) -> None:
    """Theorem 2, if a blind candidate that passes ends its round."""
    law = StepLaw(q, p)

    assert alternate_cost_bound(rho, law) <= alternate_constant(rho) * law.optimum(rho) * (1 + 1e-9)


@given(st.floats(1.5, 1000), shares.filter(lambda q: 1e-5 < q < 1))
def test_the_four_ends_of_the_exact_constant_have_room(rho: float, q: float) -> None:
    """Theorem 2: the first round of Alternate, with either bound on W and at either end of p."""
    (first, later), a = alternate_draws(rho), 1 - q
    ends = []
    for delta, other in itertools.product((0.0, q), repeat=2):
        cost = 1 + rho + a * (first + rho) + delta * (first + rho)
        chance = max(0.0, a ** (1 + first) - delta * chance_above(q, first))
        rate = (1 + rho + (a + other) * (later + rho)) / (
            chance_above(q, 1 + later) + other * chance_above(q, later)
        )
        ends.append(cost + chance * rate)

    assert max(ends) <= alternate_constant(rho) * (1 + rho * q) / q * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1.6, 2, 2.4, 3, 10, 100])
def test_an_earlier_look_than_a_quarter_would_not_do(rho: float) -> None:
    """A first round of one candidate: the room is not enough any more where g is large."""
    rounds = equal_rounds(rho)
    early = RoundPlan(rounds.first._replace(fresh=1, cost=1 + rho), rounds.later)
    ratios = [expected_cost_bound(early, law) / law.optimum(rho) for law in STEPS]

    assert (max(ratios) > equal_rounds_constant(rho) * (1 + 1e-9)) == (rho > 5)


def test_step_laws_have_the_costs_of_their_thresholds() -> None:
    law = StepLaw(q=0.1, p=0.5)

    assert law.optimum(10) == (1 + 10 * 0.1) / 0.05
    assert law.verify_all(10) == 11 / 0.05
