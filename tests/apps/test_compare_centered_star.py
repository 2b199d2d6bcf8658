"""`grv compare` with a class: where it pays to know one, and where it must not be used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from grv.apps import cli

LOW = " ".join("1" * t + "0" * (8 - t) for t in range(1, 9))  # passes are at the lowest scores


def costs_of(log: Path, *policies: str, ratio: int = 10) -> dict[str, tuple[float, float]]:
    """By policy, the mean cost and the share solved."""
    out = log.with_suffix(".json")
    rows = [word for policy in policies for word in ("--policy", policy)]
    assert cli.run(["compare", str(log), "--costs", f"1,{ratio}", *rows, "--json", str(out)]) == 0
    return {
        row["policy"]: (row["cost"], row["solved"]) for row in json.loads(out.read_text())["rows"]
    }


@pytest.fixture
def inverted(tmp_path: Path) -> Path:
    """Twenty problems, each with its own limit below which exactly everything passes."""
    chance = np.random.default_rng(0)
    path = tmp_path / "inverted.csv"
    with path.open("w") as file:
        print("problem,candidate,passed,score", file=file)
        for problem in range(20):
            limit = 0.02 + 0.1 * chance.random()
            for candidate in range(300):
                at = chance.random()
                level = 0 if at < limit else 1 + int(6.99 * chance.random())
                print(problem, candidate, int(at < limit), level, sep=",", file=file)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("remember", ["True", "False"])
def test_where_the_class_is_right_it_is_much_cheaper(inverted: Path, remember: str) -> None:
    centered = f"centered-star('{LOW}', remember={remember})"
    found = costs_of(inverted, "adaptive", "balanced", "verify-all", centered)

    assert found[centered][1] == 1
    assert found[centered][0] < 0.05 * found["adaptive"][0]
    assert found[centered][0] < 0.05 * found["balanced"][0]
    assert found[centered][0] < 0.5 * found["verify-all"][0]


@pytest.mark.slow
def test_where_the_star_number_is_above_the_ratio_it_is_verify_all(inverted: Path) -> None:
    found = costs_of(inverted, "verify-all", "centered-star('subsets:8')", ratio=7)

    assert found["centered-star('subsets:8')"] == found["verify-all"]


@pytest.mark.slow
def test_the_example_of_the_documentation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "theory" / "learning.md").read_text("utf-8")
    log, (centered,) = tmp_path / "kinds.csv", re.findall(r'"(centered-star\(\'0001.*\'\))"', page)
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(program, {})
    log.write_text(capsys.readouterr().out)

    found = costs_of(log, "adaptive", "balanced", "verify-all", centered)

    assert f"| {found['adaptive'][0]:.0f} |" in page
    assert f"| {found['balanced'][0]:,.0f} (x" in page
    assert f"| {found['verify-all'][0]:.0f} (x" in page
    assert f"| {found[centered][0]:.0f} (x" in page
    assert found[centered][0] < 0.05 * min(found["adaptive"][0], found["balanced"][0])


def test_in_a_simulation_too(tmp_path: Path) -> None:
    """One hidden score of at most twenty: at 1,10 everything is verified, at 1,30 batches are."""
    out = tmp_path / "table.json"
    centered = "centered-star('singletons:20')"
    rows = ["--policy", centered, "--policy", "adaptive", "--policy", "balanced"]
    size = ["--problems", "6", "--orders", "1", "--candidates", "900"]
    call = ["simulate", "star", *size, "--costs", "1,10", "--costs", "1,30", *rows]
    assert cli.run([*call, "--policy", "verify-all", "--json", str(out)]) == 0

    found: dict[float, dict[str, float]] = {}
    for row in json.loads(out.read_text())["rows"]:
        found.setdefault(row["costs"]["verify"], {})[row["policy"]] = row["cost"]
    assert found[10][centered] == found[10]["verify-all"]
    assert found[30][centered] != found[30]["verify-all"]
    for costs in found.values():
        assert costs[centered] < 0.3 * min(costs["adaptive"], costs["balanced"])


@pytest.mark.slow
def test_where_passing_is_a_matter_of_chance_it_must_not_be_used(tmp_path: Path) -> None:
    """Scores that only make passing likelier: no threshold is the truth."""
    chance = np.random.default_rng(0)
    path = tmp_path / "noisy.csv"
    with path.open("w") as file:
        print("problem,candidate,passed,score", file=file)
        for problem in range(30):
            for candidate in range(300):
                level = chance.integers(8)
                passed = chance.random() < 0.01 * level
                print(problem, candidate, int(passed), level, sep=",", file=file)
    centered = "centered-star('thresholds:8')"
    stubborn = "centered-star('thresholds:8', remember=False)"
    found = costs_of(path, "adaptive", "verify-all", centered, stubborn)

    assert found["adaptive"][1] == 1
    assert found[centered][1] == 1  # the class is refuted, and then everything is verified
    assert found[centered][0] > 1.1 * found["adaptive"][0]
    assert found[stubborn][1] < 0.95  # certified to fail, though it does not
