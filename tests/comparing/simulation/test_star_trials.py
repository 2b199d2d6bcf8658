"""Policies against hard instances, and centered-star search against its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grv.comparing.simulation.star_trials import lineup, measure, stream
from grv.core.values import Costs
from grv.learning.fit import prior_of
from grv.learning.history import History, PastProblem
from grv.policies import POLICIES, Adaptive, CenteredStar, Fixed, KnownLaw, VerifyAll
from grv.policies.learned import Learned
from grv.theory.optimum import Law, optimum
from grv.theory.stars.bounds import (
    StarInstance,
    binary_optimum,
    search_bound,
    sharper_search_bound,
    star_instance,
)
from grv.theory.stars.classes import ConceptClass, family
from grv.theory.stars.search import star_number


def instance_of(points: int) -> StarInstance:
    of = family(f"singletons:{points}")
    assert of is not None
    return star_instance(of, star_number(of))


def mean(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


@pytest.mark.slow
def test_a_stream_has_the_costs_of_its_law() -> None:
    law, costs = Law((0.0, 1.0), (3.0, 1.0), (0.1, 0.6)), Costs(generate=1, verify=4)
    chance = np.random.default_rng(0)

    every = [stream(VerifyAll(), law, costs, chance).bill.total for _ in range(2000)]
    best = [
        stream(KnownLaw(law.scores, law.passes, law.masses), law, costs, chance).bill.total
        for _ in range(2000)
    ]

    for spent, exact in ((every, 5 / law.pass_rate), (best, optimum(law, costs).cost)):
        measured, error = mean(spent)
        assert abs(measured - exact) < 4 * error


def test_a_stream_is_the_same_again_and_may_be_cut_off() -> None:
    law = Law((0.0, 1.0), (1.0, 1.0), (0.0, 0.01))

    once, again = (
        stream(Adaptive(), law, Costs(), np.random.default_rng(3), budget=300) for _ in range(2)
    )

    assert once == again
    assert once.bill.total <= 300


def test_everybody_is_in_the_table() -> None:
    policies, untold = lineup(instance_of(5))

    assert {*policies, *untold} == set(POLICIES)
    assert {"adaptive", "centered-star", "fixed", "known-law", "threshold", "verify-all"} <= {
        *policies
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "rho"),
    [(s, rho) for s in (1, 3, 16) for rho in (1, 10, 100, 1000) if s * rho < 10_000],
)
def test_no_sound_policy_is_below_the_bound(points: int, rho: float) -> None:
    instance = instance_of(points)
    policies, _ = lineup(instance)

    for row in measure(policies, instance, [Costs(1, rho)], runs=40, seed=points, patience=2):
        if row.sound:
            assert row.ratio + 4 * row.error >= row.tighter >= row.bound, row.policy
        else:
            assert row.ratio == math.inf


@pytest.mark.soak
@pytest.mark.parametrize("rho", [30, 300])  # fewer than there are points, and more
def test_no_sound_policy_is_below_the_bound_at_a_star_of_256(rho: float) -> None:
    instance = instance_of(256)
    policies, _ = lineup(instance)

    for row in measure(policies, instance, [Costs(1, rho)], runs=6, patience=2):
        if row.sound:
            assert row.ratio + 4 * row.error >= row.bound, row.policy


@pytest.mark.parametrize("points", [3, 8])
def test_nor_is_a_policy_fitted_to_the_same_instance_with_other_targets(points: int) -> None:
    instance, chance = instance_of(points), np.random.default_rng(points)
    at = chance.integers(points, size=(40, 64))
    past = [
        PastProblem(str(i), row.astype(float), row == row[-1], np.ones(64, dtype=np.bool_))
        for i, row in enumerate(at)
    ]
    policy = Learned(prior_of(History.of(past, "score", ())))

    for row in measure({"learned": policy}, instance, [Costs(1, 1), Costs(1, 10)], runs=12):
        assert row.sound
        assert row.ratio + 4 * row.error >= row.tighter >= row.bound


@pytest.mark.slow
def test_nor_is_it_where_passing_is_a_matter_of_chance() -> None:
    of = ConceptClass(np.eye(8) * 0.4)
    instance = star_instance(of, star_number(of, eta=0.3), eta=0.3)
    policies, _ = lineup(instance)

    for row in measure(policies, instance, [Costs(1, 50)], runs=40, patience=2):
        assert row.bound == pytest.approx(0.3 / 4 * 8)
        if row.sound:
            assert row.ratio + 4 * row.error >= row.bound, row.policy


def test_a_policy_that_gives_up_costs_infinity() -> None:
    (row,) = measure({"fixed": Fixed(4, 1)}, instance_of(8), [Costs()], runs=50)

    assert not row.sound
    assert row.ratio == math.inf
    assert 0 < row.gave_up == 1 - row.solved


def test_a_policy_that_never_stops_is_cut_off_and_this_is_reported() -> None:
    (row,) = measure({"adaptive": Adaptive()}, instance_of(16), [Costs(1, 100)], runs=12)

    assert row.cut_off > 0.5
    assert row.ratio > 8 * row.bound


@pytest.mark.slow
@pytest.mark.parametrize("remember", [True, False])
@pytest.mark.parametrize("case", range(12))
def test_centered_star_search_is_within_its_bound(case: int, remember: bool) -> None:
    """On random classes and laws, up to four standard errors of 120 runs."""
    chance = np.random.default_rng((case, 17))
    points, rho = int(chance.integers(2, 9)), float(chance.choice([1, 3, 10, 40, 200]))
    values = chance.random((int(chance.integers(2, 14)), points)) < chance.choice([0.2, 0.4, 0.7])
    values = values[values.any(axis=1)]
    if not len(values):
        values = np.eye(points, dtype=np.bool_)
    of, costs = ConceptClass(values.astype(np.float64)), Costs(1, rho)
    star = star_number(of).number
    assert star is not None
    truth = values[int(chance.integers(len(values)))]
    masses = chance.random(points) ** float(chance.choice([1, 8])) + 1e-4
    law = Law(tuple(map(float, range(points))), tuple(masses), tuple(truth.astype(float)))
    policy = CenteredStar(" ".join(of.rows()), remember=remember)

    outcomes = [stream(policy, law, costs, chance) for _ in range(120)]

    assert all(outcome.solved for outcome in outcomes)
    unit = binary_optimum(law.pass_rate, costs)
    measured, error = mean([outcome.bill.total / unit for outcome in outcomes])
    assert measured - 4 * error <= sharper_search_bound(star, costs) < search_bound(star, costs)
    assert measured + 4 * error >= 1
