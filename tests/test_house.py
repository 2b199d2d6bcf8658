"""The tests have the rooms of the source, and the files that a path names exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "grv"
NOT_ROOMS = {"assets", "fuzz", "golden", "support"}  # data, helpers, and tests of all rooms at once


def test_every_folder_of_tests_is_a_room_of_the_source() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    rooms = {folder for folder in folders if folder.parts and folder.parts[0] not in NOT_ROOMS}

    assert {str(room) for room in rooms if not (SOURCE / room).is_dir()} == set()


def test_the_path_of_a_command_names_files_that_exist() -> None:
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## The path of a command")[2].partition("\n## ")[0]
    paths = re.split(r"\n\*\*", section)[1:]
    assert len(paths) == 3
    for path in paths:
        files = [
            name for line in path.split("\n")[1:] for name in re.findall(r"`([\w/]+\.py)`", line)
        ]
        assert len(files) == len(set(files))
        assert files
        assert [name for name in files if not (SOURCE / name).is_file()] == []
