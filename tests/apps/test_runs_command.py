"""`grv runs`: what a ledger holds; and that its replay is what happened."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from grv import Costs, Log
from grv.backends.generators.completions import seed_of
from grv.core.limits import Limits
from grv.core.values import Generated, Verdict, Verified, Verify
from grv.ledger.entries import Ended, Found, Made, Told
from grv.ledger.sqlite import SqliteLedger
from grv.policies import DEFAULT, spec
from grv.replay.engine import replayed
from support.commands import here as grv
from support.commands import kill, start, write_problems
from support.servers import FaultyServer, Received


def text(request: Received, seed: int) -> str:
    """Few different texts, so that there are equivalent ones; for some problems none passes."""
    name = request.prompt.removeprefix("Solve ").removesuffix(".")
    number = (seed - seed_of(0, name, 0)) * 7 % 23
    right = number == 11 and "hopeless" not in name
    return f"{name} {number} {'right' if right else 'wrong'}"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer(text=text) as running:
        yield running


def solve(folder: Path, server: FaultyServer, names: list[str], *more: object) -> Path:
    problems = write_problems(folder / "problems", names, seen=folder / "seen")
    where = ["--base-url", server.url, "--out", folder / "out"]
    ran = grv("solve", problems, "--allow-commands", "--generator", "openai:m", *where, *more)
    assert ran.code in (0, 1), ran.err
    return folder / "out.ledger"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory, server: FaultyServer) -> Path:
    """A run with an end of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    how = ["--budget", 200, "--costs", "1,4", "--no-overlap"]
    return solve(folder, server, ["a", "b", "hopeless"], *how)


@pytest.mark.slow
def test_list_has_a_line_for_each_search(ledger: Path) -> None:
    ran = grv("runs", "list", ledger)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].split() == [
        "search",
        "problem",
        "started",
        "outcome",
        "generated",
        "verified",
        "cost",
    ]
    assert len([line for line in lines if " solved " in line]) == 2
    assert len([line for line in lines if " out of budget " in line]) == 1
    assert lines[-1] == "3 searches: 2 solved, 1 out of budget"


def test_show_has_each_step_with_its_reason_and_the_end(ledger: Path) -> None:
    ran = grv("runs", "show", ledger, "a")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("a (")
    policy = f"policy {spec.spec(DEFAULT)}"
    for part in ("started: ", policy, "generated ", "verified ", "passed", "(", "cost"):
        assert part in ran.out
    assert any(line.strip().startswith("solved: ") for line in ran.out.splitlines()[-2:])
    search = ran.out.split("(")[1].split(")")[0]
    assert grv("runs", "show", ledger, search).out == ran.out


@pytest.mark.slow
def test_show_says_what_was_lost(tmp_path: Path) -> None:
    with FaultyServer(text=text, seconds=20) as slow:
        problems = write_problems(tmp_path / "problems", ["a"], seen=tmp_path / "seen")
        where = ["--base-url", slow.url, "--out", tmp_path / "out"]
        process = start("solve", problems, "--allow-commands", "--generator", "openai:m", *where)
        while not slow.received:
            assert process.poll() is None
        kill(process)
        asked = sum(request.body.get("n", 1) for request in slow.received)
    shown = grv("runs", "show", tmp_path / "out.ledger", "a")
    assert f"possibly paid, lost: {asked} generate" in shown.out
    listed = grv("runs", "list", tmp_path / "out.ledger").out
    assert re.search(r"stopped +0 +0", listed)


def test_check_says_that_all_is_well_or_what_is_not(ledger: Path, tmp_path: Path) -> None:
    said = "all is well\nthe seals are not keyed: they show damage, not forgery\n"
    assert grv("runs", "check", ledger).out == said
    copy = tmp_path / "copy"
    copy.write_bytes(ledger.read_bytes())
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("UPDATE entries SET body = replace(body, 'failed', 'passed') WHERE number > 5")
    ran = grv("runs", "check", copy)
    assert ran.code == 1
    assert "changed since it was written" in ran.out
    assert "problems found; grv runs repair" in ran.out.splitlines()[-1]


def test_export_is_a_log_for_compare(ledger: Path, tmp_path: Path) -> None:
    for suffix in ("parquet", "jsonl", "csv"):
        log = tmp_path / f"log.{suffix}"
        ran = grv("runs", "export", ledger, "--out", log)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"{log}: ")
        assert len(Log.load(log, unlabelled="fail").problems) == 3
    ran = grv("compare", log, "--orders", 2)
    assert (ran.code, ran.err) == (0, "")
    assert "This log is censored" in ran.out
    rows = list(csv.DictReader(log.read_text().splitlines()))
    assert {row["censored"] for row in rows} == {"True"}
    assert grv("convert", log, "-o", tmp_path / "again.csv").code == 0
    again = list(csv.DictReader((tmp_path / "again.csv").read_text().splitlines()))
    assert {row["censored"] for row in again} == {"True"}


