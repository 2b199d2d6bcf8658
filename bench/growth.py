"""How seconds and memory of the replay commands grow with the log.

    python bench/growth.py [--quick] [--large]

Every command runs as its user runs it, on logs whose rows double: by more problems, and by longer
problems. The exponent is the slope of the logarithm of the processor time, without that of the same
command on a tiny log, which is the start of Python; 1 is proportional to the rows. Memory is the
peak of all processes of the command together; pages that they share count once. Then each command
runs in 1 and in 2 processes, in turns, which must write the same numbers. `learn` and `learned` are
stated relative to the default policy. `--large` adds one comparison of 10,000,000 rows with all
default rows.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from grv.testing.worlds import population

QUICK = "--quick" in sys.argv
SIZES = [(20, 20), (40, 20)] if QUICK else [(800, 100), (1600, 100), (3200, 100)]
LENGTHS = [(10, 40), (10, 80)] if QUICK else [(80, 1000), (80, 2000), (80, 4000)]
SLOW = {} if QUICK else {"report": 8, "simulate": 8}  # a log has that many times fewer problems
LARGE = (20_000, 500)
_INTERVAL = 0.2  # seconds between two looks at the memory


class Measured:
    """A finished command: seconds, processor seconds, and the peak of its memory."""

    def __init__(self, arguments: Sequence[str]) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        self.megabytes = 0.0
        one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # those that wait use time too
        with subprocess.Popen(
            [sys.executable, "-m", "grv", *arguments], stdout=subprocess.DEVNULL, env=one_thread
        ) as process:
            while process.poll() is None:
                self.megabytes = max(self.megabytes, _megabytes(process.pid))
                time.sleep(_INTERVAL)
        if process.returncode:
            raise SystemExit(f"grv {' '.join(arguments)} failed")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds = time.perf_counter() - start
        self.processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _megabytes(pid: int) -> float:
    """The memory of a process and of its children; pages that they share count once."""
    total = 0.0
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
            children = Path(f"/proc/{each}/task/{each}/children").read_text()
        except OSError:  # it has ended
            continue
        total += next(int(line.split()[1]) for line in text.splitlines() if line[:4] == "Pss:")
        waiting += map(int, children.split())
    return total / 1024


def write_log(path: Path, problems: int, candidates: int) -> None:
    """A log of the population `coding`."""
    log = population("coding", problems=problems, candidates=candidates)
    names = pa.array([problem.id for problem in log.problems])
    rows = pa.array(np.repeat(np.arange(problems, dtype=np.int32), candidates))
    columns = {
        "problem": pa.DictionaryArray.from_arrays(rows, names).cast(pa.string()),
        "candidate": np.tile(np.arange(candidates), problems),
        "passed": np.concatenate([problem.passed for problem in log.problems]),
        "score": np.concatenate([problem.scores for problem in log.problems]),
    }
    pq.write_table(pa.table(columns), path)


def commands(log: Path, prior: Path, problems: int) -> dict[str, list[str]]:
    """The arguments of each command on a log. Its numbers go to a file beside the log."""
    out = str(log.with_suffix(".json"))
    learned = f"learned('{prior}')"
    return {
        "compare": ["compare", str(log), "--json", out],
        "default": ["compare", str(log), "--policy", "default", "--json", out],
        "learned": ["compare", str(log), "--policy", learned, "--json", out],
        "learn": ["learn", str(log), "-o", out],
        "oracle": ["oracle", str(log), "--json", out],
        "simulate": ["simulate", "coding", "--problems", str(problems), "--json", out],
        "report": ["report", str(log), "-o", str(log.with_suffix(".html")), "--json", out],
    }


def growth(folder: Path, prior: Path, sizes: Sequence[tuple[int, int]], what: str) -> Any:
    """Seconds, megabytes and the exponent of each command, over logs whose rows double."""
    found: dict[str, Any] = {}
    tiny = folder / "tiny.parquet"
    write_log(tiny, 2, 4)
    for name, arguments in commands(tiny, prior, 2).items():
        if name == "simulate" and what == "candidates":
            continue  # its streams have no length
        start = Measured([*arguments, "--jobs", "1"]).processor
        runs = []
        for most, candidates in sizes:
            problems = most // SLOW.get(name, 1)
            log = folder / f"{problems}x{candidates}.parquet"
            if not log.exists():
                write_log(log, problems, candidates)
            runs.append(Measured([*commands(log, prior, problems)[name], "--jobs", "1"]))
            print(f"  {name}, {problems} x {candidates}: {runs[-1].seconds:.1f} s", file=sys.stderr)
        own = [math.log(max(run.processor - start, 0.01)) for run in runs]
        rows = [math.log(problems * candidates) for problems, candidates in sizes]
        found[name] = {
            "problems_divided_by": SLOW.get(name, 1),
            "processor_seconds": [round(run.processor, 2) for run in runs],
            "megabytes": [round(run.megabytes) for run in runs],
            "exponent": round(float(np.polyfit(rows, own, 1)[0]), 2),
        }
    return {"sizes": [f"{p} x {n}" for p, n in sizes], "commands": found}


def processes(folder: Path, prior: Path) -> Any:
    """Each command in 1 and in 2 processes, in turns; the numbers must be equal."""
    problems, candidates = (60, 400) if QUICK else (400, 500)
    log = folder / "parallel.parquet"
    write_log(log, problems, candidates)
    found: dict[str, Any] = {}
    for name, arguments in commands(log, prior, problems).items():
        seconds: dict[int, list[float]] = {1: [], 2: []}
        numbers = set()
        for _ in range(1 if QUICK else 2):
            for jobs in (1, 2):
                run = Measured([*arguments, "--jobs", str(jobs)])
                seconds[jobs].append(run.seconds)
                numbers.add(log.with_suffix(".json").read_bytes())
        if len(numbers) > 1:
            raise SystemExit(f"{name}: the numbers depend on the number of processes")
        one = min(seconds[1])
        two = min(seconds[2])
        found[name] = {"one": round(one, 2), "two": round(two, 2), "ratio": round(one / two, 2)}
    return {"problems": problems, "candidates": candidates, "commands": found}


def large(folder: Path) -> Any:
    """One comparison of 10,000,000 rows with all default rows."""
    problems, candidates = (50, 40) if QUICK else LARGE
    log = folder / "large.parquet"
    write_log(log, problems, candidates)
    run = Measured(["compare", str(log), "--json", str(folder / "large.json")])
    return {
        "rows": problems * candidates,
        "seconds": round(run.seconds),
        "processor_seconds": round(run.processor),
        "megabytes": round(run.megabytes),
    }


def main() -> None:
    """Measure, and print all figures as JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history = folder / "history.parquet"
        prior = folder / "prior.json"
        write_log(history, 40, 60)
        Measured(["learn", str(history), "-o", str(prior)])
        found: dict[str, Any] = {"load": os.getloadavg()[0], "processors": os.cpu_count()}
        if "--large" in sys.argv:
            found["large"] = large(folder)
        found["more_problems"] = growth(folder, prior, SIZES, "problems")
        found["longer_problems"] = growth(folder, prior, LENGTHS, "candidates")
        found["processes"] = processes(folder, prior)
    by_name = found["more_problems"]["commands"]
    for name in ("learn", "learned"):
        own, usual = (by_name[each]["processor_seconds"][-1] for each in (name, "default"))
        by_name[name]["times_the_default_policy"] = round(own / usual, 2)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
