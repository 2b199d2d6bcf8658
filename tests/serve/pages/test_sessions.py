"""Sessions in a file: replaced whole, for its owner only."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from grv.serve.pages.sessions import Sessions

KEY = bytes(32)


def test_a_crash_while_the_file_is_written_loses_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step of writing is the last one."""
    place = str(tmp_path / "ledger")
    first = Sessions(place).begin(KEY)

    class Crash(BaseException):
        pass

    def crash(*_: object, **__: object) -> None:
        raise Crash

    for owner, name in ((json, "dumps"), (os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, crash)
            with pytest.raises(Crash):
                Sessions(place).begin(KEY)
        assert Sessions(place).owner(first) == KEY
    second = Sessions(place).begin(KEY)
    assert Sessions(place).owner(first) == Sessions(place).owner(second) == KEY


def test_the_file_is_never_empty_between_two_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "ledger")
    name = Sessions(place).begin(KEY)
    seen: list[bytes | None] = []
    dumps = json.dumps

    def looking(known: object) -> str:
        seen.append(Sessions(place).owner(name))
        return dumps(known)

    monkeypatch.setattr(json, "dumps", looking)
    Sessions(place).begin(KEY)
    assert seen == [KEY]


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    before = os.umask(0)
    try:
        for _ in range(2):
            Sessions(str(place)).begin(KEY)
            (file,) = tmp_path.iterdir()
            assert file.name == "ledger.sessions"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_is_neither_followed_nor_replaced(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "ledger.sessions").symlink_to(target)
    own = Sessions(str(tmp_path / "ledger"))
    name = own.begin(KEY)
    assert own.owner(name) == KEY
    assert target.read_text() == "mine"
    assert (tmp_path / "ledger.sessions").is_symlink()


def begin_some(place: str, number: int) -> None:
    own = Sessions(place)
    for each in range(number):
        own.begin(bytes([os.getpid() % 256, each]))


@pytest.mark.slow
def test_processes_do_not_lose_sessions_of_each_other(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger")
    names = [Sessions(place).begin(KEY)]
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=begin_some, args=(place, 25)) for _ in range(3)]
    for each in others:
        each.start()
    names += [Sessions(place).begin(KEY) for _ in range(5)]
    for each in others:
        each.join()
        assert each.exitcode == 0
    assert [Sessions(place).owner(name) for name in names] == [KEY] * len(names)
    assert len(json.loads(Path(f"{place}.sessions").read_text())) == len(names) + 75


def test_signing_out_ends_a_session_for_other_processes(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger")
    one, other = Sessions(place), Sessions(place)
    name = one.begin(KEY)
    assert other.owner(name) == KEY
    one.end(name)
    assert other.owner(name) is None
