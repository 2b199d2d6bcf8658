"""Jobs of Harbor become logs: labels, dollars, seconds; then what early stopping saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.commands import here, records, refuses
from support.harbor import trial_result, write_job_folder, write_trial


def job(folder: Path, name: str = "2026-11-03__09-00-00") -> Path:
    """Three tasks with five trials each: one passes mostly, one rarely, one never."""
    rewards = {"example/easy": "10111", "example/hard": "00010", "example/never": "00000"}
    results = [
        trial_result(task, number, float(mark), cost=0.2 + 0.1 * number, tokens=1000 * (number + 1))
        for task, marks in rewards.items()
        for number, mark in enumerate(marks)
    ]
    return write_job_folder(folder / "jobs" / name, results)


def converted(folder: Path, *words: object) -> list[dict[str, Any]]:
    out = folder / "log.jsonl"
    ran = here("convert", *words, "-o", out)
    assert ran.code == 0, ran.err
    return records(out)


def test_a_trial_is_a_candidate_with_its_label_its_dollars_and_its_seconds(tmp_path: Path) -> None:
    job(tmp_path)
    rows = converted(tmp_path, tmp_path / "jobs", "--hour", 3.6)
    assert len(rows) == 15
    easy = [row for row in rows if row["problem"] == "example/easy"]
    assert [row["candidate"] for row in easy] == [0, 1, 2, 3, 4]
    assert [row["passed"] for row in easy] == [True, False, True, True, True]
    assert [row["generate_cost"] for row in easy] == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.6])
    assert {row["verify_seconds"] for row in rows} == {60.0}
    assert {row["verify_cost"] for row in rows} == {0.06}
    assert [row["score_tokens"] for row in easy] == [-1000, -2000, -3000, -4000, -5000]
    assert easy[0]["score_seconds"] == -110


def test_a_job_a_folder_of_jobs_and_a_trial_are_read_alike(tmp_path: Path) -> None:
    made = job(tmp_path)
    assert len(converted(tmp_path, made)) == 15
    trial = next(each for each in made.iterdir() if each.is_dir())
    assert len(converted(tmp_path, trial)) == 1
    job(tmp_path, "2026-11-04__09-00-00")
    rows = converted(tmp_path, tmp_path / "jobs")
    assert len(rows) == 30
    assert max(row["candidate"] for row in rows) == 9


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    made = job(tmp_path)
    write_trial(made, trial_result("example/easy", 5, None, cost=None))
    waiting = write_trial(made, trial_result("example/easy", 6, 1.0))
    (waiting / "result.json").unlink()
    out = tmp_path / "log.jsonl"
    ran = here("convert", tmp_path / "jobs", "-o", out)
    assert "1 trials have not ended" in ran.out
    assert "1 trials have no reward, and so no label" in ran.out
    assert "1 trials do not say what they cost" in ran.out
    assert "--hour 0.2" in ran.out
    assert records(out)[-1].get("verify_cost") is None


def test_steps_are_added_up(tmp_path: Path) -> None:
    result = trial_result("example/steps", 0, 1.0, cost=0.5)
    step = {
        "step_name": "one",
        "agent_result": result["agent_result"],
        "verifier": result["verifier"],
        "agent_execution": result["agent_execution"],
    }
    result |= {"agent_result": None, "step_results": [step, step]}
    write_job_folder(tmp_path / "jobs" / "a", [result])
    (row,) = converted(tmp_path, tmp_path / "jobs")
    assert row["generate_cost"] == pytest.approx(1.0)
    assert row["verify_seconds"] == 120


def test_several_rewards_need_a_choice_and_part_of_a_reward_is_no_pass(tmp_path: Path) -> None:
    results = [trial_result("example/a", number, 0.0) for number in range(2)]
    for result, quality in zip(results, (0.9, 1.0), strict=True):
        result["verifier_result"]["rewards"] = {"tests": quality, "style": 0.0}
    made = write_job_folder(tmp_path / "jobs" / "a", results)
    refuses(["convert", made, "-o", tmp_path / "x.csv"], "tests, style", "--passed")
    rows = converted(tmp_path, made, "--passed", "tests")
    assert [row["passed"] for row in rows] == [False, True]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"agent_info": {"name": "other"}}, "several agents or models"),
        ({"task_checksum": "other"}, "is another one than in"),
        ({"task_name": 5}, "task_name must be a text"),
        ({"verifier_result": {"rewards": {"reward": "1"}}}, "a reward must be a number"),
    ],
)
def test_what_cannot_be_one_log_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    results = [trial_result("example/a", number, 1.0) for number in range(2)]
    results[1] |= change
    made = write_job_folder(tmp_path / "jobs" / "a", results)
    refuses(["convert", made, "-o", tmp_path / "x.csv"], says)


def test_a_hostile_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    made = write_job_folder(tmp_path / "jobs" / "a", [trial_result("example/a", 0, 1.0)])
    result = next(made.glob("*/result.json"))
    kept = result.read_text()
    for content in ('{"trial_name": 1e999}', "[" * 100_000, "\ufeff{", '{"trial_name"'):
        result.write_text(content)
        refuses(["convert", made, "-o", tmp_path / "x.csv"], "result.json")
    result.unlink()
    (tmp_path / "outside.json").write_text(kept)
    result.symlink_to(tmp_path / "outside.json")
    refuses(["convert", made, "-o", tmp_path / "x.csv"], "not a file")
    refuses(["convert", tmp_path / "outside", "-o", tmp_path / "x.csv"])
    (tmp_path / "empty").mkdir()
    refuses(["convert", tmp_path / "empty", "-o", tmp_path / "x.csv"], "no trials of Harbor")


@pytest.mark.slow
def test_compare_and_report_say_what_early_stopping_would_have_saved(tmp_path: Path) -> None:
    job(tmp_path)
    log = tmp_path / "log.jsonl"
    assert here("convert", tmp_path / "jobs", "--hour", 0.2, "-o", log).code == 0
    measured = ["--costs", "measured", "--score", "score_tokens"]
    policies = ["--policy", "verify-all", "--policy", "fixed(5, 5)"]
    ran = here("compare", log, *measured, *policies, "--jobs", 1, "--json", tmp_path / "table.json")
    assert ran.code == 0, ran.err
    rows = json.loads((tmp_path / "table.json").read_text())["rows"]
    cost = {row["policy"]: row["cost"] for row in rows}
    # All five attempts of both solvable tasks cost 2 dollars; stopping at the first pass, 0.81.
    assert cost["fixed(5, 5)"] == pytest.approx(2.0, abs=0.02)
    assert cost["verify-all"] == pytest.approx(0.81, abs=0.02)
    page = tmp_path / "report.html"
    ran = here("report", log, *measured, "--jobs", 1, "-o", page)
    assert ran.code == 0, ran.err
    assert "verify-all and" in ran.out
    assert page.stat().st_size > 10_000
