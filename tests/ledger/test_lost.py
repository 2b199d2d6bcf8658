"""A ledger whose files are deleted, moved or replaced while a process uses it."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from grv.core.errors import LedgerError
from grv.ledger.entries import Intended, Made, Started
from grv.ledger.ledger import Caps
from grv.ledger.sqlite import SqliteLedger

RESERVED = Intended("generate", (0,), 3.0)


def deleted(path: Path) -> None:
    path.unlink()


def all_deleted(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def folder_moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("other folder"))


def replaced(path: Path) -> None:
    with closing(SqliteLedger(path.with_name("new"))):
        pass
    path.with_name("new").rename(path)


def copied_over(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.rename(path)


def log_deleted(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def index_of_the_log_deleted(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def truncated(path: Path) -> None:
    os.truncate(path, 0)


def link_turned(path: Path) -> None:
    """The path was a link, and now leads to another ledger."""
    with closing(SqliteLedger(path.with_name("another"))):
        pass
    path.unlink()
    path.symlink_to("another")


EVENTS = (
    deleted,
    all_deleted,
    moved,
    folder_moved,
    replaced,
    copied_over,
    log_deleted,
    index_of_the_log_deleted,
    truncated,
    link_turned,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder / "run.ledger"


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_is_reserved_in_a_file_that_others_do_not_see(
    path: Path, event: Callable[[Path], None]
) -> None:
    ledger = SqliteLedger(path)
    ledger.append("s", [Started("p", {}), RESERVED])
    event(path)
    with pytest.raises(LedgerError, match="deleted, moved or replaced while this process used it"):
        ledger.append("s", [RESERVED], Caps(total=100))
    with pytest.raises(LedgerError, match="deleted, moved or replaced"):
        ledger.claim("s")
    ledger.close()


@pytest.mark.parametrize("event", [deleted, all_deleted, moved, replaced])
def test_what_was_paid_is_kept_in_a_new_file_beside_it(
    path: Path, event: Callable[[Path], None]
) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", [Started("p", {}), RESERVED])
        event(path)
        with pytest.raises(LedgerError, match=r"run\.ledger\.saved-1; put the ledger back"):
            ledger.append("s", [Intended("generate", (1,), 4.0)])
        ledger.append("s", [Made(0, "in flight when the file was lost")])
    with closing(SqliteLedger(f"{path}.saved-1")) as saved:
        assert saved.possibly_paid() == 7
        assert Made(0, "in flight when the file was lost") in saved.read("s")
        assert saved.check() == []


def test_a_ledger_that_was_lost_leaves_the_files_of_its_successor_alone(path: Path) -> None:
    """SQLite deletes the log of the last connection by its name, whose log that may be now."""
    lost = SqliteLedger(path)
    lost.append("s", [Started("p", {}), RESERVED])
    all_deleted(path)
    with closing(SqliteLedger(path)) as new:
        new.append("s", [Started("p", {}), RESERVED])
        lost.close()
        new.append("s", [RESERVED])
        with closing(SqliteLedger(path, read_only=True)) as third:
            assert third.possibly_paid() == 6
    with closing(SqliteLedger(path, read_only=True)) as after:
        assert after.possibly_paid() == 6
        assert after.check() == []


def test_a_ledger_that_was_abandoned_and_lost_leaves_its_successor_alone(path: Path) -> None:
    lost = SqliteLedger(path)
    lost.append("s", [Started("p", {}), RESERVED])
    all_deleted(path)
    with closing(SqliteLedger(path)) as new:
        new.append("s", [Started("p", {}), RESERVED])
        del lost
        new.append("s", [RESERVED])
    with closing(SqliteLedger(path, read_only=True)) as after:
        assert after.possibly_paid() == 6


def test_without_its_owners_file_a_process_reserves_nothing_more(path: Path) -> None:
    """Another process would take its searches, as those of a dead one."""
    with closing(SqliteLedger(path)) as ledger:
        assert ledger.claim("s")
        ledger.append("s", [Started("p", {}), RESERVED])
        shutil.rmtree(f"{path}.owners")
        with pytest.raises(LedgerError, match=r"owners: deleted, moved or replaced"):
            ledger.append("s", [RESERVED])


def test_an_older_copy_written_into_the_same_file_is_noticed(path: Path) -> None:
    """As with `sqlite3 run.ledger '.restore backup'`, or a restored PostgreSQL database."""
    ledger = SqliteLedger(path)
    ledger.append("s", [Started("p", {}), RESERVED])
    with closing(sqlite3.connect(":memory:")) as older:
        with closing(sqlite3.connect(path)) as db:
            db.backup(older)
        ledger.append("s", [RESERVED])
        with closing(sqlite3.connect(path)) as db:
            older.backup(db)
    with pytest.raises(LedgerError, match=r"run\.ledger: replaced by .* an older copy"):
        ledger.append("s", [RESERVED])
    ledger.close()


def test_a_log_without_its_ledger_is_not_thrown_away(path: Path) -> None:
    ledger = SqliteLedger(path)
    ledger.append("s", [Started("p", {}), RESERVED])
    path.unlink()
    with pytest.raises(LedgerError, match=r"it is gone, but its file run\.ledger-wal is there"):
        SqliteLedger(path)
    ledger.close()


def test_many_processes_of_a_ledger_open_and_close_without_false_alarm(path: Path) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", [Started("p", {}), RESERVED])
        for number in range(20):
            with closing(SqliteLedger(path)) as other:
                other.append(f"s{number}", [Started("p", {}), RESERVED])
            with closing(SqliteLedger(path, read_only=True)) as reader:
                assert reader.possibly_paid() == 3 * (2 * number + 2)
            ledger.append("s", [RESERVED])


def test_a_relative_path_means_the_folder_where_the_ledger_was_opened(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with closing(SqliteLedger("run.ledger")) as ledger:
        monkeypatch.chdir(tmp_path)
        ledger.append("s", [Started("p", {}), RESERVED])
        monkeypatch.chdir(path.parent)


def test_a_full_disk_at_creation_says_so(path: Path) -> None:
    """A limit on the size of files stands in for the disk's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(LedgerError) as caught:
            SqliteLedger(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "not a ledger" not in str(caught.value)
    assert "disk" in str(caught.value)
    with closing(SqliteLedger(path)) as ledger:  # nothing is left in the way
        ledger.append("s", [Started("p", {})])


_LOSE = """
import sys
from pathlib import Path
from grv.core.errors import LedgerError
from grv.ledger.entries import Intended, Made, Started
from grv.ledger.sqlite import SqliteLedger

path = sys.argv[1]
ledger = SqliteLedger(path)
for number in range(20):
    reserved = Intended("generate", (0,), 1.0)
    ledger.append(f"s{number}", [Started("p", {}), reserved, Made(0, f"{number}" * 3000)])
for part in sys.argv[2].split():
    Path(path + part.removeprefix("+")).unlink()
try:
    ledger.append("s0", [reserved])
except LedgerError:
    ledger.append("s0", [Made(1, "late")])
ledger.close()
"""


@pytest.mark.parametrize("parts", ["+", "+-wal", "+-shm", "+ +-wal +-shm"])
def test_what_was_saved_can_be_put_back_beside_the_files_that_are_left(
    path: Path, parts: str
) -> None:
    """SQLite applies a log to whatever file has the right name."""
    subprocess.run([sys.executable, "-c", _LOSE, str(path), parts], check=True, timeout=60)
    Path(f"{path}.saved-1").replace(path)
    with closing(SqliteLedger(path)) as ledger:
        assert ledger.possibly_paid() == 21
        assert ledger.read("s0")[-1] == Made(1, "late")
        assert ledger.check() == []
