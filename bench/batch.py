"""One budget for many problems: the share of solvable problems that each schedule solves.

    python bench/batch.py [--data FOLDER] [--orders N] [--problems N] [--seed N] [--json]
    python bench/batch.py --speed

The logs are two of the folder, and populations in which a third of the problems is impossible (all
their candidates fail). Budgets are shares of what the default policy needs to solve all solvable
problems. Costs 1,10; no keys; width 1; intervals from resampled batches.

`predicted r` gives each problem a prediction whose logarithm has the correlation r with that of its
mean cost, and k by the table of `grv.schedules`. Also: the share of steps that a prior decided,
what several steps at once cost, and what it brings to take the first two steps of `balanced` as one
block. `--speed`: microseconds per choice and bytes per search with 100,000 open searches.

No parameter is chosen here.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import grv
from grv.comparing import learn
from grv.comparing.arrivals import arrival
from grv.comparing.learning_batch import LearningBatch
from grv.learning import History, past
from grv.logs.log import Log
from grv.policies import DEFAULT, Balanced, Learned, Learning
from grv.replay.batch import Course, CourseSteps, course_of, run_batch, sorted_steps
from grv.replay.orders import Orders
from grv.schedules import SCHEDULES, parse, prediction_weight
from grv.testing import population

COSTS = grv.Costs(1, 10)
SHARES = (0.1, 0.25, 0.5, 0.75)
SCHEDULE = "in-order,equal-shares,rolling-share,stream,doubling,least-spent"
PAPERS = "reset,elimination,two-stage"
LOGS = (
    ("humaneval_codegen16b.parquet", "score_codet"),
    ("otis_aime_pool.parquet", "score_votes_loro"),
)
POPULATIONS = ("coding", "math", "easy")
CORRELATIONS = (0.3, 0.5, 0.7, 0.9)
OPEN = 100_000
HISTORY = 77  # the seed of the problems that a prior was fitted to


def logs(folder: Path | None, problems: int, seed: int = 0) -> Iterator[tuple[str, Log]]:
    for name, score in LOGS if folder is not None else ():
        assert folder is not None
        yield f"{name.partition('.')[0]} {score}", Log.load(folder / name, score=score)
    for name in POPULATIONS:
        drawn = population(name, problems=2 * problems // 3, candidates=256, seed=seed)
        solvable = drawn.problems
        others = population(name, problems=problems // 3, candidates=256, seed=seed + 1).problems
        impossible = [
            dataclasses.replace(p, id=f"impossible {p.id}", passed=np.zeros(len(p), np.bool_))
            for p in others
        ]
        yield f"population {name}", Log((*solvable, *impossible), path=name)


def predicted(log: Log, correlation: float, orders: int) -> Log:
    """The log with predictions of this correlation."""
    tried = grv.compare(["default"], log, COSTS, orders=orders, unsolvable="include", jobs=1)
    costs = np.log(tried.trials[0].costs(COSTS).mean(axis=1))
    noise = np.random.default_rng(5).standard_normal(len(costs))
    spread = (costs - costs.mean()) / costs.std()
    guess = correlation * spread + np.sqrt(1 - correlation**2) * noise
    expected = np.exp(costs.mean() + costs.std() * guess).tolist()
    problems = [
        dataclasses.replace(problem, expected=each)
        for problem, each in zip(log.problems, expected, strict=True)
    ]
    return dataclasses.replace(log, problems=tuple(problems))


def rows(log: Log, orders: int) -> Iterator[dict[str, Any]]:
    budgets = ",".join(f"{100 * share:g}%" for share in SHARES)
    how: dict[str, Any] = {"orders": orders, "total_budget": budgets, "jobs": 1}
    found = grv.compare(["default", "learning"], log, COSTS, schedule=f"{SCHEDULE},{PAPERS}", **how)
    for row in found.batches:
        yield row.to_json()
    for correlation in CORRELATIONS:
        rule = f"cheapest-predicted(k={prediction_weight(correlation):g})"
        better = grv.compare(
            ["default"], predicted(log, correlation, orders), COSTS, schedule=rule, **how
        )
        for row in better.batches:
            if row.schedule.startswith("cheapest-predicted"):
                yield {**row.to_json(), "schedule": f"predicted {correlation:g}"}


def with_history(name: str, log: Log, orders: int) -> Iterator[dict[str, Any]]:
    """The rows of a prior that was fitted to other problems of the same population."""
    _, _, kind = name.rpartition("population ")
    if kind not in POPULATIONS:
        return
    other = population(kind, problems=60, candidates=256, seed=HISTORY)
    prior = learn(History.of(past(other), other.score, ["another draw"]))
    budgets = ",".join(f"{100 * share:g}%" for share in SHARES)
    how: dict[str, Any] = {"orders": orders, "total_budget": budgets, "jobs": 1}
    found = grv.compare({"history": Learned(prior)}, log, COSTS, schedule="least-spent", **how)
    for row in found.batches:
        if row.schedule == "least-spent":
            yield row.to_json()


def decided(log: Log, orders: int, budget: float) -> dict[str, float]:
    """The share of steps that a prior decided."""
    batch = LearningBatch(Orders(log.problems, orders), log.score, COSTS, grv.Limits())
    shares = {}
    for name in ("least-spent", "in-order"):
        runs = [batch.run(Learning(), parse(name), number, budget) for number in range(orders)]
        shares[name] = float(np.mean([run.decided.mean() for run in runs]))
    return shares


def courses_of(log: Log, policy: Any, orders: int) -> list[list[Course]]:
    return [
        [
            course_of(grv.Search(policy, COSTS), batch.problem, order)
            for order in batch.orders.tolist()
        ]
        for batch in Orders(log.problems, orders).batches()
    ]


def solved(courses: list[list[Course]], budget: float, at_once: int = 1) -> float:
    """The mean number of problems that least spent first solves."""
    counts = []
    for repetition in range(len(courses[0])):
        order = arrival(len(courses), repetition, 0).tolist()
        searches = [CourseSteps(courses[place][repetition]) for place in order]
        schedule = parse("least-spent").begin()
        counts.append(run_batch(schedule, searches, budget, at_once=at_once).solved.sum())
    return float(np.mean(counts))


def in_blocks(courses: list[list[Course]], budgets: list[float], first: float) -> list[float]:
    """The mean number solved if steps up to the level `first` are one block.

    The keys must not tell what a step finds, so all these steps have the key `first`.
    """
    counts = []
    for repetition in range(len(courses[0])):
        order = arrival(len(courses), repetition, 0).tolist()
        batch = [courses[place][repetition] for place in order]
        steps = sorted_steps(batch, [np.maximum(course.levels, first) for course in batch])
        counts.append([len(found) for found in steps.solved(budgets)])
    means: list[float] = np.mean(counts, axis=0).tolist()
    return means


def measured(name: str, log: Log, orders: int) -> dict[str, Any]:
    print(f"{name} ...", file=sys.stderr)
    found = [*rows(log, orders), *with_history(name, log, orders)]
    whole = found[0]["budget"] / found[0]["share"]
    default = courses_of(log, DEFAULT, orders)
    balanced = courses_of(log, Balanced(), orders)
    half = [0.25 * whole, 0.5 * whole]
    second = sum(slot.draws + COSTS.verify for slot in itertools.islice(Balanced().slots(COSTS), 2))
    solvable = len(log.solvable)
    return {
        "log": name,
        "problems": len(log.problems),
        "solvable": solvable,
        "rows": found,
        "decided by a prior, half the money": decided(log, orders, 0.5 * whole),
        "steps at once, half the money": {
            str(n): solved(default, 0.5 * whole, n) / solvable for n in (1, 8, 64)
        },
        "balanced, a quarter and half the money": {
            what: [number / solvable for number in in_blocks(balanced, half, first)]
            for what, first in (("every verdict", 0.0), ("first two together", second))
        },
    }


def shown(result: dict[str, Any]) -> None:
    print(f"\n{result['log']}: {result['problems']} problems, {result['solvable']} solvable")
    table: dict[tuple[str, str], list[str]] = {}
    for row in result["rows"]:
        cell = f"{row['solved']:.3f} [{row['low']:.2f}, {row['high']:.2f}]"
        table.setdefault((row["schedule"], row["policy"]), []).append(cell)
    for (schedule, policy), cells in table.items():
        print(f"| {schedule} | {policy} | {' | '.join(cells)} |")
    for name in ("decided by a prior, half the money", "steps at once, half the money"):
        print(name, {key: round(value, 3) for key, value in result[name].items()})
    name = "balanced, a quarter and half the money"
    print(name, {key: [round(v, 3) for v in values] for key, values in result[name].items()})


def speed() -> None:
    for name in SCHEDULES:
        tracemalloc.start()
        schedule = parse(name).begin(budget=1e9, problems=OPEN)
        rng = np.random.default_rng(0)
        for problem, cost in enumerate((100 * rng.random(OPEN)).tolist()):
            schedule.add(problem, next_cost=cost)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        spent = [0.0] * OPEN
        steps = 2 * OPEN
        started = time.process_time()
        for _ in range(steps):
            asked = schedule.ask()
            if asked is None:
                break
            spent[asked] += 11.0
            schedule.tell(asked, spent=spent[asked], next_cost=11.0, ended=spent[asked] > 300)
        seconds = time.process_time() - started
        print(f"{name}: {1e6 * seconds / steps:.1f} us per choice, {size / OPEN:.0f} bytes each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--problems", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0, help="of the populations")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    if given.speed:
        speed()
        return
    results = []
    for name, log in logs(given.data, given.problems, given.seed):
        results.append(measured(name, log, given.orders))
        if not given.json:
            shown(results[-1])
    if given.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
