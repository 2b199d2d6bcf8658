"""How long it takes to import grv, and to read its help. Seconds, the best of ten.

`--quick` takes each once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

COMMANDS: dict[str, list[str]] = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import grv": [sys.executable, "-c", "import grv"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "grv --help": [str(Path(sys.executable).with_name("grv")), "--help"],
}


def best(command: list[str], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return round(min(times), 3)


if __name__ == "__main__":
    runs = 1 if "--quick" in sys.argv else 10
    print(json.dumps({name: best(call, runs) for name, call in COMMANDS.items()}, indent=1))
