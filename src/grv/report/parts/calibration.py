"""How often candidates with a given score pass."""

from __future__ import annotations

import numpy as np

from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..statistics import wilson
from ..table import points

_MOST_BINS = 15

CALIBRATION = TableSchema(
    name="calibration",
    title="How often does a score pass?",
    caption="Candidates of all problems, sorted by score and divided into bins of equal size: the"
    " share that passes, with its 95 % Wilson interval.",
    alt="Points with intervals, pass rate against score.",
    columns=(
        c.LOG,
        c.number("from", "from", "the lowest score of the bin", 4),
        c.number("to", "to", "the highest score of the bin", 4),
        c.number("score", "score", "the mean score of the bin", 4),
        c.number("candidates", "candidates", "candidates in the bin"),
        c.number("passed", "passed", "candidates in the bin that pass"),
        c.PASS_RATE,
        c.PASS_RATE_LOW,
        c.PASS_RATE_HIGH,
    ),
    drawings=(
        Drawing(
            Axis("score", own=True),
            Axis("pass_rate", zero=True),
            (
                Layer("interval", "score", "low", y2="high", tone="first"),
                Layer("line", "score", "pass_rate", tone="first"),
                Layer("points", "score", "pass_rate", tone="first"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per bin."""
    scores, passed = dataset.scored
    if not len(scores):
        return
    bins = min(_MOST_BINS, max(1, len(scores) // 10))  # at least ten candidates each
    inner = np.unique(np.quantile(scores, np.linspace(0, 1, bins + 1)[1:-1]))
    places = np.searchsorted(inner, scores, side="left")
    error = 0.0
    for place in np.unique(places).tolist():
        own = scores[places == place]
        good = int(passed[places == place].sum())
        mean = float(own.mean())
        error += abs(good - mean * len(own)) / len(scores)
        ends = points([own.min(), own.max(), mean])
        shares = points([good / len(own), *wilson(good, len(own))])
        rows.add(CALIBRATION, dataset.name, *ends, len(own), good, *shares)
    if scores.min() >= 0 and scores.max() <= 1:
        text = "scores are between 0 and 1. Read as probabilities of passing, their mean error is"
        rows.note(CALIBRATION, f"{dataset.name}: {text} {error:.1%}.")
    else:
        text = "scores are not probabilities. Policies use only their order."
        rows.note(CALIBRATION, f"{dataset.name}: {text}")
    rows.note(
        CALIBRATION,
        "The intervals assume independent candidates. Candidates of one problem are not"
        " independent, so the intervals are too narrow.",
    )


PART = Part("score", (CALIBRATION,), of_log=add_log, needs_pass=False)
