"""The part on trained scores: with texts, without, and of a ledger."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from grv.core.values import Verdict
from grv.ledger.entries import Ended, Entry, Found, Made, Scored, Started
from grv.ledger.sqlite import SqliteLedger
from grv.report.dataset import Dataset, Stages
from grv.report.inputs import read_sources
from grv.report.parts.trained import TRAINED, add_log
from grv.report.request import ReportRequest, SourceFile
from grv.report.rows import RowCollector
from grv.report.table import Table

WORDS = [f"word{i}" for i in range(20)]


def text(chance: random.Random, *, passed: bool) -> str:
    return " ".join(chance.sample(WORDS, 4) + ["good"] * (passed and chance.random() < 0.9))


def made(path: Path) -> Table:
    (source,) = read_sources([SourceFile(str(path))])
    assert source.log is not None
    rows = RowCollector()
    add_log(rows, Dataset(source.name, source.log, ReportRequest(), Stages(1, None), None))
    (table,) = rows.tables([TRAINED])
    return table


def write_log(path: Path, *, texts: bool) -> None:
    chance = random.Random(0)
    with path.open("w") as file:
        for at in range(15):
            for number in range(20):
                passed = number % 4 == at % 4
                record = {"problem": f"p{at}", "candidate": number, "passed": passed}
                record |= {"score": chance.random()}
                record |= {"text": text(chance, passed=passed)} if texts else {}
                file.write(json.dumps(record) + "\n")


@pytest.mark.slow
def test_a_trained_score_beside_that_of_the_log(tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", texts=True)

    own, trained = made(tmp_path / "log.jsonl").rows

    assert own[:3] == ("log", "score", 15)
    assert trained[:3] == ("log", "trained", 15)
    areas = [row[3] for row in (own, trained)]
    assert isinstance(areas[0], float)
    assert isinstance(areas[1], float)
    assert 0.4 < areas[0] < 0.6 < 0.75 < areas[1]


def test_without_texts_there_is_a_note(tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", texts=False)

    table = made(tmp_path / "log.jsonl")

    assert table.rows == ()
    assert table.notes == ("log: without texts, no score can be trained.",)


def test_a_ledger_is_judged_in_order_of_arrival(tmp_path: Path) -> None:
    path, chance = tmp_path / "runs.ledger", random.Random(1)
    ledger = SqliteLedger(path)
    for at in range(14):
        labels = [False] * (1 + at % 4) + [True]
        made_ = [Made(i, text(chance, passed=label)) for i, label in enumerate(labels)]
        scored = [Scored(i, chance.random()) for i in range(len(labels))]
        found = [
            Found(i, Verdict.PASSED if label else Verdict.FAILED) for i, label in enumerate(labels)
        ]
        end = Ended("solved", len(labels) - 1, len(labels), len(labels), 1.0)
        started = Started(f"p{at}", {"score": "judge"})
        entries: list[Entry] = [started, *made_, *scored, *found, end]
        ledger.append(f"s{at:02}", entries)
    ledger.close()

    (row,) = made(path).rows

    assert row[:3] == ("runs", "trained", 8), "the first six had no model"
