"""`grv star`: numbers with witnesses, intervals without time, one line when it is wrong."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from grv.apps import cli
from grv.theory.stars.class_files import load_class
from grv.theory.stars.search import is_star
from support.commands import as_from_a_terminal

GRV = str(Path(sys.executable).with_name("grv"))


def hard(path: Path) -> str:
    """A class that is not done with in a minute."""
    np.save(path, np.random.default_rng(0).random((2000, 64)) < 0.3)
    return str(path)


@pytest.mark.parametrize(
    ("family", "number"),
    [
        ("thresholds:16", 1),
        ("intervals:16", 16),
        ("singletons:16", 16),
        ("subsets:8", 8),
        ("unions:9:2", 9),
    ],
)
def test_the_known_values_are_saved_with_their_witness(
    family: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "star.json"
    assert cli.run(["star", family, "--json", str(out)]) == 0

    saved = json.loads(out.read_text())
    assert set(saved) == {"star", "lower", "upper", "points", "concepts"}
    assert saved["star"] == saved["lower"] == saved["upper"] == number
    assert is_star(load_class(family), tuple(saved["points"]), tuple(saved["concepts"]))
    assert f"s_0 = {number}\n" in capsys.readouterr().out


def test_witnesses_are_rows_and_columns_of_the_file_as_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Repeated and empty rows and columns, so that anything but the file's own numbers would show.
    path, out = tmp_path / "class.txt", tmp_path / "star.json"
    path.write_text("0 1 1 1 0\n0 1 1 1 0\n\n# hello\n0 0 0 1 0\n0,0,0,0,1\n0 1 1 0 0\n")

    assert cli.run(["star", str(path), "--json", str(out)]) == 0

    saved = json.loads(out.read_text())
    assert saved == {
        "star": 3,
        "lower": 3,
        "upper": 3,
        "points": saved["points"],
        "concepts": saved["concepts"],
    }
    assert dict(zip(saved["points"], saved["concepts"], strict=True)) in (
        {1: 4, 3: 2, 4: 3},
        {2: 4, 3: 2, 4: 3},
    )
    assert "5 concepts on 5 points\n" in (said := capsys.readouterr().out)
    assert "the class has no all-zero concept; grv added it as the centre" in said


def test_the_usual_star_number_names_its_centre(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "star.json"
    assert cli.run(["star", "thresholds:9", "--centre", "any", "--json", str(out)]) == 0

    saved = json.loads(out.read_text())
    assert saved["star"] == 2
    assert is_star(
        load_class("thresholds:9"),
        tuple(saved["points"]),
        tuple(saved["concepts"]),
        centre=saved["centre"],
    )
    said = capsys.readouterr().out
    assert "s = 2\n" in said
    assert f"centre: concept {saved['centre']}" in said
    assert "was added" not in said


def test_probabilities_need_an_eta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rates.npy"
    np.save(path, np.array([[0.5, 0.0], [0.0, 0.2]]))

    assert cli.run(["star", str(path), "--eta", "0.3"]) == 0
    assert "s_0 (eta 0.3) = 1\n" in capsys.readouterr().out
    assert cli.run(["star", str(path), "--eta", "0.2"]) == 0
    assert "s_0 (eta 0.2) = 2\n" in capsys.readouterr().out
    assert cli.run(["star", str(path)]) == 2
    assert "0.5 in row 0, column 0" in capsys.readouterr().err


def test_a_log_is_a_class_of_its_score_bins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    rows = [
        f"{problem},{candidate},{int(candidate // 2 == problem)},{candidate}"
        for problem in range(4)
        for candidate in range(8)
    ]
    log.write_text("problem,candidate,passed,score\n" + "\n".join(rows) + "\n")

    assert cli.run(["star", str(log), "--bins", "4", "--score", "score"]) == 0

    said = capsys.readouterr().out
    assert "4 bins of score, from -inf, 2, 4, 6" in said
    assert "s_0 = 4\n" in said


def test_when_the_time_is_up_the_interval_is_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = hard(tmp_path / "hard.npy"), tmp_path / "star.json"

    assert cli.run(["star", path, "--time-limit", "0", "--json", str(out)]) == 0

    saved = json.loads(out.read_text())
    assert saved["star"] is None
    assert 1 <= saved["lower"] == len(saved["points"]) < saved["upper"] <= 64
    assert is_star(load_class(path), tuple(saved["points"]), tuple(saved["concepts"]))
    said = capsys.readouterr().out
    assert f"s_0 is from {saved['lower']} to {saved['upper']} (stopped after 0 s)" in said


@pytest.mark.slow
def test_ctrl_c_prints_the_interval_so_far(tmp_path: Path) -> None:
    path, out = hard(tmp_path / "hard.npy"), tmp_path / "star.json"
    here, there = pty.openpty()
    running = subprocess.Popen(
        [GRV, "star", path, "--time-limit", "inf", "--json", str(out)],
        stdout=subprocess.PIPE,
        stderr=there,
        text=True,
        preexec_fn=as_from_a_terminal,
    )
    os.close(there)
    seen = b""
    while b" to " not in seen:  # the line that says how far it is
        seen += os.read(here, 1000)
    running.send_signal(signal.SIGINT)
    try:
        said, _ = running.communicate(timeout=60)
    finally:
        running.kill()
        os.close(here)

    assert running.returncode == 130
    assert "(interrupted)" in said
    saved = json.loads(out.read_text())
    assert saved["star"] is None
    assert f"s_0 is from {saved['lower']} to {saved['upper']} " in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n0 2\n", ":2: '2' is not a number from 0 to 1"),
        ("0 1\n0\n", ":2: 1 entries, but the first row has 2"),
        ("", "there are no concepts"),
        ("0 0.5\n", "neither 0 nor 1; a probabilistic class needs eta"),
    ],
)
def test_a_file_that_is_no_class_is_refused_in_one_line(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "class.txt", tmp_path / "star.json"
    path.write_text(content)

    assert cli.run(["star", str(path), "--json", str(out)]) == 2

    said, complained = capsys.readouterr()
    assert message in complained
    assert complained.startswith(f"grv: {path}")
    assert complained.count("\n") == 1
    assert said == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt"], "nowhere.txt: no such file, and not a family"),
        (["circles:4"], "unknown family 'circles'"),
        (["subsets:40"], "too many"),
        (["thresholds:0"], "there are no points"),
        (["subsets:3", "--eta", "2"], "--eta 2: give a number from 0 to 1"),
        (["subsets:3", "--eta", "0"], "eta must be above 0"),
        (["subsets:3", "--eta", "1", "--centre", "any"], "eta can only be used with zero"),
        (["subsets:3", "--centre", "one"], "--centre one: give one of zero, any"),
        (["subsets:3", "--time-limit", "-1"], "--time-limit -1: give a number of at least 0"),
        (["subsets:3", "--time-limit", "soon"], "--time-limit soon: give a number"),
        (["subsets:3", "--score", "x"], "--score is for logs: give --bins too"),
        (["subsets:3", "--bins", "4"], "subsets:3"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["star", *arguments]) == 2

    said, complained = capsys.readouterr()
    assert message in complained
    assert complained.count("\n") == 1
    assert "bug in grv" not in complained
    assert said == ""
