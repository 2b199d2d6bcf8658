"""The size of rooms, files and functions; and that the tests have the same rooms."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "grv"
NOT_ROOMS = {"assets", "fuzz", "golden", "support"}  # data, helpers, and tests of all rooms at once
MOST_MODULES, MOST_LINES, MOST_IN_A_FUNCTION = 15, 400, 60


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_no_folder_has_more_modules_than_a_reader_can_hold() -> None:
    folders = Counter(path.parent for path in modules() if path.name != "__init__.py")
    crowded = {
        str(folder.relative_to(SOURCE)): n for folder, n in folders.items() if n > MOST_MODULES
    }
    assert crowded == {}


def test_no_module_is_longer_than_a_few_screens() -> None:
    lengths = {str(path.relative_to(SOURCE)): path.read_text().count("\n") for path in modules()}
    assert {name: n for name, n in lengths.items() if n > MOST_LINES} == {}


def test_every_function_fits_on_a_screen() -> None:
    long = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                if length > MOST_IN_A_FUNCTION:
                    long[f"{path.relative_to(SOURCE)}:{node.name}"] = length
    assert long == {}


def test_every_folder_of_tests_is_a_room_of_the_source() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    rooms = {folder for folder in folders if folder.parts and folder.parts[0] not in NOT_ROOMS}

    assert {str(room) for room in rooms if not (SOURCE / room).is_dir()} == set()


def test_the_paths_of_commands_are_short() -> None:
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## The path of a command")[2].partition("\n## ")[0]
    paths = re.split(r"\n\*\*", section)[1:]
    assert len(paths) == 3
    for path in paths:
        files = [
            name for line in path.split("\n")[1:] for name in re.findall(r"`([\w/]+\.py)`", line)
        ]
        assert len(files) == len(set(files))
        assert 10 < len(files) <= 20, len(files)
        assert [name for name in files if not (SOURCE / name).is_file()] == []
