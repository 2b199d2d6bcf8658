"""Ledgers that somebody else wrote, or damaged: one line, and no file but the ledger is touched."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import struct
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Usage
from grv.core.errors import LedgerError
from grv.core.values import CandidateId, Generated, Rescored, Verdict, Verified
from grv.ledger.entries import (
    Charged,
    Ended,
    Entry,
    Found,
    Intended,
    Made,
    Settled,
    Started,
    Told,
    from_text,
    kind_of,
    to_text,
)
from grv.ledger.ledger import Append, Caps
from grv.ledger.sqlite import SqliteLedger
from grv.testing.contracts_ledger import LIFE
from support.commands import here, refuses
from support.ledgers import reseal
from support.selection import short


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    with closing(SqliteLedger(path)) as book:
        book.append("s1", LIFE)
    return path


def change(path: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)


def test_what_is_no_usage_counts_for_nothing() -> None:
    said = {"seconds": 2.0, "dollars": "many", "prompt_tokens": 10**400, "more": 1}
    assert Usage.of(said) == Usage(seconds=2.0)
    assert Usage.of(Usage(1, 2, 3.0, 4.0).as_data()) == Usage(1, 2, 3.0, 4.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r)"
        " SELECT n FROM r",
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM texts; END",
        "CREATE TABLE other (x)",
        "ALTER TABLE searches ADD COLUMN more TEXT",
        "DROP TABLE claims",
        "PRAGMA user_version = -1",
    ],
)
def test_other_tables_than_those_of_a_ledger_are_refused(ledger: Path, statement: str) -> None:
    change(ledger, statement)
    for read_only in (True, False):
        with pytest.raises(LedgerError):
            SqliteLedger(ledger, read_only=read_only)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("started", "yesterday"),
        ("started", 1e300),
        ("started", None),
        ("ended", b"\xff"),
        ("problem", b"\xff\xfe"),
        ("problem", None),
        ("generated", "many"),
        ("total", "much"),
        ("outcome", b"\xff"),
        ("outcome", "\x1b[31mred"),
    ],
)
def test_an_index_of_other_types_is_refused_in_one_line(
    ledger: Path, column: str, value: Any
) -> None:
    change(ledger, f"UPDATE searches SET {column} = ?", value)
    for command in (["list"], ["check"], ["show"], ["export", "-o", str(ledger) + ".csv"]):
        named = [*command[:1], ledger, *command[1:]]
        ran = here("runs", *map(str, named), *(["p"] if command == ["show"] else []))
        assert ran.code in (0, 1, 2)
        assert "bug in grv" not in ran.err
        assert "\x1b" not in ran.out + ran.err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out")  # of an export, a search that cannot be read
@pytest.mark.parametrize("entry", LIFE, ids=lambda entry: type(entry).__name__)
@pytest.mark.parametrize("junk", [None, "x", -1, [], {"a": 1}, 1e999, 10**400, [[0]]], ids=short)
def test_an_entry_with_values_of_other_types_is_no_entry_or_one_that_can_be_used(
    tmp_path: Path, entry: Any, junk: Any
) -> None:
    record = json.loads(to_text(entry))
    for name in record:
        kind, body = type(entry).__name__.lower(), json.dumps(record | {name: junk})
        try:
            from_text(kind, body)
        except LedgerError:
            continue
        path = tmp_path / f"ledger-{name}"
        with closing(SqliteLedger(path)) as book:
            book.append("s1", LIFE)
        _replace(path, LIFE.index(entry), kind, body)
        for command in (("show", path, "p"), ("export", path, "-o", f"{path}.csv"), ("list", path)):
            ran = here("runs", *map(str, command))
            assert ran.code in (0, 2), ran
            assert "bug in grv" not in ran.err


def _replace(path: Path, at: int, kind: str, body: str) -> None:
    """Put another entry in the place of one, with seals that fit."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE entries SET kind = ?, body = ? WHERE number = ?", (kind, body, at))
        reseal(db)


