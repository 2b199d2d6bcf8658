"""The ledger in a file: shared, killed, full, changed, old and new."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grv.core.errors import LedgerError, LedgerFormatError
from grv.ledger import migrations
from grv.ledger.batch import KnownIndex
from grv.ledger.entries import Charged, Ended, Failed, Intended, Made, Scored, Settled, Started
from grv.ledger.ledger import Append, Caps, OverBudget
from grv.ledger.seals import Seals
from grv.ledger.sqlite import SqliteLedger
from grv.ledger.tables import SoFar
from grv.testing.contracts_ledger import LIFE
from support.ledgers import reseal

ASSETS = Path(__file__).parents[1] / "assets"
FORK = multiprocessing.get_context("spawn")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    with closing(SqliteLedger(path)) as opened:
        yield opened


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(statement).rowcount > 0


def append_many(path: str, name: str) -> None:
    with closing(SqliteLedger(path)) as ledger:
        for _ in range(30):
            ledger.append("shared", LIFE[:2])
            ledger.append(name, LIFE[:2])


def claim_and_wait(path: str, taken: str) -> None:
    ledger = SqliteLedger(path)
    assert ledger.claim("s")
    Path(taken).touch()
    time.sleep(60)


def test_two_connections_see_what_the_other_wrote(path: Path, ledger: SqliteLedger) -> None:
    with closing(SqliteLedger(path)) as other:
        for at, entry in enumerate(LIFE):
            (ledger, other)[at % 2].append("s", [entry])
        assert list(ledger.read("s")) == list(other.read("s")) == list(LIFE)
    assert ledger.check() == []


def test_a_prior_that_many_searches_decide_by_is_stored_once(
    path: Path, ledger: SqliteLedger
) -> None:
    prior = "a prior " * 5000
    for number in range(20):
        ledger.append(f"s{number}", [Started("p", {}, prior=prior)])

    (longest,) = ledger.select("SELECT MAX(LENGTH(body)) FROM entries")[0]
    assert ledger.select("SELECT COUNT(*) FROM texts") == [(1,)]
    assert longest < 200
    assert all(ledger.read(f"s{n}") == [Started("p", {}, prior=prior)] for n in range(20))


@pytest.mark.slow
def test_processes_write_to_one_ledger_at_once(path: Path) -> None:
    """They begin at once, too: only one of them makes the tables."""
    workers = [FORK.Process(target=append_many, args=(str(path), f"w{i}")) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with closing(SqliteLedger(path, read_only=True)) as ledger:
        assert len(ledger.read("shared")) == 3 * 60
        assert all(len(ledger.read(f"w{i}")) == 60 for i in range(3))
        assert ledger.check() == []


@pytest.mark.slow
def test_a_claim_ends_with_its_owner_however_that_ends(
    path: Path, tmp_path: Path, ledger: SqliteLedger
) -> None:
    taken = tmp_path / "taken"
    worker = FORK.Process(target=claim_and_wait, args=(str(path), str(taken)))
    worker.start()
    while not taken.exists():
        time.sleep(0.01)
    assert not ledger.claim("s")
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert ledger.claim("s")


def test_a_claim_is_given_up_with_the_last_entry_if_that_is_written(
    path: Path, ledger: SqliteLedger
) -> None:
    end = Ended("finished", None, 0, 0, 0.0)
    with closing(SqliteLedger(path)) as other:
        assert ledger.claim("s")
        refused = Append("s", [Intended("generate", (0,), 5.0)], Caps(search=1.0), releases=True)
        (error,) = ledger.append_all([refused])
        assert isinstance(error, OverBudget)
        assert not refused.released
        assert not other.claim("s")

        last = Append("s", [Started("p", {}), end], releases=True)
        ledger.append_all([Append("t", [Started("p", {})]), last])
        assert last.released
        assert other.claim("s")
        others = Append("s", [end], releases=True)  # the claim is not ours any more
        ledger.append_all([others])
        assert not ledger.claim("s")


def test_only_searches_that_go_on_are_remembered(ledger: SqliteLedger) -> None:
    end = Ended("finished", None, 0, 0, 0.0)
    for number in range(50):
        ledger.append(f"s{number}", [Started("p", {})])
        ledger.append(f"s{number}", [end if number % 2 else Failed("no server")])
    ledger.append("t", [Started("p", {})])
    known: KnownIndex = vars(ledger)["_known"]
    assert [*known.searches] == ["t"]
    ledger.append("s7", [Charged(1.0, "lost")])
    assert ledger.paid_by("s7") == 1.0
    assert ledger.check() == []


def test_a_claim_ends_when_its_owner_closes(path: Path, ledger: SqliteLedger) -> None:
    other = SqliteLedger(path)
    assert other.claim("s")
    assert not ledger.claim("s")
    ledger.release("s")  # which is not ours to release
    assert not ledger.claim("s")
    other.close()
    assert ledger.claim("s")


def test_a_claim_of_an_owner_without_a_lock_file_is_free(path: Path, ledger: SqliteLedger) -> None:
    change(path, "INSERT INTO claims VALUES ('s', 'gone long ago')")
    assert ledger.claim("s")


def test_a_group_of_searches_is_written_together_or_not_at_all(ledger: SqliteLedger) -> None:
    ledger.append_all([Append("a", LIFE[:2]), Append("b", LIFE[:1]), Append("a", LIFE[2:4])])
    assert list(ledger.read("a")) == list(LIFE[:4])
    assert list(ledger.read("b")) == list(LIFE[:1])
    with pytest.raises(AttributeError):
        ledger.append_all([Append("a", LIFE[4:5]), Append("b", [object()])])  # type: ignore[list-item]
    assert list(ledger.read("a")) == list(LIFE[:4])
    ledger.append("a", LIFE[4:])
    assert list(ledger.read("a")) == list(LIFE)
    assert ledger.check() == []


def test_what_a_ledger_remembers_of_its_index_is_read_again_if_another_one_has_written(
    path: Path, ledger: SqliteLedger
) -> None:
    """A remembered end would be written twice; a remembered sum would be spent twice."""
    caps = Caps(total=10.0)
    ledger.append("s", [Started("p", {})])
    with closing(SqliteLedger(path)) as other:
        for turn in range(4):
            for each in (ledger, other):
                each.append("s", [Intended("verify", (turn,), 1.0)], caps)
                each.append("s", [Intended("verify", (turn,), 0.25)], caps)
        with pytest.raises(OverBudget):
            ledger.append("s", [Intended("verify", (4,), 0.5)], caps)
        other.append("s", [Settled("verify", (3,), 1.0)])
        ledger.append("s", [Intended("verify", (4,), 0.5)], caps)
        with pytest.raises(OverBudget):
            other.append("s", [Intended("verify", (5,), 0.75)], caps)
        assert other.possibly_paid() == ledger.possibly_paid() == other.paid_by("s") == 9.5
        assert len(ledger.read("s")) == 19
        assert ledger.check() == []


def test_what_a_ledger_remembers_of_its_index_is_forgotten_if_a_transaction_fails(
    ledger: SqliteLedger,
) -> None:
    ledger.append("s", [Started("p", {}), Intended("verify", (0,), 1.0)])
    no_length: Any = 2.5
    for bad in (Made(1, no_length), object()):
        with pytest.raises((AttributeError, TypeError)):
            ledger.append_all([Append("s", [Charged(2.0, "")]), Append("t", [bad])])  # type: ignore[list-item]
    ledger.append("s", [Intended("verify", (1,), 1.0)])
    assert (len(ledger.read("s")), ledger.paid_by("s"), ledger.possibly_paid()) == (3, 2.0, 2.0)
    assert ledger.check() == []


def rows(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT number, kind FROM entries ORDER BY position").fetchall()


def test_results_that_arrive_together_are_one_row(path: Path, ledger: SqliteLedger) -> None:
    made = [Made(id, f"text {id}") for id in range(8)]
    scored = [Scored(id, id / 10) for id in range(8)]
    ledger.append("s", [Started("p", {}), Intended("generate", tuple(range(8)), 8.0)])
    ledger.append("s", made)
    ledger.append("s", [*scored, Settled("score", tuple(range(8)), 0.5)])
    kinds = ["started", "intended", "made", "scored", "settled"]
    assert rows(path) == list(zip([0, 1, 9, 17, 18], kinds, strict=True))
    assert list(ledger.read("s"))[2:18] == [*made, *scored]
    assert ledger.standings(["s"])[0].entries == 19
    assert ledger.so_far() == {"s": SoFar(8, 0, 0)}
    assert [entry for _, _, entry in ledger.since(2)][:8] == made
    assert ledger.check() == []


def test_results_that_are_too_long_together_are_several_rows(
    path: Path, ledger: SqliteLedger
) -> None:
    long = (-0.123456789,) * 30_000
    made = [Made(id, "text", long) for id in range(8)]
    ledger.append("s", [Started("p", {}), *made])
    numbers = [number for number, _ in rows(path)]
    assert numbers[-1] == 8
    assert 2 < len(numbers) < 9
    assert list(ledger.read("s"))[1:] == made
    assert ledger.check() == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('[{"candidate":0,"score":0.5,"reason":""}]', "search s has gaps"),
        ("[]", "search s has gaps"),
        ('{"candidate":0,"score":0.5,"reason":""}', "search s has gaps"),
        ('[{"candidate":0,"score":0.5,"reason":""},7]', "search s, entry 0: not an entry"),
        ('[[{"candidate":0,"score":0.5,"reason":""}],[]]', "search s, entry 0: not an entry"),
    ],
)
def test_a_row_with_another_number_of_entries_is_refused(
    path: Path, ledger: SqliteLedger, body: str, said: str
) -> None:
    ledger.append("s", [Scored(0, 0.5), Scored(1, 0.5)])
    ledger.append("s", [Failed("no server")])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE entries SET body = ? WHERE kind = 'scored'", (body,))
        reseal(db)
    with pytest.raises(LedgerError, match=said):
        ledger.read("s")
    assert ledger.check() != []


def test_only_results_may_be_several_in_a_row(path: Path, ledger: SqliteLedger) -> None:
    ledger.append("s", [Failed("no server")])
    with closing(sqlite3.connect(path)) as db, db:
        body = '[{"message":"a"},{"message":"b"}]'
        db.execute("UPDATE entries SET number = 1, body = ?", (body,))
        reseal(db)
    with pytest.raises(LedgerError, match="not an entry of kind 'failed'"):
        ledger.read("s")


def test_a_ledger_of_the_format_before_is_read_as_it_is_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with closing(SqliteLedger(path)) as ledger:
        for entry in LIFE:  # as that format has them: one in each row
            ledger.append("s", [entry])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 2")
    with closing(SqliteLedger(path, read_only=True)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", LIFE[2:4])
        assert list(ledger.read("s")) == [*LIFE, *LIFE[2:4]]
        assert ledger.check() == []
    assert [number for number, _ in rows(path)] == [*range(12), 13]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)


def test_texts_are_kept_once(path: Path, ledger: SqliteLedger) -> None:
    text = "said by everybody " * 1000
    ledger.append("s", [Started("p", {}), *(Made(i, text) for i in range(50))])
    assert {entry.text for entry in ledger.read("s") if isinstance(entry, Made)} == {text}
    ledger.close()
    assert path.stat().st_size < 4 * len(text)


@pytest.mark.parametrize("ours", [False, True])
def test_a_full_disk_is_a_ledger_error_and_nothing_is_half_written(path: Path, ours: bool) -> None:
    """A limit on the size of files stands in for the disk's."""
    with closing(SqliteLedger(path)) as ledger:
        assert not ours or ledger.claim("s")
        ledger.append("s", LIFE[:2])
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        size = max(each.stat().st_size for each in path.parent.iterdir() if each.is_file())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, hard))
        try:
            with pytest.raises(LedgerError, match=r"ledger: .*(disk I/O error|full)"):
                ledger.append("s", [Made(i, f"{i} {'x' * 5000}") for i in range(20)])
            with pytest.raises(LedgerError):
                ledger.append_all([Append("t", LIFE[:1]), Append("s", [Made(0, "y" * 50_000)])])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list(ledger.read("s")) == list(LIFE[:2])
        assert list(ledger.read("t")) == []
        ledger.append("s", LIFE[2:])
        assert list(ledger.read("s")) == list(LIFE)
        assert ledger.check() == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_not_a_ledger_is_refused_and_not_changed(
    tmp_path: Path, read_only: bool
) -> None:
    notes, other = tmp_path / "notes", tmp_path / "other"
    notes.write_text("these are notes\n" * 100)
    with closing(sqlite3.connect(other)) as db, db:
        db.execute("CREATE TABLE mine (x)")
    before = notes.read_bytes(), other.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        SqliteLedger(notes, read_only=read_only)
    with pytest.raises(LedgerError, match="another database"):
        SqliteLedger(other, read_only=read_only)
    assert (notes.read_bytes(), other.read_bytes()) == before


