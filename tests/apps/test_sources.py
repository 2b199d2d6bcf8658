"""What a report can be made on: logs, ledgers and saved comparisons, under names of their own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from grv.comparing.compare import compare
from grv.core.errors import LogError, UsageError
from grv.core.values import Costs
from grv.logs.converting import write_log
from grv.logs.log import Log
from grv.logs.reading_options import Reading, Unlabelled
from grv.report.build import make_report
from grv.report.inputs import read_sources
from grv.report.request import ReportRequest, SourceFile

LEDGER = Path(__file__).parents[1] / "assets" / "ledger-1.sqlite"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    columns: dict[str, list[Any]] = {
        "problem": ["a", "a", "b", "b"],
        "candidate": [0, 1, 0, 1],
        "passed": [True, False, False, True],
        "score_x": [1.0, 0.5, 0.2, 0.1],
        "score_y": [0.0, 0.5, 0.2, 0.9],
    }
    write_log(columns, str(tmp_path / "log.jsonl"))
    return tmp_path / "log.jsonl"


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A copy, as a reader of a ledger leaves files beside it."""
    return str(shutil.copy(LEDGER, tmp_path))


def test_a_log_is_read_as_compare_reads_it(log: Path) -> None:
    (source,) = read_sources([SourceFile(str(log), score="score_x")])
    assert (source.name, source.kind, source.warnings) == ("log", "log", ())
    assert source.facts().solvable == 2
    assert source.facts().score == "score_x"


def test_scores_of_one_log_are_told_apart(log: Path) -> None:
    given = [SourceFile(str(log), score="score_x"), SourceFile(str(log), score="score_y")]
    assert [source.name for source in read_sources(given)] == ["log score_x", "log score_y"]
    with pytest.raises(UsageError, match="given twice"):
        read_sources([given[0], given[0]])


def test_a_name_can_be_given(log: Path) -> None:
    assert SourceFile.parse(f"mine={log}") == SourceFile(str(log), "mine")
    assert SourceFile.parse(str(log)) == SourceFile(str(log))
    with pytest.raises(UsageError, match="NAME=FILE"):
        SourceFile.parse("=x")


def test_a_saved_comparison_is_told_from_a_log(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    saved = compare(["adaptive"], Log.load(log, score="score_x"), Costs(1, 10), orders=2)
    saved.save(path)
    (source,) = read_sources([SourceFile(str(path))])
    assert source.kind == "comparison"
    assert make_report([source])["summary"].column("cost") == [saved.rows[0].cost]
    assert source.facts().candidates == 4
    lines = tmp_path / "log.json"
    lines.write_text(log.read_text())
    assert read_sources([SourceFile(str(lines), score="score_x")])[0].kind == "log"
    path.write_text(json.dumps({**saved.to_json(), "format": 9}))
    with pytest.raises(LogError, match="format 1"):
        read_sources([SourceFile(str(path))])


@pytest.mark.slow
def test_a_ledger_is_a_log_of_what_was_verified(ledger: str) -> None:
    (source,) = read_sources([SourceFile(ledger)])
    assert source.kind == "ledger"
    facts = source.facts()
    assert facts.candidates > 0
    assert ("never verified" in " ".join(source.warnings)) == (facts.unlabelled > 0)
    made = make_report([source], ReportRequest(orders=2, many_orders=2))
    assert all(table.rows or table.notes for table in made.tables)
    with pytest.raises(LogError, match="only one score, not 'other'"):
        read_sources([SourceFile(ledger, score="other")])


def test_files_are_named_in_job_files() -> None:
    given = SourceFile.parse({"name": "a", "path": "b.csv", "score": "s", "unlabelled": "drop"})
    assert given == SourceFile("b.csv", "a", "s", Reading(unlabelled=Unlabelled.DROP))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"name": "a"}, "path is required"),
        ({"path": 1}, "path 1: give text"),
        ({"path": "a", "scores": "x"}, "unknown option scores; did you mean score?"),
    ],
)
def test_a_mistake_in_a_job_file_is_told(record: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SourceFile.parse(record)
