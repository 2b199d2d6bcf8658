"""Candidates that cannot pass: not verified, not billed, and said so everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from grv import Log
from grv.core.values import REFUTED, Generated
from grv.learning.ledger_history import ledger_past
from grv.ledger.entries import Found, Scored, Told
from grv.ledger.sqlite import SqliteLedger
from support.commands import here
from support.servers import FaultyServer, Received

CHECK = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
TEXTS = ["def f(x): return (", "def g(x): return x + 1", "def f(x): return x", "I refuse."]
RIGHT = "def f(x): return x + 1"


def text(request: Received, seed: int) -> str:
    return RIGHT if seed % 29 == 7 else TEXTS[seed % 4]


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer(text=text) as running:
        yield running


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    record = {"problem": "p", "prompt": "Add one.", "check": CHECK}
    (tmp_path / "problems.jsonl").write_text(json.dumps(record) + "\n")
    return tmp_path / "problems.jsonl"


def live(command: str, problems: Path, server: FaultyServer, out: Path, *more: object) -> str:
    where = ["--base-url", server.url, "--out", out, "--score", "length"]
    ran = here(command, problems, "--generator", "openai:m", *where, "--workers", 1, *more)
    assert ran.code == 0, ran.err
    return ran.out


@pytest.mark.slow
def test_a_live_search_neither_verifies_nor_bills_them_and_says_so(
    problems: Path, server: FaultyServer, tmp_path: Path
) -> None:
    out = tmp_path / "answers.jsonl"

    said = live("solve", problems, server, out, "--policy", "verify-all")

    answer = json.loads(out.read_text())
    (search,) = SqliteLedger(f"{out}.ledger", read_only=True).searches()
    entries = SqliteLedger(f"{out}.ledger", read_only=True).read(search.id)
    refuted = [each for each in entries if isinstance(each, Scored) and each.key == REFUTED]
    verified = {each.candidate for each in entries if isinstance(each, Found)}
    assert refuted
    assert not verified & {each.candidate for each in refuted}
    assert answer["answer"] == RIGHT
    assert answer["refuted"] == len(refuted)
    assert answer["cost"] == answer["generated"] + 10 * answer["verified"]
    assert f"refuted without verification: {len(refuted)} candidates" in said
    events = [each.event for each in entries if isinstance(each, Told)]
    told = sum(each.keys.count(REFUTED) for each in events if isinstance(each, Generated))
    assert told == len(refuted)

    shown = here("runs", "show", f"{out}.ledger", "p").out
    assert "refuted without verification: does not parse: line 1: '(' was never closed" in shown
    assert "refuted without verification: does not define f" in shown
    assert f"neither verified nor billed: {len(refuted)}" in shown
    assert here("runs", "check", f"{out}.ledger").code == 0


@pytest.mark.slow
def test_an_option_turns_it_off(problems: Path, server: FaultyServer, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    said = live("solve", problems, server, out, "--no-refute", "--policy", "verify-all")
    answer = json.loads(out.read_text())
    assert answer["refuted"] == 0
    assert "refuted" not in said
    assert "failed: syntax error" in here("runs", "show", f"{out}.ledger", "p").out


@pytest.mark.slow
def test_a_search_that_continues_keeps_the_keys_on_record(
    problems: Path, server: FaultyServer, tmp_path: Path
) -> None:
    out = tmp_path / "answers.jsonl"
    live("solve", problems, server, out, "--no-refute", "--policy", "verify-all")
    before = json.loads(out.read_text())
    out.unlink()
    live("solve", problems, server, out, "--policy", "verify-all")
    assert json.loads(out.read_text()) == before


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_collected_log_has_the_column_and_no_row_verifies_them(
    problems: Path, server: FaultyServer, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"log{ending}"

    said = live("collect", problems, server, out, "-n", 40)

    (problem,) = Log.load(out).problems
    assert problem.refuted is not None
    assert problem.keys is not None
    count = int(problem.refuted.sum())
    assert 0 < count < 40
    assert f"{count} were refuted without verification" in said
    assert not problem.passed[problem.refuted].any()
    assert (problem.keys[problem.refuted] == -1).all()
    (search,) = SqliteLedger(f"{out}.ledger", read_only=True).searches()
    entries = SqliteLedger(f"{out}.ledger", read_only=True).read(search.id)
    verified = {each.candidate for each in entries if isinstance(each, Found)}
    assert not any(problem.refuted[id] for id in verified)

    compared = here("compare", out, "--policy", "verify-all", "--policy", "fixed(40, 40)")
    assert f"refuted without verification, which no row verifies: {count}" in compared.out
    page = tmp_path / "page.html"
    assert here("report", out, "--out", page).code == 0
    assert f"{count} refuted without verification" in page.read_text()


def test_a_sample_stays_fair_only_chosen_candidates_have_a_label(
    problems: Path, server: FaultyServer, tmp_path: Path
) -> None:
    out = tmp_path / "log.jsonl"
    live("collect", problems, server, out, "-n", 40, "--verify", 10)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(row["passed"] is not None for row in rows) == 10
    assert any(row["refuted"] for row in rows)
    assert all(row["passed"] is False for row in rows if row["refuted"])


@pytest.mark.slow
def test_an_exported_ledger_has_the_column(
    problems: Path, server: FaultyServer, tmp_path: Path
) -> None:
    out = tmp_path / "answers.jsonl"
    live("solve", problems, server, out, "--policy", "verify-all")
    assert here("runs", "export", f"{out}.ledger", "--out", tmp_path / "log.csv").code == 0
    (problem,) = Log.load(tmp_path / "log.csv", unlabelled="fail").problems
    assert problem.refuted is not None
    assert problem.refuted.sum() == json.loads(out.read_text())["refuted"]
    (history,), _ = ledger_past(f"{out}.ledger", None)
    assert history.refuted is not None
    assert history.refuted.tolist() == problem.refuted.tolist()
    assert history.labelled[history.refuted].all()
    assert not history.verified[history.refuted].any()


def test_labels_say_it_and_become_a_log_that_knows_it(tmp_path: Path) -> None:
    file, labels, log = (tmp_path / name for name in ("in.jsonl", "labels.jsonl", "log.csv"))
    record = {"problem": "p", "check": CHECK, "candidates": [*TEXTS, RIGHT]}
    file.write_text(json.dumps(record) + "\n")
    scores = [{"problem": "p", "candidate": i, "score": i} for i in range(5)]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(each) + "\n" for each in scores))

    ran = here("verify", file, "--out", labels, "--workers", 1)

    assert "2 verified in" in ran.out
    assert "3 refuted without verification" in ran.out
    found = [json.loads(line) for line in labels.read_text().splitlines()]
    assert sum(label["reason"].startswith("refuted: does not ") for label in found) == 3
    assert here("convert", labels, tmp_path / "scores.jsonl", "--out", log).code == 0
    (problem,) = Log.load(log).problems
    assert problem.refuted is not None
    assert problem.refuted.tolist() == [True, True, False, True, False]
