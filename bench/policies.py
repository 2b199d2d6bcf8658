"""What the policies cost, on made-up populations and on real logs, relative to `adaptive-all`.

    python bench/policies.py [--quick] [--data FOLDER] [--seeds N] [--json]

Mean cost over problems and orders, over that of `adaptive-all` (the published accounting) on the
same orders; in brackets a 95 % interval, problems being resampled. With `--data`, every score
column of every Parquet file in the folder is a column of its own, at ratios 10 and 30; `real` is
the geometric mean over columns and ratios. With keys the reference stays the one without, as keys
are outside the paper's model; `keyed / keyed` gives both of them the keys. `over adaptive` is
relative to Algorithm 1, which stops at the first pass.

No parameter is chosen here. `learned` is cross-fitted: the problems of each fifth of a log are
searched with what `grv learn` makes of the other four, once for all ratios, orders and seeds, and
those of a population with what it makes of 83 other problems of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grv
from grv.comparing.compare import compare
from grv.comparing.tune import costs_of, learn
from grv.learning.history import History, past
from grv.logs.log import Log
from grv.policies import DEFAULT, spec
from grv.policies.learned.prior import Prior
from grv.replay.orders import batches
from grv.testing.worlds import POPULATIONS, Population

REFERENCES = ("adaptive-all", "adaptive")
ROWS = ("verify-all", "balanced", "hedged", "alternate", "varied")
TARGETS = {  # for a cold policy, and for one with history
    "coding": (0.55, 0.50),
    "math": (0.72, 0.65),
    "real": (0.50, 0.45),
    "real, keys": (0.40, 0.35),
}
WORST = {"real": (0.80, 0.75)}
RATIOS = (10, 30)
RESAMPLES = 400
# problems of a population: to learn from, and to search
PAST = 83
FRESH = 500
FOLDS = 5

Costs = dict[str, NDArray[np.float64]]  # of each row `[problems]`, the mean over orders


def main() -> None:
    arguments = _arguments()
    record = measure(arguments.data, seeds=arguments.seeds, quick=arguments.quick)
    print(json.dumps(record, indent=1) if arguments.json else table(record))


def measure(data: Path | None, *, seeds: int = 3, quick: bool = False) -> dict[str, Any]:
    """Every column of the table, each from `seeds` seeds."""
    sizes = Sizes(8, 8, 48, 2) if quick else Sizes(PAST, FRESH, 512, 1)
    seeds = 1 if quick else seeds
    record: dict[str, Any] = {"default": spec.spec(DEFAULT), "columns": {}}
    for name, law in _populations(quick).items():
        runs = [_population(name, law, sizes, seed) for seed in range(seeds)]
        record["columns"][name] = found = _summary([[(run, run, "")] for run in runs])
        _tell(f"{name}: learned {found['learned']['ratio']:.3f}")
    if data is not None:
        _measure_logs(record, data, 2 if quick else 3, seeds, quick)
    record["seconds"] = round(time.process_time(), 1)
    return record


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of a population: problems to learn from and to search, candidates of each, and orders."""

    past: int
    fresh: int
    candidates: int
    orders: int


def table(record: dict[str, Any]) -> str:
    """The figures, as text."""
    lines = [f"Mean cost over that of adaptive-all; the default is {record['default']}."]
    for name, rows in record["columns"].items():
        lines.append(f"\n{name}{_wanted(name)}")
        lines.append(f"  {'':12} {'ratio':>6} {'interval':>14}  from seed to seed   over adaptive")
        for row, figures in rows.items():
            low, high = figures["interval"]
            seeds = " ".join(f"{x:.2f}" for x in figures["seeds"])
            line = f"  {row:12} {figures['ratio']:6.2f}   [{low:.2f}, {high:.2f}]  {seeds:18}"
            line += f"  {figures['over adaptive']:.2f}"
            if "worst" in figures:
                line += f"   worst column {figures['worst']:.2f} ({figures['which']})"
            lines.append(line)
    lines.append(f"\n{record['seconds']:g} s of processor time")
    return "\n".join(lines)


