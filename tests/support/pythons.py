"""The Pythons of this machine that grv supports, and environments for each of them.

`uv` makes the environments: pip cannot resolve to the oldest versions that a project allows. It
needs a package index, or its cache.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packaging.specifiers import SpecifierSet

from support.environments import ROOT, Environment

Versions = Literal["newest", "oldest"]
VERSIONS: tuple[Versions, ...] = ("newest", "oldest")

# Modules of the standard library that a Python may have been built without.
_PROBE = "import ctypes, sqlite3, ssl, sys, venv; print('%d.%d.%d' % sys.version_info[:3])"


@dataclass(frozen=True)
class Python:
    """An interpreter; `version` is its full version, such as 3.13.0."""

    version: str
    path: Path

    @property
    def minor(self) -> str:
        """The version without the last number, such as 3.13."""
        return ".".join(self.version.split(".")[:2])


@functools.cache
def project() -> dict[str, Any]:
    """The section `project` of `pyproject.toml`."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def declared() -> list[str]:
    """The minor versions that the project says it supports."""
    prefix = "Programming Language :: Python :: "
    classifiers = [c.removeprefix(prefix) for c in project()["classifiers"] if prefix in c]
    return [minor for minor in classifiers if "." in minor]


@functools.cache
def installed() -> dict[str, Python]:
    """One Python for each minor version that `requires-python` allows, oldest first."""
    allowed = SpecifierSet(project()["requires-python"])
    pythons: dict[str, Python] = {}
    for path in _interpreters():
        ran = subprocess.run([path, "-I", "-c", _PROBE], capture_output=True, text=True)
        version = ran.stdout.strip()
        if ran.returncode == 0 and version in allowed:
            python = Python(version, path)
            pythons.setdefault(python.minor, python)
    return dict(sorted(pythons.items(), key=lambda pair: _number(pair[0])))


def absent() -> list[str]:
    """The minor versions that the project supports and this machine lacks."""
    return [minor for minor in declared() if minor not in installed()]


def _interpreters() -> Iterator[Path]:
    """The Python of these tests, those on the path, and those that pyenv has installed."""
    yield Path(sys.executable)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in sorted(Path(folder or ".").glob("python3.*")):
            if re.fullmatch(r"python3\.\d+", path.name) and os.access(path, os.X_OK):
                yield path
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    yield from sorted(pyenv.glob("versions/3.*/bin/python"), reverse=True)


def _number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))


def uv() -> str:
    """The program `uv` of this environment, or of the path."""
    beside = Path(sys.executable).with_name("uv")
    path = str(beside) if beside.exists() else shutil.which("uv")
    if path is None:
        raise FileNotFoundError("uv is missing: make install")
    return path


def make_environment(
    folder: Path,
    python: Python,
    requirements: Sequence[str],
    versions: Versions = "newest",
    *,
    compiled: bool = False,
) -> Environment:
    """An environment of a Python with requirements; "oldest" are the oldest that are allowed.

    `compiled` is for environments in which many processes start.

    A requirement starts with a path: this folder, or a wheel. The oldest versions are those that
    `pyproject.toml` allows and for which there is a wheel for this Python.
    """
    environment = Environment(folder)
    interpreter = str(environment.program("python"))
    _uv("venv", "--clear", "--seed", "--python", str(python.path), str(folder))
    bounds = ["--constraint", str(_oldest(folder, python))] if versions == "oldest" else []
    compiling = ["--compile-bytecode"] if compiled else []
    _uv("pip", "install", "--python", interpreter, *compiling, *bounds, *requirements)
    return environment


def _oldest(folder: Path, python: Python) -> Path:
    """A file with the oldest versions of everything that users install."""
    path = folder / "oldest.txt"
    extras = [word for name in ("all", "ray", "notebook") for word in ("--extra", name)]
    resolution = ["--resolution", "lowest-direct", "--only-binary", ":all:"]
    about = ["--python-version", python.version, "--no-header", "--no-annotate"]
    pyproject = str(ROOT / "pyproject.toml")
    _uv("pip", "compile", *resolution, *about, *extras, pyproject, "--output-file", str(path))
    return path


def _uv(*words: str) -> None:
    ran = subprocess.run([uv(), "--quiet", *words], cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"uv {' '.join(words)}: {ran.stderr.strip()}")
