"""What `grv solve` must survive, losing nothing and paying for nothing twice."""

from __future__ import annotations

import json
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.commands import Ran, grv, here, limited, records, without_outages, write_problems
from support.servers import (
    Cut,
    Drop,
    Empty,
    Fault,
    FaultyServer,
    Fewer,
    Hang,
    NoLogprobs,
    NotNumbers,
    Received,
    Say,
    Status,
)

pytestmark = pytest.mark.slow


def text(request: Received, seed: int) -> str:
    """Half of them pass, but for problems called hopeless."""
    right = seed % 2 and "hopeless" not in request.prompt
    return f"{request.prompt} {seed} {'right' if right else 'wrong'}"


def solve(folder: Path, server: FaultyServer, *more: object, **options: Any) -> Ran:
    """In a process of its own where there are `options` for one."""
    where = ["--base-url", server.url, "--out", folder / "out", "--first-pause", 0.02]
    where += ["--budget", 10**6]
    command = [
        "solve",
        folder / "problems",
        "--allow-commands",
        "--generator",
        "openai:m",
        *where,
        *more,
    ]
    return grv(*command, **options) if options else here(*command)


def asked_twice(server: FaultyServer, script: list[Fault | None]) -> int:
    """Requests for what a good answer had brought already."""
    good = server.received[len(script) :]
    return max(Counter((r.prompt, r.body.get("seed")) for r in good).values()) - 1


@pytest.mark.parametrize(
    "fault",
    [
        Status(429),
        Status(429, retry_after="0.05"),
        Status(500),
        Status(503, retry_after="0"),
        Drop(),
        Drop(midway=True),
        Cut(),
        Say(),
        Say("{}"),
        Say('{"choices": []}'),
        Say("null"),
    ],
    ids=str,
)
def test_five_faults_in_a_row_do_not_matter(tmp_path: Path, fault: Fault) -> None:
    write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
    script: list[Fault | None] = [fault] * 5
    with FaultyServer(script, text=text) as server:
        ran = solve(tmp_path, server, "--width", 1)
        assert (ran.code, without_outages(ran.err)) == (0, "")
        assert asked_twice(server, script) == 0
    (record,) = records(tmp_path / "out")
    assert (record["outcome"], record["unscored"]) == ("solved", 0)
    assert record["lost"] in ({}, {"generate": 5})  # possibly paid, unless certainly not
    assert max(Counter((tmp_path / "seen").read_text().splitlines()).values()) == 1


@pytest.mark.alone
def test_a_server_that_does_not_answer_is_given_up_in_time(tmp_path: Path) -> None:
    write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
    with FaultyServer([Hang(), Hang()], text=text) as server:
        ran = solve(tmp_path, server, "--call-timeout", 0.4)
        assert (ran.code, ran.err) == (0, "")
        assert len(server.received) >= 3


@pytest.mark.alone
def test_when_to_come_back_is_believed(tmp_path: Path) -> None:
    """The pause is the server's, not ours, which would be a minute."""
    write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
    with FaultyServer([Status(429, retry_after="0")] * 3, text=text) as server:
        assert solve(tmp_path, server, "--first-pause", 60, within=30).code == 0


@pytest.mark.parametrize("fault", [Fewer(1), Fewer(3)], ids=str)
def test_fewer_choices_than_asked_for_are_asked_to_be_more(tmp_path: Path, fault: Fault) -> None:
    write_problems(tmp_path / "problems", ["a", "hopeless"], seen=tmp_path / "seen")
    with FaultyServer(lambda _: fault, text=text) as server:
        ran = solve(tmp_path, server, "--budget", 40)
        assert (ran.code, ran.err) == (1, "")
        assert asked_twice(server, []) == 0
        again = solve(tmp_path, server, "--budget", 40)
        assert again.code == 1
    found = {record["problem"]: record for record in records(tmp_path / "out")}
    assert found["a"]["outcome"] == "solved"
    assert found["hopeless"]["outcome"] == "out of budget"
    assert all(record["lost"] == {} for record in found.values())