def test_where_nothing_can_be_written_there_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "ledger", tmp_path / "none" / "ledger", tmp_path):
        with pytest.raises(LedgerError):
            SqliteLedger(place)


def test_a_ledger_that_cannot_be_opened_after_all_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    def gone(*paths: str) -> None:
        raise FileNotFoundError(2, "the folder is gone")

    monkeypatch.setattr(sqlite3, "connect", noted)
    monkeypatch.setattr("grv.ledger.sqlite.OpenFiles", gone)
    with pytest.raises(LedgerError, match="the folder is gone"):
        SqliteLedger(path)
    assert opened
    for each in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            each.execute("SELECT 1")


def test_to_read_there_must_be_something(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no such ledger"):
        SqliteLedger(tmp_path / "none", read_only=True)
    (tmp_path / "empty").touch()
    with pytest.raises(LedgerError, match="an empty file; nothing is recorded yet"):
        SqliteLedger(tmp_path / "empty", read_only=True)
    assert (tmp_path / "empty").stat().st_size == 0


def test_a_claim_needs_a_folder_for_its_owner(path: Path, ledger: SqliteLedger) -> None:
    Path(f"{path}.owners").touch()
    with pytest.raises(LedgerError, match="File exists"):
        ledger.claim("s")


def test_a_newer_format_is_refused(path: Path, ledger: SqliteLedger) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    for read_only in (False, True):
        with pytest.raises(LedgerFormatError, match=r"newer grv .format 99; this grv reads 3"):
            SqliteLedger(path, read_only=read_only)


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def m004_half_done(db: sqlite3.Connection, seals: Seals) -> None:
        db.execute("CREATE TABLE later (x)")
        db.execute("CREATE TABLE entries (x)")

    ledger.append("s", LIFE)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, m004_half_done])
        with pytest.raises(LedgerError, match="table entries already exists"):
            SqliteLedger(path)
    with closing(SqliteLedger(path)) as again:
        assert list(again.read("s")) == list(LIFE)


