"""How much sooner a search ends that looks ahead, and what that costs, on real logs.

    python bench/width.py --data FOLDER [--orders N] [--policy SPEC] [--json] [--figure FILE]

AIME and HumanEval logs, a verification for 10 candidates, 30 s per round of verification and 5 s
per generated batch. Each row is relative to width 1 on the same orders of the same problems: the
ratio of mean costs, and the ratio of mean seconds to the answer; in brackets 95 % intervals,
problems being resampled. No parameter is chosen here. `P` is a price of waiting: the search chooses
its blocks. `idle` simulates 200 problems on 64 workers: the share of time in which workers wait.
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grv.core.pace import Pace
from grv.core.search import Policy
from grv.core.values import Costs, Generate, Latency, Verify
from grv.learning.prior_file import parse_policy
from grv.learning.score_combination import read_scored
from grv.logs.log import Log
from grv.replay.engine import replayed
from grv.replay.kernels.dispatch import trials
from grv.replay.orders import batches

LOGS = {
    "AIME": ("otis_aime_pool.parquet", "score_text_lr"),
    "HumanEval": ("humaneval_codegen16b.parquet", "score_codet"),
}
COSTS, LATENCY = Costs(1, 10), Latency(5, 30)
PLAIN, OVERLAP = Pace(ramp=False), Pace(ramp=False, overlap=True)
ROWS: dict[str, tuple[int, Pace]] = {
    "width 1": (1, Pace()),
    **{
        f"width {width}{name}": (width, pace)
        for width in (4, 16)
        for name, pace in {
            ", no ramp, no overlap": PLAIN,
            ", no ramp": OVERLAP,
            ", no overlap": Pace(),
            "": Pace(overlap=True),
        }.items()
    },
    **{
        f"width 16, P = {second:g}": (16, Pace(True, True, second, LATENCY))
        for second in (0.1, 0.25, 0.5, 1, 2, 4)
    },
}
RESAMPLES = 1000
WORKERS, PROBLEMS = 64, 200


@dataclasses.dataclass(frozen=True)
class Row:
    """Mean cost and seconds of each problem, and the processor time of the replay."""

    cost: NDArray[np.float64]
    seconds: NDArray[np.float64]
    cpu: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=20)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    policy = parse_policy(given.policy)
    found = {}
    for name, (file, score) in LOGS.items():
        log = read_scored(str(given.data / file), score)
        found[name] = table(measured(log, policy, given.orders))
        found[name]["idle"] = idle(log, policy)
    if given.figure is not None:
        draw(found, given.figure)
    print(json.dumps(found, indent=1) if given.json else text(found))


def measured(log: Log, policy: Policy, orders: int) -> dict[str, Row]:
    """All rows on the same orders of the solvable problems."""
    problems = [problem for problem in log.problems if problem.solvable]
    made = list(batches(problems, orders))
    rows = {}
    for name, (width, pace) in ROWS.items():
        start = time.process_time()
        each = [trials(policy, batch, COSTS, width=width, pace=pace) for batch in made]
        cpu = time.process_time() - start
        cost = np.array([trial.costs(COSTS).mean() for trial in each])
        seconds = np.array([trial.seconds(LATENCY).mean() for trial in each])
        rows[name] = Row(cost, seconds, cpu)
    return rows


def table(rows: dict[str, Row]) -> dict[str, Any]:
    """Ratios to width 1 with their intervals."""
    one = rows["width 1"]
    chance = np.random.default_rng(0)
    sample = chance.integers(len(one.cost), size=(RESAMPLES, len(one.cost)))

    def ratio(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> list[float]:
        again = top[sample].mean(axis=1) / bottom[sample].mean(axis=1)
        low, high = np.quantile(again, [0.025, 0.975])
        return [round(float(x), 3) for x in (top.mean() / bottom.mean(), low, high)]

    return {
        name: {
            "cost": round(float(row.cost.mean()), 1),
            "seconds": round(float(row.seconds.mean()), 1),
            "dearer": ratio(row.cost, one.cost),
            "sooner": ratio(one.seconds, row.seconds),
            "cpu": round(row.cpu / one.cpu, 2),
        }
        for name, row in rows.items()
    }


def idle(log: Log, policy: Policy) -> dict[str, Any]:
    """Searches of `PROBLEMS` problems on `WORKERS` workers, 16 of them for a search at most.

    A round of a search needs one worker per verification. `spare` gives a search whose round begins
    all workers that are idle, instead of the block of its ramp.
    """
    problems = [problem for problem in log.problems if problem.solvable]
    chance = np.random.default_rng(1)
    runs: dict[str, Any] = {}
    for name, pace in {"ramp": Pace(), "full width": PLAIN}.items():
        rounds, cost = [], 0.0
        for number in range(PROBLEMS):
            problem = problems[number % len(problems)]
            order = chance.permutation(len(problem)).tolist()
            done = replayed(policy, problem, COSTS, order=order, width=16, pace=pace)
            rounds.append([_round(turn.action) for turn in done.trace])
            cost += done.bill.total
        makespan, busy, waited = _simulate(rounds)
        runs[name] = {
            "cost": round(cost),
            "makespan": round(makespan),
            "idle": round(1 - busy / (WORKERS * makespan), 3),
            "tail": round(waited / makespan, 3),
        }
    return runs


def _round(action: object) -> tuple[int, float]:
    """The workers that an action needs, and its seconds."""
    if isinstance(action, Verify):
        return len(action.ids), LATENCY.verify
    assert isinstance(action, Generate)
    return 0, LATENCY.generate


def _simulate(searches: list[list[tuple[int, float]]]) -> tuple[float, float, float]:
    """The makespan, the seconds of work, and the seconds in which no search waits to start.

    Searches start in order, as workers are free; a round waits until its workers are free.
    """
    free, now, busy, tail = WORKERS, 0.0, 0.0, 0.0
    waiting = [(number, 0) for number in range(len(searches))]  # by number of the search
    running: list[tuple[float, int, int, int]] = []
    while waiting or running:
        while waiting and searches[waiting[0][0]][waiting[0][1]][0] <= free:
            number, at = heapq.heappop(waiting)
            workers, seconds = searches[number][at]
            free -= workers
            busy += workers * seconds
            heapq.heappush(running, (now + seconds, number, at, workers))
        before = now
        now, number, at, workers = heapq.heappop(running)
        tail += (now - before) * (not waiting)
        free += workers
        if at + 1 < len(searches[number]):
            heapq.heappush(waiting, (number, at + 1))
    return now, busy, tail


def text(found: dict[str, Any]) -> str:
    """The table as text."""
    lines = []
    for log, rows in found.items():
        lines += [log, f"{'':34}{'cost':>8}{'seconds':>9}  x cost               sooner"]
        for name, row in rows.items():
            if name == "idle":
                lines.append(f"  {PROBLEMS} problems on {WORKERS} workers: {json.dumps(row)}")
                continue
            dearer = "{:.2f} ({:.2f}-{:.2f})".format(*row["dearer"])
            sooner = "{:.2f} ({:.2f}-{:.2f})".format(*row["sooner"])
            head = f"  {name:32}{row['cost']:8.1f}{row['seconds']:9.1f}"
            lines.append(f"{head}  {dearer:19}  {sooner:19}  cpu x{row['cpu']}")
    return "\n".join(lines)


def draw(found: dict[str, Any], path: Path) -> None:
    """Cost against seconds, both relative to width 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4.5 * len(found), 3.5), sharey=True)
    for axis, (log, rows) in zip(np.atleast_1d(axes), found.items(), strict=True):
        for kind, mark in (("width 4", "s"), ("width 16", "o"), ("P = ", "^")):
            points = [
                (row["dearer"][0], row["sooner"][0])
                for name, row in rows.items()
                if (kind in name and "P = " not in name) or (kind == "P = " and kind in name)
            ]
            label = "price of waiting" if kind == "P = " else kind
            axis.plot(*zip(*points, strict=True), mark, label=label)
        axis.set(title=log, xlabel="cost, relative to width 1")
        axis.axvline(1.25, color="0.8")
        axis.axhline(5, color="0.8")
    np.atleast_1d(axes)[0].set_ylabel("times sooner")
    np.atleast_1d(axes)[0].legend()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
