from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.theory.optimum import Law, best_threshold, optimum, tail, threshold_cost

some_costs = st.builds(
    Costs, generate=st.floats(0.01, 100), verify=st.floats(0.01, 100), score=st.floats(0, 10)
)


@st.composite
def laws(draw: st.DrawFn, monotone: bool = False) -> Law:
    n = draw(st.integers(1, 6))
    masses = draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n))
    chances = st.floats(1e-3, 1) | st.just(0.0) | st.just(1.0)
    passes = draw(st.lists(chances, min_size=n, max_size=n).filter(any))
    scores = range(-n, n, 2)
    return Law(tuple(scores), tuple(masses), tuple(sorted(passes) if monotone else passes))


def subset_cost(law: Law, chosen: tuple[int, ...], costs: Costs) -> float:
    """The expected cost of verifying exactly these atoms, in exact arithmetic."""
    q = sum(Fraction(law.masses[i]) for i in chosen)
    s = sum(Fraction(law.masses[i]) * Fraction(law.passes[i]) for i in chosen)
    return float((Fraction(costs.candidate) + Fraction(costs.verify) * q) / s) if s else math.inf


def subsets(n: int) -> list[tuple[int, ...]]:
    return [each for k in range(1, n + 1) for each in itertools.combinations(range(n), k)]


def test_a_law_worked_out_by_hand() -> None:
    # A quarter passes half of the time, the rest never. Verifying the quarter: a candidate costs
    # 1 + 10/4 and passes with 1/8, so 28 in all.
    law = Law(scores=(0, 1), masses=(3, 1), passes=(0.0, 0.5))
    assert optimum(law, Costs(generate=1, verify=10)) == pytest.approx((10 / 28, 28))
    assert best_threshold(law, Costs(generate=1, verify=10)) == (1, 28)
    assert tail(law, 1) == (0.25, 0.125)


@given(laws(), some_costs)
def test_tau_is_where_verifying_breaks_even(law: Law, costs: Costs) -> None:
    tau, _ = optimum(law, costs)
    gain = math.fsum(m * max(h - tau, 0.0) for m, h in zip(law.masses, law.passes, strict=True))
    # The two sides are close where tau is; near the root their difference has slope at least c_rew.
    assert costs.verify * gain == pytest.approx(
        tau * costs.candidate, rel=1e-9, abs=1e-12 * costs.verify
    )


@given(laws(), some_costs)
def test_the_optimal_cost_is_a_verification_divided_by_tau(law: Law, costs: Costs) -> None:
    tau, cost = optimum(law, costs)
    assert cost == pytest.approx(costs.verify / tau)
    assert 0 < tau < 1
    assert cost >= (costs.candidate + costs.verify) * (1 - 1e-12)


@given(laws(), some_costs)
def test_no_set_of_atoms_is_cheaper_to_verify(law: Law, costs: Costs) -> None:
    cheapest = min(subset_cost(law, chosen, costs) for chosen in subsets(len(law.scores)))
    assert optimum(law, costs).cost == pytest.approx(cheapest, rel=1e-12)


@given(laws(), some_costs)
def test_verifying_what_is_above_tau_attains_the_optimum(law: Law, costs: Costs) -> None:
    tau, cost = optimum(law, costs)
    above = tuple(i for i, h in enumerate(law.passes) if h > tau * (1 + 1e-9))
    if above:
        assert subset_cost(law, above, costs) == pytest.approx(cost, rel=1e-6)


@given(laws(monotone=True), some_costs)
def test_the_best_threshold_is_optimal_where_higher_scores_pass_more(
    law: Law, costs: Costs
) -> None:
    assert best_threshold(law, costs).cost == pytest.approx(optimum(law, costs).cost, rel=1e-12)


@given(laws(), some_costs)
def test_the_best_threshold_is_the_cheapest_and_the_higher_of_equals(
    law: Law, costs: Costs
) -> None:
    best = best_threshold(law, costs)
    every = [threshold_cost(law, t, costs) for t in law.scores]
    assert best.cost == pytest.approx(min(every), rel=1e-12)
    assert threshold_cost(law, best.score, costs) == pytest.approx(best.cost, rel=1e-12)
    assert all(
        cost > best.cost * (1 - 1e-12)
        for t, cost in zip(law.scores, every, strict=True)
        if t > best.score
    )


def test_where_lower_scores_pass_more_no_threshold_is_optimal() -> None:
    law = Law(scores=(0, 1), masses=(1, 1), passes=(1.0, 0.0))
    costs = Costs(generate=1, verify=10)
    assert optimum(law, costs).cost == 12  # verify the lower half: (1 + 10/2) / (1/2)
    assert best_threshold(law, costs) == (0, 22)  # verify everything: (1 + 10) / (1/2)


