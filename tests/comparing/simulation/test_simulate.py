"""Simulations: paired, reproducible, and right where the answer is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grv.comparing.compare import compare
from grv.comparing.settings import SimulationSize as Plan
from grv.comparing.simulation.laws import Pieces
from grv.comparing.simulation.populations import FITTED, POPULATIONS, population
from grv.comparing.simulation.simulate import DEFAULT_POLICIES, SimulatedRow, Simulation, simulate
from grv.comparing.simulation.streams import Population
from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.logs.log import Log
from grv.policies import DEFAULT
from grv.policies.spec import spec
from grv.theory.constants import alternate_constant, balanced_constant

COSTS = Costs(generate=1, verify=10)


class Always:
    """A population of one law."""

    def __init__(self, law: Pieces) -> None:
        self._law = law

    def law(self, chance: np.random.Generator) -> Pieces:
        return self._law


FLAT = Always(Pieces((1.0,), (0.25,)))


def of(simulation: Simulation) -> dict[str, SimulatedRow]:
    return {row.policy: row for row in simulation.rows}


@pytest.mark.slow
def test_verifying_everything_is_the_optimum_where_the_score_says_nothing() -> None:
    found = simulate({"flat": FLAT}, ["verify-all"], COSTS, plan=Plan(200, 10))
    (row,) = found.rows

    assert row.optimum == pytest.approx(44)
    assert row.cost == pytest.approx(44, rel=0.1)  # five standard errors
    assert row.of_optimum == pytest.approx(row.cost / 44)
    assert row.of_optimum_interval is not None
    assert row.of_optimum_interval[0] < 1 < row.of_optimum_interval[1]
    assert row.generated == row.verified == pytest.approx(row.cost / 11)
    assert (row.solved, row.ended) == (1, 0)


@pytest.mark.slow
def test_the_constants_hold_on_average_and_are_nearly_reached_by_needles() -> None:
    needles = Always(Pieces((0.995, 0.005), (0.0, 1.0)))
    rows = of(simulate({"n": needles}, ["balanced", "alternate"], COSTS, plan=Plan(100, 10)))

    assert 1.7 < rows["balanced"].of_optimum < balanced_constant(10) * 1.1
    assert 2.5 < rows["alternate"].of_optimum < alternate_constant(10) * 1.1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_and_another_does_not() -> None:
    def drawn(seed: int, problems: int = 6) -> Simulation:
        plan = Plan(problems, 2, seed=seed)
        return simulate({"coding": POPULATIONS["coding"]}, ["balanced"], COSTS, plan=plan)

    assert drawn(3).to_json() == drawn(3).to_json()
    assert drawn(3).rows != drawn(4).rows


def test_other_policies_of_the_simulation_make_no_difference() -> None:
    plan = Plan(5, 2)
    alone = simulate({"math": POPULATIONS["math"]}, ["alternate"], COSTS, plan=plan)
    among = simulate(
        {"flats": POPULATIONS["flats"], "math": POPULATIONS["math"]},
        ["verify-all", "alternate"],
        [Costs(1, 3), COSTS],
        plan=plan,
    )

    assert alone.rows[0] == among.rows[-1]
    assert [(row.population, row.costs.verify, row.policy) for row in among.rows] == [
        (name, verify, policy)
        for name in ("flats", "math")
        for verify in (3, 10)
        for policy in ("verify-all", "alternate")
    ]


def test_pools_are_those_of_a_comparison() -> None:
    """The same problems in the same orders: the fast way and the way of logs agree."""
    asked = ["balanced", "adaptive", "adaptive-all", "verify-all"]
    plan = Plan(8, 4, candidates=128, seed=5)
    found = of(simulate({"coding": FITTED["coding"]}, asked, COSTS, plan=plan))
    log: Log = population("coding", problems=8, candidates=128, seed=5)
    compared = compare(asked, log, COSTS, orders=4, seed=5)

    for row in compared.rows:
        assert found[row.policy].cost == pytest.approx(row.cost)
        assert found[row.policy].generated == pytest.approx(row.generated)
        relative = row.cost / compared["adaptive-all"].cost
        assert found[row.policy].of_adaptive_all == pytest.approx(relative)


def test_the_default_policies_include_the_default_under_its_name() -> None:
    rows = of(simulate({"ties": POPULATIONS["ties"]}, DEFAULT_POLICIES, COSTS, plan=Plan(3, 2)))

    assert list(rows) == list(DEFAULT_POLICIES)
    assert spec(DEFAULT) in rows
    assert rows["adaptive-all"].of_adaptive_all == 1
    assert rows["adaptive-all"].cost > rows["adaptive"].cost


def test_a_policy_that_would_never_end_is_marked() -> None:
    inverted: Population = Always(Pieces((0.001, 0.999), (1.0, 0.0)))
    found = simulate({"inverted": inverted}, ["balanced"], COSTS, plan=Plan(1, 1))

    assert found.rows[0].ended == 1
    assert "> " in found.table()
    pool = simulate({"inverted": inverted}, ["balanced"], COSTS, plan=Plan(1, 1, candidates=300))
    assert pool.rows[0].ended == 1  # as every search of a log may
    assert "> " not in pool.table()


def test_one_problem_has_no_interval() -> None:
    found = simulate({"flat": FLAT}, ["verify-all"], COSTS, plan=Plan(1, 2))

    assert found.rows[0].of_optimum_interval is None
    assert "verify-all" in found.table()


def test_the_file_has_all_that_is_needed_to_do_it_again(tmp_path: Path) -> None:
    plan = Plan(2, 3, candidates=64, seed=9, width=None)
    found = simulate({"star": POPULATIONS["star"]}, ["alternate"], [COSTS], plan=plan)
    found.save(tmp_path / "out.json")
    saved = json.loads((tmp_path / "out.json").read_text())

    assert saved["format"] == 1
    assert saved["settings"] == {
        "populations": ["star"],
        "policies": ["alternate"],
        "costs": [[1, 10]],
        "problems": 2,
        "orders": 3,
        "candidates": 64,
        "seed": 9,
        "width": "all",
    }
    (row,) = saved["rows"]
    assert row["costs"] == {"generate": 1, "verify": 10}
    assert row["of_optimum"] == found.rows[0].of_optimum
    assert Plan().to_json()["candidates"] == "endless"


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    populations: dict[str, Population] = {"a": FLAT, "b": FLAT}
    simulate(
        populations,
        ["verify-all"],
        COSTS,
        plan=Plan(2, 1),
        progress=lambda done, total: told.append((done, total)),
    )

    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": ["hindsight"]}, "hindsight needs the verdicts of a log"),
        ({"policies": ["balancd"]}, "did you mean 'balanced'"),
        ({"policies": []}, "needs a population, a policy and a price list"),
        ({"costs": []}, "needs a population, a policy and a price list"),
        ({"populations": {}}, "needs a population, a policy and a price list"),
    ],
)
def test_what_cannot_be_simulated_is_said(options: dict[str, Any], message: str) -> None:
    given = {"populations": {"flat": FLAT}, "policies": ["verify-all"], "costs": COSTS, **options}
    with pytest.raises(UsageError, match=message):
        simulate(**given)


@pytest.mark.parametrize("name", ["problems", "orders", "candidates", "width"])
def test_a_plan_has_at_least_one_of_each(name: str) -> None:
    with pytest.raises(UsageError, match=f"--{name} 0: give a whole number from 1 to 1,000,000"):
        Plan(**{name: 0})
    with pytest.raises(UsageError, match="--seed -1: give a whole number of at least 0"):
        Plan(seed=-1)