def test_the_index_follows_the_entries(ledger: SqliteLedger) -> None:
    ledger.append("s", LIFE)
    ledger.append("t", [Started("half \ud800 a name", {}), Failed("no")])
    ledger.append("u", [Started("q", {})])
    found = {summary.id: summary for summary in ledger.searches()}
    assert (found["s"].problem, found["s"].outcome, found["s"].total) == ("p", "solved", 12.0)
    assert (found["t"].problem, found["t"].outcome) == ("half \ud800 a name", "failed")
    assert (found["u"].outcome, found["u"].ended) == (None, None)
    ledger.append("t", [Ended("finished", None, 0, 0, 0.0)])
    assert ledger.check() == []


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE texts SET text = 'better'", "a text does not match its hash"),
        ("DELETE FROM texts", "is missing"),
        ("DELETE FROM entries WHERE number = 3", "search s has gaps"),
        ("DELETE FROM entries WHERE number = 11", "9 rows of entries, but 10 were written"),
        ("DELETE FROM entries", "0 rows of entries, but 10 were written"),
        ("UPDATE entries SET at = at + 1 WHERE number = 3", "entry 2: changed"),
        ("UPDATE entries SET search = 't'", "search t, entry 0: changed"),
        ("UPDATE searches SET started = 1.0", "search s does not match the index"),
        ("UPDATE ledger SET count = 3", "10 rows of entries, but 3 were written"),
        ("UPDATE accounts SET paid = 5", "account ''"),
        (
            "UPDATE entries SET body = replace(body, 'passed', 'failed') WHERE number = 9",
            "search s, entry 9: changed since it was written",
        ),
        ("UPDATE entries SET kind = 'failed' WHERE number = 4", "entry 4: changed"),
        ("UPDATE searches SET total = 3", "search s does not match the index"),
        ("UPDATE searches SET outcome = NULL", "search s does not match the index"),
        ("DELETE FROM searches", "search s is not in the index"),
    ],
)
def test_check_finds_faults(path: Path, statement: str, complaint: str) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", LIFE)
        assert ledger.check() == []
        change(path, statement)
        wrong = ledger.check()
    assert any(complaint in fault for fault in wrong), wrong


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM ledger",
        "INSERT INTO ledger SELECT * FROM ledger",
        "UPDATE ledger SET count = NULL, head = NULL",
        "UPDATE ledger SET count = 'x'",
        "UPDATE ledger SET head = x'ff'",
        "UPDATE ledger SET count = 9223372036854775807",
        "UPDATE entries SET number = 9223372036854775807 WHERE number = 1",
        "UPDATE entries SET seal = x'ff'",
    ],
)
def test_nothing_is_appended_to_what_cannot_be_continued(path: Path, statement: str) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", [Started("p", {}), Intended("generate", (0,), 3.0)])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)
    with closing(SqliteLedger(path)) as ledger:
        with pytest.raises(LedgerError, match="the ledger is broken"):
            ledger.append("s", [Intended("generate", (1,), 3.0)])
        assert ledger.possibly_paid() == 3


