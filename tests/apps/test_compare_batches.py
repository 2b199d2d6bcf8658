"""`grv compare --total-budget`: what people see, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import here, refuses


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Seven problems, two of them without an answer."""
    lines = ["problem,candidate,passed,score"]
    for number, passes in enumerate([0, 0, 1, 2, 4, 8, 12]):
        for candidate in range(15):
            score = (candidate * 7 + number) % 11
            lines.append(f"p{number},{candidate},{int(candidate >= 15 - passes)},{score}")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


COMMON = ("--policy", "default", "--orders", "2", "--jobs", "1")


def test_the_table_and_the_words(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    budgets = ("--total-budget", "25%,50%", "--schedule", "least-spent,in-order,equal-shares")
    ran = here("compare", log, *COMMON, *budgets, "--json", file)

    assert ran.code == 0, ran.err
    assert "one budget for all 7 problems at costs 1,10" in ran.out
    assert "share of the 5 solvable ones that are solved" in ran.out
    assert "With half the money (" in ran.out
    for name in ("least-spent", "in-order", "equal-shares", "hindsight", "oracle"):
        assert any(line.startswith(name) for line in ran.out.splitlines()), name
    rows = json.loads(file.read_text(encoding="utf-8"))["batches"]
    assert len(rows) == 10
    assert set(rows[0]) == {
        "schedule",
        "policy",
        "costs",
        "budget",
        "share",
        "problems",
        "solvable",
        "solved",
        "low",
        "high",
    }


def test_without_a_budget_nothing_is_said(log: Path) -> None:
    assert "one budget" not in here("compare", log, *COMMON).out


def test_mistakes_are_one_line(log: Path) -> None:
    refuses(("compare", log, "--total-budget", "0%"), "--total-budget", "10%,25%,50%")
    refuses(("compare", log, "--schedule", "least"), "unknown schedule 'least'", "least-spent")
    refuses(
        ("compare", log, *COMMON, "--total-budget", "50%", "--schedule", "cheapest-predicted"),
        "expected_cost",
    )
    one = ("--generator", "a=1", "--generator", "b=2", "--total-budget", "50%")
    refuses(("compare", log, *one), "batches of one generator")


def test_help_names_the_schedules() -> None:
    text = " ".join(here("compare", "--help").out.split()).replace("- ", "-")

    assert "--total-budget" in text
    assert "cheapest-predicted" in text
    assert "hindsight and oracle are" in text
