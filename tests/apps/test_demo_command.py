"""`grv demo`: the embedded model at work, for real."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import pytest

from grv import Costs, Verdict
from grv.apps import cli
from grv.apps.demo import COSTS, OPTIONS
from grv.backends.problems.files import read_problems
from grv.backends.verifiers.pool import CheckVerifier
from grv.core.errors import UsageError
from grv.ledger.entries import Entry, Found, Made, Scored
from grv.ledger.sqlite import SqliteLedger
from grv.ledger.view import SearchView
from grv.logs.in_order import arrivals

GRV = [sys.executable, "-m", "grv"]
ROW = re.compile(r"^(.{15}) (solved|out of budget) +(\d+) +(\d+) +(\d+) +(> )?(\d+)  (.*)$")


@pytest.mark.slow
def test_a_few_problems_are_searched_live_and_every_figure_is_on_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "demo.ledger")

    assert cli.run(["demo", "--first", "2", "--ledger", place]) == 0

    out = capsys.readouterr().out
    rows = [found.groups() for found in map(ROW.match, out.splitlines()) if found]
    assert {row[0].strip() for row in rows} == {"17 + 25", "celsius"}
    ledger = SqliteLedger(place, read_only=True)
    summaries = {summary.problem: summary for summary in ledger.searches()}
    for name, outcome, generated, verified, cost, _, other, _ in rows:
        summary = summaries[name.strip()]
        assert (summary.outcome, summary.generated) == (outcome, int(generated))
        assert (summary.verified, summary.total) == (int(verified), float(cost))
        assert COSTS.of(int(generated), int(verified)) == int(cost) <= OPTIONS.spending.budget
        assert int(other) >= COSTS.of(1, 1)
    assert ledger.check() == []
    ledger.close()
    assert f"grv runs list {place}" in out
    assert f"of {len(rows)} solved in" in out

    before = recorded(place)
    assert cli.run(["demo", "--first", "2", "--ledger", place]) == 0  # nothing is paid for again
    again = capsys.readouterr().out
    assert sorted(filter(ROW.match, again.splitlines())) == sorted(
        filter(ROW.match, out.splitlines())
    )
    assert recorded(place) == before


def recorded(place: str) -> dict[str, list[Entry]]:
    """All that a ledger holds."""
    ledger = SqliteLedger(place, read_only=True)
    found = {summary.id: list(ledger.read(summary.id)) for summary in ledger.searches()}
    ledger.close()
    return found


@pytest.mark.slow
def test_interrupted_it_says_where_to_go_on(tmp_path: Path) -> None:
    place = str(tmp_path / "demo.ledger")
    run = subprocess.Popen(
        [*GRV, "demo", "--ledger", place],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert run.stdout is not None
    while not run.stdout.readline().startswith("problem "):
        assert run.poll() is None, run.communicate()
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)

    assert run.returncode == 130, (out, err)
    assert f"To go on: grv demo --ledger {place}" in out
    assert "interrupted" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_every_problem_of_the_demo_has_a_sound_check() -> None:
    with resources.as_file(resources.files("grv") / "data" / "demo.jsonl") as path:
        problems = list(read_problems(str(path)))

    assert len(problems) == 12
    kinds = [problem.check["kind"] for problem in problems]
    assert kinds.count("function") == kinds.count("math") == 6
    with CheckVerifier(workers=1) as verifier:
        for problem in problems:
            verifier.prepare(problem)
            assert verifier.find(problem, "\n    return None").verdict is not Verdict.PASSED
            if problem.check["kind"] == "function":
                assert problem.prompt.endswith('"""')
                assert problem.check["prompt"] == problem.prompt


def test_without_a_sandbox_or_a_model_it_points_to_the_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Path:
        raise UsageError("the weights of the embedded model are not installed")

    monkeypatch.setattr("grv.backends.generators.embedded.weights", missing)

    assert cli.run(["demo"]) == 2
    assert "grv demo --replay needs no model" in capsys.readouterr().err


def entries(*texts: str, keys: tuple[str | None, ...] = ()) -> list[Entry]:
    made: list[Entry] = [Made(at, text) for at, text in enumerate(texts)]
    given = keys or (None,) * len(texts)
    return [*made, *(Scored(at, 0.0, key) for at, key in enumerate(given))]


def right(text: str) -> Verdict:
    return Verdict.PASSED if text == "right" else Verdict.FAILED


def test_verifying_as_they_came_stops_at_the_first_pass() -> None:
    told = [*entries("wrong", "right", "right"), Found(2, Verdict.PASSED)]

    found = arrivals(SearchView(told), Costs(1, 10), right)

    assert (found.bill.generated, found.bill.verified, found.bill.total) == (2, 2, 22)
    assert found.solved
    assert found.asked == 2


def test_where_none_passes_what_is_known_is_a_lower_bound() -> None:
    told = entries("a", "b", keys=("same", "same"))
    found = arrivals(SearchView(told), Costs(1, 10), right)

    assert (found.bill.generated, found.bill.verified, found.solved) == (2, 1, False)


def test_verdicts_on_record_are_not_asked_for_again() -> None:
    told = [*entries("right"), Found(0, Verdict.FAILED)]

    assert arrivals(SearchView(told), Costs(1, 10), right).asked == 0


def test_the_problems_are_one_json_object_a_line() -> None:
    text = (resources.files("grv") / "data" / "demo.jsonl").read_text(encoding="utf-8")

    assert all(
        set(json.loads(line)) == {"problem", "prompt", "check"} for line in text.split("\n")[:-1]
    )
