"""Where a ledger is: its write-ahead log, other readers, network file systems."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from grv.core.errors import LedgerError
from grv.ledger import place
from grv.ledger.checking import repair
from grv.ledger.entries import Intended, Made, Started
from grv.ledger.opening import is_ledger
from grv.ledger.sqlite import SqliteLedger
from grv.testing.contracts_ledger import LIFE
from support.commands import here

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def write_and_wait(path: str) -> None:
    ledger = SqliteLedger(path)
    ledger.append("s", LIFE)
    Path(f"{path}.written").touch()
    time.sleep(120)


def open_and_close(path: str, name: str, times: int) -> None:
    for at in range(times):
        with closing(SqliteLedger(path)) as ledger:
            ledger.append(name, [Started(name, {})] if at == 0 else [Made(at, "text")])


def killed_writer(path: Path) -> None:
    """A process that wrote a search, and was killed."""
    writer = SPAWN.Process(target=write_and_wait, args=(str(path),))
    writer.start()
    while not Path(f"{path}.written").exists():
        time.sleep(0.01)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()


@pytest.mark.slow
def test_after_a_kill_the_log_has_the_newest_entries(path: Path) -> None:
    killed_writer(path)
    assert log_of(path).exists()
    with closing(SqliteLedger(path)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)
        assert ledger.check() == []


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [False, True])
def test_a_deleted_log_is_detected_after_a_kill(path: Path, read_only: bool) -> None:
    killed_writer(path)
    log_of(path).unlink()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"its file ledger-wal is missing.*grv runs repair"):
        SqliteLedger(path, read_only=read_only)
    assert path.read_bytes() == before
    assert not log_of(path).exists(), "a new log would hide that the old one is missing"


@pytest.mark.slow
def test_a_copy_without_its_log_is_detected(path: Path, tmp_path: Path) -> None:
    killed_writer(path)
    copy = tmp_path / "copy"
    shutil.copy(path, copy)
    with pytest.raises(LedgerError, match=r"its file copy-wal is missing"):
        SqliteLedger(copy)
    shutil.copy(log_of(path), log_of(copy))
    with closing(SqliteLedger(copy)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)


@pytest.mark.slow
def test_solve_and_check_name_the_missing_log(path: Path) -> None:
    killed_writer(path)
    log_of(path).unlink()
    ran = here("runs", "check", path)
    assert ran.code == 2
    assert "ledger-wal is missing" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.slow
def test_what_is_left_without_the_log_can_be_saved(path: Path, tmp_path: Path) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("before", LIFE)
    killed_writer(path)
    log_of(path).unlink()
    with (
        closing(SqliteLedger(path, damaged=True)) as old,
        closing(SqliteLedger(tmp_path / "new")) as new,
    ):
        repair(old, new)
        assert list(new.read("before")) == list(LIFE)


def test_a_clean_close_leaves_no_log_and_the_file_alone_is_complete(
    path: Path, tmp_path: Path
) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", LIFE)
        assert log_of(path).exists()
    assert not log_of(path).exists()
    for copy in (path, Path(shutil.copy(path, tmp_path / "copy"))):
        with closing(SqliteLedger(copy)) as again:
            assert list(again.read("s")) == list(LIFE)


def test_a_reader_that_closes_last_leaves_the_log(path: Path) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", LIFE[:2])
        reader = SqliteLedger(path, read_only=True)
        ledger.append("s", LIFE[2:])
    assert list(reader.read("s")) == list(LIFE)
    reader.close()
    with closing(SqliteLedger(path)) as again:
        assert list(again.read("s")) == list(LIFE)


@pytest.mark.slow
def test_a_migrated_ledger_whose_log_is_deleted_is_detected(path: Path) -> None:
    shutil.copy(Path(__file__).parents[1] / "assets" / "ledger-1.sqlite", path)
    killed_writer(path)
    log_of(path).unlink()
    with pytest.raises(LedgerError, match=r"ledger-wal is missing"):
        SqliteLedger(path)


def test_searches_run_while_a_reader_is_open(path: Path) -> None:
    with closing(SqliteLedger(path)) as ledger:
        ledger.append("s", LIFE[:2])
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT COUNT(*) FROM entries").fetchone() == (2,)
            ledger.append("s", LIFE[2:])
            assert ledger.check() == []
            assert reader.execute("SELECT COUNT(*) FROM entries").fetchone() == (2,)
        assert list(ledger.read("s")) == list(LIFE)


@pytest.mark.slow
def test_processes_that_open_and_close_at_once_never_miss_the_log(path: Path) -> None:
    """The last to close removes the log, and the next to open makes a new one."""
    workers = [
        SPAWN.Process(target=open_and_close, args=(str(path), f"w{i}", 60)) for i in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
    assert [worker.exitcode for worker in workers] == [0] * 4
    with closing(SqliteLedger(path)) as ledger:
        assert all(len(ledger.read(f"w{i}")) == 60 for i in range(4))
        assert ledger.check() == []


@pytest.mark.slow
def test_a_second_opening_in_a_process_keeps_the_locks_of_the_first(path: Path) -> None:
    """Closing any descriptor of a file gives up all locks of the process on it."""
    with closing(SqliteLedger(path)) as first:
        first.append("s", LIFE[:2])
        place.lacks_log(str(path))
        other = SPAWN.Process(target=open_and_close, args=(str(path), "other", 1))
        other.start()
        other.join(60)
        assert other.exitcode == 0
        assert log_of(path).exists(), "the other process took itself for the last one"
        first.append("s", LIFE[2:])
    with closing(SqliteLedger(path)) as again:
        assert list(again.read("s")) == list(LIFE)
        assert len(again.read("other")) == 1


def test_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("nfs4", "cifs", "9p", "fuse.sshfs"):
        with monkeypatch.context() as patch:
            patch.setattr(place, "_file_system", lambda _, kind=kind: kind)
            with pytest.raises(LedgerError, match=rf"network file system \({kind}\).*local disk"):
                SqliteLedger(path)
    assert not path.exists()


def test_the_deepest_mount_of_a_path_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my mount" / "inner"
    folder.mkdir(parents=True)
    outer = str(folder.parent).replace(" ", "\\040")
    table = (
        "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        f"40 21 0:50 / {outer} rw - nfs4 server:/home rw\n"
        f"41 40 0:51 / {outer}/inner rw shared:7 - tmpfs tmpfs rw\n"
    )
    read = Path.read_text

    def mounts(self: Path, *arguments: str, **options: str) -> str:
        return table if str(self) == "/proc/self/mountinfo" else read(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", mounts)
    with pytest.raises(LedgerError, match="nfs4"):
        SqliteLedger(folder.parent / "ledger")
    SqliteLedger(folder / "ledger").close()
    SqliteLedger(tmp_path / "my mount 2").close()


@pytest.mark.timeout(60)
def test_a_pipe_or_a_device_is_no_ledger_and_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for special in (pipe, Path(os.devnull)):
        with pytest.raises(LedgerError, match="it is not a file"):
            SqliteLedger(special)
        with pytest.raises(LedgerError, match="no such ledger"):
            SqliteLedger(special, read_only=True)
        assert not is_ledger(str(special))


def linked(path: Path) -> Path:
    """A link to the ledger, in another folder."""
    link = path.parent / "links" / "other-name"
    link.parent.mkdir()
    link.symlink_to(path)
    return link


def test_a_ledger_that_is_named_by_a_link_has_its_log_and_its_owners_beside_the_file(
    path: Path,
) -> None:
    link = linked(path)
    with closing(SqliteLedger(link)) as one, closing(SqliteLedger(path)) as other:
        assert one.claim("s")
        assert not other.claim("s")
        assert log_of(path).exists()
        with closing(SqliteLedger(link, read_only=True)) as reader:
            assert reader.claimed(["s"]) == {"s"}


@pytest.mark.slow
def test_a_ledger_that_is_named_by_a_link_continues_after_a_kill(path: Path) -> None:
    killed_writer(path)
    with closing(SqliteLedger(linked(path))) as ledger:
        assert list(ledger.read("s")) == list(LIFE)


def test_a_link_that_leads_elsewhere_is_noticed(path: Path) -> None:
    link = linked(path)
    with closing(SqliteLedger(link)) as ledger:
        link.unlink()
        link.symlink_to(path.parent / "another")
        with pytest.raises(LedgerError, match="other-name: deleted, moved or replaced"):
            ledger.append("s", [Started("p", {}), Intended("generate", (0,), 3.0)])


def test_the_log_of_a_linked_ledger_is_watched(path: Path) -> None:
    with closing(SqliteLedger(linked(path))) as ledger:
        log_of(path).rename(path.parent / "moved")
        with pytest.raises(LedgerError, match="-wal: deleted, moved or replaced"):
            ledger.append("s", [Started("p", {}), Intended("generate", (0,), 3.0)])
