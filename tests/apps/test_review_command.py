"""`grv review` in a terminal, and what the two commands refuse."""

from __future__ import annotations

import getpass
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from grv.core.values import Verdict
from grv.ledger.entries import Found, Intended, Made, Parked, Started
from grv.ledger.sqlite import SqliteLedger
from support.commands import here, refuses
from support.pages import HUMAN


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    with closing(SqliteLedger(path)) as opened:
        started = Started(
            "a poem", {"costs": [1, 10, 0]}, "Write \x1b[31ma poem.", json.dumps(HUMAN)
        )
        opened.append("s", [started, *(Made(at, f"line\n{at}") for at in range(3))])
        for at in range(3):
            opened.append("s", [Intended("verify", (at,), 10.0), Parked("verify", (at,))])
    return path


def answers(monkeypatch: pytest.MonkeyPatch, *given: str) -> None:
    said = iter(given)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(said))


def found(path: Path) -> Sequence[Found]:
    with closing(SqliteLedger(path, read_only=True)) as opened:
        return [each for each in opened.read("s") if isinstance(each, Found)]


def test_verdicts_are_given_one_after_another(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, "what?", "f it does not rhyme", "s", "c")

    ran = here("review", ledger, "--as", "ann")

    assert ran.code == 0
    assert "2 reviewed; 1 wait for a person" in ran.out
    assert "Is it right?\n  - It adds." in ran.out
    assert "\x1b" not in ran.out
    first, second = found(ledger)
    assert (first.verdict, first.reviewer, first.note) == (
        Verdict.FAILED,
        "ann",
        "it does not rhyme",
    )
    assert second.verdict is Verdict.BROKEN


def test_a_verdict_is_corrected_by_a_later_one(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, "p", "q")
    here("review", ledger)
    answers(monkeypatch, "f")
    ran = here("review", ledger, "--item", "s:0", "--as", "bob")

    assert ran.code == 0, ran
    assert [(each.verdict.value, each.reviewer) for each in found(ledger)] == [
        ("passed", getpass.getuser()),
        ("failed", "bob"),
    ]


def test_what_another_reviewer_has_is_not_shown(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, "q")
    with closing(SqliteLedger(ledger)) as other:
        assert other.claim("review s 0")
        ran = here("review", ledger)
        assert "(s:1)" in ran.out
        refuses(["review", ledger, "--item", "s:0"], "another reviewer has it")


def test_bad_input_is_one_line(ledger: Path, tmp_path: Path) -> None:
    refuses(["review", ledger, "--item", "s"], "expected SEARCH:NUMBER")
    refuses(["review", ledger, "--item", "s:9"], "no candidate s:9 waits for a person")
    refuses(["dashboard", tmp_path / "none"], "no such ledger")
    refuses(["review", tmp_path / "none"], "no such ledger")
    assert not (tmp_path / "none").exists()
    refuses(["dashboard", ledger, "--host", "0.0.0.0"], "give --clients FILE")
    refuses(["dashboard", ledger, "--port", "70000"], "--port")


def test_reviewers_in_the_environment_need_names_and_long_tokens(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRV_REVIEWERS", "ann:short-secret")
    said = refuses(["dashboard", ledger, "--port", "0"], "the token of ann needs at least 16")
    assert "short-secret" not in said
    monkeypatch.setenv("GRV_REVIEWERS", "no-colon-0123456789")
    refuses(["dashboard", ledger, "--port", "0"], "expected NAME:TOKEN")
