"""The AUC of the score: its distribution over problems, a summary, and each problem."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...comparing.significance import Resampled
from ...logs.log import Log
from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..statistics import Floats, auc, interval
from ..table import Cell, points, significant

_BINS = 20


def _drawing(view: str, label: str, problems: str, mean: str, median: str) -> Drawing:
    return Drawing(
        Axis("from", label=label),
        Axis(problems, zero=True, label="problems"),
        (
            Layer("bars", "from", problems, x2="to", tone="first"),
            Layer("rule", 0.5, series="chance", tone="quiet"),
            Layer("rule", mean, table="auc_summary", series="mean", tone="second"),
            Layer("rule", median, table="auc_summary", series="median", tone="third"),
        ),
        view=view,
    )


AUC = TableSchema(
    name="auc",
    title="Does the score rank? AUC by problem",
    caption="The number of problems per bin of AUC. AUC is the probability that a candidate that"
    " passes has a higher score than one that fails; ties count half, or nothing in the strict AUC."
    " One half is chance.",
    alt="A histogram of AUC over problems, with lines at chance, the mean and the median.",
    columns=(
        c.LOG,
        c.number("from", "from", "lower end of the bin", 2),
        c.number("to", "to", "upper end of the bin; only the last bin includes it", 2),
        c.PROBLEMS,
        c.number("strict", "problems (strict)", "the number of problems, by their strict AUC"),
    ),
    drawings=(
        _drawing("ties count half", "AUC", "problems", "mean", "median"),
        _drawing("strict", "strict AUC", "strict", "strict_mean", "strict_median"),
    ),
)
SUMMARY = TableSchema(
    name="auc_summary",
    title="AUC over problems",
    caption="Over the problems that have both passes and failures. The interval of the mean is over"
    " problems. In the strict AUC, ties count nothing instead of half.",
    alt="A table with one row per log.",
    columns=(
        c.LOG,
        c.PROBLEMS,
        c.number("mean", "mean", "mean AUC", 3),
        c.number("low", "from", "lower end of the 95 % interval of the mean", 3),
        c.number("high", "to", "upper end of the 95 % interval of the mean", 3),
        c.number("median", "median", "median AUC", 3),
        c.number("lower_quartile", "lower quartile", "a quarter of the problems are below", 3),
        c.number("upper_quartile", "upper quartile", "a quarter of the problems are above", 3),
        c.percent("above_chance", "above chance", "share of problems with AUC above 0.5"),
        c.number("strict_mean", "strict mean", "mean strict AUC", 3),
        c.number("strict_median", "strict median", "median strict AUC", 3),
        c.number("strict_lower_quartile", "strict lower quartile", "of the strict AUC", 3),
        c.number("strict_upper_quartile", "strict upper quartile", "of the strict AUC", 3),
        c.percent("strict_above_chance", "strict above chance", "strict AUC above 0.5"),
    ),
)
PER_PROBLEM = TableSchema(
    name="auc_problems",
    title="AUC of each problem",
    caption="The passes, the failures and the AUC of each problem.",
    alt="A table with one row per problem.",
    columns=(
        c.LOG,
        c.PROBLEM,
        c.number("passed", "passed", "candidates that pass"),
        c.number("failed", "failed", "candidates that fail"),
        c.number("auc", "AUC", "ties count half; empty without both passes and failures", 3),
        c.number("strict", "strict AUC", "ties count nothing", 3),
    ),
)


def aucs_of(log: Log, *, tie: float = 0.5) -> dict[str, float | None]:
    """The AUC of each problem; None without both passes and failures."""
    return {problem.id: auc(problem.scores, problem.passed, tie=tie) for problem in log.problems}


def inverted(log: Log) -> set[str]:
    """The names of the problems on which the score ranks worse than chance."""
    return {id for id, value in aucs_of(log).items() if value is not None and value < 0.5}


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """The rows of all three tables."""
    name = dataset.name
    found = aucs_of(dataset.log)
    strict = aucs_of(dataset.log, tie=0.0)
    for problem in dataset.log.problems:
        passed = int(problem.passed.sum())
        shown = [_shown(values[problem.id]) for values in (found, strict)]
        rows.add(PER_PROBLEM, name, problem.id, passed, len(problem) - passed, *shown)
    known = _known(found)
    known_strict = _known(strict)
    if len(known) < len(found):
        text = f"{name}: {len(found) - len(known)} of {len(found)} problems have no AUC, because"
        rows.note((AUC, SUMMARY), f"{text} all of their candidates passed, or none.")
    if not len(known):
        return
    counts, edges = np.histogram(known, bins=_BINS, range=(0.0, 1.0))
    counts_strict, _ = np.histogram(known_strict, bins=_BINS, range=(0.0, 1.0))
    bins = zip(edges, edges[1:], counts.tolist(), counts_strict.tolist(), strict=False)
    for low, high, *both in bins:
        rows.add(AUC, name, *points([low, high]), *both)
    mean, median, lower, upper, above = _described(known)
    ends: tuple[Cell, Cell] = (None, None)
    if len(known) > 1:
        ends = interval(Resampled(len(known), dataset.request.seed).totals(known) / len(known))
    usual = (mean, *ends, median, lower, upper, above)
    rows.add(SUMMARY, name, len(known), *usual, *_described(known_strict))
    rows.note(
        AUC,
        f"{name}: mean {mean:.2f}, median {median:.2f}, quartiles {lower:.2f} and {upper:.2f};"
        f" above one half on {above:.0%} of {len(known)} problems.",
    )


def _shown(value: float | None) -> float | None:
    return None if value is None else significant(value)


def _known(found: Mapping[str, float | None]) -> Floats:
    return np.array([value for value in found.values() if value is not None])


def _described(known: Floats) -> tuple[float, float, float, float, float]:
    """Mean, median, quartiles, and the share above chance."""
    lower, median, upper = np.quantile(known, [0.25, 0.5, 0.75]).tolist()
    return float(known.mean()), median, lower, upper, float((known > 0.5).mean())


PART = Part("score", (AUC, SUMMARY, PER_PROBLEM), of_log=add_log, needs_pass=False)
