"""`grv doctor --problems`: which problems are worth paying a model for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grv.backends.problems.files import Example
from grv.backends.problems.soundness import examine
from grv.backends.protocols import Problem
from grv.backends.verifiers.pool import CheckVerifier
from support.commands import here


def lines(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def record(name: str, check: dict[str, Any], *solutions: str) -> dict[str, Any]:
    return {"problem": name, "prompt": "?", "check": check, "solutions": [*solutions]}


DOUBLE = {"kind": "stdin", "tests": [{"input": "2\n", "output": "4\n"}]}
RIGHT = "print(2 * int(input()))"


@pytest.mark.slow
def test_the_table_has_the_unsound_problems_and_the_file_has_all(tmp_path: Path) -> None:
    function = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
    silent = {"kind": "stdin", "tests": [{"input": "2\n", "output": ""}]}
    file = lines(
        tmp_path / "problems.jsonl",
        record("good", DOUBLE, RIGHT, "x = int(input())\nprint(x + x)"),
        record("half", {"kind": "math", "answer": "\\frac{1}{2}"}),
        record("wrong", DOUBLE, RIGHT, "print(5)"),
        record("silent", silent, "pass"),
        record("bare", function),
        record("person", {"kind": "human", "question": "Is it good?"}),
    )
    saved = tmp_path / "sound.json"
    ran = here("doctor", "--problems", file, "--workers", "1", "--json", saved)
    assert ran.code == 1
    rows = {row["problem"]: row for row in json.loads(saved.read_text())}
    assert all(row.keys() == {"problem", "sound", "reason"} for row in rows.values())
    found = {name: row["sound"] for name, row in rows.items()}
    assert found == {
        "good": True,
        "half": True,
        "wrong": False,
        "silent": False,
        "bare": None,
        "person": None,
    }
    assert rows["wrong"]["reason"] == "solution 2 failed (wrong answer)"
    assert "passed" in rows["silent"]["reason"]
    shown = ran.out.splitlines()
    assert shown[0].split() == ["not", "sound", "why"]
    assert [line.split()[0] for line in shown[1:3]] == ["wrong", "silent"]
    assert "6 problems: 2 sound, 2 not sound, 2 not known" in ran.out


def test_all_sound_is_exit_code_0(tmp_path: Path) -> None:
    file = lines(tmp_path / "problems.jsonl", record("half", {"kind": "math", "answer": "0.5"}))
    ran = here("doctor", "--problems", file)
    assert (ran.code, ran.err) == (0, "")
    assert "1 problem: 1 sound" in ran.out


@pytest.mark.slow
def test_a_verdict_that_changes_is_found(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"test -e {flag} && exit 1; grep -q right $0 && touch {flag}; grep -q right $0"
    check = {"kind": "command", "argv": ["sh", "-c", script, "{}"]}
    problem = Problem("p", "?", check)
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        (row,) = examine([Example(problem, ("right",))], verifier)
    assert row.sound is False
    assert row.reason.startswith("flaky: the solution passed")


@pytest.mark.slow
def test_commands_need_to_be_allowed(tmp_path: Path) -> None:
    check = {"kind": "command", "argv": ["grep", "-q", "hello", "{}"]}
    file = lines(tmp_path / "problems.jsonl", record("p", check, "hello"))
    ran = here("doctor", "--problems", file)
    assert ran.code == 2
    assert "--allow-commands" in ran.err
    assert here("doctor", "--problems", file, "--allow-commands").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--timeout", "3"), "need --problems FILE"),
        (("--json", "x.json"), "needs --generator SPEC, --problems FILE or --judge FILE"),
        (
            ("--problems", "p.jsonl", "--generator", "openai:m"),
            "give one of --generator, --problems and --judge",
        ),
        (("--problems", "nothing.jsonl"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    ran = here("doctor", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_wrong_solutions_are_named(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "p.jsonl",
        {"problem": "p", "prompt": "?", "check": DOUBLE, "solutions": "print(4)"},
    )
    ran = here("doctor", "--problems", file)
    assert ran.code == 2
    assert "'solutions' must be a list of texts" in ran.err
