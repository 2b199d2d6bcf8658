"""Processor time to read a log, in microseconds per row: `python bench/reading.py [--quick]`.

The same log as CSV row by row, as CSV split as a whole, as CSV by Arrow, and as Parquet, in turns;
the least of three turns. The time includes making the log of the columns.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from grv.logs import csv_files, tables
from grv.logs.readers import log_of, read_log
from grv.logs.tables import ColumnTable

PROBLEMS, CANDIDATES = (20, 50) if "--quick" in sys.argv else (2000, 200)
TURNS = 3


def write(folder: Path) -> tuple[str, str]:
    """A log as CSV and as Parquet."""
    chance = np.random.default_rng(1)
    rows = PROBLEMS * CANDIDATES
    columns = {
        "problem": [f"problem-{row // CANDIDATES:04}" for row in range(rows)],
        "candidate": [row % CANDIDATES for row in range(rows)],
        "passed": (chance.random(rows) < 0.1).tolist(),
        "score": chance.normal(size=rows).tolist(),
    }
    pq.write_table(pa.table(columns), folder / "log.parquet")
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (folder / "log.csv").write_text("\n".join([",".join(columns), *lines, ""]))
    return str(folder / "log.csv"), str(folder / "log.parquet")


def by_rows(path: str) -> None:
    """Read a CSV file with the reader that takes every file."""
    columns, lines = csv_files.read_any(path)
    log_of(ColumnTable(path, columns, lines))


def with_arrow_from(size: int, path: str) -> None:
    """Read a CSV file; those of at least this size by Arrow."""
    usual = csv_files.FOR_ARROW
    csv_files.FOR_ARROW = size
    try:
        read_log(path)
    finally:
        csv_files.FOR_ARROW = usual


def main() -> None:
    """Measure, and print the figures as JSON."""
    with tempfile.TemporaryDirectory() as name:
        log, parquet = write(Path(name))
        ways: dict[str, Callable[[], object]] = {
            "row by row": lambda: by_rows(log),
            "split": lambda: with_arrow_from(1 << 60, log),
            "by Arrow": lambda: with_arrow_from(0, log),
            "Parquet": lambda: log_of(tables.read_table(parquet)),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(1 + TURNS):  # the first imports
            for way, read in ways.items():
                start = time.process_time()
                read()
                seconds[way].append(time.process_time() - start)
    rows = PROBLEMS * CANDIDATES
    least = {way: round(1e6 * min(turns[1:]) / rows, 2) for way, turns in seconds.items()}
    print(json.dumps({"rows": rows, "microseconds_per_row": least}, indent=1))


if __name__ == "__main__":
    main()