def _wanted(name: str) -> str:
    if name not in TARGETS:
        return ""
    cold, learned = TARGETS[name]
    text = f"  (wanted: {cold:.2f} cold, {learned:.2f} learned"
    if name in WORST:
        text += ", no column above {:.2f} and {:.2f}".format(*WORST[name])
    return text + ")"


def _tell(text: str) -> None:
    print(f"{time.process_time():6.0f} s  {text}", file=sys.stderr, flush=True)


def _measure_logs(record: dict[str, Any], data: Path, orders: int, seeds: int, quick: bool) -> None:
    columns = list(_columns(data, quick))
    found: dict[str, list[list[tuple[Costs, Costs, str]]]] = {}
    for path, log in columns:
        folds = _folds(log)
        for seed in range(seeds):
            for ratio in RATIOS:
                name = f"{log.score.removeprefix('score_')} of {path.stem} at {ratio}"
                _tell(f"{name}, seed {seed}")
                plain = _costs(log, folds, ratio, orders, seed, keys=False)
                _append(found, "real", seed, (plain, plain, name))
                _tell(f"  learned {_ratio(plain['learned'], plain['adaptive-all']):.3f}")
                if log.has_keys:
                    keyed = _costs(log, folds, ratio, orders, seed, keys=True)
                    ratio_now = _ratio(keyed["learned"], plain["adaptive-all"])
                    _tell(f"  with keys: learned {ratio_now:.3f}")
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


@dataclasses.dataclass(frozen=True)
class Fold:
    """Some problems of a log, and what was learned from others."""

    problems: frozenset[str]
    prior: Prior


def _folds(log: Log) -> list[Fold]:
    """The problems in parts, by a hash of their names, each with what the other parts say."""
    parts: dict[int, list[str]] = {}
    for problem in log.problems:
        digest = hashlib.blake2b(problem.id.encode(), digest_size=8).digest()
        parts.setdefault(int.from_bytes(digest, "big") % FOLDS, []).append(problem.id)
    folds = []
    for number, names in sorted(parts.items()):
        _tell(f"learning {log.score} of {log.path} without part {number + 1} of {FOLDS}")
        kept = tuple(problem for problem in log.problems if problem.id not in names)
        folds.append(Fold(frozenset(names), _learned(Log(kept, log.score, log.path))))
    return folds


def _learned(log: Log) -> Prior:
    """What `grv learn` makes of a log."""
    return learn(History.of(past(log), log.score, [log.path]))


def _costs(
    log: Log, folds: Sequence[Fold], ratio: float, orders: int, seed: int, *, keys: bool
) -> Costs:
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
    by_problem: dict[str, float] = {}
    for fold in folds:
        tried = [problem for problem in log.solvable if problem.id in fold.problems]
        if tried:
            made = list(batches(tried, orders, seed=seed, keyed=keys))
            means = costs_of([(fold.prior, ratio)], made).reshape(len(tried), orders).mean(axis=1)
            by_problem |= dict(zip((p.id for p in tried), means.tolist(), strict=True))
    costs["learned"] = np.array([by_problem[problem.id] for problem in log.solvable])
    return costs


def _population(name: str, law: Population, sizes: Sizes, seed: int) -> Costs:
    _tell(f"population {name}, seed {seed}")
    problems = [
        law.problem(f"{name}-{i:04}", sizes.candidates, (seed, i))
        for i in range(sizes.fresh + sizes.past)
    ]
    fresh = Log(tuple(problems[: sizes.fresh]), path=f"population {name}")
    prior = _learned(Log(tuple(problems[sizes.fresh :]), path=f"population {name}"))
    fold = Fold(frozenset(problem.id for problem in fresh.problems), prior)
    return _costs(fresh, [fold], 10, sizes.orders, seed, keys=False)


def _populations(quick: bool) -> dict[str, Population]:
    """The fitted ones; an easy one, pass rates .2 to .9; each with a score that says nothing."""
    laws = dict(list(POPULATIONS.items())[:1] if quick else POPULATIONS)
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
