"""Verifications in stages, live: none is paid twice, and a log has what each cost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

import grv
from grv.backends.callables import CallableScorer
from grv.backends.protocols import Draft, Problem
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.values import Measured
from grv.ledger.entries import Staged, from_text, kind_of, to_text
from grv.ledger.ledger import MemoryLedger
from grv.ledger.opening import open_ledger
from grv.logs.readers import read_log
from grv.policies import VerifyAll
from grv.replay.engine import replayed
from grv.runtime.collect import Collected, Collection, collect_many
from grv.runtime.executor import Backends
from grv.runtime.export import exported
from grv.runtime.prices import Meter, Prices

CHEAP = "open('runs', 'a').write('x')\n"
SLOW = """
import os
import time

open('begun', 'a').close()
until = time.monotonic() + 30
while not os.path.exists('go') and time.monotonic() < until:
    time.sleep(0.02)
"""
SOLVE = """
import sys
import grv
from grv.core.values import Measured
from grv.runtime.prices import Meter, Prices

def command(script, cost):
    return {"kind": "command", "argv": [sys.executable, script], "cost": cost}

checks = [command("cheap.py", 0.01), command("slow.py", 1.0)]
problem = grv.Problem("p", "prompt", {"kind": "first", "checks": checks})
with grv.verifiers.Checks(workers=1, allow_commands=True) as verifier:
    solution = grv.solve_now(
        problem,
        generator=lambda p: "text",
        scorer=lambda p, t: 0.0,
        verifier=verifier,
        ledger="run.ledger",
        budget=1000,
        costs=Measured(0.5, 1.0),
        meter=Meter(Prices(other={"generate_call": 0.5})),
        most=(0.5, 2.0),
    )
print(solution.verified, solution.bill.total)
"""


@pytest.mark.slow
def test_a_stage_that_was_paid_for_is_not_paid_for_again_after_a_kill(tmp_path: Path) -> None:
    for name, text in (("cheap.py", CHEAP), ("slow.py", SLOW), ("solve.py", SOLVE)):
        (tmp_path / name).write_text(text)
    first = subprocess.Popen([sys.executable, "solve.py"], cwd=tmp_path, start_new_session=True)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert (tmp_path / "runs").read_text() == "x"
    (tmp_path / "go").touch()
    second = subprocess.run(
        [sys.executable, "solve.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert second.stdout == f"True {0.5 + 0.01 + 1.0}\n"
    assert (tmp_path / "runs").read_text() == "x"
    ledger = open_ledger(str(tmp_path / "run.ledger"))
    with contextlib.closing(ledger):
        (summary,) = ledger.searches()
        kinds = [kind_of(entry) for entry in ledger.read(summary.id)]
        (row,) = json.loads(exported(ledger).columns["stage_costs"][0])[:1]
    assert kinds.count("staged") == 1
    assert row == ["command", 0.01]


def test_the_entry_of_a_stage_can_be_read_again() -> None:
    stage = {"check": "judge", "verdict": "passed", "seconds": 0.5, "cost": 0.1}
    entry = Staged(3, "judge, run 0", stage, {"a": [1]})
    assert from_text("staged", to_text(entry)) == entry


TESTS = [{"input": str(number), "output": str(number)} for number in range(3)]
CHECK = {"kind": "stdin", "tests": TESTS}
WRONG = "x = input()\nprint(9 if x == '2' else x)  # {}"
RIGHT = "print(input())"


class Listed:
    """Generates these texts, one after the other."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self._candidates = candidates

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
        return [Draft(text) for text in self._candidates[first : first + n]]


def texts() -> list[str]:
    return [WRONG.format(0), WRONG.format(1), RIGHT]


def collected(
    verifier: CheckVerifier, ledger: MemoryLedger, candidates: list[str], meter: Meter | None = None
) -> Collected:
    problem = Problem("p", "prompt", CHECK)
    backends = Backends(Listed(candidates), CallableScorer(lambda p, t: 0.0), verifier)
    found: list[Collected] = []
    collection = Collection(backends, len(candidates), meter=meter)

    async def run() -> None:
        await collect_many([problem], collection, ledger=ledger, done=found.append)

    anyio.run(run)
    return found[0]


def names(costs: str | None) -> list[str]:
    return [name for name, _ in json.loads(costs or "[]")]


@pytest.mark.slow
def test_a_log_has_the_stages_and_a_new_process_starts_from_them() -> None:
    ledger = MemoryLedger()
    with CheckVerifier(workers=1) as verifier:
        first = collected(verifier, ledger, texts()[:1]).rows[0]
    assert first.failed_stage == "test 2"
    assert names(first.stage_costs) == ["test 0", "test 1", "test 2"]
    with CheckVerifier(workers=1) as verifier:  # as another process would
        _, second, third = collected(verifier, ledger, texts()).rows
    assert (second.failed_stage, names(second.stage_costs)) == ("test 2", ["test 2"])
    assert (third.failed_stage, len(names(third.stage_costs))) == ("", 3)


@pytest.mark.slow
def test_in_file_order_nothing_is_learned() -> None:
    with CheckVerifier(workers=1, order_tests="file") as verifier:
        rows = collected(verifier, MemoryLedger(), texts()).rows
    assert [len(names(row.stage_costs)) for row in rows] == [3, 3, 3]


@pytest.mark.slow
def test_a_replay_costs_what_the_stages_cost_live(tmp_path: Path) -> None:
    meter = Meter(Prices(other={"verify_second": 1.0, "generate_call": 0.5}))
    with CheckVerifier(workers=1) as verifier:
        rows = collected(verifier, MemoryLedger(), texts(), meter).rows
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for row in rows:
            record: dict[str, Any] = {"problem": "p", "score": 0.0, "generate_cost": 0.5}
            for name in ("candidate", "passed", "failed_stage", "stage_costs"):
                record[name] = getattr(row, name)
            file.write(json.dumps(record) + "\n")
    (problem,) = read_log(str(path)).problems
    outcome = replayed(VerifyAll(), problem, Measured(0.5, 1.0)).outcome
    assert outcome is not None
    live = sum((row.verify_cost or 0.0) + 0.5 for row in rows)
    assert outcome.bill.total == pytest.approx(live)
    assert [sum(cost for _, cost in json.loads(row.stage_costs or "")) for row in rows] == (
        pytest.approx([row.verify_cost for row in rows])
    )
    table = grv.compare(["verify-all"], str(path), Measured(0.5, 1.0), order_scheme="logged")
    assert table["verify-all"].cost == pytest.approx(live)
