"""How often the candidate at each rank passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..statistics import expected_passes, rolling_mean
from ..table import points

_RANKS_ALONE = 64  # ranks with a row each; later ranks are averaged
_MOST_ROWS = 200

RANK_PASS = TableSchema(
    name="rank_pass",
    title="Pass rate by rank",
    caption="How often the candidate at each rank passes, averaged over the solvable problems that"
    " have a candidate at this rank. Rank 1 has the best score. Candidates with equal scores share"
    " their ranks.",
    alt="A falling cloud of points, pass rate against rank, with a rolling mean through it.",
    columns=(
        c.LOG,
        c.number("rank", "rank", "the middle rank of the row; 1 is the best", 1),
        c.number("ranks", "ranks", "the number of neighbouring ranks that the row averages"),
        c.PASS_RATE,
        c.percent("rolling", "rolling mean", "over neighbouring ranks; the notes say how many"),
        c.PROBLEMS,
    ),
    drawings=(
        Drawing(
            Axis("rank", zero=True),
            Axis("pass_rate", zero=True),
            (
                Layer("points", "rank", "pass_rate", series="pass rate", tone="quiet"),
                Layer("line", "rank", "rolling", series="rolling mean", tone="first"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per rank, or per group of neighbouring ranks."""
    solvable = dataset.log.solvable
    if not solvable:
        rows.note(RANK_PASS, f"{dataset.name}: no problem is solvable, so no rank passes.")
        return
    longest = max(map(len, solvable))
    passes = np.zeros(longest)
    problems = np.zeros(longest)
    for problem in solvable:
        passes[: len(problem)] += expected_passes(problem.scores, problem.passed)
        problems[: len(problem)] += 1
    rates = passes / problems
    window = 2 * max(longest // 40, 1) + 1
    rolling = rolling_mean(rates, problems, window)
    for ranks in _groups(longest):
        weights = problems[ranks]
        middle, rate, mean = points(
            [ranks.mean() + 1, np.average(rates[ranks], weights=weights), rolling[ranks].mean()]
        )
        count = round(float(weights.mean()))
        rows.add(RANK_PASS, dataset.name, middle, len(ranks), rate, mean, count)
    rows.note(RANK_PASS, f"{dataset.name}: the rolling mean is over {window} neighbouring ranks.")


def _groups(longest: int) -> list[NDArray[np.intp]]:
    """Ranks from 0: the first ones alone, the others in groups of neighbours."""
    alone = [np.array([at]) for at in range(min(longest, _RANKS_ALONE))]
    if longest <= _RANKS_ALONE:
        return alone
    others = np.arange(_RANKS_ALONE, longest)
    return alone + np.array_split(others, min(len(others), _MOST_ROWS - _RANKS_ALONE))


PART = Part("score", (RANK_PASS,), of_log=add_log, needs_pass=False)
