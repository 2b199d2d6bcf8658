"""What promises with keys cost: this tree beside an earlier one, on the same orders of real logs.

    git worktree add --detach ../before 98dac24
    python bench/keys.py ../before --data FOLDER [--orders 10]

Mean cost of `varied` and `learning` in this tree over that in the other one, with and without keys,
on two logs with a good and a bad score each. Both trees replay the same orders; 95 % intervals are
over problems, drawn again. Figures in `docs/theory/keys.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

LOGS = {
    "AIME": ("otis_aime_pool.parquet", ("score_text_lr", "score_neglen")),
    "HumanEval": ("humaneval_codegen16b.parquet", ("score_codet", "score_neglen")),
}
RATIOS = (10, 30)
POLICIES = ("varied", "learning")
SAMPLES = 10_000

# Runs in both trees, so it uses only what both have. Costs are `[problem][order]`.
_REPLAY = """
import json, sys
import grv
from grv import Costs, Log, compare
file, score, ratio, keys, orders, policies = json.loads(sys.argv[1])
costs = Costs(1, ratio)
log = Log.load(file, score=score)
compared = compare(policies, log, [costs], orders=orders, keys=keys)
tables = [trials.costs(costs).tolist() for trials in compared.trials]
names = [row.policy for row in compared.rows]
print(json.dumps({"problems": list(compared.problems), "costs": dict(zip(names, tables))}))
"""


def replayed(tree: Path, given: list[Any]) -> dict[str, Any]:
    """The costs of all trials, as the code of a tree replays them."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, "-c", _REPLAY, json.dumps(given)]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def ratio(now: list[list[float]], before: list[list[float]]) -> list[float]:
    """The ratio of the mean costs, and its interval over problems."""
    new = np.mean(now, axis=1)
    old = np.mean(before, axis=1)
    places = np.random.default_rng(0).integers(len(new), size=(SAMPLES, len(new)))
    drawn = new[places].sum(1) / old[places].sum(1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return [round(float(value), 3) for value in (new.sum() / old.sum(), low, high)]


def main() -> None:
    """Print one line of JSON per log, score, ratio and use of keys."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=10)
    given = parser.parse_args()
    here = Path(__file__).parent.parent
    for name, (file, scores) in LOGS.items():
        for score in scores:
            for price in RATIOS:
                for keys in (True, False):
                    asked = [str(given.data / file), score, price, keys, given.orders, POLICIES]
                    now = replayed(here, asked)
                    before = replayed(given.before.resolve(), asked)
                    assert now["problems"] == before["problems"]
                    ratios = {p: ratio(now["costs"][p], before["costs"][p]) for p in POLICIES}
                    row = {"log": name, "score": score, "ratio": price, "keys": keys, **ratios}
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
