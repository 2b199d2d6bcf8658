"""`grv convert`: from files of users to a log that can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grv.apps import cli
from grv.logs.log import Log


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, records: list[Any]) -> None:
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


LABELS = [{"id": "a", "samples": [{"correct": True}, {"correct": False}]}]
SCORES = [{"id": "a", "rewards": [{"idx": i, "r_last": i / 2, "r_mean": 1} for i in (1, 0)]}]


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".csv"])
def test_a_published_pair_becomes_a_log(ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("generations.jsonl", LABELS)
    write("rewards.jsonl", SCORES)
    files = ["generations.jsonl", "rewards.jsonl"]

    assert cli.run(["convert", *files, "--score", "r_last", "-o", f"log{ending}"]) == 0

    assert capsys.readouterr().out == (
        f"log{ending}: 2 candidates, r_last; 0 without a label, 0 without a score\n"
    )
    converted = Log.load(f"log{ending}")
    direct = Log.load("generations.jsonl", rewards="rewards.jsonl", score="r_last")
    assert converted["a"].scores.tolist() == direct["a"].scores.tolist() == [0, 0.5]
    assert converted["a"].passed.tolist() == direct["a"].passed.tolist()
    assert cli.run(["compare", f"log{ending}"]) == 0


def test_own_names_are_told_by_options(capsys: pytest.CaptureFixture[str]) -> None:
    write("runs.jsonl", [
        {"task": 7, "try": 0, "ok": 1, "rm": 2, "judge": 0.5, "answer": "42"},
        {"task": 7, "try": 1, "ok": None, "rm": None, "judge": None, "answer": "41"},
    ])  # fmt: skip

    code = cli.run(
        [
            "convert",
            "runs.jsonl",
            "-o",
            "log.jsonl",
            "--problem",
            "task",
            "--candidate",
            "try",
            "--passed",
            "ok",
            "--key",
            "answer",
            "--score",
            "rm=score_rm",
            "--score",
            "judge",
        ]
    )

    assert code == 0
    assert "1 without a label, 1 without a score" in capsys.readouterr().out
    assert [json.loads(text) for text in Path("log.jsonl").read_text().splitlines()] == [
        {"problem": 7, "candidate": 0, "passed": True, "score_rm": 2, "judge": 0.5, "key": "42"},
        {
            "problem": 7,
            "candidate": 1,
            "passed": None,
            "score_rm": None,
            "judge": None,
            "key": "41",
        },
    ]


def test_a_list_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    write("runs.jsonl", [
        {"id": "a", "tests": [{"t": 1}], "tries": [{"passed": True, "score": 1}]},
    ])  # fmt: skip

    assert cli.run(["convert", "runs.jsonl", "--list", "tries", "-o", "log.csv"]) == 0
    assert Path("log.csv").read_text() == "problem,candidate,passed,score\na,0,True,1.0\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs.jsonl"], "--out FILE is required"),
        (["-o", "log.csv"], "FILE... is required"),
        (["none.jsonl", "-o", "log.csv"], "none.jsonl: cannot be read: No such file or directory"),
        (
            ["runs.jsonl", "-o", "log.txt"],
            "log.txt: the name of a log must end in .parquet, .jsonl, .csv",
        ),
        (["runs.jsonl", "-o", "nowhere/log.csv"], "nowhere/log.csv: cannot be written: No such"),
        (["runs.jsonl", "-o", "runs.jsonl"], "runs.jsonl: given twice; it would be overwritten"),
        (["runs.jsonl", "-o", "log.csv", "--score", "=x"], "--score =x: give FIELD"),
        (["runs.jsonl", "-o", "log.csv", "--score", "score=key"], "--score score=key: give FIELD"),
        (["runs.jsonl", "-o", "log.csv", "--score", "passed"], "--score passed=: give FIELD"),
        (
            ["runs.jsonl", "-o", "log.csv", "--score", "rm"],
            "no score 'rm' in these files; there are",
        ),
        (
            ["runs.jsonl", "-o", "log.csv", "--passed", "ok"],
            "no label in these files: no field ok",
        ),
        (
            ["runs.jsonl", "-o", "log.csv", "--problem", "task"],
            "runs.jsonl:1: no problem: no field",
        ),
        (
            ["runs.jsonl", "other.jsonl", "-o", "log.csv"],
            "other.jsonl:1: passed of candidate 0 of 'a'",
        ),
        (
            ["runs.jsonl", "twice.jsonl", "-o", "log.csv"],
            "twice.jsonl:2: candidate 0 of 'a' occurs twice",
        ),
        (["junk.jsonl", "-o", "log.csv"], "junk.jsonl:1: not a line of JSON"),
        (["empty.jsonl", "-o", "log.csv"], "empty.jsonl: the file is empty"),
    ],
)
def test_what_goes_wrong_is_said_in_one_line_and_the_old_log_stays(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    row = {"id": "a", "idx": 0, "passed": True, "score": 1}
    write("runs.jsonl", [row])
    write("other.jsonl", [{**row, "passed": False}])
    write("twice.jsonl", [row, row])
    Path("junk.jsonl").write_bytes(b"\xff\x00")
    Path("empty.jsonl").touch()
    Path("log.csv").write_text("old")
    before = {path: path.read_bytes() for path in folder.iterdir()}

    assert cli.run(["convert", *arguments]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("grv: ")
    assert err.count("\n") == 1
    assert message in err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
