"""The files of a comparison: what they hold, and that they are replaced whole."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from grv.comparing.compare import compare
from grv.comparing.comparison import Comparison, LogSummary
from grv.comparing.rows import DEFAULT_ROWS
from grv.core.errors import UsageError
from grv.core.values import Costs, Latency
from grv.logs.log import Log
from grv.testing import World, all_wrong, population

ALWAYS = {
    "policy",
    "costs",
    "trials",
    "solved",
    "cost",
    "generated",
    "verified",
    "ratio",
    "low",
    "high",
    "rounds",
    "generate_rounds",
    "verify_rounds",
    "solved_cost",
}


@pytest.fixture(scope="module")
def log() -> Log:
    problems = population("math", problems=6, candidates=50, seed=1).problems
    return Log((*problems, all_wrong(5).logged("zero")), score="rm", path="some.parquet")


@pytest.fixture(scope="module")
def comparison(log: Log) -> Comparison:
    return compare((*DEFAULT_ROWS, "fixed(8, 2)"), log, [Costs(1, 10), Costs(2, 3, score=0.5)])


@pytest.fixture(scope="module")
def plain(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("saved") / "out.json"
    comparison.save(path)
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def test_the_file_has_five_parts(plain: dict[str, Any]) -> None:
    assert list(plain) == ["format", "log", "settings", "rows", "tests"]
    assert plain["format"] == 1


def test_it_says_what_was_compared_and_what_was_left_out(plain: dict[str, Any]) -> None:
    assert plain["log"] == {
        "problems": 7,
        "solvable": 6,
        "candidates": 305,
        "unlabelled": 0,
        "unscored": 0,
        "excluded": ["zero"],
        "contradictory": {},
        "unpriced": 0,
        "refuted": 0,
        "censored": False,
        "published": 0,
        "staged": 0,
        "judged": 0,
    }


def test_it_says_how(plain: dict[str, Any]) -> None:
    assert plain["settings"] == {
        "log": "some.parquet",
        "score": "rm",
        "second": None,
        "costs": [[1, 10], [2.5, 3]],
        "policies": [*DEFAULT_ROWS, "fixed(8, 2)"],
        "orders": 10,
        "seed": 0,
        "order_scheme": "stable",
        "width": 1,
        "keys": False,
        "unsolvable": "exclude",
        "latency": None,
        "value": None,
        "baseline": "adaptive",
        "cascade": None,
    }


def test_a_width_of_all_is_called_so(log: Log) -> None:
    assert compare(["adaptive"], log, width=None).to_json()["settings"]["width"] == "all"


def test_there_is_a_row_for_each_policy_at_each_price_list(plain: dict[str, Any]) -> None:
    asked = [*DEFAULT_ROWS, "fixed(8, 2)"]
    prices = [{"generate": 1, "verify": 10}, {"generate": 2.5, "verify": 3}]

    assert [(row["policy"], row["costs"]) for row in plain["rows"]] == [
        (policy, costs) for costs in prices for policy in asked
    ]


def test_every_row_has_its_numbers(plain: dict[str, Any]) -> None:
    for row in plain["rows"]:
        assert row.keys() >= ALWAYS
        assert row["trials"] == 60
        assert isinstance(row["trials"], int)
        assert all(isinstance(row[name], float) for name in ALWAYS - {"policy", "costs", "trials"})
        assert 0 <= row["solved"] <= 1
        assert row["low"] <= row["ratio"] <= row["high"]


def test_only_rows_of_pairs_have_pairs_and_only_rows_of_groups_have_groups(
    plain: dict[str, Any],
) -> None:
    more = {row["policy"]: set(row) - ALWAYS for row in plain["rows"]}

    pair = {"m", "k", "exact"}
    assert {name: extra for name, extra in more.items() if extra} == {
        "uniform-matched": {*pair, "unsolved_cost"},
        "fixed(8, 2)": {*pair, "unsolved_cost"},
        "difficulty-1": {*pair, "groups"},
        **{f"difficulty-{count}": {"groups"} for count in (2, 3, 5, 10)},
    }


def test_a_group_says_whom_it_holds_and_what_they_get(plain: dict[str, Any]) -> None:
    for row in plain["rows"]:
        for group in row.get("groups", ()):
            assert group.keys() == {"problems", "pass_rate", "m", "k"}
            low, high = group["pass_rate"]
            assert 0 < low <= high <= 1
            assert 1 <= group["k"] <= group["m"] <= 50


def test_ratios_are_null_without_an_adaptive_row(log: Log) -> None:
    row = json.loads(json.dumps(compare(["hindsight"], log).to_json()))["rows"][0]

    assert row.keys() == ALWAYS
    assert (row["ratio"], row["low"], row["high"]) == (None, None, None)


def test_given_latencies_a_row_says_how_long_a_search_takes(log: Log, tmp_path: Path) -> None:
    comparison = compare(["adaptive", "hindsight"], log, latency=Latency(20, 60))
    comparison.save_csv(tmp_path / "out.csv")

    plain = comparison.to_json()
    assert plain["settings"]["latency"] == [20, 60, 0]
    for row in plain["rows"]:
        assert row["rounds"] == row["generate_rounds"] + row["verify_rounds"]
        expected = 20 * row["generate_rounds"] + 60 * row["verify_rounds"]
        assert row["seconds"] == pytest.approx(expected)
    assert [float(row["seconds"]) for row in table(tmp_path / "out.csv")] == [
        row["seconds"] for row in plain["rows"]
    ]
    head, *lines = comparison.table().splitlines()
    assert head.split()[-2:] == ["rounds", "seconds"]
    assert [line.split()[-1] for line in lines] == [f"{r['seconds']:.1f}" for r in plain["rows"]]


def test_given_a_value_a_row_says_what_is_left_of_it(log: Log, tmp_path: Path) -> None:
    comparison = compare(["adaptive", "hindsight"], log, value=90, unsolvable="include")
    comparison.save_csv(tmp_path / "out.csv")

    plain = comparison.to_json()
    assert plain["settings"]["value"] == 90
    for row, read in zip(plain["rows"], table(tmp_path / "out.csv"), strict=True):
        assert row["net"] == pytest.approx(90 * row["solved"] - row["cost"])
        both = row["solved"] * row["solved_cost"] + (1 - row["solved"]) * row["unsolved_cost"]
        assert row["cost"] == pytest.approx(both)
        assert row["unsolved_cost"] <= 90
        assert float(read["net"]) == row["net"]
        assert float(read["solved_cost"]) == row["solved_cost"]
        assert float(read["unsolved_cost"]) == row["unsolved_cost"]
    assert plain["rows"][1]["unsolved_cost"] == 0  # it knows
    head, first, _ = comparison.table().splitlines()
    assert head.split()[-3:] == ["unsolved", "cost", "net"]
    assert first.split()[-1] == f"{plain['rows'][0]['net']:.1f}"


def test_what_unsolvable_problems_cost_is_a_number_of_its_own(log: Log) -> None:
    (row,) = compare(["adaptive"], log, unsolvable="include").to_json()["rows"]

    assert row["unsolvable_cost"] == 55  # five candidates, all generated and verified


def test_names_are_kept_as_they_are(tmp_path: Path) -> None:
    ids = ["naïve", 'a "b", c', "😀"]
    log = Log((World.of("1+").logged("p"), *(all_wrong(2).logged(id) for id in ids)))
    comparison = compare(["adaptive"], log)
    comparison.save(tmp_path / "out.json")
    comparison.save_csv(tmp_path / "out.csv")

    assert json.loads((tmp_path / "out.json").read_text())["log"]["excluded"] == ids
    assert all(id in table(tmp_path / "out.csv")[0]["excluded"] for id in ids)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_has_the_numbers_of_the_rows_to_the_last_digit(
    comparison: Comparison, tmp_path: Path
) -> None:
    comparison.save_csv(tmp_path / "out.csv")
    rows = table(tmp_path / "out.csv")

    assert len(rows) == len(comparison.rows)
    for read, row in zip(rows, comparison.rows, strict=True):
        assert read["policy"] == row.policy
        assert float(read["cost_generate"]) == row.costs.candidate
        assert float(read["cost_verify"]) == row.costs.verify
        for name in sorted(ALWAYS - {"policy", "costs", "trials"}):
            assert float(read[name]) == getattr(row, name)
        for name in ("m", "k"):
            assert read[name] == ("" if getattr(row, name) is None else str(getattr(row, name)))
        assert read["excluded"] == "zero"


def test_people_get_a_table_whose_columns_line_up(comparison: Comparison) -> None:
    head, *lines = comparison.table().splitlines()

    assert head.split() == [
        "policy",
        "costs",
        "generated",
        "verified",
        "cost",
        "ratio",
        "95",
        "%",
        "solved",
        "rounds",
        "unsolved",
        "cost",
    ]
    assert len(lines) == len(comparison.rows)
    assert {len(line) for line in lines} == {len(head), len(head) - len("  unsolved cost")}
    assert lines[2].startswith("adaptive ")
    assert "x1.00" in lines[2]


def test_a_file_that_cannot_be_written_is_said_and_the_old_one_stays(
    comparison: Comparison, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        comparison.save(tmp_path)
    with pytest.raises(UsageError, match="cannot be written"):
        comparison.save_csv(tmp_path / "nowhere" / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_saving_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    broken = Comparison(LogSummary(1, 1, 1, 0, 0, (), {}), {"a": object()}, ())

    with pytest.raises(TypeError):
        broken.save(path)

    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]
