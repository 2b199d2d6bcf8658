"""The value that a math check verified stands beside the text, wherever an answer is written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("mpmath")

from grv.ledger.sqlite import SqliteLedger
from grv.serve.pages.one_search import search_data
from grv.serve.pages.store import Store
from support.commands import here, records
from support.servers import FaultyServer, Received

TEXT = r"Twice this is 84, so the answer is $x=\boxed{42}$, and not 84."


@pytest.fixture
def solved(tmp_path: Path) -> Path:
    """The folder of a run with one solved problem."""

    def text(request: Received, seed: int) -> str:
        return TEXT if "easy" in request.prompt else r"So \boxed{41}."

    check = {"kind": "math", "answer": "42"}
    rows = [{"problem": name, "prompt": name, "check": check} for name in ("easy", "hopeless")]
    (tmp_path / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with FaultyServer(text=text) as server:
        ran = here(
            "solve",
            tmp_path / "problems.jsonl",
            "--generator",
            "openai:m",
            "--base-url",
            server.url,
            "--out",
            tmp_path / "out.jsonl",
            "--budget",
            40,
        )
    assert ran.code == 1
    return tmp_path


def test_the_file_of_answers_has_the_value_that_was_verified(solved: Path) -> None:
    answers = {record["problem"]: record for record in records(solved / "out.jsonl")}
    assert answers["easy"]["answer"] == TEXT
    assert answers["easy"]["answer_value"] == "42"
    assert "answer_value" not in answers["hopeless"]  # nothing was verified


@pytest.mark.slow
def test_exports_have_the_value(solved: Path) -> None:
    ledger = solved / "out.jsonl.ledger"
    assert here("runs", "export", ledger, "--out", solved / "log.csv").code == 0
    with (solved / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["answer_value"] for row in rows if row["passed"] in {"1", "True", "true"}} == {"42"}
    training = ["--out", solved / "train.jsonl", "--format", "sft"]
    assert here("runs", "export", ledger, *training).code == 0
    (line,) = records(solved / "train.jsonl")
    assert (line["completion"], line["answer_value"]) == (TEXT, "42")


@pytest.mark.slow
def test_the_search_and_its_page_show_the_value(solved: Path) -> None:
    ledger = solved / "out.jsonl.ledger"
    said = here("runs", "show", ledger, "easy").out
    assert "answer_value: 42" in said
    store = Store(SqliteLedger(ledger, read_only=True))
    names = [
        json.loads(line) for line in here("runs", "show", ledger, "easy", "--json").out.splitlines()
    ]
    listed = store.one(names[0]["id"])
    assert listed is not None
    shown = search_data(listed, *store.entries(names[0]["id"]))
    assert shown["candidates"][shown["answer"]]["answer_value"] == "42"
