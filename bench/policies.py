"""What the policies cost, on made-up populations and on real logs, relative to `adaptive-all`.

    python bench/policies.py [--quick] [--data FOLDER] [--seeds N] [--json]

Mean cost over problems and orders, over that of `adaptive-all` (the published accounting) on the
same orders; in brackets a 95 % interval, problems being resampled. With `--data`, every score
column of every Parquet file in the folder is a column of its own, at ratios 10 and 30; `real` is
the geometric mean over columns and ratios. With keys the reference stays the one without, as keys
are outside the paper's model; `keyed / keyed` gives both of them the keys. `over adaptive` is
relative to Algorithm 1, which stops at the first pass.

No parameter is chosen here. A policy that learns is cross-fitted: the problems of each half are
searched with what was learned from the other half, those of a population with what was learned from
other problems of it.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import hashlib
import io
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grv
from grv.core.search import Policy
from grv.policies import DEFAULT, POLICIES, spec
from grv.replay.compare import compare
from grv.replay.log import Log
from grv.testing.worlds import POPULATIONS, Population

GRV = Path(sys.executable).with_name("grv")
REFERENCES = ("adaptive-all", "adaptive")
ROWS = ("verify-all", "balanced", "hedged", "alternate", "varied")
TARGETS = {"coding": 0.55, "math": 0.72, "real": 0.50, "real, keys": 0.40}
RATIOS = (10, 30)
RESAMPLES = 400

_FOLDER = tempfile.TemporaryDirectory()  # of priors, gone with the process
Costs = dict[str, NDArray[np.float64]]  # of each row `[problems]`, the mean over orders


def main() -> None:
    arguments = _arguments()
    record = measure(arguments.data, seeds=arguments.seeds, quick=arguments.quick)
    print(json.dumps(record, indent=1) if arguments.json else table(record))


def measure(data: Path | None, *, seeds: int = 3, quick: bool = False) -> dict[str, Any]:
    """Every column of the table, each from so many seeds."""
    problems, candidates, orders = (8, 48, 2) if quick else (83, 512, 5)
    seeds = 1 if quick else seeds
    record: dict[str, Any] = {"default": spec.spec(DEFAULT), "columns": {}}
    for name, law in _populations(quick).items():
        sizes = (problems, candidates, orders)
        runs = [_population(name, law, *sizes, seed) for seed in range(seeds)]
        record["columns"][name] = _summary([[(run, run, "")] for run in runs])
    if data is not None:
        _measure_logs(record, data, 2 if quick else orders, seeds, quick)
    return record


def table(record: dict[str, Any]) -> str:
    """The figures, as text."""
    lines = [f"Mean cost over that of adaptive-all; the default is {record['default']}."]
    for name, rows in record["columns"].items():
        target = f"  (cold target {TARGETS[name]})" if name in TARGETS else ""
        lines.append(f"\n{name}{target}")
        lines.append(f"  {'':12} {'ratio':>6} {'interval':>14}  from seed to seed   over adaptive")
        for row, figures in rows.items():
            low, high = figures["interval"]
            seeds = " ".join(f"{x:.2f}" for x in figures["seeds"])
            line = f"  {row:12} {figures['ratio']:6.2f}   [{low:.2f}, {high:.2f}]  {seeds:18}"
            line += f"  {figures['over adaptive']:.2f}"
            if "worst" in figures:
                line += f"   worst column {figures['worst']:.2f} ({figures['which']})"
            lines.append(line)
    return "\n".join(lines)


def _measure_logs(record: dict[str, Any], data: Path, orders: int, seeds: int, quick: bool) -> None:
    columns = list(_columns(data, quick))
    found: dict[str, list[list[tuple[Costs, Costs, str]]]] = {}
    for seed in range(seeds):
        for path, log in columns:
            for ratio in RATIOS:
                plain = _costs(log, ratio, orders, seed, keys=False)
                name = f"{log.score.removeprefix('score_')} of {path.stem} at {ratio}"
                _append(found, "real", seed, (plain, plain, name))
                if log.has_keys:
                    keyed = _costs(log, ratio, orders, seed, keys=True)
                    _append(found, "real, keys", seed, (keyed, plain, name))
                    _append(found, "real, keyed / keyed", seed, (keyed, keyed, name))
    record["columns"] |= {name: _summary(runs) for name, runs in found.items()}


def _append(found: dict[str, list[list[Any]]], name: str, seed: int, entry: object) -> None:
    runs = found.setdefault(name, [])
    while len(runs) <= seed:
        runs.append([])
    runs[seed].append(entry)


def _summary(runs: Sequence[Sequence[tuple[Costs, Costs, str]]]) -> dict[str, dict[str, Any]]:
    """Of each row: the ratio, its interval, the seeds apart, and the worst column."""
    summary: dict[str, dict[str, Any]] = {}
    for row in (name for name in runs[0][0][0] if name not in REFERENCES):
        entries = [(costs[row], base) for run in runs for costs, base, _ in run]
        cells = [_ratio(x, base["adaptive-all"]) for x, base in entries]
        per_run = len(runs[0])
        figures: dict[str, Any] = {
            "ratio": _geometric(cells),
            "interval": _interval([(x, base["adaptive-all"]) for x, base in entries]),
            "seeds": [_geometric(cells[i : i + per_run]) for i in range(0, len(cells), per_run)],
            "over adaptive": _geometric([_ratio(x, base["adaptive"]) for x, base in entries]),
        }
        if per_run > 1:
            means = [_geometric(cells[i::per_run]) for i in range(per_run)]
            figures |= {
                "worst": max(means),
                "which": runs[0][int(np.argmax(means))][2],
                "by column": {runs[0][i][2]: means[i] for i in range(per_run)},
            }
        summary[row] = figures
    return summary


def _ratio(x: NDArray[np.float64], base: NDArray[np.float64]) -> float:
    return float(x.mean() / base.mean())


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _interval(entries: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> list[float]:
    """Problems are resampled: those of one number of problems, hence of one log, together."""
    draws = {}
    for size in sorted({len(x) for x, _ in entries}):
        draws[size] = np.random.default_rng(size).integers(size, size=(RESAMPLES, size))
    logs = [np.log(x[draws[len(x)]].mean(1) / base[draws[len(x)]].mean(1)) for x, base in entries]
    low, high = np.exp(np.quantile(np.mean(logs, axis=0), [0.025, 0.975]))
    return [float(low), float(high)]


def _costs(log: Log, ratio: float, orders: int, seed: int, *, keys: bool) -> Costs:
    """The mean cost of every row on every solvable problem."""
    prices = grv.Costs(generate=1, verify=ratio)
    rows = [*REFERENCES, *ROWS]
    found = compare(rows, log, prices, orders=orders, seed=seed, keys=keys)
    if any(row.solved < 1 for row in found.rows):
        raise SystemExit(f"{log.path}: not every solvable problem was solved")
    costs = {
        row.policy: trials.costs(prices).mean(axis=1)
        for row, trials in zip(found.rows, found.trials, strict=True)
    }
    if "learned" in POLICIES:
        costs["learned"] = _cross_fitted(log, prices, orders, seed, keys=keys)
    return costs


def _cross_fitted(
    log: Log, prices: grv.Costs, orders: int, seed: int, *, keys: bool
) -> NDArray[np.float64]:
    """Each half of the solvable problems with what was learned from the other half."""
    halves = [_half(log, 0), _half(log, 1)]
    by_problem: dict[str, float] = {}
    for tried, history in (halves, halves[::-1]):
        policy = _learned(history)
        found = compare({"learned": policy}, tried, prices, orders=orders, seed=seed, keys=keys)
        means = found.trials[0].costs(prices).mean(axis=1)
        by_problem |= dict(zip(found.problems, means.tolist(), strict=True))
    return np.array([by_problem[problem.id] for problem in log.solvable])


def _half(log: Log, which: int) -> Log:
    """The problems whose names hash to an even number, or to an odd one."""
    names = (hashlib.blake2b(problem.id.encode()).digest()[0] for problem in log.problems)
    kept = tuple(p for p, name in zip(log.problems, names, strict=True) if name % 2 == which)
    return Log(kept, score="score", path=log.path)


def _learned(history: Log) -> Policy:
    """The policy, from what `grv learn` makes of these problems: once, whatever it is used for."""
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(["problem", "candidate", "passed", "score"])
    for problem in history.problems:
        rows = zip(problem.passed.tolist(), problem.scores.tolist(), strict=True)
        writer.writerows([problem.id, i, int(p), s] for i, (p, s) in enumerate(rows))
    content = table.getvalue()
    name = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
    path, prior = (Path(_FOLDER.name, name + suffix) for suffix in (".csv", ".json"))
    if not prior.exists():
        path.write_text(content)
        call = [str(GRV), "learn", str(path), "--score", "score", "-o", str(prior)]
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
    return spec.parse(f"learned({str(prior)!r})")


def _population(
    name: str, law: Population, problems: int, candidates: int, orders: int, seed: int
) -> Costs:
    drawn = tuple(law.problem(f"{name}-{i:04}", candidates, (seed, i)) for i in range(problems))
    return _costs(Log(drawn, path=f"population {name}"), 10, orders, seed, keys=False)


def _populations(quick: bool) -> dict[str, Population]:
    """The fitted ones; an easy one, pass rates .2 to .9; each with a score that says nothing."""
    laws = dict(POPULATIONS)
    if not quick:
        easy = {"low": math.log10(0.2), "high": math.log10(0.9)}
        laws["easy"] = dataclasses.replace(laws["coding"], **easy)
        laws |= {f"{n}, poor score": dataclasses.replace(x, mean=0.0) for n, x in laws.items()}
    return laws


def _columns(data: Path, quick: bool) -> Iterator[tuple[Path, Log]]:
    """Every score of every log."""
    import pyarrow.parquet

    for path in sorted(data.glob("*.parquet")):
        names = [n for n in pyarrow.parquet.read_schema(path).names if n.startswith("score")]
        for name in names[:1] if quick else names:
            yield path, Log.load(path, score=name)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="seconds, to show that it runs")
    parser.add_argument("--data", type=Path, help="a folder of logs in Parquet")
    parser.add_argument("--seeds", type=int, default=3, help="how often all is drawn anew")
    parser.add_argument("--json", action="store_true", help="figures instead of a table")
    return parser.parse_args()


if __name__ == "__main__":
    main()
