"""Keys, and what is saved of a damaged ledger."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from grv.core.errors import LedgerError
from grv.core.values import Verdict
from grv.ledger.checking import repair
from grv.ledger.entries import Ended, Entry, Found, Intended, Made, Started
from grv.ledger.ledger import Caps, OverBudget
from grv.ledger.seals import KEY, KEY_FILE
from grv.ledger.sqlite import SqliteLedger
from grv.testing.contracts_ledger import LIFE
from support.commands import here, refuses
from support.ledgers import reseal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def filled(path: Path, key: bytes = b"") -> None:
    with closing(SqliteLedger(path, key=key)) as ledger:
        for name in ("a", "b", "c"):
            ledger.append(name, LIFE)
        ledger.append("d", [Started("d", {}), Intended("verify", (0,), 7.5)])


def test_a_damaged_search_is_set_aside_and_the_others_are_saved(path: Path, tmp_path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE entries SET body = '[]' WHERE search = 'b' AND number = 6")
    with closing(SqliteLedger(path)) as old, closing(SqliteLedger(tmp_path / "new")) as new:
        assert list(old.read("a")) == list(LIFE)
        with pytest.raises(LedgerError, match="search b, entry 5: changed"):
            old.read("b")
        saved = repair(old, new)
        assert (saved.searches, saved.entries, len(saved.damaged)) == (4, 12 + 5 + 12 + 2, 1)
        assert list(new.read("b")) == list(LIFE[:5])
        assert list(new.read("c")) == list(LIFE)
        assert new.possibly_paid() == old.possibly_paid() == 7.5
        assert new.check() == []
        assert [s.started for s in new.searches()] == [s.started for s in old.searches()]


def test_the_command_repairs_and_says_what_was_damaged(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE entries SET at = 1.5 WHERE search = 'b' AND number = 6")
    ran = here("runs", "repair", path, "--out", f"{path}.new")
    assert (ran.code, ran.err) == (1, "")
    assert "search b, entry 5: changed since it was written" in ran.out
    assert here("runs", "check", f"{path}.new").out.startswith("all is well")
    refuses(["runs", "repair", path, "--out", f"{path}.new"], "exists already")


def test_only_who_has_the_key_can_seal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path, key=b"secret")
    with pytest.raises(LedgerError, match="sealed with a key: set GRV_LEDGER_KEY"):
        SqliteLedger(path)
    with pytest.raises(LedgerError, match="sealed with another key"):
        SqliteLedger(path, key=b"guess")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE entries SET body = replace(body, 'failed', 'passed')")
        reseal(db)
    monkeypatch.setenv(KEY, "secret")
    with closing(SqliteLedger(path)) as ledger:
        assert ledger.check() != []
        with pytest.raises(LedgerError, match="changed since it was written"):
            ledger.read("a")


def test_the_key_may_be_in_a_file_and_is_required_once_it_is_set(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text("secret\n")
    filled(path)
    monkeypatch.setenv(KEY_FILE, str(file))
    refuses(["runs", "list", path], "its seals have no key, but one is set", "grv runs repair")
    assert here("runs", "repair", path, "--out", f"{path}.keyed").code == 0
    assert "the seals are keyed" in here("runs", "check", f"{path}.keyed").out
    file.write_text("")
    refuses(["runs", "list", path], "the file is empty")


def test_a_charge_above_a_cap_is_not_made(path: Path) -> None:
    with closing(SqliteLedger(path)) as one, closing(SqliteLedger(path)) as other:
        one.append("s", [Started("p", {})])
        one.append("s", [Intended("verify", (0,), 6.0)], Caps(account=10))
        with pytest.raises(OverBudget):
            other.append("t", [Started("q", {}), Intended("verify", (0,), 6.0)], Caps(account=10))
        assert list(other.read("t")) == []
        with pytest.raises(OverBudget):
            other.append("s", [Intended("verify", (1,), 3.0)], Caps(search=8))
        assert other.possibly_paid() == 6
        assert one.check() == []


def test_units_do_not_mix(path: Path) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", [Started("p", {}), Intended("verify", (0,), 6.0)])
        with pytest.raises(LedgerError, match=r"counts in units .* counts in dollars: use another"):
            ledger.append("t", [Started("q", {"measured": True})])


@pytest.mark.parametrize(
    ("width", "reason", "billed", "found"),
    [
        pytest.param(4, "solved", 5, [], id="a pass cancels the others of its step"),
        pytest.param(4, "solved", 6, ["6 verifications, of which 2 were made"], id="one too many"),
        pytest.param(4, "out of budget", 3, ["3 verifications, of which 2"], id="without a pass"),
    ],
)
def test_a_bill_has_its_calls_except_those_that_a_pass_cancelled(
    path: Path, width: int, reason: str, billed: int, found: list[str]
) -> None:
    made = [Made(each, "text") for each in range(8)]
    calls: list[Entry] = [
        Intended("verify", (0,)),
        Found(0, Verdict.FAILED),
        Intended("verify", (1,)),
    ]
    ended = Ended(reason, 1 if reason == "solved" else None, 8, billed, 0.0)
    with closing(SqliteLedger(path)) as ledger:
        started = Started("p", {"width": width})
        ledger.append("s", [started, *made, *calls, Found(1, Verdict.PASSED), ended])
        problems = ledger.check()
    assert len(problems) == len(found)
    assert all(part in problem for part, problem in zip(found, problems, strict=True))
