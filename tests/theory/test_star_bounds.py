"""The bounds of the centered star number as functions, and the hard instance of a witness."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.theory.optimum import Law, optimum
from grv.theory.stars.bounds import (
    StarInstance,
    binary_optimum,
    lower_bound,
    search_bound,
    sharper_search_bound,
    star_instance,
)
from grv.theory.stars.classes import ConceptClass, family, of_rows
from grv.theory.stars.search import Star, star_number

ratios = st.floats(1, 1e4)


@given(st.integers(1, 40), st.integers(0, 40), ratios)
def test_the_optimum_of_a_binary_law_is_that_of_the_theorem(
    passing: int, failing: int, rho: float
) -> None:
    costs = Costs(generate=2, verify=2 * rho)
    law = Law((0.0, 1.0), (failing or 1e-9, passing), (0.0, 1.0))
    p = passing / (passing + (failing or 1e-9))

    assert binary_optimum(p, costs) == pytest.approx(optimum(law, costs).cost)


@pytest.mark.parametrize("p", [0.0, -0.1, 1.1, math.nan])
def test_the_chance_of_passing_is_one(p: float) -> None:
    with pytest.raises(UsageError, match="chance of passing"):
        binary_optimum(p, Costs())


@given(st.integers(1, 300), ratios, st.floats(0.01, 1))
def test_the_bounds_are_in_order(star: int, rho: float, eta: float) -> None:
    costs = Costs(generate=1, verify=rho)
    instance = StarInstance(tuple(map(float, range(star))), (eta,) * star, eta)

    assert lower_bound(star, costs, eta) == eta / 4 * min(star, rho)
    assert lower_bound(star, costs, eta) <= instance.bound(costs)  # before it was rounded down
    assert instance.bound(costs) <= search_bound(star, costs)
    assert sharper_search_bound(star, costs) <= 3 * min(star, rho) * (1 + 1e-12)
    assert 3 * min(star, rho) < search_bound(star, costs)


@given(st.floats(1e-6, 50), st.integers(1, 100))
def test_the_inequality_behind_the_sharper_bound(x: float, s: int) -> None:
    assert -math.expm1(-x) * (s + x) >= x * (1 - 1e-12)


def test_an_unknown_class_counts_as_infinite() -> None:
    assert lower_bound(math.inf, Costs(1, 100)) == 25
    assert search_bound(math.inf, Costs(1, 100)) == 600
    assert sharper_search_bound(math.inf, Costs(1, 100)) == 101


def test_the_upper_bound_is_for_ratios_and_stars_of_at_least_one() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        search_bound(3, Costs(generate=2, verify=1))
    with pytest.raises(UsageError, match="at least 1"):
        sharper_search_bound(0, Costs())


@pytest.mark.parametrize("text", ["thresholds:9", "intervals:7", "singletons:5", "subsets:4"])
def test_the_instance_of_a_witness_is_the_one_of_the_proof(text: str) -> None:
    of = family(text)
    assert of is not None
    star = star_number(of)
    instance = star_instance(of, star)
    costs = Costs(generate=3, verify=40)

    assert instance.star == star.number
    assert instance.scores == tuple(sorted(map(float, star.points)))
    for target in range(instance.star):
        law = instance.law(target)
        assert law.pass_rate == pytest.approx(1 / instance.star)
        assert law.passes[target] == 1
        assert instance.optimum(target, costs) == pytest.approx(optimum(law, costs).cost)
        assert instance.optimum(target, costs) == pytest.approx(
            binary_optimum(1 / instance.star, costs)
        )


def test_the_instance_of_a_probabilistic_class_has_its_chances() -> None:
    of = ConceptClass(np.array([[0.5, 0.1, 0.1], [0, 0.7, 0], [0, 0, 0.2]]))
    star = star_number(of, eta=0.2)
    instance = star_instance(of, star, eta=0.2)
    costs = Costs(generate=1, verify=10)

    assert instance == StarInstance((1.0, 2.0), (0.7, 0.2), 0.2)
    for target in (0, 1):
        exact = optimum(instance.law(target), costs).cost
        assert instance.optimum(target, costs) == pytest.approx(exact)


def test_what_is_no_star_has_no_instance() -> None:
    of = of_rows(["10", "11"])
    with pytest.raises(UsageError, match="not a centered star of this class"):
        star_instance(of, Star(2, 2, (0, 1), (0, 1)))
    with pytest.raises(UsageError, match="not a centered star of this class"):
        star_instance(of, star_number(of, centre="any"))
    with pytest.raises(UsageError, match="no hard instance"):
        star_instance(of, Star(0, 0, (), ()))
