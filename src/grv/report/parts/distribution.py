"""The scores of candidates that pass and of those that fail."""

from __future__ import annotations

import numpy as np

from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..table import points, significant

_BINS = 40

SCORE_DISTRIBUTION = TableSchema(
    name="score_distribution",
    title="Scores of candidates that pass and of those that fail",
    caption="The share of the candidates of each verdict per bin of scores. All problems together.",
    alt="Two histograms of the score, one for each verdict, one over the other.",
    columns=(
        c.LOG,
        c.text("verdict", "verdict", "`passed` or `failed`"),
        c.number("from", "from", "lower end of the bin", 4),
        c.number("to", "to", "upper end of the bin", 4),
        c.number("candidates", "candidates", "candidates of this verdict in the bin"),
        c.percent("share", "share", "of all candidates of this verdict"),
    ),
    drawings=(
        Drawing(
            Axis("from", label="score", own=True),
            Axis("share", zero=True, label="share of the verdict's candidates"),
            (Layer("bars", "from", "share", x2="to", by="verdict"),),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per verdict and bin."""
    scores, passed = dataset.scored
    if not len(scores):
        return
    low, high = np.quantile(scores, [0.005, 0.995])
    spread = max(high - low, 0.0)
    if scores.min() >= low - spread / 10 and scores.max() <= high + spread / 10:
        low = scores.min()
        high = scores.max()
    elif high > low:
        outside = int(((scores < low) | (scores > high)).sum())
        words = f"the first and the last bin include {outside} scores beyond their ends."
        rows.note(SCORE_DISTRIBUTION, f"{dataset.name}: {words}")
    if high <= low:
        low = scores.min() - 0.5
        high = scores.max() + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    for verdict, chosen in (("passed", passed), ("failed", ~passed)):
        total = int(chosen.sum())
        if not total:
            continue
        counts, _ = np.histogram(np.clip(scores[chosen], low, high), bins=edges)
        for start, end, count in zip(edges, edges[1:], counts.tolist(), strict=False):
            numbers = (*points([start, end]), count, significant(count / total))
            rows.add(SCORE_DISTRIBUTION, dataset.name, verdict, *numbers)


PART = Part("score", (SCORE_DISTRIBUTION,), of_log=add_log, needs_pass=False)
