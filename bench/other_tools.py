"""Writes docs/research/other-tools.json: what the rules of other tools cost on two public logs.

python bench/other_tools.py FOLDER    # the folder of bench/real_logs.py; some seconds

A candidate costs 1, a verification 10, and equal answers are verified like others. Every rule may
spend 176 per problem, which is 16 candidates with their verifications; then, as much as it takes to
solve all. All orders of a problem's candidates are equally likely. A rule that does not look at
scores has a closed form; the others are replayed in 50 orders.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from scipy.stats import hypergeom

import grv
from grv.logs.log import LoggedProblem
from grv.policies import DEFAULT
from grv.replay.batch import course_of
from grv.replay.orders import Orders

OUT = Path(__file__).parents[1] / "docs" / "research" / "other-tools.json"
LOGS = {
    "HumanEval": ("humaneval_codegen16b.parquet", "score_codet"),
    "mock AIME": ("otis_aime_pool.parquet", "score_text_lr"),
}
N, GENERATE, VERIFY = 16, 1, 10
REPLAYED = ("fixed(16, 1)", "verify-all", "difficulty-1", "varied")
ORDERS = 50


def within_budget(problems: list[LoggedProblem]) -> list[float]:
    """The mean cost and the share solved of the default policy with a budget for each problem."""
    costs = grv.Costs(GENERATE, VERIFY)
    limits = grv.Limits(budget=N * (GENERATE + VERIFY))
    courses = [
        course_of(grv.Search(DEFAULT, costs, limits), batch.problem, order)
        for batch in Orders(problems, ORDERS).batches()
        for order in batch.orders.tolist()
    ]
    spent = [course.levels[-1] if len(course.levels) else 0.0 for course in courses]
    return [float(np.mean(spent)), float(np.mean([course.solved for course in courses]))]


def main() -> None:
    """Compute, and write."""
    found = {}
    for name, (file, score) in LOGS.items():
        log = grv.Log.load(Path(sys.argv[1]) / file, score=score)
        problems = [each for each in log.problems if each.solvable]
        sizes = np.array([len(each) for each in problems])
        passes = np.array([int(each.passed.sum()) for each in problems])
        found_within = [hypergeom.sf(0, sizes, passes, k) for k in range(N + 1)]  # a pass among k
        tried = np.sum([1 - each for each in found_within[:N]], axis=0)  # E min(T, N)
        solved = float(found_within[N].mean())
        rows = {
            "one by one": [float(tried.mean()) * (GENERATE + VERIFY), solved],
            "all": [float(N * (GENERATE + VERIFY)), solved],
        }
        rows["varied, 176"] = within_budget(problems)
        rows["all, to the end"] = [float(sizes.mean()) * (GENERATE + VERIFY), 1.0]
        made = grv.compare(REPLAYED, log, (GENERATE, VERIFY), orders=ORDERS, jobs=1)
        rows |= {row.policy: [row.cost, row.solved] for row in made.rows}
        found[name] = {"problems": len(problems), "rows": rows}
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
