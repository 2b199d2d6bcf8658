"""How much sooner a search ends that looks ahead, and what that costs, on real logs.

    python bench/width.py --data FOLDER [--orders N] [--policy SPEC] [--json] [--figure FILE]

AIME and HumanEval logs, a verification for 10 candidates, 30 s per round of verification and 5 s
per generated batch. Each row is relative to width 1 on the same orders of the same problems: the
ratio of mean costs, and the ratio of mean seconds to the answer; in brackets 95 % intervals,
problems being resampled. `beside` has the random phase relative to the usual ramp of the same
width, paired. No parameter is chosen here. `P` is a price of waiting: the search chooses
its blocks. `idle` simulates 200 problems on 64 workers, of which a search takes 16 at most: how
long the run takes, and the share of workers that wait. With `spare`, searches share all workers
once no problem waits to start, and their blocks may be that much wider.

`--live` runs searches of `grv.solve_many` over candidates of the logs, with a generator of .1 s and
a verifier of .6 s that only sleep.
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

import grv
from grv.comparing.arrivals import Arrivals, by_repetition
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy, Search
from grv.core.values import (
    Costs,
    Generate,
    Generated,
    Latency,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from grv.learning.prior_file import parse_policy
from grv.learning.score_combination import read_scored
from grv.logs.log import Log, LoggedProblem
from grv.policies import Learning
from grv.replay.kernels.dispatch import many_trials
from grv.replay.orders import Orders
from grv.replay.trials import Trials, stacked
from grv.runtime.options import Calls

LOGS = {
    "AIME": ("otis_aime_pool.parquet", "score_text_lr"),
    "HumanEval": ("humaneval_codegen16b.parquet", "score_codet"),
}
COSTS = Costs(1, 10)
LATENCY = Latency(5, 30)
PLAIN = Pace(ramp=False, overlap=False)
OVERLAP = Pace(ramp=False)
ROWS: dict[str, tuple[int, Pace]] = {
    "width 1": (1, Pace(overlap=False)),
    **{
        f"width {width}{name}": (width, pace)
        for width in (4, 16)
        for name, pace in {
            ", no ramp, no overlap": PLAIN,
            ", no ramp": OVERLAP,
            ", no overlap": Pace(overlap=False),
            "": Pace(),
            ", random phase": Pace(random_phase=True),
        }.items()
    },
    **{
        f"width 16, P = {price:g}": (16, Pace(wait_price=price, latency=LATENCY))
        for price in (0.1, 0.25, 0.5, 1, 2, 4)
    },
}
RESAMPLES = 1000
WORKERS = 64
PROBLEMS = 200
SCALE = 0.02  # real seconds of a second of `--live`


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
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    policy = parse_policy(given.policy)
    found: dict[str, Any] = {}
    for name, (file, score) in LOGS.items():
        log = read_scored(str(given.data / file), score)
        if given.live:
            found[name] = table(measured_live(log, policy))
        else:
            rows = measured(log, policy, given.orders)
            found[name] = table(rows)
            found[name]["beside"] = beside(rows)
            found[name]["idle"] = idle(log, policy)
    if given.figure is not None:
        draw(found, given.figure)
    print(json.dumps(found, indent=1) if given.json else text(found))


def measured(log: Log, policy: Policy, orders: int) -> dict[str, Row]:
    """All rows on the same orders of the solvable problems."""
    problems = [problem for problem in log.problems if problem.solvable]
    made = Orders(problems, orders)
    batches = list(made.batches())
    many_trials(policy, batches, COSTS)  # rankings are made once

    def tried(how: Limits) -> Trials:
        if not isinstance(policy, Learning):
            return stacked(many_trials(policy, batches, COSTS, how))
        replay = Arrivals(made, log.score, limits=how)
        return by_repetition([replay.trials(policy, COSTS, each) for each in range(orders)])

    rows = {}
    for name, (width, pace) in ROWS.items():
        start = time.process_time()
        found = tried(Limits(width=width, pace=pace))
        cpu = time.process_time() - start
        cost = found.costs(COSTS).mean(axis=1)
        seconds = found.seconds(LATENCY).mean(axis=1)
        rows[name] = Row(cost, seconds, cpu)
    return rows


def ratio(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> list[float]:
    """The ratio of the means with its interval; problems are resampled, always the same ones."""
    sample = np.random.default_rng(0).integers(len(top), size=(RESAMPLES, len(top)))
    again = top[sample].mean(axis=1) / bottom[sample].mean(axis=1)
    low, high = np.quantile(again, [0.025, 0.975])
    return [round(float(x), 3) for x in (top.mean() / bottom.mean(), low, high)]


def beside(rows: dict[str, Row]) -> dict[str, Any]:
    """The random phase relative to the usual ramp: cost and seconds."""
    found = {}
    for width in (4, 16):
        usual = rows[f"width {width}"]
        random = rows[f"width {width}, random phase"]
        found[f"width {width}"] = {
            "cost": ratio(random.cost, usual.cost),
            "seconds": ratio(random.seconds, usual.seconds),
        }
    return found


def table(rows: dict[str, Row]) -> dict[str, Any]:
    """Ratios to width 1 with their intervals."""
    one = rows["width 1"]
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


def measured_live(log: Log, policy: Policy) -> dict[str, Row]:
    """Some problems of the log, searched live in one order, with backends that sleep."""
    problems = [problem for problem in log.problems if problem.solvable][::4]
    chance = np.random.default_rng(2)
    orders = {each.id: chance.permutation(len(each)).tolist() for each in problems}
    rows = {}
    for name in ("width 1", "width 4", "width 16, no ramp", "width 16"):
        width, pace = ROWS[name]
        start = time.process_time()
        backends = _sleeping(problems, orders)
        asked = [grv.Problem(each.id, each.id) for each in problems]
        how: dict[str, Any] = {"policy": policy, "costs": COSTS, "width": width, "pace": pace}
        how["calls"] = Calls(concurrency=1000)
        solved = {each.problem: each for each in grv.solve_many_now(asked, **backends, **how)}
        cost = np.array([solved[each.id].bill.total for each in problems])
        seconds = np.array([solved[each.id].seconds for each in problems])
        rows[name] = Row(cost, seconds, time.process_time() - start)
    return rows


def _sleeping(
    problems: Sequence[LoggedProblem], orders: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    """A generator, a scorer and a verifier over logged candidates, whose texts are numbers."""
    by_id = {each.id: each for each in problems}

    class Generator:
        async def generate(self, problem: grv.Problem, n: int, *, first: int) -> list[grv.Draft]:
            await anyio.sleep(SCALE * LATENCY.generate)
            return [grv.Draft(str(i)) for i in orders[problem.id][first : first + n]]

    class Verifier:
        async def verify(self, problem: grv.Problem, draft: grv.Draft) -> grv.verifiers.Finding:
            await anyio.sleep(SCALE * LATENCY.verify)
            passed = bool(by_id[problem.id].passed[int(draft.text)])
            return grv.verifiers.Finding(grv.Verdict.PASSED if passed else grv.Verdict.FAILED)

    def score(problem: grv.Problem, text: str) -> float:
        return float(by_id[problem.id].scores[int(text)])

    return {"generator": Generator(), "scorer": score, "verifier": Verifier()}


def idle(log: Log, policy: Policy) -> dict[str, Any]:
    """Searches of `PROBLEMS` problems on `WORKERS` workers, which verify.

    A round of verification waits until as many workers are free as it has candidates.
    """
    problems = [problem for problem in log.problems if problem.solvable]
    chance = np.random.default_rng(1)
    chosen = [problems[number % len(problems)] for number in range(PROBLEMS)]
    orders = [chance.permutation(len(problem)).tolist() for problem in chosen]
    runs: dict[str, Any] = {}
    for name, spare in (("width 16", False), ("spare", True)):
        makespan, busy, cost = _Workers(policy, chosen, orders, spare).run()
        runs[name] = {
            "cost": round(cost),
            "makespan": round(makespan),
            "idle": round(1 - busy / (WORKERS * makespan), 3),
        }
    return runs


class _Workers:
    """Searches that share workers, in simulated time."""

    def __init__(
        self,
        policy: Policy,
        problems: Sequence[LoggedProblem],
        orders: Sequence[Sequence[int]],
        spare: bool,
    ) -> None:
        self._problems = problems
        self._orders = orders
        self._spare = spare
        self._searches = [
            Search(policy, COSTS, Limits(width=16, pace=Pace(overlap=False))) for _ in problems
        ]
        self._unstarted = len(problems)
        self._running = 0
        self._free = WORKERS

    def run(self) -> tuple[float, float, float]:
        """The makespan, the seconds of work, and the cost."""
        now = busy = 0.0
        waiting = list(range(len(self._searches)))
        started: set[int] = set()
        running: list[tuple[float, int, int]] = []
        while waiting or running:
            while waiting:
                number = waiting[0]
                if self._spare and len(started) == len(self._searches):
                    share = max(16, WORKERS // max(1, len(waiting) + len(running)))
                    self._searches[number]._ahead._width = share  # type: ignore[union-attr]  # noqa: SLF001
                action = self._searches[number].ask()
                needed = len(action.ids) if isinstance(action, Verify) else 0
                if needed > self._free:
                    break
                heapq.heappop(waiting)
                started.add(number)
                if isinstance(action, Stop):
                    continue
                seconds = LATENCY.verify if needed else LATENCY.generate
                self._free -= needed
                busy += needed * seconds
                heapq.heappush(running, (now + seconds, number, needed))
            if running:
                now, number, needed = heapq.heappop(running)
                self._free += needed
                self._tell(number)
                heapq.heappush(waiting, number)
        return now, busy, sum(search.bill.total for search in self._searches)

    def _tell(self, number: int) -> None:
        search = self._searches[number]
        problem = self._problems[number]
        order = self._orders[number]
        action = search.ask()
        if isinstance(action, Generate):
            batch = order[search.arrived : search.arrived + action.n]
            search.tell(Generated(tuple(float(problem.scores[i]) for i in batch)))
        elif isinstance(action, Verify):
            found = {id: bool(problem.passed[order[id]]) for id in action.ids}
            words = {True: Verdict.PASSED, False: Verdict.FAILED}
            search.tell(Verified({id: words[passed] for id, passed in found.items()}))


def text(found: dict[str, Any]) -> str:
    """The table as text."""
    lines = []
    for log, rows in found.items():
        lines += [log, f"{'':34}{'cost':>8}{'seconds':>9}  x cost               sooner"]
        for name, row in rows.items():
            if name == "beside":
                lines.append(f"  the random phase over the usual ramp: {json.dumps(row)}")
                continue
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
                if "dearer" in row
                and ((kind in name and "P = " not in name) or (kind == "P = " and kind in name))
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
