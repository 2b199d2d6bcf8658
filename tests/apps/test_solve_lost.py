"""`grv solve`, whose ledger or answers are deleted or replaced while it runs."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from grv.ledger.sqlite import SqliteLedger
from support.commands import Ran, ended, grv, start
from support.counting import CountingServer
from support.money import GENERATE, VERIFY, World, hold

pytestmark = pytest.mark.slow


def lines(ran: Ran) -> list[str]:
    """What a command says on stderr, without the line that a limit is missing."""
    return [line for line in ran.err.splitlines() if "no limit is set" not in line]


def test_a_ledger_that_is_deleted_stops_its_run_and_no_budget_is_spent_twice(
    tmp_path: Path,
) -> None:
    world, total = World(tmp_path), 40.0
    file = world.problems(["p0", "p1"])
    with CountingServer(right=lambda _: None, late=lambda _: 0.05) as server:
        command = world.command(server, file, "--total-budget", 4000, "--at-once", 1)
        process = start(*command)
        while len(server.received) < 5:
            time.sleep(0.01)
        for part in ("", "-wal", "-shm"):
            Path(f"{world.ledger}{part}").unlink()
        ran = ended(process)
        assert ran.code == 2, ran
        (said,) = lines(ran)
        assert "ledger: deleted, moved or replaced while this process used it" in said
        assert "ledger.saved-1; put the ledger back" in said
        served = server.served.total()
        assert served * GENERATE + world.checked() * VERIFY < 1000  # far from its budget
        Path(f"{world.ledger}.saved-1").rename(world.ledger)
        again = grv(*world.command(server, file, "--total-budget", total, "--at-once", 1))
        assert again.code == 1
        hold("ledger deleted, then put back", world, server)


def test_what_was_paid_in_a_run_leaves_out_other_processes(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.problems(["p0"], "first")
    second = world.problems(["p1"], "second")
    with CountingServer(right=lambda _: None, late=lambda _: 0.1) as server:
        one = start(*world.command(server, first, "--budget", 60, out="out1"))
        while not server.received:
            time.sleep(0.01)
        two = grv(*world.command(server, second, "--budget", 30, out="out2"))
        other = ended(one)
    paid = [
        float(found[1]) if (found := re.search(r"([\d.]+) paid in this run", ran.out)) else 0.0
        for ran in (other, two)
    ]
    assert sum(paid) == world.paid()
    assert 0 < paid[0] <= 60
    assert 0 < paid[1] <= 30


def test_a_reader_that_does_not_read_keeps_nothing_from_being_recorded_or_interrupted(
    tmp_path: Path,
) -> None:
    """The answers go to a pipe whose reader waits. Its buffer takes two of them."""
    own, problems, pipe = tmp_path / "own.py", tmp_path / "problems.jsonl", tmp_path / "pipe"
    own.write_text(
        "def generate(problem): return 'x' * 30_000 + problem.id\n"
        "def score(problem, text): return 0.0\n"
        "def verify(problem, text): return True\n"
    )
    lines = [json.dumps({"problem": f"p{at}", "prompt": ""}) for at in range(12)]
    problems.write_text("\n".join(lines) + "\n")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    ledger = tmp_path / "ledger"
    process = start(
        "solve",
        problems,
        "--generator",
        f"{own}:generate",
        "--score",
        f"{own}:score",
        "--verifier",
        f"{own}:verify",
        "--out",
        pipe,
        "--ledger",
        ledger,
        "--budget",
        50,
    )
    while process.poll() is None and solved(ledger) < 12:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    ran = ended(process)
    os.close(reader)
    assert ran.code == 130, ran
    assert "unfinished; run the same command again to continue" in ran.out


def solved(path: Path) -> int:
    """The searches that have ended with an answer, as another process sees it."""
    if not path.exists() or not path.stat().st_size:
        return 0
    with closing(SqliteLedger(path, read_only=True)) as ledger:
        return sum(search.outcome == "solved" for search in ledger.searches())
