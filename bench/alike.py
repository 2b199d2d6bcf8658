"""What counting failures by another column saves (`alike`), cross-fitted on logs of several scores.

    python bench/alike.py --data FOLDER [--orders N] [--json]

Mean cost of `learned` over that of verify-all on the same orders, at ratios 10 and 30, in brackets
95 % intervals over problems. Combination, prior and choice of the column come from the other three
quarters of the problems. `best single column` is chosen in hindsight, so it flatters itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grv.comparing.evaluate import Figure, resampled
from grv.comparing.tune import learn
from grv.core.values import Costs
from grv.learning.history import History, PastProblem, past
from grv.learning.score_combination import combine, with_alike
from grv.logs.log import Log, LoggedProblem
from grv.logs.readers import read_log
from grv.policies import Learned, VerifyAll
from grv.policies.learned.prior import ScorePart
from grv.replay.kernels.dispatch import many_trials
from grv.replay.orders import batches
from grv.theory.scales import Numbers, on_scale

LOGS = {
    "humaneval_codegen16b.parquet": (
        "score_codet",
        "score_gentests_frac",
        "score_text_lr",
        "score_neglen",
    ),
    "otis_aime_pool.parquet": ("score_text_lr", "score_votes_loro", "score_neglen"),
}
RATIOS = (10, 30)
FOLDS = 4
SEED = 0

Found = dict[tuple[str, int], Numbers]  # by row and ratio: the cost of each problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # problems unlike the history; the rows show what they cost
    record = {
        name: measure(given.data / name, columns, given.orders) for name, columns in LOGS.items()
    }
    print(json.dumps(record, indent=1) if given.json else table(record))


def measure(path: Path, columns: Sequence[str], orders: int) -> dict[str, Any]:
    """All rows of one log."""
    logs = [read_log(str(path), score=column) for column in columns]
    places = [at for at, problem in enumerate(logs[0].problems) if problem.solvable]
    fold = np.random.default_rng(SEED).permutation(len(places)) % FOLDS
    found: Found = {}
    chosen: list[str] = []
    for k in range(FOLDS):
        others = [at for at, own in zip(places, fold, strict=True) if own != k]
        own = [at for at, own in zip(places, fold, strict=True) if own == k]
        before, now = ([_pasts(log, some) for log in logs] for some in (others, own))
        chosen.append(_fold(found, columns, before, now, fold == k, orders))
        print(f"{time.process_time():5.0f} s  {path.name}, fold {k + 1}", file=sys.stderr)
    rows: dict[str, Any] = {"alike": chosen}
    for name in dict.fromkeys(name for name, _ in found):
        rows[name] = {
            str(ratio): dataclasses.asdict(
                resampled(found[name, ratio], found["verify-all", ratio], SEED)
            )
            for ratio in RATIOS
        }
    return rows


def _pasts(log: Log, places: Sequence[int]) -> list[PastProblem]:
    problems = past(dataclasses.replace(log, problems=tuple(log.problems[at] for at in places)))
    return [dataclasses.replace(problem, keys=None) for problem in problems]


def _fold(
    found: Found,
    columns: Sequence[str],
    before: Sequence[list[PastProblem]],
    now: Sequence[list[PastProblem]],
    here: Any,
    orders: int,
) -> str:
    """Learn from the problems before, search those of now; return the chosen column."""
    parts, combined = combine(columns, before)
    sums = [_sum(parts, same) for same in zip(*now, strict=True)]
    name, alike = with_alike(columns, before, combined)
    values = dict(zip(columns, now, strict=True)).get(name)
    rows: dict[str, tuple[list[PastProblem], list[LoggedProblem]]] = {
        column: (old, [LoggedProblem(p.id, p.scores, p.passed) for p in new])
        for column, old, new in zip(columns, before, now, strict=True)
    }
    rows["sum, its own ties"] = (
        combined,
        [LoggedProblem(p.id, x, p.passed) for p, x in zip(now[0], sums, strict=True)],
    )
    rows["sum, alike"] = (
        alike,
        [
            LoggedProblem(p.id, x, p.passed, alike=None if values is None else values[at].scores)
            for at, (p, x) in enumerate(zip(now[0], sums, strict=True))
        ],
    )
    for row, (old, new) in rows.items():
        prior = learn(History.of(old, "score", []), jobs=1)
        made = list(batches(new, orders, seed=SEED))
        for ratio in RATIOS:
            policies = {row: Learned(prior)} | (
                {"verify-all": VerifyAll()} if row == columns[0] else {}
            )
            for name_, policy in policies.items():
                trials = many_trials(policy, made, Costs(1, ratio))
                costs = found.setdefault((name_, ratio), np.zeros(len(here)))
                costs[here] = [each.costs(Costs(1, ratio)).mean() for each in trials]
    return name


def _sum(parts: Sequence[ScorePart], same: Sequence[PastProblem]) -> Numbers:
    """The combined scores of one problem, of which each column has its own."""
    normals = [
        part.weight * on_scale(part.scale.values, part.scale.normals, problem.scores)
        for part, problem in zip(parts, same, strict=True)
    ]
    total: Numbers = np.sum(normals, axis=0)
    return total


def table(record: dict[str, Any]) -> str:
    """The figures, as text."""
    lines = ["learned over verify-all, cross-fitted; seed 0"]
    for log, rows in record.items():
        columns = [row for row in rows if row.startswith("score_")]
        lines.append(
            f"\n{log}; alike, by fold: {', '.join(each or 'the sum' for each in rows['alike'])}"
        )
        for ratio in map(str, RATIOS):
            best = min(columns, key=lambda row: float(rows[row][ratio]["mean"]))
            lines.append(f"  ratio {ratio}; best single column: {best}")
            shown = [*columns, "sum, its own ties", "sum, alike"]
            lines += [f"    {row:20} {Figure(**rows[row][ratio])}" for row in shown]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