@given(laws(), some_costs, st.integers(-7, 7))
def test_the_cost_of_a_threshold_solves_its_one_step_equation(
    law: Law, costs: Costs, t: int
) -> None:
    cost = threshold_cost(law, t, costs)
    if math.isinf(cost):
        assert not any(h for r, h in zip(law.scores, law.passes, strict=True) if r >= t)
        return
    step = math.fsum(
        m * (costs.verify + (1 - h) * cost if r >= t else cost)
        for r, m, h in zip(law.scores, law.masses, law.passes, strict=True)
    )
    assert costs.candidate + step == pytest.approx(cost, rel=1e-12)


@given(laws(), some_costs)
def test_ten_times_the_costs_are_ten_times_the_optimum(law: Law, costs: Costs) -> None:
    dearer = Costs(10 * costs.generate, 10 * costs.verify, score=10 * costs.score)
    assert optimum(law, dearer).cost == pytest.approx(10 * optimum(law, costs).cost)
    assert optimum(law, dearer).tau == pytest.approx(optimum(law, costs).tau)


@given(laws())
def test_the_probabilities_of_a_tail_are_probabilities(law: Law) -> None:
    for t in (*law.scores, math.inf, -math.inf):
        q, s = tail(law, t)
        assert 0 <= s <= q <= 1


def test_a_threshold_above_every_score_never_ends() -> None:
    law = Law((0, 1), (1, 1), (0.5, 0.5))
    assert threshold_cost(law, 2, Costs()) == math.inf


def test_an_empirical_law_counts_what_was_logged() -> None:
    law = Law.empirical([2.0, 1.0, 2.0, 1.0, 2.0, 0.5], [True, False, False, False, True, False])
    assert law.scores == (0.5, 1.0, 2.0)
    assert law.masses == pytest.approx((1 / 6, 2 / 6, 3 / 6))
    assert law.passes == pytest.approx((0, 0, 2 / 3))
    assert law.pass_rate == pytest.approx(2 / 6)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12), some_costs)
def test_the_optimum_of_an_empirical_law_is_that_of_its_candidates(
    logged: list[tuple[int, bool]], costs: Costs
) -> None:
    if not any(label for _, label in logged):
        return
    every = []
    for levels in subsets(4):
        chosen = [label for score, label in logged if score in levels]
        if any(chosen):  # the cost of the whole log, shared by what passes
            cost = len(logged) * costs.candidate + len(chosen) * costs.verify
            every.append(cost / sum(chosen))
    law = Law.empirical([float(score) for score, _ in logged], [label for _, label in logged])
    assert optimum(law, costs).cost == pytest.approx(min(every))


def test_the_chance_of_a_score_is_that_of_the_atom_at_or_below_it() -> None:
    law = Law((0, 1, 2), (1, 1, 1), (0.1, 0.5, 0.3))
    assert [law.passing(r) for r in (-1, 0, 0.9, 1, 5)] == [0.0, 0.1, 0.1, 0.5, 0.3]


def test_masses_are_scaled_to_sum_to_one() -> None:
    assert Law((0, 1), (3, 1), (0, 1)).masses == (0.75, 0.25)


def test_a_hopeless_but_not_impossible_law_costs_without_end() -> None:
    assert optimum(Law((0.0,), (1.0,), (5e-324,)), Costs(generate=1, verify=1e-9)).cost == math.inf


nan = math.nan


@pytest.mark.parametrize(
    ("scores", "masses", "passes", "message"),
    [
        ((), (), (), "at least one"),
        ((0, 1), (1,), (0.5, 0.5), "as many scores as masses"),
        ((0,), (1,), (0.5, 0.5), "as many scores as masses"),
        ((1, 0), (1, 1), (0.5, 0.5), "must increase"),
        ((0, 0), (1, 1), (0.5, 0.5), "must increase"),
        ((nan,), (1,), (0.5,), "NaN"),
        ((0, nan), (1, 1), (0.5, 0.5), "NaN"),
        ((0, 1), (1, 0), (0.5, 0.5), "positive and finite"),
        ((0, 1), (1, math.inf), (0.5, 0.5), "positive and finite"),
        ((0, 1), (1, nan), (0.5, 0.5), "positive and finite"),
        ((0, 1), (1, 1), (0.5, 1.5), "between 0 and 1"),
        ((0, 1), (1, 1), (-0.5, 0.5), "between 0 and 1"),
        ((0, 1), (1, 1), (0.5, nan), "between 0 and 1"),
        ((0, 1), (1, 1), (0.0, 0.0), "ever passes"),
    ],
)
def test_an_invalid_law_is_refused(
    scores: tuple[float, ...], masses: tuple[float, ...], passes: tuple[float, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Law(scores, masses, passes)


def test_an_empirical_law_needs_a_verdict_for_every_score() -> None:
    with pytest.raises(UsageError, match="2 scores have 1 verdicts"):
        Law.empirical([1.0, 2.0], [True])
