"""Whether the k best candidates contain a pass, compared with k random candidates."""

from __future__ import annotations

import numpy as np

from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..statistics import covered_at_random, covered_by_score
from ..table import points

_EVERY_K = 64  # up to here each k has a row
_SPREAD_KS = 70  # values of k on a logarithmic scale

COVERAGE = TableSchema(
    name="coverage",
    title="Do the k best contain a pass?",
    caption="The share of solvable problems whose k best candidates by score contain a pass,"
    " compared with k random candidates (hypergeometric). Ties are averaged over.",
    alt="Two rising curves against k on a logarithmic axis, by score above, at random below.",
    columns=(
        c.LOG,
        c.number("k", "k", "the number of candidates"),
        c.percent("by_score", "by score", "the k best contain a pass"),
        c.percent("at_random", "at random", "k random candidates contain a pass"),
    ),
    drawings=(
        Drawing(
            Axis("k", "log"),
            Axis("by_score", zero=True, label="contains a pass"),
            (
                Layer("line", "k", "at_random", series="k at random", tone="second"),
                Layer("line", "k", "by_score", series="k best by score", tone="first"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per k."""
    solvable = dataset.log.solvable
    if not solvable:
        rows.note(COVERAGE, f"{dataset.name}: no problem is solvable, so no k contains a pass.")
        return
    longest = max(map(len, solvable))
    spread = np.geomspace(1, longest, _SPREAD_KS).round().astype(np.intp)
    ks = np.unique([*range(1, min(longest, _EVERY_K) + 1), *spread.tolist()])
    found = [
        (covered_by_score(p.scores, p.passed, ks), covered_at_random(p.passed, ks))
        for p in solvable
    ]
    for k, *shares in zip(ks.tolist(), *np.mean(found, axis=0), strict=True):
        rows.add(COVERAGE, dataset.name, k, *points(shares))
    if len({len(problem) for problem in solvable}) > 1:
        text = "if a problem has fewer than k candidates, all of them are taken."
        rows.note(COVERAGE, f"{dataset.name}: {text}")


PART = Part("score", (COVERAGE,), of_log=add_log, needs_pass=False)
