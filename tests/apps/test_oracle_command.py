"""`grv oracle`: a line a problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grv.apps import cli
from grv.comparing.oracle_rows import oracle
from grv.core.values import Costs
from grv.logs.log import Log

TEXT = (
    "problem,candidate,passed,score\n"
    "a,0,0,1\na,1,1,3\na,2,0,2\na,3,1,3\n"
    "vain,0,0,1\n"
    "b,0,1,\nb,1,0,\n"
)


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(TEXT)
    return Log.load("log.csv")


def test_each_problem_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["oracle", "log.csv", "--costs", "1,10"]) == 0

    head, *lines, last = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "problem",
        "candidates",
        "pass",
        "rate",
        "tau*",
        "J*",
        "threshold",
        "J_t",
        "hindsight",
    ]
    # Of a's candidates half score 3, and all of these pass: (1 + 10/2) / (1/2).
    assert lines[0].split()[:7] == ["a", "4", "0.5000", "0.8333", "12.00", "3.0000", "12.00"]
    # Nothing is known of b's, so all are verified: (1 + 10) / (1/2), and there is no threshold.
    assert lines[1].split()[:7] == ["b", "2", "0.5000", "0.4545", "22.00", "-", "22.00"]
    assert lines[2].split() == ["vain", "1", "0.0000", *"-----"]
    assert last == "without a pass, and so without an optimum: 1 problem"


def test_the_numbers_can_be_saved(log: Log) -> None:
    arguments = ["--costs", "2,7", "--orders", "5", "--seed", "3", "--json", "out.json"]
    assert cli.run(["oracle", "log.csv", *arguments]) == 0

    saved = json.loads(Path("out.json").read_text())
    assert saved["costs"] == {"generate": 2, "verify": 7}
    assert saved["score"] == "score"
    rows = oracle(log, Costs(2, 7), orders=5, seed=3)
    assert [row["problem"] for row in saved["rows"]] == ["a", "b", "vain"]
    for read, row in zip(saved["rows"], rows, strict=True):
        assert read == {
            name: getattr(row, name)
            for name in (
                "problem",
                "candidates",
                "pass_rate",
                "tau",
                "optimum",
                "threshold",
                "threshold_cost",
                "hindsight",
            )
        }
