"""What a candidate may not touch: tests, what configures them, and what starts by itself.

A diff that touches such a file has failed, whatever else it does. Of files that also say other
things (`pyproject.toml`, `setup.cfg`, `package.json`), only the parts that steer tests are
protected.
"""

from __future__ import annotations

import configparser
import fnmatch
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .changes import Changes, Files

_ALWAYS = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "noxfile.py",
    ".coveragerc",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    ".npmrc",
    ".mocharc*",
    "jest.config.*",
    "vitest.config.*",
    "*.egg-info",
    "*.dist-info",
)
_ALWAYS_FOLDERS = (".cargo", "node_modules", "site-packages", ".venv", "venv")
# Modules that run the tests. A repository may have them; a candidate may not add them.
_RUNNING = ("pytest", "_pytest", "pluggy", "unittest", "sitecustomize", "usercustomize")
_TEST_FOLDERS = ("tests", "test", "__tests__", "spec", "testsuite")
_TEST_FILES = (
    "test_*.py",
    "*_test.py",
    "tests.py",
    "*_test.go",
    "*.test.[cm][jt]s",
    "*.test.[jt]s",
    "*.test.[jt]sx",
    "*.spec.[jt]s",
    "*.spec.[jt]sx",
)


def test_file(name: str) -> str:
    """The file of a test: `tests/test_a.py` of `tests/test_a.py::test_one[3]`."""
    return name.partition("::")[0].removeprefix("./").rstrip("/")


@dataclass(frozen=True)
class Protection:
    """What candidates of one check may not touch.

    Attributes:
        tests: files and folders of tests; if there are none, all that look like tests.
        named: paths, folders or patterns that the check names.
    """

    tests: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    @classmethod
    def of(cls, tests: Iterable[str], named: Iterable[str]) -> Protection:
        """The protection of a check whose tests have these names."""
        files = dict.fromkeys(test_file(name) for name in tests)
        folders = (_test_folder(path) for path in files)
        kept = [path for path in dict.fromkeys([*files, *folders]) if path]
        return cls(tuple(kept), tuple(name.removeprefix("./").rstrip("/") for name in named))

    def objection(self, changes: Changes, files: Files) -> str:
        """Which protected file a candidate touches, as a sentence; "" if none."""
        for path, file in changes.files.items():
            is_there = files.kind(path) == "file"
            before = files.file(path).content if is_there else b""
            after = b"" if file is None else file.content
            if part := _steering_part(path, before, after):
                return f"it changes {part} in {path}, which is protected"
            if self.covers(path) or (not is_there and _runs_tests(path, files)):
                verb = "makes" if not is_there else "removes" if file is None else "changes"
                return f"it {verb} {path}, which is protected"
        return ""

    def covers(self, path: str) -> bool:
        """Whether a path is protected as a whole."""
        *folders, name = path.split("/")
        # Python finds what is installed by names in any case: SHOP.EGG-INFO.
        parts = [part.lower() for part in (*folders, name)]
        if any(fnmatch.fnmatchcase(part, pattern) for part in parts for pattern in _ALWAYS):
            return True
        if any(folder in _ALWAYS_FOLDERS for folder in folders):
            return True
        if any(_is_below(path, named) or fnmatch.fnmatchcase(path, named) for named in self.named):
            return True
        if self.tests:
            return any(_is_below(path, test) for test in self.tests)
        looks_like_one = any(fnmatch.fnmatchcase(name, pattern) for pattern in _TEST_FILES)
        return looks_like_one or any(folder in _TEST_FOLDERS for folder in folders)


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _test_folder(path: str) -> str:
    """The outermost folder of tests that a test is in; "" if it stands beside the code."""
    parts = path.split("/")
    for length, part in enumerate(parts[:-1], 1):
        if part in _TEST_FOLDERS:
            return "/".join(parts[:length])
    return ""


def _runs_tests(path: str, files: Files) -> bool:
    """Whether a new file would be imported in place of what runs the tests."""
    parts = path.removeprefix("src/").removeprefix("lib/").split("/")
    top = parts[0].partition(".")[0]
    if top not in _RUNNING:
        return False
    above = path[: path.rindex(parts[0])] + top if len(parts) > 1 else ""
    return not above or files.kind(above) != "folder"


def _steering_part(path: str, before: bytes, after: bytes) -> str:
    """Which part of a file of settings has changed that steers tests; "" if none."""
    name = path.rpartition("/")[2]
    if name not in _SECTIONS or before == after:
        return ""
    try:
        old = _SECTIONS[name](before.decode())
    except (ValueError, configparser.Error, RecursionError):
        old = {}
    try:
        new = _SECTIONS[name](after.decode())
    except (ValueError, configparser.Error, RecursionError):
        return "what cannot be read"
    differing = [part for part in sorted({*old, *new}) if old.get(part) != new.get(part)]
    return differing[0] if differing else ""


def _of_pyproject(text: str) -> dict[str, Any]:
    tools = tomllib.loads(text).get("tool", {})
    steering = ("pytest", "coverage", "tox", "nox", "hatch", "pdm")
    return {f"tool.{name}": tools[name] for name in steering if name in tools}


def _of_setup_cfg(text: str) -> dict[str, Any]:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    steering = re.compile(r"tool:pytest|pytest|aliases|(?:coverage|tox|testenv).*")
    found = {name: dict(parser[name]) for name in parser.sections() if steering.fullmatch(name)}
    return {f"[{name}]": values for name, values in found.items()}


def _of_package(text: str) -> dict[str, Any]:
    package = json.loads(text) if text.strip() else {}
    steering = ("scripts", "jest", "mocha", "ava", "nyc", "c8", "vitest", "type", "workspaces")
    return {name: package[name] for name in steering if name in package}


_SECTIONS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "pyproject.toml": _of_pyproject,
    "setup.cfg": _of_setup_cfg,
    "package.json": _of_package,
}
