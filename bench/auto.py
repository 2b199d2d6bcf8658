"""What `--score auto` costs on a server without log-probabilities: 40 HumanEval problems, live.

    python bench/auto.py --data FOLDER [--seeds N] [--problems N] [--ratio R]... [--at-once N]...
        [--json]

The programs are those of CodeGen-16B, without log-probabilities; their labels stand in for the
verifier. A seed draws the problems, their order, and the order of their programs. Each row solves
the same problems with `grv.solve_many_now`, the policy `learning` and a ledger that starts empty:
`auto`, `length` and no score. Figures are the cost of a run over that without a score on the same
seed, with 95 % intervals over seeds. Problems without a pass are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import grv

PROGRAMS = "humaneval_programs.jsonl.gz"
SCORERS: dict[str, Callable[[], Any]] = {
    "no score": lambda: lambda problem, text: 0.0,
    "length": grv.scorers.Length,
    "auto": grv.scorers.Auto,
}


class Programs:
    """A generator of recorded programs, and the verifier that knows their labels."""

    def __init__(self, records: Sequence[dict[str, Any]], seed: int) -> None:
        self.passed = {}
        self.texts = {}
        for record in records:
            rows = list(zip(record["completions"], record["passed"], strict=True))
            random.Random(f"{seed} {record['problem']}").shuffle(rows)
            self.texts[record["problem"]] = [text for text, _ in rows]
            for text, passed in rows:
                self.passed[record["problem"], text] = bool(passed)

    async def generate(
        self, problem: grv.Problem, n: int, *, first: int = 0
    ) -> Sequence[grv.Draft]:
        """The next programs."""
        return [grv.Draft(text) for text in self.texts[problem.id][first : first + n]]

    def verify(self, problem: grv.Problem, text: str) -> bool:
        """The label."""
        return self.passed[problem.id, text]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--ratio", type=float, action="append", help="cost of a verification")
    parser.add_argument("--at-once", type=int, action="append")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    record = [
        measure(read(given.data), given.seeds, given.problems, ratio, at_once)
        for ratio in given.ratio or (10.0, 30.0)
        for at_once in given.at_once or (1, 32)
    ]
    print(json.dumps(record, indent=1) if given.json else "\n\n".join(map(table, record)))


def read(data: Path) -> list[dict[str, Any]]:
    """The solvable problems."""
    with gzip.open(data / PROGRAMS, "rt", encoding="utf-8") as file:
        records = list(map(json.loads, file))
    return [record for record in records if any(record["passed"])]


def measure(
    records: Sequence[dict[str, Any]], seeds: int, number: int, ratio: float, at_once: int
) -> dict[str, Any]:
    """The costs of all rows, per seed."""
    costs: dict[str, list[float]] = {name: [] for name in SCORERS}
    seconds = dict.fromkeys(SCORERS, 0.0)
    ranked: dict[str, int] = {}
    for seed in range(seeds):
        drawn = random.Random(seed).sample(records, number)
        for name, scorer in SCORERS.items():
            started = time.monotonic()
            solutions = solve(drawn, seed, scorer(), ratio, at_once)
            seconds[name] += (time.monotonic() - started) / seeds
            costs[name].append(sum(each.bill.total for each in solutions))
            for each in solutions if name == "auto" else ():
                ranked[each.score] = ranked.get(each.score, 0) + 1
    return {
        "ratio": ratio,
        "at_once": at_once,
        "problems": number,
        "seeds": seeds,
        "costs": costs,
        "seconds": seconds,
        "ranked": ranked,
    }


def solve(
    records: Sequence[dict[str, Any]], seed: int, scorer: Any, ratio: float, at_once: int
) -> list[grv.Solution]:
    """One run."""
    programs = Programs(records, seed)
    problems = [grv.Problem(record["problem"], record["prompt"]) for record in records]
    return list(
        grv.solve_many_now(
            problems,
            generator=programs,
            scorer=scorer,
            verifier=programs.verify,
            policy="learning",
            costs=(1, ratio),
            key=lambda problem, text: text,
            total_budget=1e9,
            at_once=at_once,
            schedule="in-order",
        )
    )


def table(record: dict[str, Any]) -> str:
    """The figures as text."""
    head = (
        f"{record['problems']} problems, {record['seeds']} seeds, {record['at_once']} at once,"
        f" a verification costs {record['ratio']:g} candidates"
    )
    base = np.array(record["costs"]["no score"])
    lines = [
        head,
        f"{'score':<10} {'cost':>8} {'over no score':>14}  {'95 % interval':<15} {'s':>5}",
    ]
    for name, costs in record["costs"].items():
        ratios = np.array(costs) / base
        half = 1.96 * ratios.std(ddof=1) / np.sqrt(len(ratios)) if len(ratios) > 1 else np.nan
        interval = f"[{ratios.mean() - half:.3f}, {ratios.mean() + half:.3f}]"
        seconds = record["seconds"][name]
        lines.append(
            f"{name:<10} {np.mean(costs):8.0f} {ratios.mean():14.3f}  {interval:<15} {seconds:5.1f}"
        )
    ranked = ", ".join(f"{number} by {name}" for name, number in record["ranked"].items())
    return "\n".join([*lines, f"problems ranked with auto: {ranked}"])


if __name__ == "__main__":
    main()
