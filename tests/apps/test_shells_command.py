"""`grv shells`: the schedule, as the paper defines it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from grv.apps import cli


def test_the_schedule_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["shells", "--costs", "1,10", "-n", "3"]) == 0

    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "shell",
        "strategies",
        "costing",
        "b*",
        "j*",
        "generate",
        "verify",
        "cost",
        "so",
        "far",
    ]
    # Costs in [8, 16): 2^b + 10 <= 15, so b* = 2 and j* = 0; then [16, 32) and [32, 64).
    assert [line.split() for line in lines] == [
        ["3", "8", "to", "16", "2", "0", "8", "6", "68", "68"],
        ["4", "16", "to", "32", "4", "1", "32", "12", "152", "220"],
        ["5", "32", "to", "64", "5", "2", "64", "24", "304", "524"],
    ]


def test_the_longest_schedule_of_the_most_extreme_costs_can_be_had(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for costs in ("1e-100,1e100", "1e100,1e-100"):
        assert cli.run(["shells", "--costs", costs, "--shells", "200"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 201


@pytest.mark.parametrize("costs", ["1,10", "1,1", "10,1", "0.1,0.7", "1e-6,1e6", "1e6,1e-6"])
def test_the_schedule_can_be_saved_and_is_that_of_the_definition(
    costs: str, tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    assert cli.run(["shells", "--costs", costs, "--shells", "8", "--json", str(path)]) == 0

    saved = json.loads(path.read_text())
    generate, verify = saved["costs"]["generate"], saved["costs"]["verify"]
    assert len(saved["shells"]) == 8
    for shell in saved["shells"]:
        assert shell["low"] == pytest.approx(min(generate, verify) * 2 ** shell["s"])
        assert shell["high"] == 2 * shell["low"]
        assert shell["m"] == 2 * 2 ** shell["b"]
        assert shell["k"] == 6 * 2 ** shell["j"]
        assert shell["cost"] == pytest.approx(shell["m"] * generate + shell["k"] * verify)
        # One more doubling of either would leave the shell, whatever the other does.
        assert generate * 2 ** (shell["b"] + 1) + verify >= shell["high"] * (1 - 1e-9)
        j = shell["j"] + 1
        assert generate * 2**j + verify * 2**j >= shell["high"] * (1 - 1e-9)
        assert math.isfinite(shell["cost"])
