"""One budget for many problems, live beside the replay: the share of solvable problems solved.

    python bench/batch_live.py [--problems N] [--at-once N]...
    python bench/batch_live.py --embedded FOLDER [--at-once N]...

Without `--embedded`: a population of 2,000 problems, a third of them impossible. A server on
loopback (`grv.testing`) has its candidates, and counts them. `grv.solve_many_now` solves them with
the default policy and `least-spent`, with 1, 8 and 64 calls at once, and half the money. Each
problem's candidates come in the order of the log, so the replay is of the same candidates.

With `--embedded`: the logs that `make paper` left in a folder, and the same problems live, with
candidates of another seed, and 1, 8 and 64 problems at once. The interval is where the curve of one
live run of these problems is expected to be: of 100 replays with candidates drawn again from the
log, with replacement, 95 are inside it at all three shares.

100 % of the money is what the default policy needs to solve all solvable problems. Costs 1,10.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import grv
from grv.backends.problems.files import read_problems
from grv.logs.log import Log
from grv.policies import DEFAULT
from grv.replay.batch import CourseSteps, course_of, run_batch
from grv.schedules import parse
from grv.testing import population
from grv.testing.servers import FakeOpenai

COSTS = grv.Costs(1, 10)
SHARES = (0.1, 0.25, 0.5)
CANDIDATES = 256
DRAWN_RUNS = 400
# Tokens and stops of each kind, as in paper/small/run.py.
EMBEDDED = {
    "math": (24, ("\n",)),
    "coding": (64, ("\n\n", "\ndef", "\nclass", "\nprint", "\n```")),
}


def made_up(problems: int) -> Log:
    """A population in which a third of the problems is impossible, the others among them."""
    solvable = population("coding", problems=problems - problems // 3, candidates=CANDIDATES)
    others = population("coding", problems=problems // 3, candidates=CANDIDATES, seed=1)
    impossible = [
        dataclasses.replace(p, id=f"impossible {p.id}", passed=np.zeros(len(p), np.bool_))
        for p in others.problems
    ]
    every = [*solvable.problems, *impossible]
    mixed = np.random.default_rng(2).permutation(len(every)).tolist()
    return Log(tuple(every[place] for place in mixed), path="population coding")


class Curve:
    """What was solved when a run had spent a share of the money."""

    def __init__(self, whole: float) -> None:
        self._whole = whole
        self.solved: dict[float, int] = {}

    def __call__(self, progress: Any) -> None:
        """Note the last count before each share is spent."""
        for share in SHARES:
            if progress.spent <= share * self._whole:
                self.solved[share] = progress.solved


def replayed(log: Log) -> tuple[float, dict[float, float]]:
    """What all solvable problems cost, and the shares that are solved, one step at a time."""
    order = range(CANDIDATES)
    courses = [course_of(grv.Search(DEFAULT, COSTS), problem, order) for problem in log.problems]
    solvable = [course for course in courses if course.solved]
    whole = sum(course.cost for course in solvable)
    shares = {}
    for share in SHARES:
        searches = [CourseSteps(course) for course in courses]
        run = run_batch(parse("least-spent").begin(), searches, share * whole)
        shares[share] = run.solved.sum() / len(solvable)
    return whole, shares


def served(log: Log, whole: float, at_once: int) -> dict[str, Any]:
    """The same live, from a server."""
    problems = {problem.id: problem for problem in log.problems}
    made: Counter[str] = Counter()

    def text(prompt: str, index: int) -> str:
        problem = problems[prompt]
        place = made[prompt]
        made[prompt] += 1
        if place >= len(problem):
            return f"wrong {place} -inf"
        word = "right" if problem.passed[place] else "wrong"
        return f"{word} {place} {float(problem.scores[place])!r}"

    curve = Curve(whole)
    started = time.monotonic()
    with FakeOpenai(text, logprobs=False) as server:
        solutions = grv.solve_many_now(
            [grv.Problem(name, name) for name in problems],
            generator=grv.generators.OpenAI("fake", base_url=server.url, logprobs=False),
            scorer=lambda problem, text: max(-1e9, float(text.split()[2])),
            verifier=lambda problem, text: text.startswith("right"),
            policy="default",
            costs=COSTS,
            budget=math.inf,
            total_budget=max(SHARES) * whole,
            schedule="least-spent",
            keys=False,
            calls=grv.runtime.Calls(concurrency=at_once),
            at_once=at_once,
            progress=curve,
        )
        found = list(solutions)
    bought = sum(solution.bill.total for solution in found)
    counted = sum(solution.bill.generated for solution in found)
    return {
        "at once": at_once,
        "solved": {share: number / len(log.solvable) for share, number in curve.solved.items()},
        "seconds": round(time.monotonic() - started, 1),
        "spent": round(bought / whole, 4),
        "served": sum(made.values()),
        "recorded": counted,
    }


def of_server(problems: int, numbers: Sequence[int]) -> dict[str, Any]:
    """Live from a server, beside the replay and its interval."""
    log = made_up(problems)
    whole, shares = replayed(log)
    rows = [row for row in resampled(log).batches if row.schedule == "least-spent"]
    intervals = {row.share: [row.low, row.high] for row in rows}
    return {
        "problems": problems,
        "solvable": len(log.solvable),
        "replay": shares,
        "interval over orders and problems": intervals,
        "live": [served(log, whole, number) for number in numbers],
    }


def of_embedded(folder: Path, kind: str, numbers: Sequence[int]) -> dict[str, Any]:
    """Live with the embedded model, beside the replay of what `make paper` collected."""
    log = Log.load(folder / f"{kind}-logprob.csv")
    rows = [row for row in resampled(log).batches if row.schedule == "least-spent"]
    whole = rows[0].budget / rows[0].share
    return {
        "kind": kind,
        "solvable": len(log.solvable),
        "replay": {row.share: row.solved for row in rows},
        "interval of one live run": drawn_again(log, whole),
        "live": [embedded(folder, kind, log, whole, number) for number in numbers],
    }


def embedded(folder: Path, kind: str, log: Log, whole: float, at_once: int) -> dict[str, Any]:
    """The same problems live, with the embedded model."""
    tokens, stops = EMBEDDED[kind]
    curve = Curve(whole)
    started = time.monotonic()
    generator = grv.generators.Embedded(
        temperature=0.7, top_p=0.95, max_tokens=tokens, stop=stops, seed=1
    )
    with grv.verifiers.Verification(timeout=2, refute=False).verifier() as checks:
        solutions = grv.solve_many_now(
            list(read_problems(str(folder / f"{kind}.jsonl"))),
            generator=generator,
            scorer=grv.scorers.Logprob(),
            verifier=checks,
            policy="default",
            costs=COSTS,
            budget=math.inf,
            total_budget=max(SHARES) * whole,
            schedule="least-spent",
            keys=False,
            calls=grv.runtime.Calls(concurrency=at_once),
            at_once=at_once,
            progress=curve,
        )
        found = list(solutions)
    return {
        "at once": at_once,
        "problems": len(found),
        "solved": {share: number / len(log.solvable) for share, number in curve.solved.items()},
        "spent": round(sum(solution.bill.total for solution in found) / whole, 4),
        "seconds": round(time.monotonic() - started, 1),
    }


def drawn_again(log: Log, whole: float) -> dict[float, list[float]]:
    """Where the curve of one run is in 95 of 100 cases, if its candidates are drawn again."""
    chance = np.random.default_rng(0)
    solved: dict[float, list[float]] = {share: [] for share in SHARES}

    def drawn(number: int) -> list[int]:
        return [int(place) for place in chance.choice(number, CANDIDATES)]

    for _ in range(DRAWN_RUNS):
        courses = [
            course_of(grv.Search(DEFAULT, COSTS), problem, drawn(len(problem)))
            for problem in log.problems
        ]
        for share in SHARES:
            searches = [CourseSteps(course) for course in courses]
            run = run_batch(parse("least-spent").begin(), searches, share * whole)
            solved[share].append(run.solved.sum() / len(log.solvable))
    curves = np.array([solved[share] for share in SHARES])
    for tail in np.arange(0.025, 0, -0.0005):
        low, high = np.quantile(curves, (tail, 1 - tail), axis=1)
        inside = (curves >= low[:, None]) & (curves <= high[:, None])
        if inside.all(axis=0).mean() >= 0.95:
            break
    return {share: [float(low[n]), float(high[n])] for n, share in enumerate(SHARES)}


def resampled(log: Log) -> grv.Comparison:
    """The replay over orders, with intervals over resampled problems."""
    budgets = ",".join(f"{100 * share:g}%" for share in SHARES)
    how: dict[str, Any] = {"schedule": "least-spent", "total_budget": budgets}
    return grv.compare(["default"], log, COSTS, orders=10, jobs=1, **how)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedded", type=Path, metavar="FOLDER")
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--at-once", type=int, action="append")
    given = parser.parse_args()
    numbers = given.at_once or (1, 8, 64)
    if given.embedded is not None:
        found = [of_embedded(given.embedded, kind, numbers) for kind in EMBEDDED]
        print(json.dumps(found, indent=2))
        return
    print(json.dumps(of_server(given.problems, numbers), indent=2))


if __name__ == "__main__":
    main()
