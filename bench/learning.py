"""What learning online costs: problems in order of arrival, relative to `adaptive-all`.

    python bench/learning.py --data FOLDER [--orders N] [--seed N] [--quick] [--json]
    python bench/learning.py --speed

Every score column of every Parquet file in the folder is a column, at ratios 10 and 30. Each
repetition takes the problems in another random order. `learning` starts cold and sees only the
verdicts of its own searches. A figure is the cost of the problems in a window of positions over
that of `adaptive-all` (the published accounting, without keys) on the same problems and orders; the
geometric mean over columns and ratios, with a 95 % interval, problems being resampled.

No parameter is chosen here. `--speed` measures the time that a job of 500 problems spends on
learning.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grv
from grv.comparing.arrivals import left_by, positions
from grv.comparing.compare import compare
from grv.learning.history import PastProblem
from grv.learning.online import last_refit, prior_after
from grv.logs.log import Log
from grv.policies import DEFAULT, Learning
from grv.replay.engine import replayed
from grv.testing.worlds import POPULATIONS

REFERENCE = "adaptive-all"
ROWS = ("varied", "learning", "verify-all")
RATIOS = (10, 30)
WINDOWS = {
    "1 to 10": (0, 10),
    "11 to 50": (10, 50),
    "after 50": (50, 10**9),
    "from 11": (10, 10**9),
}
GOALS = {("11 to 50", False): 0.48, ("after 50", False): 0.52, ("from 11", True): 0.37}
GOAL = "the logs of the goals"
GOAL_LOGS = ("humaneval_codegen16b", "otis_aime_pool")
CURVE = (0, 6, 10, 15, 22, 33, 50, 75, 112, 168)  # the limits of the positions of the curves
RESAMPLES = 400
JOB = 500  # problems of the job whose time is measured

Numbers = NDArray[np.float64]


def main() -> None:
    arguments = _arguments()
    if arguments.speed:
        print(json.dumps(speed()) if arguments.json else told_speed(speed()))
        return
    if arguments.data is None:
        raise SystemExit("give --data FOLDER, or --speed")
    orders = 2 if arguments.quick else arguments.orders
    cells = list(measured(arguments.data, orders, arguments.seed, quick=arguments.quick))
    record = {"orders": orders, "seed": arguments.seed, **figures(cells)}
    print(json.dumps(record, indent=1) if arguments.json else table(record))


@dataclass(frozen=True, eq=False)
class Cell:
    """One column at one ratio. Arrays are `[problems, orders]`.

    Attributes:
        log: the name of the log.
        name: the name of the column and the ratio.
        keyed: whether policies use keys; the reference never does.
        costs: by row.
        base: the cost of the reference.
        positions: the position of each problem in each repetition.
    """

    log: str
    name: str
    keyed: bool
    costs: dict[str, Numbers]
    base: Numbers
    positions: NDArray[np.intp]

    def sums(self, row: str, low: int, high: int) -> tuple[Numbers, Numbers]:
        """`[problems]`: cost of the row and of the reference in a window of positions."""
        inside = (self.positions >= low) & (self.positions < high)
        return (self.costs[row] * inside).sum(axis=1), (self.base * inside).sum(axis=1)


def measured(data: Path, orders: int, seed: int, *, quick: bool = False) -> Iterator[Cell]:
    """All cells of the table."""
    import pyarrow.parquet

    for path in sorted(data.glob("*.parquet")):
        names = [n for n in pyarrow.parquet.read_schema(path).names if n.startswith("score")]
        for name in names[:1] if quick else names:
            log = Log.load(path, score=name)
            for ratio in RATIOS:
                base: Numbers | None = None
                for keyed in (False, True) if log.has_keys else (False,):
                    found = _costs(log, ratio, orders, seed, keyed=keyed)
                    base = found.pop(REFERENCE) if base is None else base
                    found.pop(REFERENCE, None)
                    title = f"{name.removeprefix('score_')} of {path.stem} at {ratio}"
                    _tell(f"{title}{', keys' if keyed else ''}")
                    arrived = positions(range(len(base)), orders, seed)
                    yield Cell(path.stem, title, keyed, found, base, arrived)


def _costs(log: Log, ratio: float, orders: int, seed: int, *, keyed: bool) -> dict[str, Numbers]:
    prices = grv.Costs(1, ratio)
    found = compare([REFERENCE, *ROWS], log, prices, orders=orders, seed=seed, keys=keyed)
    if any(row.solved < 1 for row in found.rows):
        raise SystemExit(f"{log.path}: not every solvable problem was solved")
    pairs = zip(found.rows, found.trials, strict=True)
    return {row.policy: trials.costs(prices) for row, trials in pairs}


def figures(cells: list[Cell]) -> dict[str, Any]:
    """The windows, overall and per log; the columns; the curves."""
    logs = sorted({cell.log for cell in cells})
    record: dict[str, Any] = {"windows": [], "columns": [], "curves": []}
    for keyed in (False, True):
        chosen = [cell for cell in cells if cell.keyed is keyed]
        groups = {"all logs": logs, GOAL: GOAL_LOGS} | {log: [log] for log in logs}
        for which, names in groups.items():
            some = [cell for cell in chosen if cell.log in names]
            for window, limits in WINDOWS.items():
                found = {row: summary(some, row, limits) for row in ROWS}
                if found["learning"] is not None:
                    record["windows"].append(
                        {"log": which, "keys": keyed, "window": window, **found}
                    )
        for low, high in itertools.pairwise(CURVE):
            found = {row: summary(chosen, row, (low, high)) for row in ("varied", "learning")}
            if found["learning"] is not None:
                positions = f"{low + 1} to {high}"
                record["curves"].append({"keys": keyed, "positions": positions, **found})
    for cell in cells:
        found = {row: summary([cell], row, WINDOWS["from 11"]) for row in ROWS}
        record["columns"].append({"column": cell.name, "keys": cell.keyed, **found})
    return record


def summary(cells: list[Cell], row: str, limits: tuple[int, int]) -> dict[str, Any] | None:
    """Geometric mean over cells, its interval, that over `varied`, and the worst cell."""
    sums = [(cell, cell.sums(row, *limits), cell.sums("varied", *limits)) for cell in cells]
    sums = [each for each in sums if each[1][1].sum() > 0]
    if not sums:
        return None
    ratios = [float(x.sum() / base.sum()) for _, (x, base), _ in sums]
    draws = {size: _draws(size) for size in {len(x) for _, (x, _), _ in sums}}
    over = [_resampled(*pair, draws) for _, pair, _ in sums]
    paired = [_resampled(pair[0], cold[0], draws) for _, pair, cold in sums]
    worst = int(np.argmax(ratios))
    return {
        "ratio": math.exp(float(np.mean(np.log(ratios)))),
        "interval": _interval(over),
        "over varied": math.exp(
            float(np.mean([math.log(p[0].sum() / c[0].sum()) for _, p, c in sums]))
        ),
        "over varied interval": _interval(paired),
        "worst": ratios[worst],
        "which": sums[worst][0].name,
    }


def _draws(size: int) -> NDArray[np.intp]:
    return np.random.default_rng(size).integers(size, size=(RESAMPLES, size))


def _resampled(x: Numbers, base: Numbers, draws: dict[int, NDArray[np.intp]]) -> Numbers:
    """`[resamples]`: the logarithm of the ratio; problems of one log are resampled together."""
    some = draws[len(x)]
    top = x[some].sum(axis=1)
    bottom = base[some].sum(axis=1)
    found: Numbers = np.log(np.maximum(top, 1e-9) / np.maximum(bottom, 1e-9))
    return found


def _interval(logs: list[Numbers]) -> list[float]:
    ends = np.exp(np.quantile(np.mean(logs, axis=0), [0.025, 0.975]))
    return [float(end) for end in ends]


def table(record: dict[str, Any]) -> str:
    """The figures, as text."""
    lines = [
        f"Cost over that of {REFERENCE}, problems in order of arrival, {record['orders']}"
        f" repetitions, seed {record['seed']}.",
    ]
    for each in record["windows"]:
        goal = GOALS.get((each["window"], each["keys"])) if each["log"] == GOAL else None
        wanted = "" if goal is None else f"  (wanted: {goal:.2f})"
        keys = ", keys" if each["keys"] else ""
        lines.append(f"\n{each['log']}{keys}, problems {each['window']}{wanted}")
        lines += [_line(row, each[row]) for row in ROWS]
    lines.append("\ncolumns, from problem 11")
    for each in record["columns"]:
        keys = ", keys" if each["keys"] else ""
        lines.append(
            f"  {each['column'] + keys:52} "
            + "  ".join(f"{row} {each[row]['ratio']:.3f}" for row in ROWS)
        )
    lines.append("\ncurves: learning over varied by position")
    for each in record["curves"]:
        low, high = each["learning"]["over varied interval"]
        keys = ", keys" if each["keys"] else ""
        over = each["learning"]["over varied"]
        lines.append(f"  {each['positions'] + keys:18} {over:.3f} [{low:.3f}, {high:.3f}]")
    return "\n".join(lines)


def _line(row: str, found: dict[str, Any]) -> str:
    low, high = found["interval"]
    below, above = found["over varied interval"]
    return (
        f"  {row:12} {found['ratio']:.3f} [{low:.3f}, {high:.3f}]  over varied"
        f" {found['over varied']:.3f} [{below:.3f}, {above:.3f}]  worst {found['worst']:.2f}"
        f" ({found['which']})"
    )


def speed() -> dict[str, Any]:
    """Processor seconds that a job spends on learning: all fits, and the tables of each prior."""
    law = POPULATIONS["coding"]
    finished = list[PastProblem]()
    for number in range(JOB):
        problem = law.problem(f"p{number:04}", 256, (0, number))
        order = np.arange(256)
        search = replayed(DEFAULT, problem, grv.Costs(1, 10), order=order.tolist())
        finished.append(left_by(search, problem, order))
    fits = []
    start = time.process_time()
    for n in range(JOB + 1):
        if last_refit(n) == n > 0:
            before = time.process_time()
            prior = prior_after(finished[:n], "score")
            assert prior is not None
            Learning().chosen(prior)
            prior.to_text()
            fits.append([n, time.process_time() - before])
    return {"problems": JOB, "seconds": time.process_time() - start, "fits": fits}


def told_speed(record: dict[str, Any]) -> str:
    """The seconds, as text."""
    each = ", ".join(f"{n}: {1000 * seconds:.0f} ms" for n, seconds in record["fits"])
    return f"{record['problems']} problems: {record['seconds']:.2f} s on learning in all ({each})"


def _tell(text: str) -> None:
    print(f"{time.process_time():6.0f} s  {text}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="a folder of logs in Parquet")
    parser.add_argument("--orders", type=int, default=10, help="repetitions")
    parser.add_argument("--seed", type=int, default=0, help="seed of all orders")
    parser.add_argument("--speed", action="store_true", help="the time that learning takes")
    parser.add_argument("--quick", action="store_true", help="one column per log, two repetitions")
    parser.add_argument("--json", action="store_true", help="figures instead of a table")
    return parser.parse_args()


if __name__ == "__main__":
    main()
