"""Processor time to import grv, to read its help, and for a comparison of a tiny log.

Seconds, the least of ten runs; `--quick` takes each once. The modules are compiled before, as an
installer does it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

GRV = str(Path(sys.executable).with_name("grv"))
COMMANDS: dict[str, list[str]] = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import grv": [sys.executable, "-c", "import grv"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import typer, pydantic": [sys.executable, "-c", "import typer._adapters"],
    "grv --version": [GRV, "--version"],
    "grv --help": [GRV, "--help"],
    "grv compare": [GRV, "compare", "tiny.csv"],
}
_LOG = "problem,candidate,score,passed\n" + "".join(
    f"{problem},{candidate},{(7 * candidate) % 20},{int(candidate % (problem + 3) == 2)}\n"
    for problem in range(5)
    for candidate in range(20)
)


def least(command: list[str], folder: str, runs: int) -> float:
    """Seconds of processor time of a command: the least of several runs."""
    compiled = {"PYTHONPYCACHEPREFIX": f"{folder}/compiled", "PYTHONDONTWRITEBYTECODE": ""}
    times = []
    for _ in range(1 + runs):  # the first compiles
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, **compiled}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(times[1:]), 3)


if __name__ == "__main__":
    runs = 1 if "--quick" in sys.argv else 10
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tiny.csv").write_text(_LOG)
        found = {name: least(command, folder, runs) for name, command in COMMANDS.items()}
    print(json.dumps(found, indent=1))
