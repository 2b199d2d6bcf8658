"""Files are replaced whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from grv.core.errors import UsageError
from grv.files import check_writable, replacing, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old and long")

    write_whole(path, "new")

    assert path.read_text() == "new"
    assert names(tmp_path) == ["out.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_error_leaves_the_old_file_and_nothing_else(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error("in the middle")

    with pytest.raises((error, UsageError)):
        fail()

    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.json"]


def test_until_the_end_the_old_file_is_there(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"


def test_a_new_file_has_the_rights_that_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    write_whole(tmp_path / "out.json", "new")

    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("other", "out.json")}
    assert len(modes) == 1


def test_a_link_is_replaced_and_not_the_file_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")

    write_whole(tmp_path / "link", "new")

    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_text() == "new"
    assert (tmp_path / "real").read_text() == "old"


def test_a_link_to_a_file_that_is_known_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")

    with replacing(tmp_path / "link", through_link=True) as temporary:
        temporary.write_text("new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_is_no_regular_file_is_written_to_directly() -> None:
    reader, writer = os.pipe()
    try:
        write_whole(f"/dev/fd/{writer}", "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_full_disk_is_said_in_one_line() -> None:
    with pytest.raises(UsageError, match="/dev/full: cannot be written: No space left on device"):
        write_whole("/dev/full", "text")


def test_a_file_can_be_checked_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")

    check_writable(tmp_path / "there")
    check_writable(tmp_path / "new")
    check_writable("/dev/null")

    assert names(tmp_path) == ["there"]
    assert (tmp_path / "there").read_text() == "old"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "it is a folder"), ("nowhere/out", "No such file"), ("file/out", "Not a directory")],
)
def test_where_nothing_can_be_written_is_refused(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / name

    with pytest.raises(UsageError, match=f"{path}: cannot be written: {reason}"):
        check_writable(path)
    with pytest.raises(UsageError, match=f"{path}: cannot be written: {reason}"):
        write_whole(path, "text")

    assert names(tmp_path) == ["file"]
