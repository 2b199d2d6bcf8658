"""`grv simulate`: what people see, and what the file holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grv.apps import cli
from grv.comparing.settings import SimulationSize
from grv.comparing.simulation.populations import ABOUT, POPULATIONS
from grv.comparing.simulation.simulate import simulate
from grv.core.values import Costs


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(["simulate", *arguments]) == 0
    caught = capsys.readouterr()
    assert caught.err == ""
    return caught.out


def test_a_table_with_its_settings_and_what_the_columns_mean(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    options = ["--problems", "4", "--orders", "2", "--seed", "3", "--costs", "1,3", "--costs=1,30"]
    text = shown(capsys, "ties", "flats", "--policy=alternate", *options, "--json", str(path))

    lines = text.splitlines()
    assert lines[0] == (
        "4 problems of each population, 2 endless streams each, seed 3, width 1 (stops at the first"
        " pass)"
    )
    assert lines[2].split()[:4] == ["population", "policy", "costs", "generated"]
    rows = [line.split()[:3] for line in lines[3:7]]
    assert rows == [[name, "alternate", c] for name in ("ties", "flats") for c in ("1,3", "1,30")]
    assert "averaged over problems" in text
    expected = simulate(
        {name: POPULATIONS[name] for name in ("ties", "flats")},
        ["alternate"],
        [Costs(1, 3), Costs(1, 30)],
        plan=SimulationSize(4, 2, seed=3),
    )
    assert json.loads(path.read_text()) == json.loads(json.dumps(expected.to_json()))


def test_pools_and_whole_steps(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--candidates", "64", "--width", "all", "--problems", "2", "--orders", "2"]
    text = shown(capsys, "coding", "--policy", "adaptive", "--policy", "adaptive-all", *options)

    assert "2 orders of 64 candidates each, seed 0, width all (whole steps are paid for)" in text
    one, two = (line.split()[3:] for line in text.splitlines()[3:5])
    assert one == two


def test_a_search_that_does_not_end_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "inverted", "--policy", "balanced", "--problems", "2", "--orders", "1")

    assert "> the policy reached the last of 65536 candidates, in up to " in text


def test_the_populations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "--list").splitlines()

    assert [line.split()[0] for line in lines] == list(POPULATIONS) == list(ABOUT)
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["codes"], "unknown population 'codes'; choose one of coding, math, "),
        (["coding", "--policy", "hindsight"], "hindsight needs the verdicts of a log"),
        (["coding", "--policy", "balancd"], "did you mean 'balanced'"),
        (["coding", "--candidates", "few"], "give a whole number from 1 to 1,000,000, or endless"),
        (["coding", "--candidates", "0"], "give a whole number from 1 to 1,000,000, or endless"),
        (["coding", "--problems", "0"], "--problems 0: give a whole number from 1 to 1,000,000"),
        (["coding", "--orders", "x"], "--orders x: give a whole number from 1 to 1,000,000"),
        (["coding", "--seed", "-1"], "--seed -1: give a whole number of at least 0"),
        (["coding", "--costs", "1"], "--costs 1: give two numbers"),
        (["coding", "--width", "0"], "give a whole number from 1 to 1,000,000, or all"),
        (["coding", "--json", "/"], "cannot be written"),
    ],
)
def test_a_mistake_is_answered_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.run(["simulate", *arguments]) == 2

    caught = capsys.readouterr()
    assert caught.out == ""
    assert message in caught.err
    assert caught.err.count("\n") == 1
