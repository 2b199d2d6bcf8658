"""Candidates a second that 1, 2 and 4 drivers record in PostgreSQL: `python bench/postgres.py`.

Backends answer at once; 11 verdicts per 40 candidates; 64 calls of each driver in flight. Drivers,
database and bench share this machine.

    python bench/postgres.py [--quick] [--ledger=postgresql://...] [../before]

A server is started on loopback, unless `--ledger` names a database that is empty. A tree of another
commit is measured in turns with this one; the ratio is that of the medians of three turns.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import psycopg

from grv.ledger.opening import open_ledger
from grv.policies import Adaptive
from live import instant, run

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests"))
from support.postgres import running  # noqa: E402

DRIVERS = (1, 2, 4)
TURNS = 3
_DRIVER = (
    "import sys; sys.path.insert(0, sys.argv[1]); import postgres; postgres.record(*sys.argv[2:])"
)


def record(address: str, number: str, name: str) -> None:
    """One driver: candidates, seconds and processor seconds, as JSON."""
    options = instant(Adaptive(), 150) | {"about": {"driver": name}}
    with closing(open_ledger(address)) as ledger:
        started = time.perf_counter()
        cpu = time.process_time()
        made = anyio.run(run, options, int(number), ledger)
        print(json.dumps([made, time.perf_counter() - started, time.process_time() - cpu]))


def drive(tree: Path, address: str, drivers: int, number: int) -> tuple[float, float]:
    """Candidates a second of all drivers together, and processor milliseconds of each."""
    with closing(open_ledger(address)):
        pass  # the tables are there
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, "-c", _DRIVER, str(HERE), address, str(number)]
    started = [
        subprocess.Popen([*command, f"{each}"], stdout=subprocess.PIPE, text=True, env=environment)
        for each in range(drivers)
    ]
    ends = [json.loads(each.communicate()[0]) for each in started]
    rate = sum(made for made, _, _ in ends) / max(took for _, took, _ in ends)
    return rate, 1000 * statistics.mean(cpu / made for made, _, cpu in ends)


def size(address: str) -> int:
    """Bytes of a database."""
    with psycopg.connect(address) as db:
        row = db.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


@contextlib.contextmanager
def databases(given: str | None) -> Iterator[Callable[[], str]]:
    """What returns the address of an empty database."""
    if given is not None:
        yield lambda: given
        return
    with running() as server:
        yield server.new_database


def main() -> None:
    """Print the figures as JSON."""
    quick = "--quick" in sys.argv
    given = [word.partition("=")[2] for word in sys.argv if word.startswith("--ledger=")]
    trees = [HERE.parent, *(Path(w).resolve() for w in sys.argv[1:] if not w.startswith("--"))]
    figures: list[dict[str, Any]] = []
    number = 2 if quick else 100
    with databases(given[0] if given else None) as new:
        for drivers in DRIVERS:
            turns = [
                [drive(tree, new(), drivers, number) for tree in trees]
                for _ in range(1 if quick else TURNS)
            ]
            rates = [[rate for rate, _ in each] for each in zip(*turns, strict=True)]
            here = statistics.median(rates[0])
            figures.append(
                {
                    "drivers": drivers,
                    "candidates_per_second": round(here),
                    "each_turn": [round(rate) for rate in rates[0]],
                    "driver_ms": round(statistics.median(turn[0][1] for turn in turns), 3),
                }
            )
            if len(trees) > 1:
                before = statistics.median(rates[1])
                figures[-1]["before_per_second"] = round(before)
                figures[-1]["before_each_turn"] = [round(rate) for rate in rates[1]]
                figures[-1]["times_faster"] = round(here / before, 2)
        address = new()
        empty = size(address)
        drive(trees[0], address, 1, number)
        bytes_each = round((size(address) - empty) / (40 * number))
    load = {"load": round(os.getloadavg()[0], 1), "processors": len(os.sched_getaffinity(0))}
    print(json.dumps({**load, "drivers": figures, "bytes_per_candidate": bytes_each}, indent=1))


if __name__ == "__main__":
    main()
