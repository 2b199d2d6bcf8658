"""The numbers of every command are the same, bit for bit, for any number of processes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grv import parallel
from grv.comparing import compare as comparing
from grv.comparing import oracle_rows as pricing
from grv.comparing import tune
from grv.comparing.compare import compare
from grv.comparing.oracle_rows import oracle
from grv.comparing.rows import DEFAULT_ROWS
from grv.comparing.settings import SimulationSize
from grv.comparing.simulation import simulate as simulating
from grv.comparing.simulation.populations import population_named
from grv.comparing.simulation.simulate import simulate
from grv.comparing.tune import learn
from grv.core.search import Policy
from grv.core.values import Costs, Measured
from grv.learning.fit import prior_of
from grv.learning.history import History, past
from grv.logs.log import Log
from grv.policies import Adaptive, Learned
from grv.replay.scheme import Scheme
from grv.testing import all_wrong, population
from support.commands import here

LOG = population("coding", problems=7, candidates=24, seed=3)


@pytest.fixture(autouse=True)
def many_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes share even a small log."""
    monkeypatch.setattr(parallel, "SMALL", 0)
    for module in (comparing, pricing, simulating):
        monkeypatch.setattr(module, "PART", 60)
    monkeypatch.setattr(tune, "_PART", 60)


def uneven(log: Log) -> Log:
    """The log with problems of different sizes, one of them hopeless, with keys and costs."""
    chance = np.random.default_rng(1)
    problems = []
    for problem in log.problems:
        size = int(chance.integers(8, len(problem) + 1))
        problems.append(
            dataclasses.replace(
                problem,
                scores=problem.scores[-size:],
                passed=problem.passed[-size:],
                keys=2 * chance.integers(0, 9, size).astype(np.int32) + problem.passed[-size:],
                generate_costs=chance.random(size),
                verify_costs=chance.random(size) + 1,
            )
        )
    hopeless = all_wrong(15).logged("a hopeless one")
    priced = dataclasses.replace(
        hopeless, generate_costs=np.ones(15), verify_costs=np.ones(15), keys=np.full(15, -1)
    )
    return Log((priced, *(p for p in problems if p.solvable)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"order_scheme": Scheme.PAPER, "width": None, "unsolvable": "include"},
        {"keys": True, "value": 300.0, "width": 4},
        {"costs": [Costs(1, 10), Measured(0.5, 1.5)]},
    ],
)
def test_a_comparison_does_not_depend_on_the_processes(options: dict[str, Any]) -> None:
    log, rows = uneven(LOG), [*DEFAULT_ROWS, "fixed(9, 3)"]

    one, two = (compare(rows, log, orders=3, jobs=jobs, **options) for jobs in (1, 2))

    assert json.dumps(one.to_json()) == json.dumps(two.to_json())
    for first, second in zip(one.trials, two.trials, strict=True):
        assert np.array_equal(first.costs(Costs(1, 10)), second.costs(Costs(1, 10)))


def test_parts_of_a_comparison_are_its_problems_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    together = compare(DEFAULT_ROWS, LOG, jobs=1)
    monkeypatch.setattr(comparing, "PART", 1)

    assert compare(DEFAULT_ROWS, LOG, jobs=1).to_json() == together.to_json()


def test_learned_does_not_depend_on_the_processes() -> None:
    prior = prior_of(History.of(past(LOG), "score", []))
    policies: dict[str, Policy] = {"learned": Learned(prior), "a": Adaptive()}

    one, two = (compare(policies, LOG, jobs=jobs).to_json() for jobs in (1, 2))

    assert one == two


@pytest.mark.slow
def test_an_oracle_does_not_depend_on_the_processes() -> None:
    one, two = (oracle(uneven(LOG), Costs(1, 7), scheme="paper", jobs=jobs) for jobs in (1, 2))

    assert one == two
    assert [row.problem for row in one] == [problem.id for problem in uneven(LOG).problems]


@pytest.mark.slow
@pytest.mark.parametrize("candidates", [None, 50])
def test_a_simulation_does_not_depend_on_the_processes(candidates: int | None) -> None:
    worlds = {name: population_named(name) for name in ("coding", "ties")}

    one, two = (
        simulate(
            worlds,
            ["default", "adaptive"],
            plan=SimulationSize(problems=7, orders=3, candidates=candidates, jobs=jobs),
        )
        for jobs in (1, 2)
    )

    assert one == two


@pytest.mark.slow
def test_a_prior_does_not_depend_on_the_processes() -> None:
    history = History.of(past(LOG), "score", [])

    one, two = (learn(history, jobs=jobs) for jobs in (1, 2))

    assert one.to_text() == two.to_text()


@pytest.mark.slow
def test_a_report_does_not_depend_on_the_processes(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with log.open("w") as file:
        for problem in LOG.problems[:4]:
            for at, (score, passed) in enumerate(zip(problem.scores, problem.passed, strict=True)):
                row = {"problem": problem.id, "candidate": at, "passed": bool(passed)}
                file.write(json.dumps({**row, "score": float(score)}) + "\n")

    few: list[object] = ["--orders", 2, "--many-orders", 3]
    few += [word for row in ("default", "difficulty-2") for word in ("--policy", row)]
    found = []
    for jobs in (1, 2):
        made = here("report", log, *few, "--jobs", jobs, "-o", tmp_path / "page.html")
        assert made.code == 0, made
        found.append((tmp_path / "page.html").read_text())

    assert found[0] == found[1]
