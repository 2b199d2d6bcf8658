"""Options as they are typed."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from grv.apps.console import check_outputs, listed, user_name
from grv.backends.verifiers.languages import toolchains
from grv.comparing.settings import ComparisonSettings
from grv.core.errors import UsageError
from grv.core.values import Costs, Measured
from grv.parsing import (
    parse_costs,
    parse_log_prices,
    parse_most,
    parse_prices,
    parse_width,
    written_costs,
)
from support.commands import here

HUGE = "1" + "0" * 25


@pytest.mark.parametrize(
    ("text", "costs"),
    [("1,10", Costs(1, 10)), (" 0.5 , 2e3 ", Costs(0.5, 2000)), ("1e-6,1e6", Costs(1e-6, 1e6))],
)
def test_costs_are_two_numbers(text: str, costs: Costs) -> None:
    assert parse_costs(text) == costs


def test_a_third_number_is_the_cost_of_a_verification_that_fails() -> None:
    assert parse_costs("1,10,2") == Costs(1, 10, failure=2)
    assert parse_costs(" 1 , 10 , 10 ") == Costs(1, 10)
    assert parse_prices("measured:1,10,2") == Measured(1, 10, failure=2)
    assert parse_log_prices("measured:1,10,2") == Measured(1, 10, failure=2)
    assert written_costs(parse_costs("1,10,2")) == "1,10,2"
    assert written_costs(parse_prices("measured:1,10,2")) == "measured:1,10,2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,10,20", "cannot cost 20, more than one that passes, 10"),
        ("1,10,0", "positive and finite"),
        ("1,10,-2", "positive and finite"),
        ("1,10,nan", "positive and finite"),
        ("1,10,", "give two numbers"),
        ("1,10,2,3", "give two numbers"),
        ("1,10,1e-120", "give costs from"),
    ],
)
@pytest.mark.parametrize("kind", ["", "measured:"])
def test_a_third_number_that_cannot_be_is_refused(text: str, message: str, kind: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        parse_prices(kind + text)
    assert "\n" not in str(refused.value)


def test_the_highest_costs_are_two_numbers() -> None:
    assert parse_most("2,20") == Costs(2, 20)
    with pytest.raises(UsageError, match="give two numbers, the most"):
        parse_most("2,20,3")


def test_a_width_is_a_number_or_all() -> None:
    assert parse_width("1") == 1
    assert parse_width("20") == 20
    assert parse_width("all") is None


def test_long_lists_are_cut_and_counted() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcde"), most=2) == "a, b and 3 more"


def test_an_output_may_not_be_an_input_under_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").touch()
    Path("link").symlink_to("log.csv")

    for path in ("log.csv", "./log.csv", str(tmp_path / "log.csv")):
        with pytest.raises(UsageError, match="given twice; it would be overwritten"):
            check_outputs([path], ["log.csv", None])
    with pytest.raises(UsageError, match=r"a link to .*log\.csv, which is not replaced"):
        check_outputs(["link"], ["log.csv", None])
    check_outputs(["new.json", None, "new.csv"], ["log.csv"])
    check_outputs(["/dev/null", "/dev/null"], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "log.csv"]


def test_more_than_could_ever_end_is_refused() -> None:
    with pytest.raises(UsageError, match="--orders 1000001: give a whole number from 1 to 1,000,"):
        ComparisonSettings(orders=1_000_001)
    for text in ("1" * 30, "1" * 5000):
        with pytest.raises(UsageError, match="give a whole number from 1 to 1,000,000, or all"):
            parse_width(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "coding", "--candidates", HUGE],
        ["verify", "p.jsonl", "-o", "x", "--workers", "1" * 5000],
        ["doctor", "--workers", "1" * 5000],
        ["simulate", "coding", "--problems", HUGE],
        ["theory", "separation", "--runs", HUGE],
        ["theory", "separation", "--epsilon", "1e-300"],
        ["theory", "lower-bound", "--costs", "1e-90,1e90"],
        *(
            ["solve", "p.jsonl", "--generator", "openai:m", "--out", "x", f"--{name}", HUGE]
            for name in ("workers", "concurrency", "attempts", "width", "memory", "max-tokens")
        ),
        ["collect", "p.jsonl", "--generator", "openai:m", "--out", "x.csv", "-n", HUGE],
    ],
    ids=lambda arguments: " ".join(arguments[:2] + arguments[-2:-1]),
)
def test_numbers_beyond_all_bounds_are_refused_at_once(arguments: list[str]) -> None:
    ran = here(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "bug in grv" not in ran.err


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # as in a container

    assert user_name() == f"uid-{os.getuid()}"
    assert toolchains.user_home() == "/"
