"""`grv compare`: what people see, and what files hold."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grv.apps import cli
from grv.comparing.compare import compare
from grv.comparing.rows import DEFAULT_ROWS
from grv.core.values import Costs
from grv.logs.log import Log
from grv.policies import DEFAULT
from grv.policies.spec import spec

Shown = Callable[..., str]
LIVE = ("default", "adaptive", "verify-all")


def line(problem: str, candidate: int, passed: bool | str, score: float | str, key: str) -> str:
    return f"{problem},{candidate},{passed},{score},{key}\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three problems that can be solved, two that cannot; with keys, one of them contradictory."""
    monkeypatch.chdir(tmp_path)
    rows = ["problem,candidate,passed,score,key\n"]
    for at, problem in enumerate(["easy", "fair", "hard", "vain", "void"]):
        for candidate in range(12):
            passes = candidate % 12 < (8, 3, 1, 0, 0)[at]
            score = "" if candidate == 11 else (candidate * 5 + at) % 7
            key = (
                "both"
                if candidate in (0, 11)
                else f"k{candidate if candidate < 4 else candidate // 2 + 4}"
            )
            rows.append(line(problem, candidate, passes, score, key))
    path = tmp_path / "log.csv"
    path.write_text("".join(rows))
    return path


@pytest.fixture
def shown(log: Path, capsys: pytest.CaptureFixture[str]) -> Shown:
    """What `grv compare log.csv ...` prints."""

    def run(*arguments: str) -> str:
        assert cli.run(["compare", "log.csv", *arguments]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


def read_json(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(path).read_text())
    return loaded


def test_the_table_has_a_line_for_each_default_row(shown: Shown) -> None:
    lines = shown().splitlines()

    at = next(i for i, text in enumerate(lines) if text.startswith("policy"))
    assert [text.split()[0] for text in lines[at + 1 : at + 12]] == list(DEFAULT_ROWS)
    assert all(text.split()[1] == "1,10" for text in lines[at + 1 : at + 12])


def test_the_heading_says_what_was_compared_and_names_what_was_left_out(shown: Shown) -> None:
    text = shown("--policy", "adaptive")

    assert text.startswith("log.csv: 5 problems, 3 of them solvable, 60 candidates, score score\n")
    assert (
        "10 orders per problem (stable, seed 0), width 1 (stops at the first pass), no keys" in text
    )
    assert "left out, without any pass (2): vain, void" in text
    assert "candidates without a score, which rank last: 5" in text
    assert "both" not in text


def test_the_heading_says_when_a_search_with_several_verifications_at_once_stops(
    shown: Shown,
) -> None:
    text = shown("--policy", "adaptive", "--width", "8")

    assert "width 8 (2, 4 ... 8 at once, candidates ahead; stops after the first pass)" in text
    text = shown("--policy", "adaptive", "--width", "8", "--no-ramp", "--no-overlap")
    assert "width 8 (8 at once; stops after the first pass), no keys" in text
    text = shown("--policy=adaptive", "--width=8", "--random-phase", "--no-overlap")
    assert "width 8 (1 or 2, then twice as many ... 8 at once; stops after the first pass)" in text
    text = shown("--policy=adaptive", "--width=8", "--latency=5,30", "--wait-price=0.5")
    assert "width 8 (up to 8 at once, as a second of waiting costs 0.5, candidates ahead;" in text


@pytest.mark.parametrize("option", ["--wait-price=1", "--deadline=10"])
def test_time_needs_latencies(option: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["compare", "log.csv", option]) == 2
    assert capsys.readouterr().err == (
        "grv: --wait-price and --deadline need --latency: a replay measures no time\n"
    )


def test_waiting_that_costs_more_takes_less_time(shown: Shown) -> None:
    def row(*options: str) -> dict[str, float]:
        shown("--policy=default", "--width=16", "--latency=5,30", "--json=out.json", *options)
        rows: list[dict[str, float]] = read_json("out.json")["rows"]
        return rows[0]

    shown("--policy=default", "--latency=5,30", "--wait-price=1", "--json=out.json")
    assert read_json("out.json")["settings"]["width"] == 64  # the search chooses
    cheap, dear = row("--wait-price=0.001"), row("--wait-price=100")
    assert dear["seconds"] < cheap["seconds"]
    assert dear["cost"] > cheap["cost"]
    assert row("--deadline=40")["seconds"] <= 40
    assert row("--no-ramp")["verify_rounds"] <= row("--ramp")["verify_rounds"]
    assert "random_phase" not in read_json("out.json")["settings"]["pace"]
    assert row("--random-phase")["verify_rounds"] > row("--ramp")["verify_rounds"]
    row("--random-phase")
    assert read_json("out.json")["settings"]["pace"]["random_phase"] is True


def test_ratios_are_relative_to_adaptive_or_else_to_varied(shown: Shown) -> None:
    assert "; ratios to adaptive\n" in shown("--policy", "adaptive", "--policy", "verify-all")
    assert "; ratios to varied\n" in shown("--policy", "adaptive( checks=3 )")


def test_a_baseline_is_the_row_of_all_ratios_and_becomes_one_if_it_is_none(shown: Shown) -> None:
    text = shown("--policy=adaptive", "--baseline= fixed(4,2)", "--json=out.json")
    rows = {row["policy"]: row for row in read_json("out.json")["rows"]}

    assert list(rows) == ["adaptive", "varied", "fixed(4,2)"]
    assert "; ratios to fixed(4,2)\n" in text
    assert read_json("out.json")["settings"]["baseline"] == "fixed(4,2)"
    for row in rows.values():
        assert row["ratio"] == pytest.approx(row["cost"] / rows["fixed(4,2)"]["cost"])


def test_a_baseline_may_be_spelled_in_another_way_than_its_row(shown: Shown) -> None:
    shown("--policy=fixed(4, k=2)", "--baseline=fixed(4,2)", "--json=out.json")

    assert [row["policy"] for row in read_json("out.json")["rows"]] == ["fixed(4, k=2)", "varied"]
    assert read_json("out.json")["settings"]["baseline"] == "fixed(4, k=2)"


def test_each_two_rows_can_be_compared(shown: Shown) -> None:
    text = shown("--policy=adaptive", "--policy=verify-all", "--pairs", "--json=out.json")
    tests = read_json("out.json")["tests"]

    named = [("adaptive", "verify-all"), ("adaptive", "varied"), ("verify-all", "varied")]
    assert [(pair["first"], pair["second"]) for pair in tests["pairs"]] == named
    for first, second in named:
        assert any(line.split()[1:3] == [first, second] for line in text.splitlines())
    assert f"p: {tests['method']}" in text
    assert "Holm" in tests["method"]


def test_every_problem_left_out_is_named_however_many_there_are(shown: Shown, log: Path) -> None:
    many = [f"p{number:03}" for number in range(60)]
    with log.open("a") as file:
        file.writelines(line(name, 0, False, 1, "") for name in many)

    text = shown("--policy", "adaptive", "--json", "out.json", "--csv", "out.csv")

    assert "left out, without any pass (62): " in text
    assert many[0] in text
    assert "50 more" in text  # the files have all
    assert set(many) < set(read_json("out.json")["log"]["excluded"])
    with open("out.csv", newline="") as file:
        assert set(many) < set(next(csv.DictReader(file))["excluded"].split())


def test_the_files_hold_what_the_library_computes(shown: Shown) -> None:
    shown(
        "--costs",
        "1,10",
        "--costs",
        "2,3",
        "--orders",
        "4",
        "--seed",
        "9",
        "--width",
        "3",
        "--order-scheme",
        "paper",
        "--json",
        "out.json",
        "--csv",
        "out.csv",
    )

    expected = compare(
        DEFAULT_ROWS,
        Log.load("log.csv"),
        [Costs(1.0, 10.0), Costs(2.0, 3.0)],
        orders=4,
        seed=9,
        width=3,
        order_scheme="paper",
    )
    assert read_json("out.json") == json.loads(json.dumps(expected.to_json()))
    assert Path("out.csv").read_text() == expected.to_csv()


def test_rows_are_named_as_they_were_asked_for(shown: Shown) -> None:
    asked = ["fixed(4, k=2)", "adaptive( checks=3 )", "difficulty-7", "adaptive"]
    shown(*(f"--policy={text}" for text in asked), "--json", "out.json")

    assert [row["policy"] for row in read_json("out.json")["rows"]] == [*asked, "varied"]


def test_default_is_what_decides_where_nobody_says(shown: Shown) -> None:
    shown("--policy=default", f"--policy={spec(DEFAULT)}", "--json", "out.json")

    default, named = read_json("out.json")["rows"]
    assert default == named


def test_the_default_policy_is_not_added_where_it_has_another_name(shown: Shown) -> None:
    shown(f"--policy={spec(DEFAULT)}", "--json", "out.json")

    assert [row["policy"] for row in read_json("out.json")["rows"]] == [spec(DEFAULT)]


def test_width_all_is_the_published_accounting(shown: Shown) -> None:
    text = shown("--width", "all", "--json", "out.json")
    rows = {row["policy"]: row for row in read_json("out.json")["rows"]}

    assert "width all (whole steps are paid for)" in text
    assert rows["adaptive"]["cost"] == rows["adaptive-all"]["cost"]
    assert read_json("out.json")["settings"]["width"] == "all"


def test_with_keys_each_class_is_verified_once_and_contradictions_are_named(shown: Shown) -> None:
    text = shown("--keys", "--json", "out.json")
    with_keys = read_json("out.json")
    shown("--no-keys", "--json", "out.json")

    assert "each key verified once" in text
    assert "keys with both labels, not used as classes (3): both of easy, both of fair" in text
    assert with_keys["log"]["contradictory"]["easy"] == ["both"]
    before, after = (
        {row["policy"]: row["verified"] for row in each["rows"]}
        for each in (read_json("out.json"), with_keys)
    )
    assert after["verify-all"] < before["verify-all"]


def test_unsolvable_problems_may_be_kept_and_their_price_is_told(shown: Shown) -> None:
    text = shown("--unsolvable", "include", "--policy", "adaptive", "--json", "out.json")

    saved = read_json("out.json")
    assert "left out" not in text
    assert "On each problem without any pass it spends 132.0, without a result." in text
    assert saved["log"]["excluded"] == []
    assert saved["rows"][0]["unsolvable_cost"] == 132  # twelve generated, twelve verified
    assert saved["rows"][0]["solved"] == 0.6


def test_candidates_without_a_label_may_fail_or_be_dropped(shown: Shown, log: Path) -> None:
    with log.open("a") as file:
        file.write(line("easy", 12, "", 9, "") + line("zero", 0, "", 1, ""))

    failed = shown("--policy=adaptive", "--unlabelled=fail", "--json=failed.json")
    dropped = shown("--policy=adaptive", "--unlabelled=drop", "--json=dropped.json")

    assert "candidates without a label: 2" in failed
    assert "candidates without a label: 2" in dropped
    for name, candidates in (("failed.json", 62), ("dropped.json", 60)):
        saved = read_json(name)
        assert saved["log"]["unlabelled"] == 2
        assert saved["log"]["candidates"] == candidates
        assert saved["log"]["problems"] == 6
        assert saved["log"]["excluded"] == ["vain", "void", "zero"]
        assert saved["settings"]["unlabelled"] == name.removesuffix("ed.json").replace("pp", "p")


def test_the_result_is_said_in_words(shown: Shown) -> None:
    text = shown("--costs", "1,10", "--costs", "1,500")

    words = [text for text in text.splitlines() if text.startswith("At ")]
    assert len(words) == 2
    assert words[0].startswith("At 1,10 the cheapest policy that can run live is ")
    assert words[1].startswith("At 1,500 the cheapest policy that can run live is ")
    shown("--json", "out.json")
    live = [r for r in read_json("out.json")["rows"] if r["policy"] in LIVE]
    best = min(live, key=lambda row: row["cost"])
    assert words[0].split()[10] == f"{best['policy']}:"


def test_the_last_words_are_about_a_policy_that_solves_as_many_as_any(shown: Shown) -> None:
    text = shown("--policy=fixed(1, 1)", "--policy=verify-all", "--policy=hindsight")

    (words,) = [line for line in text.splitlines() if line.startswith("At ")]
    assert "fixed(1, 1)" not in words
    assert "hindsight" not in words
    assert "it solves 100.0% of the trials" in words


def test_the_last_words_say_whether_the_difference_is_significant(shown: Shown) -> None:
    text = shown("--policy=adaptive", "--policy=verify-all")

    (words,) = [line for line in text.splitlines() if line.startswith("The next, ")]
    assert "not significant" in words  # three problems tell nothing
    assert "paired over 3 problems, corrected for all pairs of rows" in words


def test_a_score_can_be_chosen(shown: Shown, log: Path) -> None:
    log.write_text(log.read_text().replace("score,key", "reward,key"))

    assert "score reward" in shown("--policy", "adaptive", "--score", "reward")


def test_results_can_go_to_a_pipe(shown: Shown) -> None:
    reader, writer = os.pipe()
    try:
        shown("--policy", "adaptive", "--json", f"/dev/fd/{writer}")
    finally:
        os.close(writer)
    with open(reader) as stream:
        assert json.load(stream)["format"] == 1


def test_a_run_does_not_depend_on_other_problems_of_the_log(shown: Shown, log: Path) -> None:
    shown("--policy", "adaptive", "--policy", "hindsight", "--json", "all.json")
    kept = [row for row in log.read_text().splitlines() if not row.startswith(("vain", "void"))]
    log.write_text("\n".join(kept))
    shown("--policy", "adaptive", "--policy", "hindsight", "--json", "few.json")

    assert read_json("all.json")["rows"] == read_json("few.json")["rows"]