def test_a_server_that_refuses_several_choices_is_asked_for_one(tmp_path: Path) -> None:
    write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
    with FaultyServer(text=text, most=1) as server:
        assert solve(tmp_path, server).code == 0


@pytest.mark.parametrize("fault", [NoLogprobs(), NotNumbers()], ids=str)
def test_missing_log_probabilities_do_not_stop_the_default(tmp_path: Path, fault: Fault) -> None:
    write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
    with FaultyServer([fault], text=text) as server:
        ran = solve(tmp_path, server)
    (record,) = records(tmp_path / "out")
    assert (ran.code, record["outcome"], record["unscored"]) == (0, "solved", 0)
    assert ran.err.startswith("score: none yet; ")
    assert "\nscore: none\n" in ran.out


@pytest.mark.parametrize("fault", [Empty()], ids=str)
def test_what_cannot_be_scored_ranks_last_and_is_reported(tmp_path: Path, fault: Fault) -> None:
    write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
    with FaultyServer([fault], text=text) as server:
        ran = solve(tmp_path, server)
        assert ran.code == 0
    (record,) = records(tmp_path / "out")
    assert record["outcome"] == "solved"
    assert record["unscored"] > 0
    what = "have no text"
    assert (ran.err.count("\n"), ran.err.count(what), ran.out.count(what)) == (1, 1, 1)


@pytest.mark.parametrize("fault", [NotNumbers(), Status(500), Drop(), Fewer(0), Say()], ids=str)
def test_a_scorer_that_dies_does_not_stop_the_search(tmp_path: Path, fault: Fault) -> None:
    write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")

    often = ("--attempts", 2, "--patience", 0)

    def script(request: Received) -> Fault | None:
        return fault if request.path.endswith("/score") else None

    with FaultyServer(script, text=text) as server:
        ran = solve(tmp_path, server, "--score", f"score:{server.root}", *often)
        assert (ran.code, ran.err.count("have no score")) == (0, 1)
    (record,) = records(tmp_path / "out")
    assert record["outcome"] == "solved"
    assert record["unscored"] == record["generated"]


def test_a_verifier_that_dies_says_nothing_about_a_candidate(tmp_path: Path) -> None:
    """The verifier is killed, four times."""
    count = tmp_path / "count"
    script = f"echo >> {count}; [ $(wc -l < {count}) -gt 4 ] || kill -9 $$; grep -qw right {{}}"
    check = {"kind": "command", "argv": ["sh", "-c", script]}
    line = {"problem": "a", "prompt": "Solve a.", "check": check}
    (tmp_path / "problems").write_text(json.dumps(line) + "\n")
    with FaultyServer(text=text) as server:
        ran = solve(tmp_path, server, "--width", 1)
        assert (ran.code, ran.err) == (0, "")
    (record,) = records(tmp_path / "out")
    assert record["answer"].endswith("right")


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [(Status(500, message="burnt down"), 6), (Status(400, message="the prompt is too long"), 1)],
    ids=str,
)
def test_when_attempts_are_spent_the_problem_fails_and_the_others_go_on(
    tmp_path: Path, fault: Status, attempts: int
) -> None:
    write_problems(tmp_path / "problems", ["a", "bad", "c"], seen=tmp_path / "seen")
    down = [True]

    def script(request: Received) -> Fault | None:
        return fault if "bad" in request.prompt and down[0] else None

    with FaultyServer(script, text=text) as server:
        ran = solve(tmp_path, server, "--patience", 0, "--width", 1)
        assert ran.code == 1
        advice = "; shorten the prompt, or leave this problem out" if fault.code == 400 else ""
        said = f"grv: problem bad failed: status {fault.code}: {fault.message}{advice}\n"
        assert ran.err == said
        tried = Counter(r.body["seed"] for r in server.received if "bad" in r.prompt)
        assert set(tried.values()) == {attempts}
        found = {record["problem"]: record for record in records(tmp_path / "out")}
        assert [found[name]["outcome"] for name in ("a", "bad", "c")] == [
            "solved",
            "failed",
            "solved",
        ]
        assert fault.message in found["bad"]["message"]
        shown = here("runs", "show", tmp_path / "out.ledger", "bad")
        assert f"failed: status {fault.code}: {fault.message}" in shown.out
        down[0] = False
        assert solve(tmp_path, server).code == 0
    assert {record["outcome"] for record in records(tmp_path / "out")} == {"solved"}
    assert len(records(tmp_path / "out")) == 3


