"""`grv demo --replay`: the log that the package ships, and what it shows."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from grv.apps.demo import LIKE, ORDERS, table
from grv.comparing.compare import compare
from grv.comparing.comparison import Comparison
from grv.logs.log import Log
from support.commands import here
from support.sample import sample_csv

START = Path(__file__).parents[2] / "docs" / "start.md"


def shipped() -> Comparison:
    with resources.as_file(resources.files("grv") / "data" / "sample.csv") as path:
        return compare(list(LIKE), Log.load(path), orders=ORDERS)


def test_the_shipped_log_is_the_one_that_its_seed_makes() -> None:
    text = (resources.files("grv") / "data" / "sample.csv").read_text(encoding="utf-8")

    assert text == sample_csv()


@pytest.mark.slow
def test_the_command_prints_the_table_of_the_start_page() -> None:
    ran = here("demo", "--replay")

    assert (ran.code, ran.err) == (0, "")
    text = START.read_text(encoding="utf-8")
    quoted = re.findall(r"^(grv demo --replay)\n```.*?```text\n(.*?)```", text, re.DOTALL | re.M)
    assert [command for command, _ in quoted] == ["grv demo --replay"]
    assert quoted[0][1] in ran.out


@pytest.mark.slow
def test_the_table_has_the_numbers_of_a_comparison_with_equal_settings() -> None:
    comparison = shipped()
    ran = here("demo", "--replay")

    assert table(comparison) in ran.out
    assert comparison.settings["keys"] is False
    own, arriving = comparison["varied"], comparison["verify-all"]
    assert (
        f"varied, the default, costs {1 - own.cost / arriving.cost:.0%} less than verifying each"
        in ran.out
    )


@pytest.mark.slow
def test_what_it_says_about_the_rows_is_true() -> None:
    rows = shipped().rows

    assert {row.policy for row in rows if row.solved < 1} == {"fixed(16, 4)"}
    saved = [int(share) for share in re.findall(r"(\d+)% less", here("demo", "--replay").out)]
    assert len(saved) == 2
    assert all(0 < share < 100 for share in saved)
