"""Verifiers that err: wrong answers and cost of the rules by which candidates are confirmed.

    python bench/erring.py [--data FOLDER] [--orders N] [--problems N] [--json]

The labels of the logs are taken to be the truth, and errors are drawn on top of them: a call passes
a wrong candidate with probability alpha and fails a right one with beta. Problems without a right
candidate are included: there every answer is wrong. Costs 1,10, and each call costs 10; default
policy; width 1; no keys. All rules meet the same orders and the same calls. Intervals are by
problems.

`cold` must keep wrong answers per search at delta or below on every log: that is proven. `first
pass`, `2 in a row` and `3 in a row` ignore delta. `bayes` learns from the problems before.

No parameter is chosen here.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import grv
from grv.comparing.erring import ErringRow, compare_erring, erring_cells
from grv.logs.log import Log
from grv.policies import DEFAULT
from grv.testing import population
from grv.text import aligned
from grv.theory.confirmations import Errors

COSTS = grv.Costs(1, 10)
SETTINGS = ((0.05, 0.05, 0.05), (0.05, 0.05, 0.01), (0.2, 0.1, 0.05))  # alpha, beta, delta
LOGS = (
    ("humaneval_codegen16b.parquet", "score_codet"),
    ("humaneval_codegen16b.parquet", "score_text_lr"),
    ("otis_aime_pool.parquet", "score_votes_loro"),
    ("otis_aime_pool.parquet", "score_text_lr"),
    ("humaneval_generators.parquet", "score_similarity"),
)
POPULATIONS = ("coding", "math")


def logs(folder: Path | None, problems: int) -> Iterator[tuple[str, Log]]:
    for name, score in LOGS if folder is not None else ():
        assert folder is not None
        yield f"{name.partition('.')[0]} {score}", Log.load(folder / name, score=score)
    for name in POPULATIONS:
        solvable = population(name, problems=2 * problems // 3, candidates=128).problems
        others = population(name, problems=problems // 3, candidates=128, seed=1).problems
        impossible = [
            dataclasses.replace(each, id=f"impossible {each.id}", passed=np.zeros(len(each), bool))
            for each in others
        ]
        yield f"population {name}", Log((*solvable, *impossible), path=name)


def measured(
    log: Log, setting: tuple[float, float, float], orders: int, jobs: int | None
) -> tuple[ErringRow, ...]:
    alpha, beta, delta = setting
    return compare_erring(
        {"default": DEFAULT},
        log,
        COSTS,
        Errors(alpha, beta),
        wrong=delta,
        orders=orders,
        jobs=jobs,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--problems", type=int, default=90)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for name, log in logs(options.data, options.problems):
        for setting in SETTINGS:
            rows = measured(log, setting, options.orders, options.jobs)
            alpha, beta, delta = setting
            record = {"log": name, "alpha": alpha, "beta": beta, "delta": delta}
            found += [{**record, **row.to_json()} for row in rows]
            if not options.json:
                print(f"\n{name}: alpha {alpha:g}, beta {beta:g}, delta {delta:g}")
                print(aligned(*erring_cells(rows), left=2), flush=True)
    cold = [row for row in found if row["rule"] == "cold"]
    kept = sum(row["wrong"] <= row["delta"] for row in cold)
    if options.json:
        print(json.dumps({"rows": found, "cold": len(cold), "within_delta": kept}))
    else:
        print(f"\ncold: wrong per search at most delta in {kept} of {len(cold)} cases")


if __name__ == "__main__":
    main()