@pytest.mark.parametrize("size", [0, 20_000, 90_000, 120_000])
def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path, size: int) -> None:
    names = [f"p{i}" for i in range(8)]
    write_problems(tmp_path / "problems", names, seen=tmp_path / "seen")
    with FaultyServer(text=text) as server:
        ran = solve(tmp_path, server, before=limited(resource.RLIMIT_FSIZE, size))
        assert ran.code == 2
        assert ran.err.startswith("grv: ")
        assert ran.err.count("\n") == 1
        assert "bug in grv" not in ran.err
        assert solve(tmp_path, server).code == 0
        assert asked_twice(server, []) <= 1  # what was in flight cannot be written down
    assert sorted(record["problem"] for record in records(tmp_path / "out")) == names
    assert here("runs", "check", tmp_path / "out.ledger").out.startswith("all is well\n")


def test_a_missing_checker_fails_the_search_and_the_next_run_asks_again(tmp_path: Path) -> None:
    checker = tmp_path / "checker"
    check = {"kind": "command", "argv": [str(checker), "{}"]}
    problem = {"problem": "a", "prompt": "Solve a.", "check": check}
    (tmp_path / "problems").write_text(json.dumps(problem) + "\n")
    with FaultyServer(text=text) as server:
        ran = solve(tmp_path, server, "--budget", 1000, "--policy", "verify-all", "--width", 1)
        assert ran.code == 1
        (answer,) = records(tmp_path / "out")
        assert answer["outcome"] == "failed"
        assert answer["message"].startswith("3 broken verdicts in a row: ")
        assert answer["verified"] == 3

        checker.write_text('#!/bin/sh\ngrep -qw right "$1"\n')
        checker.chmod(0o755)
        served = len(server.received)
        again = ["--budget", 1000, "--policy", "verify-all", "--width", 1]
        assert solve(tmp_path, server, *again).code == 0
        (answer,) = records(tmp_path / "out")
        assert (answer["outcome"], answer["answer_verified"]) == ("solved", True)
        assert len(server.received) == served  # the right one was among those three


def test_a_wrong_program_never_shares_the_pass_of_its_twin(tmp_path: Path) -> None:
    """They differ in a comment, which the right one reads in its source; their keys are equal."""
    body = "    return x + 1 if 'ri' 'ght' in open(__file__).read() else x\n"
    right, wrong = (f"def f(x):  # {word}\n{body}" for word in ("right", "wrong"))
    check = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
    problem = {"problem": "a", "prompt": "Solve a.", "check": check}
    (tmp_path / "problems").write_text(json.dumps(problem) + "\n")
    with FaultyServer(text=lambda request, seed: right if seed % 2 else wrong) as server:
        where = ["--generator", "openai:m", "--base-url", server.url, "--score", "length"]
        log, ledger = tmp_path / "log.jsonl", tmp_path / "log.jsonl.ledger"
        ran = here("collect", tmp_path / "problems", *where, "-n", 6, "--out", log)
        assert ran.code == 0, ran.err
    rows = {row["candidate"]: row for row in records(log)}
    assert len({row["key"] for row in rows.values()}) == 1
    assert [rows[i]["passed"] for i in range(6)] == [i % 2 == 0 for i in range(6)]

    exported = tmp_path / "exported.jsonl"
    assert here("runs", "export", ledger, "--out", exported).code == 0
    labels = {row["candidate"]: row["passed"] for row in records(exported)}
    assert labels == {i: i % 2 == 0 for i in range(6)}
    compared = here("compare", log, "--keys", "--policy", "verify-all")
    assert compared.code == 0, compared.err
    assert "keys with both labels" in compared.out