@pytest.mark.slow
def test_cut_anywhere_it_reads_as_far_as_it_was_written_or_says_so(
    path: Path, tmp_path: Path
) -> None:
    """The write-ahead log, cut at any byte: whole transactions are there, the rest is not."""
    ledger = SqliteLedger(path)
    for entry in LIFE:
        ledger.append("s", [entry])
    log = Path(f"{path}-wal").read_bytes()
    base = path.read_bytes()
    ledger.close()
    copy = tmp_path / "copy"
    lengths = []
    for end in range(0, len(log) + 1, max(1, len(log) // 40)):
        for suffix in ("-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
        copy.write_bytes(base)
        Path(f"{copy}-wal").write_bytes(log[:end])
        with closing(SqliteLedger(copy)) as cut:
            read = list(cut.read("s"))
            assert read == list(LIFE[: len(read)])
            assert cut.check() == []
            lengths.append(len(read))
    assert lengths == sorted(lengths)


def test_a_ledger_of_the_first_format_loads_for_ever(tmp_path: Path) -> None:
    copy = tmp_path / "ledger"
    copy.write_bytes((ASSETS / "ledger-1.sqlite").read_bytes())
    with closing(SqliteLedger(copy)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)
        assert [summary.problem for summary in ledger.searches()] == ["p"]
        assert ledger.check() == []
        ledger.append("s", [Failed("later")])
