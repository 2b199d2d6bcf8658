"""`grv solve --policy learning` and `grv compare --policy learning`, as commands."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from grv.ledger.entries import Started
from grv.ledger.sqlite import SqliteLedger
from support.commands import grv, here, kill, records, refuses, start
from support.learning import course

CODE = """
import hashlib

def number(*parts):
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=4).digest(), "big")

def generate(problem, count=[0]):
    count[0] += 1
    return f"{problem.id} {count[0]} {number(problem.id, count[0]) % 997}"

def score(problem, text):
    return float(verify(problem, text)) + number(text) % 100 / 40

def verify(problem, text):
    return number(problem.id, text) % 5 == 0
"""


def job(folder: Path, problems: int, *more: object) -> list[object]:
    """A command with the user's own code; every fifth candidate passes."""
    (folder / "my.py").write_text(CODE)
    lines = [{"problem": f"p{i}", "prompt": f"problem {i}"} for i in range(problems)]
    path = folder / "problems.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = [f"{folder}/my.py:{name}" for name in ("generate", "score", "verify")]
    roles = [("--generator", own[0]), ("--score", own[1]), ("--verifier", own[2])]
    flags = [word for pair in roles for word in pair]
    return ["solve", path, *flags, "--budget", 400, "--at-once", 1, *more]


@pytest.mark.slow
def test_without_a_policy_it_learns_and_says_so(tmp_path: Path) -> None:
    ran = here(*job(tmp_path, 9, "--out", tmp_path / "out"))

    assert ran.code == 0, ran.err
    assert "learned: the verdicts of earlier problems decided 3 of 9 problems\n" in ran.out
    cold = here(*job(tmp_path, 9, "--out", tmp_path / "cold", "--policy", "default"))
    assert "learned:" not in cold.out


@pytest.mark.slow
def test_a_second_run_starts_from_the_ledger_of_the_first(tmp_path: Path) -> None:
    here(*job(tmp_path, 7, "--out", tmp_path / "first"))
    old = tmp_path / "first.ledger"
    more = ["--out", tmp_path / "second", "--policy", f"learning('{old}')"]
    ran = here(*job(tmp_path, 3, *more))

    assert "decided 3 of 3 problems" in ran.out


@pytest.mark.slow
def test_a_job_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('[solve]\npolicy = "learning"\nat-once = 1\nbudget = 50\n')
    command = job(tmp_path, 7, "--out", tmp_path / "out")
    without = command[: command.index("--budget")]
    ran = here(*without, "--job", tmp_path / "job.toml", "--out", tmp_path / "out")

    assert "learned: the verdicts of earlier problems decided 1 of 7 problems" in ran.out


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("learning('missing.ledger')", "missing.ledger: no such ledger"),
        ("learning(3)", "the history must be names of ledgers"),
        ("learning(prior='x')", "unknown parameter of learning 'prior'"),
    ],
)
def test_a_bad_history_is_an_error_of_one_line(tmp_path: Path, policy: str, words: str) -> None:
    refuses(job(tmp_path, 1, "--out", tmp_path / "out", "--policy", policy), words)


def test_a_history_of_another_score_is_refused_before_any_work(tmp_path: Path) -> None:
    here(*job(tmp_path, 1, "--out", tmp_path / "first"))
    command = job(tmp_path, 1, "--out", tmp_path / "out")
    command[command.index("--score") + 1] = "length"
    policy = f"learning('{tmp_path}/first.ledger')"

    refuses([*command, "--policy", policy], "no score 'length'; there are 'my.py:score'")
    assert not (tmp_path / "out.ledger").exists()


@pytest.mark.slow
def test_a_comparison_has_the_cost_by_position(tmp_path: Path) -> None:
    log, table = tmp_path / "log.csv", tmp_path / "table.json"
    chance = random.Random(1)
    lines = ["problem,candidate,passed,score"]
    for problem in range(8):
        for candidate in range(20):
            passed = candidate == problem or chance.random() < 0.1
            lines.append(f"p{problem},{candidate},{int(passed)},{chance.random() + passed:.6f}")
    log.write_text("\n".join(lines) + "\n")
    ran = here("compare", log, "--policy", "learning", "--orders", 2, "--json", table)

    assert ran.code == 0, ran.err
    rows: list[dict[str, Any]] = json.loads(table.read_text())["rows"]
    assert [row["policy"] for row in rows] == ["learning", "varied"]
    assert all(len(row["cost_by_position"]) == 8 for row in rows)


@pytest.mark.soak
def test_a_real_model_killed_and_continued_takes_the_same_course(tmp_path: Path) -> None:
    """One problem at a time, with the embedded model."""
    problems = tmp_path / "problems.jsonl"
    lines = [
        {
            "problem": f"p{i}",
            "prompt": f"The next number after {i}, {i + 1}, {i + 2} is",
            "check": {"kind": "command", "argv": ["grep", "-q", str(i + 3), "{}"]},
        }
        for i in range(14)
    ]
    problems.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command: list[object] = ["solve", problems, "--generator", "embedded", "--max-tokens", 6]
    command += ["--budget", 60, "--costs", "1,5", "--at-once", 1, "--allow-commands"]
    whole = grv(*command, "--out", tmp_path / "whole", within=600)
    assert whole.code in (0, 1), whole.err
    chance = random.Random(2)
    for _ in range(4):
        process = start(*command, "--out", tmp_path / "parts")
        time.sleep(6 + 10 * chance.random())
        kill(process)
    grv(*command, "--out", tmp_path / "parts", within=600)

    both = [SqliteLedger(tmp_path / f"{name}.ledger") for name in ("whole", "parts")]
    priors = set()
    for record in records(tmp_path / "whole"):
        search = record["search"]
        assert course(both[0], search) == course(both[1], search)
        priors |= {each.prior for each in course(both[0], search) if isinstance(each, Started)}
    assert len(priors) > 2  # cold, and after at least two fits
    for ledger in both:
        ledger.close()
