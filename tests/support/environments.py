"""Clean virtual environments with the built wheel, made without the network.

The packages that the wheel declares are linked from the environment that runs the tests. A package
that it uses but does not declare is missing in the new environment.
"""

from __future__ import annotations

import email
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grv.core.errors import DISTRIBUTION
from support.commands import Ran

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """The wheel of this project, in a folder."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment; `run` starts one of its programs."""

    folder: Path

    @classmethod
    def linked(cls, folder: Path, wheel: Path, extras: Sequence[str] = ()) -> Environment:
        """An environment with the wheel and what it declares, and nothing else."""
        venv.create(folder, with_pip=False, symlinks=True)
        (site,) = folder.glob("lib/python*/site-packages")
        for name in _declared(wheel, extras):
            for top in _tops(name):
                link = site / top.name
                if not link.exists():
                    link.symlink_to(top)
        made = cls(folder)
        wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        pip = [sys.executable, "-m", "pip", "--python", str(made.program("python")), "install"]
        # pip refuses the wheel if a requirement is missing.
        ran = subprocess.run([*pip, "--no-index", wanted], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return made

    def program(self, name: str) -> Path:
        """The path of a program in this environment."""
        return self.folder / "bin" / name

    def run(self, *words: str, cwd: Path, within: float = 120) -> Ran:
        """Run a program of this environment to its end."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        ran = subprocess.run(
            [str(self.program(words[0])), *words[1:]],
            cwd=cwd,
            env=kept | {"OPENAI_API_KEY": "none"},
            capture_output=True,
            text=True,
            timeout=within,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)


def _declared(wheel: Path, extras: Collection[str]) -> set[str]:
    """The names of all packages that the wheel needs, directly or not."""
    with zipfile.ZipFile(wheel) as file:
        (name,) = (each for each in file.namelist() if each.endswith(".dist-info/METADATA"))
        own = email.message_from_bytes(file.read(name)).get_all("Requires-Dist", [])
    found: set[tuple[str, str]] = set()
    todo = [(DISTRIBUTION, each) for each in ("", *extras)]
    while todo:
        name, extra = item = todo.pop()
        if item in found:
            continue
        found.add(item)
        lines = own if name == DISTRIBUTION else metadata.requires(name) or ()
        todo += _required(lines, extra)
    return {name for name, _ in found} - {DISTRIBUTION}


def _required(lines: Sequence[str], extra: str) -> Iterator[tuple[str, str]]:
    for line in lines:
        each = Requirement(line)
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            for more in ("", *each.extras):
                yield canonicalize_name(each.name), more


def _tops(name: str) -> set[Path]:
    """The files and folders of a package in the folder of all packages."""
    package = metadata.distribution(name)
    tops = {Path(file.parts[0]) for file in package.files or ()}
    inside = {top for top in tops if top.name not in ("..", "__pycache__")}
    return {Path(str(package.locate_file(top))) for top in inside}
