"""Searches that a check which errs decides: enough passes, and answers that are called judged."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grv.ledger.opening import open_ledger
from grv.testing.servers import FakeOpenai
from support.commands import here

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-some-length")


LEDGER = "answers.jsonl.ledger"
ARGUMENTS = (
    "problems.jsonl",
    "--generator",
    "openai:fake",
    "--allow-commands",
    "--costs",
    "1,2",
    "--budget",
    200,
    "--out",
    "answers.jsonl",
    "--score",
    "length",
)


class World:
    """A model whose answers are right with some probability, and a judge that errs."""

    def __init__(self, right: float, false_pass: float, false_fail: float = 0.0) -> None:
        self._right = right
        self._errors = {True: false_fail, False: false_pass}
        self._random = random.Random(1)
        self.calls: Counter[str] = Counter()

    def __call__(self, prompt: str, index: int) -> str:
        if '"answer":' not in prompt:
            word = "right" if self._random.random() < self._right else "wrong"
            return f"{word} {index}"
        answer = json.loads(prompt[prompt.index("{\n") :])["answer"]
        self.calls[answer] += 1
        right = answer.startswith("right")
        passes = right != (self._random.random() < self._errors[right])
        return json.dumps({"verdict": "pass" if passes else "fail"})


def write(problems: int, check: dict[str, Any]) -> None:
    lines = [
        json.dumps({"problem": f"p{number}", "prompt": f"Question {number}?", "check": check})
        for number in range(problems)
    ]
    Path("problems.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def solve(server: FakeOpenai, *more: object) -> list[dict[str, Any]]:
    ran = here("solve", *ARGUMENTS, "--base-url", server.url, *more)
    assert ran.code in (0, 1), ran
    lines = Path("answers.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted(map(json.loads, lines), key=lambda answer: str(answer["problem"]))


@pytest.mark.slow
def test_a_judged_answer_is_called_judged_and_had_enough_passes() -> None:
    world = World(right=0.2, false_pass=0.2)
    with FakeOpenai(world) as server:
        record = {"kind": "judge", "model": "openai:fake", "url": server.url, "temperature": 1}
        write(12, {**record, "errors": {"false_pass": 0.2}})
        answers = solve(server)
    judged = [each for each in answers if each["outcome"] == "solved"]
    assert len(judged) >= 10
    for answer in judged:
        assert answer["answer_status"] == "judged"
        assert answer["answer_verified"] is False
        assert answer["wrong_probability"] == 0.05
        # The first candidate of a search needs log(2 / .05) / log(1 / .2) passes: 3.
        assert world.calls[answer["answer"]] >= 3
    wrong = sum(each["answer"].startswith("wrong") for each in judged)
    assert wrong <= 3  # .05 of 12 are expected at most


@pytest.mark.slow
def test_judged_and_verified_are_kept_apart_wherever_they_are_shown() -> None:
    world = World(right=0.5, false_pass=0.1)
    with FakeOpenai(world) as server:
        record = {"kind": "judge", "model": "openai:fake", "url": server.url, "temperature": 1}
        write(4, {**record, "errors": {"false_pass": 0.1}})
        lines = Path("problems.jsonl").read_text(encoding="utf-8")
        sure = {"kind": "text", "contains_all": ["right"]}
        line = json.dumps({"problem": "sure", "prompt": "Question?", "check": sure})
        Path("problems.jsonl").write_text(f"{lines}{line}\n", encoding="utf-8")
        answers = solve(server)
        collected = here(
            "collect",
            "problems.jsonl",
            "--generator",
            "openai:fake",
            "--base-url",
            server.url,
            "--allow-commands",
            "-n",
            4,
            "--score",
            "length",
            "--out",
            "log.csv",
        )
    assert [each["answer_status"] for each in answers] == ["judged"] * 4 + ["verified"]
    listed = here("runs", "list", LEDGER).out
    outcomes = Counter(word for word in listed.split() if word in ("judged", "solved"))
    assert outcomes["judged"] == 4
    assert here("runs", "check", LEDGER).code == 0
    with closing(open_ledger(LEDGER, read_only=True)) as ledger:
        totals = Counter(each.outcome for each in ledger.searches())
    assert totals == {"judged": 4, "solved": 1}
    again = here("solve", *ARGUMENTS, "--base-url", "http://127.0.0.1:1")
    assert "judged, not verified, because the check errs: 4 answers" in again.out
    assert here("runs", "export", LEDGER, "--out", "exported.csv").code == 0
    compared = here("compare", "exported.csv", "--policy", "verify-all", "--unlabelled", "fail")
    assert "labels by a check that errs, judged and not verified:" in compared.out
    # A judge labels a log, each candidate once, and the log says so.
    assert collected.code == 0, collected
    with Path("log.csv").open(encoding="utf-8") as file:
        labels = {row["problem"]: row["labels"] for row in csv.DictReader(file)}
    assert labels == {**{f"p{number}": "judged" for number in range(4)}, "sure": ""}


@pytest.mark.slow
def test_a_run_that_goes_on_pays_no_judge_again() -> None:
    world = World(right=0.2, false_pass=0.2)
    with FakeOpenai(world) as server:
        record = {"kind": "judge", "model": "openai:fake", "url": server.url, "temperature": 1}
        write(3, {**record, "errors": {"false_pass": 0.2}})
        first = solve(server)
        Path("answers.jsonl").unlink()
        calls = world.calls.total()
        assert solve(server) == first
        assert world.calls.total() == calls


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "nobody knows how often it errs"),
        ({"errors": {"false_pass": 0.1}}, "at temperature 0 it repeats its verdict"),
        ({"errors": {"false_pass": 2}, "temperature": 1}, "false_pass must be from 0 up to 1"),
        ({"errors": {"flase_pass": 0.1}, "temperature": 1}, "errors.flase_pass: no such field"),
        ({"errors": {"false_pass": 0.1}, "repeat": 3}, "repeat does not go with errors"),
        ({"errors": {}, "calibration": "x"}, "give errors or a calibration, not both"),
        ({"calibration": "missing.json"}, "missing.json"),
        ({"calibration": "/dev/zero"}, "below the current folder"),
        ({"calibration": "../other.json"}, "below the current folder"),
    ],
)
def test_a_judge_whose_errors_are_unknown_decides_nothing(more: dict[str, Any], said: str) -> None:
    write(1, {"kind": "judge", "model": "openai:fake", "url": "http://127.0.0.1:1", **more})
    ran = here(
        "solve",
        "problems.jsonl",
        "--generator",
        "openai:fake",
        "--base-url",
        "http://127.0.0.1:1",
        "--allow-commands",
        "--costs",
        "1,2",
        "--budget",
        50,
        "--out",
        "answers.jsonl",
    )
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_in_front_of_a_surer_check_a_judge_needs_no_calibration() -> None:
    world = World(right=0.3, false_pass=0.5)
    with FakeOpenai(world) as server:
        judge = {"kind": "judge", "model": "openai:fake", "url": server.url}
        sure = {"kind": "text", "contains_all": ["right"]}
        write(4, {"kind": "first", "checks": [judge, sure]})
        answers = solve(server)
    assert {each["answer_status"] for each in answers} == {"verified"}
    assert all(each["answer"].startswith("right") for each in answers)


@pytest.mark.slow
def test_a_flaky_check_needs_as_many_passes_as_its_errors_say() -> None:
    """The check passes everything, so the number of calls is the number of passes needed."""
    Path("check.sh").write_text("#!/bin/sh\ncat > /dev/null\necho x >> calls\n", encoding="utf-8")
    Path("check.sh").chmod(0o755)
    errors = {"false_pass": 0.1}
    with FakeOpenai(World(right=1.0, false_pass=0.0)) as server:
        write(1, {"kind": "command", "argv": ["./check.sh"], "errors": errors})
        (answer,) = solve(server, "--wrong", 0.001)
    assert answer["answer_status"] == "judged"
    assert len(Path("calls").read_text(encoding="utf-8").split()) == 4
