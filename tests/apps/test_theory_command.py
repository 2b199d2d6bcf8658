"""`grv theory`: tables for people, numbers in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grv.apps import cli
from grv.comparing.simulation import star_trials
from grv.policies import POLICIES
from grv.policies.promises import SETTINGS, promises
from grv.theory.proofs import separation

_MEASURED = {"lower-bound": (star_trials, "_measured"), "separation": (separation, "measure")}


def test_the_lower_bound_holds_for_all_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.json"
    call = ["theory", "lower-bound", "singletons:6", "--costs", "1,20", "--runs", "30"]
    assert cli.run([*call, "--json", str(out)]) == 0

    saved = json.loads(out.read_text())
    said = capsys.readouterr().out
    left_out = said.count("left out")
    assert len(saved["rows"]) + left_out >= min(len(POLICIES), 6)
    for row in saved["rows"]:
        assert row["class"] == "singletons:6"
        assert row["bound"] == 1.5
        assert row["sound"] == (row["ratio"] is not None)
        if row["sound"]:
            assert row["ratio"] + 4 * row["error"] >= row["bound"]
        assert f" {row['policy']} " in said
    assert "below the bound by more than three standard errors: 0 of" in said


def test_chosen_policies_on_a_file_of_probabilities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rates.npy"
    np.save(path, np.eye(4) * 0.5)
    call = ["theory", "lower-bound", str(path), "--eta", "0.5", "--costs", "1,8", "--runs", "9"]
    assert cli.run([*call, "--policy", "verify-all", "--policy", "fixed(2, 1)"]) == 0

    head, every, fixed, _ = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["class", "policy", "star", "c_ver/c_rew"]
    assert every.split()[1:5] == ["verify-all", "4", "8", "0.50"]
    assert "gives up" in fixed


def test_the_separation_grows_with_d_for_learning_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "separation.json"
    call = ["theory", "separation", "--d", "8", "--d", "32", "--runs", "50", "--json", str(out)]
    assert cli.run(call) == 0

    small, large = json.loads(out.read_text())["rows"]
    assert small["search_labels"] <= 1 >= large["search_labels"]
    assert large["learn_labels"] > 3 * small["learn_labels"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["d", "8", "32"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lower-bound", "nowhere"], "nowhere: no such file, and not a family"),
        (["lower-bound", "singletons:3", "--policy", "bst"], "unknown policy 'bst'"),
        (["lower-bound", "singletons:3", "--runs", "1"], "--runs 1: give a whole number from 2"),
        (["lower-bound", "singletons:3", "--costs", "1"], "--costs 1: give two numbers"),
        (["lower-bound", "singletons:3", "--eta", "x"], "--eta x: give a number from 0 to 1"),
        (["separation", "--d", "1"], "--d 1: give a whole number from 2 to 10,000"),
        (["separation", "--epsilon", "0.25"], "--epsilon 0.25: give a number from 1e-06 to 0.249"),
        (["separation", "--delta", "1"], "--delta 1: give a number from 1e-06 to 0.999"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["theory", *arguments]) == 2

    said, complained = capsys.readouterr()
    assert message in complained
    assert complained.count("\n") == 1
    assert said == ""


def test_a_class_where_nothing_passes_has_no_hard_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "zero.txt"
    path.write_text("0 0 0\n")

    assert cli.run(["theory", "lower-bound", str(path)]) == 2
    assert "s_0 = 0" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["lower-bound", "separation"])
def test_help_shows_how(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["theory", command, "--help"]) == 0
    assert f"\n  grv theory {command}\n" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["lower-bound", "separation"])
def test_interrupted_it_shows_and_saves_what_there_is(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, name = _MEASURED[what]
    real, calls = getattr(module, name), []

    def interrupted_at_the_third(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **named)

    monkeypatch.setattr(module, name, interrupted_at_the_third)
    out = tmp_path / "out.json"

    assert cli.run(["theory", what, "--runs", "2", "--json", str(out)]) == 130

    saved, (said, complaint) = json.loads(out.read_text()), capsys.readouterr()
    assert (saved["complete"], len(saved["rows"])) == (False, 2)
    assert len([line for line in said.splitlines() if line.strip()]) >= 3
    assert complaint == "grv: interrupted\n"


def test_promises_are_printed_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "promises.json"
    assert cli.run(["theory", "promises", "--json", str(out)]) == 0

    saved = json.loads(out.read_text())
    said = capsys.readouterr().out
    assert saved["rows"] == [row.record() for row in promises()]
    assert set(saved["rows"][0]) == {
        "policy",
        "setting",
        "against",
        "constant",
        "status",
        "statement",
    }
    assert saved["settings"] == SETTINGS
    for row in saved["rows"]:
        assert f"{row['policy']} " in said
        assert row["constant"] in said


def test_the_promises_of_one_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["theory", "promises", "--policy", "varied"]) == 0
    said = capsys.readouterr().out
    assert "varied(factor=5)" in said
    assert "balanced" not in said
    assert cli.run(["theory", "promises", "--policy", "varid"]) == 2
    assert "unknown policy 'varid': choose from adaptive" in capsys.readouterr().err
