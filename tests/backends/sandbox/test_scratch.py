from __future__ import annotations

import os
from pathlib import Path

import pytest

from grv.backends.sandbox import scratch


def test_any_tree_is_removed(tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (box / "link").symlink_to(outside)
    (box / "file").write_text("x")
    (box / "0").write_text("a name that flattening would like")
    for name in ("a", "b"):
        (box / name / "inner" / "0").mkdir(parents=True)
        (box / name / "inner" / "file").write_bytes(b"x")
    (box / b"\xff\xfe".decode("utf-8", "surrogateescape")).write_text("odd")
    os.chmod(box / "a" / "inner", 0o300)
    os.chmod(box / "b", 0)
    scratch.empty(str(box))
    assert os.listdir(box) == []
    assert (outside / "kept").read_text() == "kept"


@pytest.mark.slow
def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    here = os.open(box, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    assert scratch.overfull(str(box), 1 << 40)
    scratch.empty(str(box))
    assert os.listdir(box) == []


def test_the_size_of_its_content_is_measured(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    assert not scratch.overfull(str(tmp_path), 1 << 16)
    (tmp_path / "inner" / "big").write_bytes(b"x" * (1 << 17))
    assert scratch.overfull(str(tmp_path), 1 << 16)
    assert not scratch.overfull(str(tmp_path), 1 << 18)
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 30)
    assert not scratch.overfull(str(tmp_path), 1 << 18)  # takes no space
