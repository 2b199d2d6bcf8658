"""Is a higher score never worse? And which policy to distrust where it is.

The promises of adaptive policies hold where the chance of passing does not fall as the score rises,
on each problem. Here each problem's ranking is cut into parts of equal size; a *fall* is the pass
rate of one part less that of a better one. Chance alone makes some fall, so each comes with how
often a score that never falls would show as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..experiments.rows import PolicyRow, parse_row
from ..logs.log import Log, LoggedProblem
from ..policies import POLICIES
from .dataset import IN_ORDER, Study, price_name
from .rows import Sheets
from .score_tables import aucs_of
from .statistics import binned_rates, interval, isotonic, largest_fall, where_it_falls, wilson
from .table import points, significant

_RESAMPLES = 1000
_BY_CHANCE = 0.05

MONOTONE_TABLES = ("monotonicity", "monotonicity_summary", "monotonicity_problems")

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Falls:
    """What is known of the falls of one log.

    Attributes:
        problems: those looked at: solvable, with enough candidates.
        rates: `[problems, bins]`, pass rates, worst scores first.
        by_chance: `[problems]`, how often chance alone makes a problem's fall.
    """

    problems: tuple[LoggedProblem, ...]
    rates: Array
    by_chance: Array

    @property
    def violated(self) -> set[str]:
        """The names of the problems whose fall chance does not explain."""
        return {
            problem.id
            for problem, chance in zip(self.problems, self.by_chance, strict=True)
            if chance < _BY_CHANCE
        }


def monotone_tables(sheets: Sheets, name: str, log: Log, seed: int) -> Falls | None:
    """The tables of one log; what was found, or None where there is nothing to look at."""
    bins = _bins(log)
    looked_at = tuple(p for p in log.solvable if len(p) >= 2 * bins)
    if bins < 2 or not looked_at:
        text = f"{name}: no solvable problem has enough candidates to tell better scores from worse"
        sheets.note(MONOTONE_TABLES, f"{text}; it takes 4.")
        return None
    if len(looked_at) < len(log.solvable):
        text = f"{name}: {len(log.solvable) - len(looked_at)} problems have too few candidates."
        sheets.note(MONOTONE_TABLES, text)
    rates = np.array([binned_rates(p.scores, p.passed, bins) for p in looked_at])
    generator = np.random.default_rng([seed, len(looked_at), bins])
    falls = Falls(looked_at, rates, _by_problem(sheets, name, looked_at, rates, generator))
    _whole_log(sheets, name, log, falls, generator)
    return falls


def _bins(log: Log) -> int:
    """Into how many parts rankings are cut: at least ten candidates each, where there are."""
    if not log.solvable:
        return 0
    usual = float(np.median([len(problem) for problem in log.solvable]))
    return int(np.clip(usual // 10, 2, 20))


def _by_problem(
    sheets: Sheets,
    name: str,
    problems: Sequence[LoggedProblem],
    rates: Array,
    generator: np.random.Generator,
) -> Array:
    bins = rates.shape[1]
    falls = largest_fall(rates)
    chances = np.empty(len(problems))
    for at, problem in enumerate(problems):
        size = max(len(problem) // bins, 1)
        shape = (_RESAMPLES // 2, bins)
        rising = np.clip(isotonic(rates[at]), 0, 1)
        by_chance = largest_fall(generator.binomial(size, rising, shape) / size)
        around = generator.binomial(size, np.clip(rates[at], 0, 1), shape) / size
        chances[at] = (by_chance >= falls[at] - 1e-9).mean()
        numbers = points([falls[at], *interval(largest_fall(around)), chances[at]])
        sheets.add("monotonicity_problems", [(name, problem.id, *numbers)])
    sheets.note(
        "monotonicity_problems",
        "Candidates are taken as independent. Where many share one answer, and so one score and one"
        " verdict, chance makes larger falls than stated. The intervals lean upwards, as the"
        " largest of several falls always does.",
    )
    return chances


def _whole_log(
    sheets: Sheets, name: str, log: Log, falls: Falls, generator: np.random.Generator
) -> None:
    """The mean over problems, resampled by problem."""
    count, bins = falls.rates.shape
    mean = falls.rates.mean(axis=0)
    fit = isotonic(mean)
    edges = np.linspace(0, 1, bins + 1)
    fall, (start, end) = float(largest_fall(mean)), where_it_falls(mean)
    low: Sequence[float | None] = [None] * bins
    high = low
    spread: tuple[float | None, ...] = (None, None)
    chance = None
    if count > 1:
        weights = generator.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES) / count
        means = weights @ falls.rates
        low, high = (points(ends) for ends in np.quantile(means, [0.025, 0.975], axis=0))
        spread = interval(largest_fall(means))
        # The same scatter around the fit: what a score that never falls would show.
        chance = float((largest_fall(means - mean + fit) >= fall - 1e-9).mean())
    for at in range(bins):
        place = points([edges[at], edges[at + 1], mean[at]])
        sheets.add("monotonicity", [(name, *place, low[at], high[at], significant(fit[at]))])
    middle = (edges[1:] + edges[:-1]) / 2
    places = (float(middle[start]), float(middle[end])) if fall > 0 else (None, None)
    inverted = _inverted(log) & {problem.id for problem in falls.problems}
    counts = (len(falls.violated), len(inverted))
    sheets.add("monotonicity_summary", [(name, count, fall, *spread, *places, chance, *counts)])
    if count < 2:
        sheets.note(MONOTONE_TABLES[:2], f"{name}: one problem alone has no interval.")
    if chance is not None and chance < _BY_CHANCE:
        sheets.warnings.append(
            f"{name}: higher scores are worse in places: from {places[0]:.0%} to {places[1]:.0%} of"
            f" the ranking the pass rate falls by {fall:.1%}, which chance would do in {chance:.1%}"
            " of such logs. See which policies rest on the score."
        )
    text = f"{name}: on {counts[0]} of {count} problems the pass rate falls as the score rises by"
    text += f" more than chance explains, where up to {_BY_CHANCE * count:.0f} would by chance"
    sheets.note("monotonicity_summary", f"{text} alone.")
    if wilson(counts[0], count)[0] > _BY_CHANCE:
        sheets.warnings.append(f"{text} alone. See which policies rest on the score.")


def _inverted(log: Log) -> set[str]:
    """The names of the problems on which the score ranks worse than chance."""
    return {id for id, value in aucs_of(log).items() if value is not None and value < 0.5}


_RISING = "higher scores not being worse"
_BLIND = "no score: it verifies some candidates blindly"
_RESTS_ON = {
    "adaptive": _RISING,
    "balanced": _RISING,
    "fixed": _RISING,
    "threshold": "scores above the threshold being better",
    "known-law": "the law it was given",
    "alternate": _BLIND,
    "hedged": _BLIND,
    "varied": _BLIND,
    "centered-star": "the class of concepts it was given",
    "verify-all": "no score: it does not look at it",
    "learned": "the past being like the present",
}


def rests_on(policy: str) -> str:
    """What the promise of a policy needs of the score."""
    kind = parse_row(policy)
    assert isinstance(kind, PolicyRow)
    names = {of: name for name, of in POLICIES.items()}
    return _RESTS_ON.get(names.get(type(kind.policy), ""), "not stated")


def distrust_table(sheets: Sheets, study: Study, falls: Falls | None) -> None:
    """Each policy against verifying in order, where the score misleads and elsewhere."""
    misled = _inverted(study.log) | (falls.violated if falls else set())
    chosen = np.array([problem.id in misled for problem in study.problems])
    solvable = np.array([problem.solvable for problem in study.problems])
    text = f"{study.name}: the score misleads on {int(chosen.sum())} of {int(solvable.sum())}"
    sheets.note(
        "distrust",
        f"{text} problems: its AUC there is below one half, or the pass rate falls as it rises.",
    )
    if chosen.any():
        sheets.note(
            "distrust",
            "These problems were picked by the same verdicts that the costs are counted on, so on"
            " fresh candidates the score would mislead less.",
        )
    for costs in study.costs:
        in_order = study.tried[costs, IN_ORDER].by_problem
        for policy in study.request.live:
            spent = study.tried[costs, policy].by_problem
            where = _ratio(study, spent, in_order, chosen)
            others = _ratio(study, spent, in_order, solvable & ~chosen)[0]
            needs = rests_on(policy)
            verdict = "" if policy == IN_ORDER else _verdict(*where, blind=needs == _BLIND)
            head = (study.name, price_name(costs), policy, needs)
            sheets.add("distrust", [(*head, *where, others, verdict)])


def _ratio(
    study: Study, above: Array, below: Array, chosen: NDArray[np.bool_]
) -> tuple[float | None, float | None, float | None]:
    """The ratio of sums over the chosen problems, and its interval over problems."""
    if not chosen.any():
        return None, None, None
    upper, lower = above * chosen, below * chosen
    ratio = float(upper.sum() / lower.sum())
    if chosen.sum() < 2:
        return ratio, None, None
    down = study.resampled.totals(lower)
    there = down > 0
    return ratio, *interval(study.resampled.totals(upper)[there] / down[there])


def _verdict(ratio: float | None, low: float | None, high: float | None, *, blind: bool) -> str:
    if ratio is None:
        return "the score misleads nowhere"
    if low is None or high is None:
        return "one problem says little"
    if low > 1 and blind:
        return "dearer than in order there; what it promises needs no score"
    if low > 1:
        return "distrust: dearer than in order where the score misleads"
    if high < 1:
        return "holds: cheaper than in order even there"
    return "undecided: no worse than in order that one could tell"
