"""Commands that a file of problems names: they run only if the user says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import Isolation
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.core.values import Verdict
from support.commands import Ran, here
from support.servers import FaultyServer

RIGHT = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose second problem runs a command, which leaves a mark."""
    monkeypatch.chdir(tmp_path)
    command = {"kind": "command", "argv": ["sh", "-c", "touch mark"]}
    write(("good", RIGHT), ("evil\x1b[2J", command))
    return tmp_path / "in.jsonl"


def write(*problems: tuple[str, dict[str, Any]]) -> None:
    lines = [
        {"problem": name, "prompt": "?", "check": check, "candidates": ["def f(x): return x + 1"]}
        for name, check in problems
    ]
    Path("in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def commands(server: FaultyServer) -> list[list[str]]:
    live = ["--generator", "openai:m", "--base-url", server.url, "--score", "length"]
    return [
        ["verify", "in.jsonl", "-o", "labels"],
        ["solve", "in.jsonl", *live, "--budget", "30", "-o", "answers"],
        ["collect", "in.jsonl", *live, "-n", "1", "-o", "log.csv"],
    ]


def refused(ran: Ran) -> str:
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert "\x1b" not in ran.err
    assert not Path("mark").exists()
    return ran.err


def test_without_the_flag_nothing_runs_and_nothing_is_paid() -> None:
    with FaultyServer() as server:
        for command in commands(server):
            said = refused(here(*command))
            assert "problem evil\\x1b[2J: its check runs the command ['sh', '-c', 'touch" in said
            assert "give --allow-commands" in said
        assert server.received == []
    assert not Path("labels").exists()


def test_strict_isolation_refuses_commands_even_with_the_flag() -> None:
    with FaultyServer() as server:
        for command in commands(server):
            said = refused(here(*command, "--allow-commands", "--isolation", "strict"))
            assert "which strict isolation forbids" in said
        assert server.received == []


@pytest.mark.slow
def test_with_the_flag_they_run_and_the_summary_names_them() -> None:
    with FaultyServer(text=lambda request, seed: "def f(x): return x + 1") as server:
        for command in commands(server):
            ran = here(*command, "--allow-commands")
            assert ran.code == 0, ran
            assert Path("mark").exists()
            assert "unprotected: ran the commands of checks with your rights: sh\n" in ran.out


def test_where_no_program_ran_no_isolation_is_claimed() -> None:
    write(("only", {"kind": "command", "argv": ["true"]}))
    ran = here("verify", "in.jsonl", "-o", "labels", "--allow-commands")
    assert "isolation not needed: no program was run" in ran.out
    assert "landlock" not in ran.out.lower()
    write(("sums", {"kind": "math", "answer": "5"}))
    ran = here("verify", "in.jsonl", "-o", "labels2")
    assert "unprotected" not in ran.out


@pytest.mark.slow
def test_unsafe_isolation_is_named_by_the_live_commands_too() -> None:
    write(("good", RIGHT))
    with FaultyServer(text=lambda request, seed: "def f(x): return x + 1") as server:
        for command in commands(server)[1:]:
            assert "isolation unsafe" in here(*command, "--isolation", "unsafe").out


@pytest.mark.slow
def test_a_job_file_is_the_users_word() -> None:
    with FaultyServer(text=lambda request, seed: "x") as server:
        Path("job.toml").write_text(
            f'problems = "in.jsonl"\ngenerator = "openai:m"\nbase-url = "{server.url}"\n'
            'score = "length"\nout = "answers"\nbudget = 30\n'
        )
        refused(here("solve", "--job", "job.toml"))
        with open("job.toml", "a") as file:
            file.write("allow-commands = true\n")
        assert here("solve", "--job", "job.toml").code == 1
    assert Path("mark").exists()


def test_the_same_from_python() -> None:
    problem = Problem("p", check={"kind": "command", "argv": ["true"]})
    with CheckVerifier(workers=1) as verifier, pytest.raises(UsageError, match="allow-commands"):
        verifier.find(problem, "x")
    with CheckVerifier(workers=1, allow_commands=True) as verifier:
        assert verifier.find(problem, "x").verdict is Verdict.PASSED
    strict = CheckVerifier(workers=1, isolation=Isolation.STRICT, allow_commands=True)
    with strict as verifier, pytest.raises(UsageError, match="strict isolation forbids"):
        verifier.find(problem, "x")
