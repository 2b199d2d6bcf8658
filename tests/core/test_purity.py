"""`core` and `policies` are pure: they import nothing that does I/O, waits or is random."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import grv

ROOT = Path(grv.__file__).parent
ROOMS = ["core", "policies"]
IMPURE = {
    "asyncio",
    "concurrent",
    "datetime",
    "logging",
    "multiprocessing",
    "numpy",
    "pyarrow",
    "random",
    "scipy",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
}

# The package's own __init__ is passed over: what it offers is not what the two rooms need.
LOADED = """
import importlib, pkgutil, sys, types
root, *rooms = sys.argv[1:]
grv = sys.modules["grv"] = types.ModuleType("grv")
grv.__path__ = [root]
before = set(sys.modules)
for room in rooms:
    package = importlib.import_module(f"grv.{room}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"grv.{room}.{module.name}")
print(*sorted(set(sys.modules) - before))
"""


def loaded(*rooms: str) -> set[str]:
    """What a fresh interpreter loads with these rooms."""
    command = [sys.executable, "-I", "-c", LOADED, str(ROOT), *rooms]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def imported(path: Path) -> set[str]:
    """The top-level names of everything that a file imports from outside the project."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_nothing_impure_is_loaded_with_the_two_rooms() -> None:
    modules = loaded(*ROOMS)

    assert {"grv.core.search", "grv.policies.adaptive"} <= modules
    assert not IMPURE & {name.split(".")[0] for name in modules}


def test_the_core_needs_no_other_room() -> None:
    rooms = {name.split(".")[1] for name in loaded("core") if name.startswith("grv.")}

    assert rooms == {"core"}


# What the interpreter itself has loaded at its start can only be seen in the source.
@pytest.mark.parametrize("room", ROOMS)
def test_no_file_of_the_two_rooms_imports_the_clock_or_the_system(room: str) -> None:
    files = list((ROOT / room).glob("*.py"))

    assert len(files) > 3
    for path in files:
        assert not imported(path) & {"io", "os", "pathlib", "posix", "sys", "time"}, path.name
