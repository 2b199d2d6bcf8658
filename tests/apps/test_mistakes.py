"""Typical mistakes of a first hour: the user sees one line that says what to do."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from support.commands import here, refuses
from support.servers import FaultyServer, Status

LIVE = ["--base-url", "http://localhost:1/v1", "--out", "answers.jsonl", "--budget", "50"]
SOLVE = ["solve", "problems.jsonl", "--generator", "openai:m", *LIVE]


def write(record: dict[str, Any]) -> None:
    Path("problems.jsonl").write_text(json.dumps(record) + "\n")


def problem(**changes: Any) -> dict[str, Any]:
    check = {"kind": "math", "answer": "42"}
    return {"problem": "p", "prompt": "What is 6 times 7?", "check": check} | changes


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log and a file of problems."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    sample = (resources.files("grv") / "data" / "sample.csv").read_text()
    Path("log.csv").write_text(sample[: sample.index("humaneval-0002")])
    write(problem())
    return tmp_path


# What the user types, and the part of the message that says what to do.
MISTAKES = {
    "a misspelt command": (["comapre", "log.csv"], "Did you mean 'compare'?"),
    "a misspelt option": (["compare", "log.csv", "--polcy", "default"], "--policy"),
    "a misspelt policy": (["compare", "log.csv", "--policy", "adaptve"], "did you mean 'adaptive'"),
    "a misspelt file": (["compare", "lgo.csv"], "did you mean log.csv?"),
    "a misspelt score": ([*SOLVE, "--score", "logprobs"], "did you mean logprob?"),
    "a score that the log does not have": (
        ["compare", "log.csv", "--score", "reward"],
        "no score 'reward'; there are 'score'",
    ),
    "costs with a colon": (["compare", "log.csv", "--costs", "1:10"], "as in 1,10"),
    "problems instead of a log": (["compare", "problems.jsonl"], "grv collect makes a log"),
    "a log instead of problems": (["solve", "log.csv", *SOLVE[2:]], "problems are JSON lines"),
    "the answers instead of the ledger": (
        ["runs", "list", "answers.jsonl"],
        "did you mean answers.jsonl.ledger?",
    ),
    "a model without its kind": (
        ["solve", "problems.jsonl", "--generator", "gpt-4", *LIVE],
        "there are: openai:MODEL",
    ),
    "no output": (["solve", "problems.jsonl", "--generator", "openai:m"], "--out FILE is required"),
    "an output that is an input": (
        ["solve", "problems.jsonl", "--generator", "openai:m", "--out", "problems.jsonl"],
        "choose another name",
    ),
    "an address without a scheme": (
        [*SOLVE, "--base-url", "localhost:8000"],
        "write http://",
    ),
    "keys that the log does not have": (["compare", "log.csv", "--keys"], "leave out --keys"),
    "a prior with another ending": (["learn", "log.csv", "-o", "prior"], "ends in .json"),
    "candidates missing": (
        ["verify", "problems.jsonl", "--out", "verdicts.jsonl"],
        "no field 'candidates'; a line has problem, check, candidates",
    ),
}


@pytest.mark.parametrize(("words", "advice"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_command_is_one_line(words: list[str], advice: str) -> None:
    Path("answers.jsonl").write_text("{}\n")
    Path("answers.jsonl.ledger").touch()
    assert advice in refuses(words)


CHECKS = {
    "a misspelt check": ({"problem": "p", "prompt": "?", "chekc": {}}, "did you mean check?"),
    "a misspelt prompt": ({"problem": "p", "promt": "?", "check": {}}, "did you mean prompt?"),
    "a misspelt question": (problem(qestion="?"), "did you mean question?"),
    "no check": ({"problem": "p", "prompt": "?"}, "a problem has problem, prompt, check"),
    "a misspelt kind": (problem(check={"kind": "maht"}), "did you mean math?"),
    "a misspelt field kind": (problem(check={"knid": "math"}), "did you mean kind?"),
    "a misspelt answer": (
        problem(check={"kind": "math", "anwser": "42"}),
        "did you mean answer?",
    ),
    "a misspelt limit": (
        problem(check={"kind": "math", "answer": "42", "limits": {"second": 1}}),
        "did you mean seconds?",
    ),
    "a misspelt output": (
        problem(check={"kind": "stdin", "tests": [{"input": "", "ouput": "1"}]}),
        "did you mean output?",
    ),
    "a command as one text": (
        problem(check={"kind": "command", "argv": "grep 42"}),
        "argv must be a list of strings",
    ),
}


@pytest.mark.parametrize(("record", "advice"), CHECKS.values(), ids=CHECKS)
def test_a_mistake_in_a_file_of_problems_is_one_line(record: dict[str, Any], advice: str) -> None:
    write(record)
    message = refuses([*SOLVE, "--allow-commands"], advice)
    assert message.startswith(("problems.jsonl:1: ", "problem p, "))


def test_fields_of_the_users_own_are_allowed() -> None:
    """Only what resembles a field that is missing is a misspelling."""
    write(problem(problem_id=3, level="hard", mode="x", source_code="", answer="42"))
    ran = here(*SOLVE, "--dry-run")
    assert (ran.code, ran.err) == (0, "")


FAULTS = {
    "a wrong key": (Status(401), "check the key in OPENAI_API_KEY"),
    "an unknown model": (Status(404), "check the name of the model and the address"),
    "another kind of server": (Status(501), "check the address of the server"),
}


@pytest.mark.parametrize(("status", "advice"), FAULTS.values(), ids=FAULTS)
def test_a_server_that_can_never_answer_stops_the_run(status: Status, advice: str) -> None:
    with FaultyServer(lambda _: status) as server:
        ran = here(*SOLVE, "--base-url", server.url)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert advice in ran.err


@pytest.mark.parametrize("words", [["compare", "log.csv", "--json"], ["solve", "--budget"]])
def test_an_option_without_its_value_names_the_help_of_its_command(words: list[str]) -> None:
    refuses(words, f"(see grv {words[0]} --help)")
