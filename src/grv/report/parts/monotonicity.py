"""Whether a higher score is never worse.

The bounds of adaptive policies hold if, on each problem, the probability of passing does not fall
as the score rises. Each problem's ranking is cut into bins of equal size. A *fall* is the pass rate
of one bin minus that of a better one. Chance alone produces falls, so each fall comes with the
probability that a score that never falls would show one as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...logs.log import LoggedProblem
from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..statistics import binned_rates, interval, isotonic, largest_fall, where_it_falls, wilson
from ..table import points, significant
from .auc import inverted

_RESAMPLES = 1000
_BY_CHANCE = 0.05

Array = NDArray[np.float64]

MONOTONICITY = TableSchema(
    name="monotonicity",
    title="Is a higher score never worse?",
    caption="Pass rate by place in the problem's own ranking, averaged over solvable problems, and"
    " the closest curve that never falls (isotonic regression). The bounds of adaptive policies"
    " assume such a curve.",
    alt="Points of the pass rate against the quantile of the score, with a rising step curve.",
    columns=(
        c.LOG,
        c.percent("from", "from", "lower end of the bin of places; 0 % is the worst"),
        c.percent("to", "to", "upper end of the bin; 100 % is the best"),
        c.PASS_RATE,
        c.PASS_RATE_LOW,
        c.PASS_RATE_HIGH,
        c.percent("isotonic", "isotonic fit", "the closest curve that never falls", 2),
    ),
    drawings=(
        Drawing(
            Axis("from", label="place in the ranking, best to the right"),
            Axis("pass_rate", zero=True),
            (
                Layer("step", "from", "isotonic", x2="to", series="never falls", tone="second"),
                Layer("interval", "from", "low", "to", "high", tone="first"),
                Layer("points", "from", "pass_rate", "to", series="pass rate", tone="first"),
            ),
        ),
    ),
)
SUMMARY = TableSchema(
    name="monotonicity_summary",
    title="The largest fall of the pass rate",
    caption="The largest fall of the pass rate from a bin of scores to a higher one, and how often"
    " a score that never falls would show one as large by chance.",
    alt="A table with one row per log.",
    columns=(
        c.LOG,
        c.PROBLEMS,
        c.percent("fall", "largest fall", "of the pass rate", 2),
        c.PASS_RATE_LOW,
        c.PASS_RATE_HIGH,
        c.percent("falls_from", "from place", "the middle of the bin it falls from"),
        c.percent("falls_to", "to place", "the middle of the bin it falls to"),
        c.percent("by_chance", "by chance", "how often chance alone makes such a fall"),
        c.number("violated", "violated", "problems whose own fall has less than 5 % by chance"),
        c.number("inverted", "inverted", "problems with an AUC below one half"),
    ),
)
PER_PROBLEM = TableSchema(
    name="monotonicity_problems",
    title="The largest fall on each problem",
    caption="The same for each solvable problem alone; the interval resamples its candidates.",
    alt="A table with one row per problem.",
    columns=(
        c.LOG,
        c.PROBLEM,
        c.percent("fall", "largest fall", "of the pass rate"),
        c.percent("low", "from", "lower end of the 95 % interval"),
        c.percent("high", "to", "upper end of the 95 % interval"),
        c.percent("by_chance", "by chance", "how often chance alone makes such a fall"),
    ),
)
_TABLES = (MONOTONICITY, SUMMARY, PER_PROBLEM)


@dataclass(frozen=True, eq=False)
class Falls:
    """The falls of the pass rate on one log.

    Attributes:
        problems: the solvable problems with enough candidates.
        rates: `[problems, bins]`, pass rates, worst scores first.
        intervals: `[problems, 2]`, 95 % intervals of each problem's largest fall.
        by_chance: `[problems]`, how often chance alone makes a problem's largest fall.
        resampled: `[resamples, bins]`, mean pass rates of resamples of the problems.
    """

    problems: tuple[LoggedProblem, ...]
    rates: Array
    intervals: Array
    by_chance: Array
    resampled: Array

    @property
    def violated(self) -> set[str]:
        """The names of the problems whose fall chance does not explain."""
        return {
            problem.id
            for problem, chance in zip(self.problems, self.by_chance, strict=True)
            if chance < _BY_CHANCE
        }


def find_falls(dataset: Dataset) -> Falls | None:
    """The falls of a log; None if no solvable problem has enough candidates."""
    bins = _bins(dataset.log.solvable)
    problems = tuple(p for p in dataset.log.solvable if len(p) >= 2 * bins)
    if not problems:
        return None
    count = len(problems)
    rates = np.array([binned_rates(p.scores, p.passed, bins) for p in problems])
    falls = largest_fall(rates)
    intervals = np.empty((count, 2))
    chances = np.empty(count)
    generator = np.random.default_rng([dataset.request.seed, count, bins])
    for at, problem in enumerate(problems):
        size = max(len(problem) // bins, 1)
        shape = (_RESAMPLES // 2, bins)
        rising = np.clip(isotonic(rates[at]), 0, 1)
        by_chance = largest_fall(generator.binomial(size, rising, shape) / size)
        around = generator.binomial(size, np.clip(rates[at], 0, 1), shape) / size
        chances[at] = (by_chance >= falls[at] - 1e-9).mean()
        intervals[at] = interval(largest_fall(around))
    weights = generator.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES) / count
    return Falls(problems, rates, intervals, chances, weights @ rates)


def _bins(problems: Sequence[LoggedProblem]) -> int:
    """The number of bins of a ranking: of ten candidates each, if there are enough."""
    if not problems:
        return 0
    usual = float(np.median([len(problem) for problem in problems]))
    return int(np.clip(usual // 10, 2, 20))


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """The rows of all three tables."""
    name = dataset.name
    solvable = dataset.log.solvable
    falls = dataset.once(find_falls)
    if falls is None:
        text = "no solvable problem has the 4 candidates it takes to compare better scores with"
        rows.note(_TABLES, f"{name}: {text} worse ones.")
        return
    if len(falls.problems) < len(solvable):
        text = f"{len(solvable) - len(falls.problems)} problems have too few candidates."
        rows.note(_TABLES, f"{name}: {text}")
    for problem, fall, ends, chance in zip(
        falls.problems, largest_fall(falls.rates), falls.intervals, falls.by_chance, strict=True
    ):
        rows.add(PER_PROBLEM, name, problem.id, *points([fall, *ends, chance]))
    rows.note(
        PER_PROBLEM,
        "Candidates are assumed to be independent. If many share one answer, and so one score and"
        " one verdict, chance makes larger falls than stated. The intervals are biased upwards,"
        " because they are of the largest of several falls.",
    )
    _add_mean(rows, dataset, falls)


def _add_mean(rows: RowCollector, dataset: Dataset, falls: Falls) -> None:
    """The mean over problems."""
    name, (count, bins) = dataset.name, falls.rates.shape
    mean = falls.rates.mean(axis=0)
    fit = isotonic(mean)
    edges = np.linspace(0, 1, bins + 1)
    fall, (start, end) = float(largest_fall(mean)), where_it_falls(mean)
    low: Sequence[float | None] = [None] * bins
    high = low
    spread = low[:2]
    chance = None
    if count > 1:
        low, high = (points(ends) for ends in np.quantile(falls.resampled, [0.025, 0.975], axis=0))
        spread = interval(largest_fall(falls.resampled))
        # The same scatter around the fit: what a score that never falls would show.
        shifted = falls.resampled - mean + fit
        chance = float((largest_fall(shifted) >= fall - 1e-9).mean())
    else:
        rows.note_no_interval((MONOTONICITY, SUMMARY), name)
    for at in range(bins):
        place = points([edges[at], edges[at + 1], mean[at]])
        rows.add(MONOTONICITY, name, *place, low[at], high[at], significant(fit[at]))
    middle = (edges[1:] + edges[:-1]) / 2
    places = (float(middle[start]), float(middle[end])) if fall > 0 else (None, None)
    worse = len(inverted(dataset.log) & {problem.id for problem in falls.problems})
    violated = len(falls.violated)
    rows.add(SUMMARY, name, count, fall, *spread, *places, chance, violated, worse)
    see = "See which policies rely on the score."
    if chance is not None and chance < _BY_CHANCE:
        rows.warnings.append(
            f"{name}: higher scores are worse in places: from {places[0]:.0%} to {places[1]:.0%} of"
            f" the ranking the pass rate falls by {fall:.1%}. Chance alone would do this in"
            f" {chance:.1%} of such logs. {see}"
        )
    text = f"{name}: on {violated} of {count} problems the pass rate falls with the score by more"
    text += f" than chance explains. By chance alone, up to {_BY_CHANCE * count:.0f} would."
    rows.note(SUMMARY, text)
    if wilson(violated, count)[0] > _BY_CHANCE:
        rows.warnings.append(f"{text} {see}")


PART = Part("score", _TABLES, of_log=add_log, needs_pass=False)
