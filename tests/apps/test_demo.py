"""`grv demo --replay`: the log that the package ships, and what it shows."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from grv.apps import cli
from grv.experiments.compare import compare
from grv.experiments.rows import DEFAULT_ROWS
from grv.logs.log import Log
from support.sample import sample_csv


def shipped() -> Log:
    with resources.as_file(resources.files("grv") / "data" / "sample.csv") as path:
        return Log.load(path)


def test_the_shipped_log_is_the_one_that_its_seed_makes() -> None:
    text = (resources.files("grv") / "data" / "sample.csv").read_text(encoding="utf-8")

    assert text == sample_csv()


def test_it_prints_the_comparison_and_says_what_was_saved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["demo", "--replay"]) == 0

    out, err = capsys.readouterr()
    comparison = compare(DEFAULT_ROWS, shipped())
    assert err == ""
    assert out.startswith("sample.csv: 40 problems, 40 of them solvable, 4000 candidates")
    assert comparison.table() in out
    adaptive, verify_all = comparison["adaptive"], comparison["verify-all"]
    share = 1 - adaptive.cost / verify_all.cost
    assert f"That is {share:.0%} less than verifying everything" in out
    assert f"{adaptive.cost:6.0f}  with adaptive" in out


def test_what_it_says_of_the_rows_is_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Every row except uniform-matched always finds a verified answer."""
    cli.run(["demo", "--replay"])
    out = capsys.readouterr().out
    rows = compare(DEFAULT_ROWS, shipped()).rows

    assert "Every row except uniform-matched" in out
    assert {row.policy for row in rows if row.solved < 1} == {"uniform-matched"}
    saved = [int(share) for share in re.findall(r"(\d+)%", out.split("That is")[1])]
    assert all(0 < share < 100 for share in saved)