def test_an_owner_of_a_foreign_name_is_dead_and_no_file_is_touched(
    ledger: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for number, name in enumerate((str(victim), "../victim", "\0", b"x")):
        change(ledger, "INSERT OR REPLACE INTO claims VALUES (?, ?)", f"s{number + 7}", name)
        with closing(SqliteLedger(ledger)) as book:
            assert book.claim(f"s{number + 7}")
    assert victim.read_text() == "precious"


def _journal_naming(ledger: Path, victim: Path) -> bytes:
    """A hot rollback journal: it puts the first page back, and names a file of a transaction."""
    magic = bytes.fromhex("d9d505f920a163d7")
    content = ledger.read_bytes()
    size = int.from_bytes(content[16:18], "big")
    page = content[:size]
    header = magic + struct.pack(">IIIII", 1, 0, len(content) // size, 512, size)
    record = struct.pack(">I", 1) + page + struct.pack(">I", sum(page[size - 200 : 0 : -200]))
    name = bytes(victim)
    end = struct.pack(">I", 0x40000000 // size + 1) + name
    return (
        header.ljust(512, b"\0") + record + end + struct.pack(">II", len(name), sum(name)) + magic
    )


@pytest.mark.parametrize("read_only", [True, False])
def test_the_journal_of_a_ledger_deletes_no_file(
    ledger: Path, tmp_path: Path, read_only: bool
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    journal = Path(f"{ledger}-journal")
    journal.write_bytes(_journal_naming(ledger, victim))
    with pytest.raises(LedgerError, match=r"ledger-journal names another file"):
        SqliteLedger(ledger, read_only=read_only)
    assert victim.read_text() == "precious"


def test_the_folder_of_owners_may_not_be_a_link(ledger: Path, tmp_path: Path) -> None:
    victim = tmp_path / "elsewhere" / f"{7:032x}"
    victim.parent.mkdir()
    victim.write_text("precious")
    Path(f"{ledger}.owners").symlink_to(victim.parent)
    change(ledger, "INSERT INTO claims VALUES ('s7', ?)", victim.name)
    with (
        closing(SqliteLedger(ledger)) as book,
        pytest.raises(LedgerError, match=r"ledger\.owners: a link"),
    ):
        book.claim("s7")
    assert [each.read_text() for each in victim.parent.iterdir()] == ["precious"]


@pytest.mark.timeout(60)
def test_an_owner_that_is_a_pipe_or_a_link_is_dead_and_not_waited_for(
    ledger: Path, tmp_path: Path
) -> None:
    folder = Path(f"{ledger}.owners")
    folder.mkdir()
    os.mkfifo(folder / f"{7:032x}")
    (folder / f"{8:032x}").symlink_to(tmp_path / "victim")
    (tmp_path / "victim").write_text("precious")
    for number in (7, 8):
        change(ledger, "INSERT INTO claims VALUES (?, ?)", f"s{number}", f"{number:032x}")
    with closing(SqliteLedger(ledger)) as book:
        assert not book.claimed(["s7", "s8"])
        assert book.claim("s7")
        assert book.claim("s8")
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("size", [0, 1, 15, 16, 100, 2000, 5000])
def test_a_ledger_that_is_cut_short_is_refused(ledger: Path, size: int) -> None:
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:size])
    refuses(["runs", "list", ledger])


def test_a_ledger_with_garbage_inside_is_refused(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ledger.parent)
    whole = bytearray(ledger.read_bytes())
    whole[4096:8192] = b"\xff" * 4096
    ledger.write_bytes(whole)
    checked = here("runs", "check", str(ledger))
    assert checked.code in (1, 2)
    assert "malformed" in checked.err or "freelist" in checked.out
    for command in (("list", ledger), ("show", ledger, "p"), ("export", ledger, "-o", "x.csv")):
        assert "bug in grv" not in here("runs", *map(str, command)).err


def test_a_verdict_for_a_candidate_that_was_never_generated_is_refused(ledger: Path) -> None:
    at = next(at for at, entry in enumerate(LIFE) if isinstance(entry, Found))
    found = replace(next(entry for entry in LIFE if isinstance(entry, Found)), candidate=7)
    _replace(ledger, at, "found", to_text(found))
    said = "a verdict for candidate 7 but no draft; it is damaged: run grv runs check"
    refuses(["runs", "export", ledger, "-o", f"{ledger}.csv"], said)
    refuses(["learn", ledger, "-o", f"{ledger}.json"])


@pytest.mark.slow
@pytest.mark.parametrize("table", ["entries", "texts", "searches"])
def test_a_record_above_the_limit_is_not_read(ledger: Path, table: str) -> None:
    column = {"entries": "body", "texts": "text", "searches": "problem"}[table]
    change(ledger, f"UPDATE {table} SET {column} = printf('%.*c', 70000000, 'x')")
    tracemalloc.start()
    try:
        with closing(SqliteLedger(ledger, read_only=True)) as book:
            assert "more than 64 MB" in " ".join(book.check())
            with pytest.raises(LedgerError, match="a record of more than 64 MB"):
                book.searches() if table == "searches" else book.read("s1")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    if table == "searches":
        refuses(["runs", "list", ledger], "more than 64 MB")


def test_what_could_not_be_read_is_not_written_and_others_are(tmp_path: Path) -> None:
    with closing(SqliteLedger(tmp_path / "new")) as book:
        large = Append("large", [Started("p", {}), Made(0, "x" * ((64 << 20) + 1))])
        error, none = book.append_all([large, Append("small", LIFE)])
        assert "an entry 'made' of more than 64 MB cannot be recorded" in str(error)
        assert none is None
        assert list(book.read("small")) == list(LIFE)
        assert list(book.read("large")) == []
        assert book.check() == []


@pytest.mark.parametrize(
    "entry",
    [
        Intended("generate", (0,), -1000.0),
        Intended("generate", (0,), math.inf),
        Charged(-1000.0, "a gift"),
        Settled("generate", (0,), math.nan),
        Ended("solved", None, -1, 0, 0.0),
        Ended("solved", None, 0, 0, -5.0),
        Told(Generated((0.5,), paid=-1000.0), ""),
        Told(Verified({CandidateId(0): Verdict.FAILED}, -1000.0), ""),
        Told(Verified({}, 1.0, Generated((0.5,), paid=-1000.0)), ""),
        Told(Rescored({CandidateId(0): 0.5}, seconds=-1000.0), ""),
    ],
)
def test_an_entry_with_an_amount_that_cannot_be_is_no_entry(entry: Entry) -> None:
    with pytest.raises(LedgerError, match="not an entry of kind"):
        from_text(kind_of(entry), to_text(entry))


def test_a_negative_amount_of_the_index_gives_nobody_more_to_spend(ledger: Path) -> None:
    change(ledger, "UPDATE accounts SET paid = -1000")
    with closing(SqliteLedger(ledger)) as book:
        with pytest.raises(LedgerError, match=r"-1000\.0 is not an amount"):
            book.append("s2", [Started("p", {}), Intended("generate", (0,), 5.0)], Caps(total=1))
        assert book.check() != []