def test_export_says_how_many_verdicts_were_paid_for_and_how_many_shared(
    ledger: Path, tmp_path: Path
) -> None:
    ran = grv("runs", "export", ledger, "--out", tmp_path / "log.csv")
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    opened = SqliteLedger(str(ledger), read_only=True)
    entries = [entry for summary in opened.searches() for entry in opened.read(summary.id)]
    paid = sum(isinstance(each, Found) and each.verdict is not Verdict.BROKEN for each in entries)
    labelled = sum(row["passed"] != "" for row in rows)

    assert paid > 0
    assert f"verdicts: {paid} paid for, {labelled - paid} shared;" in ran.out
    assert f" {len(rows) - labelled} without a label. The log is censored" in ran.out


def test_export_says_what_was_really_paid(ledger: Path, tmp_path: Path) -> None:
    prices, log = tmp_path / "prices.toml", tmp_path / "log.jsonl"
    prices.write_text("[m]\ncompletion = 1000000\n[other]\nscore_call = 0.5\nverify_call = 7\n")
    ran = grv("runs", "export", ledger, "--out", log, "--prices", prices)
    assert (ran.code, ran.err) == (0, "")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    drafts = [
        entry.usage.completion_tokens
        for summary in SqliteLedger(str(ledger), read_only=True).searches()
        for entry in SqliteLedger(str(ledger), read_only=True).read(summary.id)
        if isinstance(entry, Made)
    ]
    assert sorted(row["generate_cost"] for row in rows) == sorted(tokens + 0.5 for tokens in drafts)
    assert {(row["verify_cost"], row["passed"] is None) for row in rows} == {
        (7, False),
        (None, True),
    }
    compared = grv("compare", log, "--unlabelled", "fail", "--orders", 2, "--costs", "measured")
    assert compared.code == 0, compared.err
    unknown = sum(row["verify_cost"] is None for row in rows)
    assert f"unknown costs, replaced by the mean of the known ones: {unknown}" in compared.out
    ran = grv("runs", "export", ledger, "--out", prices, "--prices", prices)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "missing"), "missing: no such ledger"),
        (("show", "missing", "a"), "missing: no such ledger"),
        (("check", "notes"), "notes: not a ledger"),
        (("list", "."), "no such ledger"),
        (("show", "LEDGER", "z"), "no search of 'z'"),
        (("export", "LEDGER", "--out", "nowhere/log.csv"), "nowhere/log.csv"),
        (("export", "LEDGER", "--out", "log.txt"), "log.txt"),
        (("export", "LEDGER"), "--out"),
    ],
)
def test_bad_input_to_runs_is_one_line(
    ledger: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    from grv.apps import cli

    monkeypatch.chdir(tmp_path)
    Path("notes").write_text("no database\n" * 100)
    assert cli.run(["runs", *(str(ledger) if a == "LEDGER" else a for a in arguments)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert "bug in grv" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize(
    ("policy", "width", "budget"),
    [("adaptive", 1, 150), ("adaptive", 4, 90), ("fixed(16, 5)", 3, 500), ("verify-all", 2, 60)],
)
def test_replay_equals_live(
    tmp_path: Path, server: FaultyServer, policy: str, width: int, budget: int, keys: bool
) -> None:
    """The same decisions, answers and bills, from nothing but the exported log."""
    options: list[object] = ["--policy", policy, "--width", width, "--budget", budget]
    options += ["--workers", width]
    options += ["--costs", "1,4", "--keys" if keys else "--no-keys"]
    ledger = solve(tmp_path, server, ["a", "b", "c", "hopeless"], *options)
    assert grv("runs", "export", ledger, "--out", tmp_path / "log.csv").code == 0
    log = Log.load(tmp_path / "log.csv", unlabelled="fail")
    limits = Limits(budget=float(budget), width=width)
    with closing(SqliteLedger(ledger, read_only=True)) as book:
        summaries = list(book.searches())
        assert len(summaries) == 4
        for summary in summaries:
            problem = log[summary.problem]
            search = replayed(
                spec.parse(policy), problem, Costs(1, 4), limits, keys=keys, shared=True
            )
            entries = book.read(summary.id)
            told = [entry for entry in entries if isinstance(entry, Told)]
            assert len(told) == len(search.trace)
            for live, turn in zip(told, search.trace, strict=True):
                assert live.why == turn.action.why
                match live.event, turn.event:
                    case Generated(scores), Generated(again):
                        assert scores == again
                    case Verified(verdicts), Verified(again_verdicts):
                        assert isinstance(turn.action, Verify)
                        passed = Verdict.PASSED in verdicts.values()
                        assert passed or tuple(verdicts) == turn.action.ids
                        assert verdicts.items() <= again_verdicts.items()
                        assert live.event.shared == turn.event.shared
                    case events:
                        pytest.fail(f"live and replay went different ways: {events}")
            assert search.outcome is not None
            bill = search.outcome.bill
            assert entries[-1] == Ended(
                search.outcome.reason.value,
                search.outcome.answer,
                bill.generated,
                bill.verified,
                bill.total,
                shared=bill.shared,
            )
