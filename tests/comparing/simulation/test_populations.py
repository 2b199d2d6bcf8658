"""Populations: what they draw, and that it can be drawn again."""

from __future__ import annotations

import numpy as np
import pytest

from grv.comparing.simulation.laws import Binormal, Pieces
from grv.comparing.simulation.populations import (
    FITTED,
    POPULATIONS,
    flat_law,
    inverted_law,
    needle_law,
    population,
    star_law,
    tied_law,
)
from grv.comparing.simulation.streams import CandidateLaw, draw
from grv.core.errors import UsageError
from grv.core.values import Costs

COSTS = Costs(generate=1, verify=10)


def laws(name: str, number: int = 200) -> list[CandidateLaw]:
    return [POPULATIONS[name].law(np.random.default_rng([3, i])) for i in range(number)]


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_problem_depends_on_its_number_and_the_seed_alone(name: str) -> None:
    few, more = (population(name, problems=n, candidates=64, seed=5) for n in (2, 4))
    other = population(name, problems=2, candidates=64, seed=6)

    for i in range(2):
        assert few.problems[i].scores.tolist() == more.problems[i].scores.tolist()
        assert few.problems[i].passed.tolist() == more.problems[i].passed.tolist()
    assert few.problems[0].scores.tolist() != other.problems[0].scores.tolist()
    assert all(problem.solvable for problem in more.problems)


@pytest.mark.slow
@pytest.mark.parametrize("name", POPULATIONS)
def test_the_law_is_that_of_the_candidates(name: str) -> None:
    for i in range(20):
        problem, law = draw(POPULATIONS[name], "p", 4000, (1, i))
        error = (law.pass_rate * (1 - law.pass_rate) / 4000) ** 0.5
        assert abs(problem.pass_rate - law.pass_rate) < 5 * error + 1 / 4000
        assert law.optimum(COSTS) >= 11
        assert law.optimum(COSTS) <= 11 / law.pass_rate * (1 + 1e-9)


def test_the_easy_one_has_pass_rates_from_a_fifth_to_nine_tenths() -> None:
    rates = [law.pass_rate for law in laws("easy")]

    assert 0.2 <= min(rates) < 0.3
    assert 0.7 < max(rates) <= 0.9


@pytest.mark.parametrize("name", ["coding", "math", "easy"])
def test_a_poor_score_is_as_often_misleading_as_not(name: str) -> None:
    good, poor = laws(name), laws(f"{name}-poor")
    separations = [law.separation for law in poor if isinstance(law, Binormal)]

    assert [law.pass_rate for law in poor] == [law.pass_rate for law in good]
    assert 0.35 < np.mean([d > 0 for d in separations]) < 0.65
    for rich, bare in zip(good, poor, strict=True):
        assert isinstance(rich, Binormal)
        assert isinstance(bare, Binormal)
        assert rich.separation - bare.separation == pytest.approx(good_mean(name))


def good_mean(name: str) -> float:
    return FITTED["coding" if name == "easy" else name].mean


def test_the_shapes_are_what_they_are_called() -> None:
    needle = needle_law(0.1)
    assert needle.passes[0] == 0
    assert needle.pass_rate == pytest.approx(0.1)
    assert needle.optimum(COSTS) <= 1 / 0.1 + 10 * 1.1
    assert flat_law(0.3).optimum(COSTS) == pytest.approx(11 / 0.3)
    assert inverted_law(0.2).optimum(COSTS) == pytest.approx(1 / 0.2 + 10)
    assert inverted_law(0.2).passes == (1.0, 0.0)
    assert star_law(0.1, 0.55) == Pieces((0.1,) * 10, (0.0,) * 5 + (1.0,) + (0.0,) * 4, tied=True)
    assert tied_law(0.2, 0.0) == Pieces((0.5, 0.5), (0.0, 0.4), tied=True)
    assert len(tied_law(0.2, 0.999).passes) == 6
    assert tied_law(0.2, 0.6).pass_rate == pytest.approx(0.2)


def test_an_unknown_population_is_said_to_be_so() -> None:
    with pytest.raises(
        UsageError, match=r"unknown population 'codes'; choose one of coding, math, "
    ):
        population("codes")
