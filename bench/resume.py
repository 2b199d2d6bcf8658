"""What it costs to resume a finished run: `python bench/resume.py [PROBLEMS]`.

Makes a ledger of that many problems (50,000 by default), each with one candidate and one verdict.
Then the same run starts again in a new process, reads everything and calls nothing. Prints
processor seconds and peak memory of the second process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import anyio

from grv.ledger.sqlite import SqliteLedger
from grv.policies import Fixed
from live import instant, run


def one_run(problems: int, path: str) -> None:
    """Run, and print what the process has used."""
    with closing(SqliteLedger(path)) as ledger:
        anyio.run(run, instant(Fixed(1, 1), 1000), problems, ledger)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    peak = used.ru_maxrss / 1024
    print(json.dumps({"cpu_seconds": round(seconds, 1), "peak_mb": round(peak, 1)}))


def main() -> None:
    """Run twice, each time in its own process."""
    problems = sys.argv[1] if len(sys.argv) > 1 else "50000"
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, __file__, "--one", problems, str(Path(folder) / "ledger.db")]
        for name in ("first run", "resumed"):
            shown = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout
            print(f"{name}, {problems} problems: {shown.strip()}", flush=True)


if __name__ == "__main__":
    if "--one" in sys.argv:
        one_run(int(sys.argv[2]), sys.argv[3])
    else:
        main()
