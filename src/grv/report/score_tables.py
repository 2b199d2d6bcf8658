"""Does the score rank? Tables of scores against verdicts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..experiments.comparison import Resampled
from ..logs.log import Log
from .rows import Sheets
from .statistics import (
    auc,
    covered_at_random,
    covered_by_score,
    expected_passes,
    interval,
    rolling_mean,
    wilson,
)
from .table import Cell, points, significant

_RANKS_ALONE = 64  # ranks that are points of their own; later ones are averaged
_MOST_RANKS = 200
_MOST_KS = 140
_AUC_BINS = 20
_SCORE_BINS = 40
_CALIBRATION_BINS = 15

Array = NDArray[np.float64]


def score_tables(sheets: Sheets, name: str, log: Log, seed: int) -> None:
    """The tables of one log's score."""
    _rank_pass(sheets, name, log)
    _coverage(sheets, name, log)
    _auc(sheets, name, log, seed)
    _score_distribution(sheets, name, log)
    _calibration(sheets, name, log)
    _say_of_scores(sheets, name, log)


SCORE_TABLES = (
    *("rank_pass", "coverage", "auc", "auc_summary", "auc_problems"),
    *("score_distribution", "calibration"),
)


def _say_of_scores(sheets: Sheets, name: str, log: Log) -> None:
    """What kind of log makes these tables say little."""
    scores = np.concatenate([problem.scores for problem in log.problems])
    unscored = int(np.isneginf(scores).sum())
    if unscored == len(scores):
        sheets.note(SCORE_TABLES, f"{name}: no candidate has a score, so ranking is by chance.")
    elif unscored:
        text = f"{name}: {unscored} of {len(scores)} candidates have no score; they rank last."
        sheets.note(SCORE_TABLES, text)
    elif len(np.unique(scores)) == 1:
        text = f"{name}: all scores are equal, so ranking is by chance."
        sheets.note(SCORE_TABLES, text)
    if all(len(problem) == 1 for problem in log.problems):
        text = f"{name}: each problem has one candidate, so there is nothing to rank."
        sheets.note(SCORE_TABLES, text)
    passed = np.concatenate([problem.passed for problem in log.problems])
    if passed.all():
        sheets.note(SCORE_TABLES, f"{name}: all candidates passed.")
    elif not passed.any():
        sheets.note(SCORE_TABLES, f"{name}: no candidate passed.")


def _rank_pass(sheets: Sheets, name: str, log: Log) -> None:
    if not log.solvable:
        sheets.note("rank_pass", f"{name}: no problem is solvable, and so no rank ever passes.")
        return
    longest = max(map(len, log.solvable))
    passes, problems = np.zeros(longest), np.zeros(longest)
    for problem in log.solvable:
        passes[: len(problem)] += expected_passes(problem.scores, problem.passed)
        problems[: len(problem)] += 1
    rates = passes / problems
    window = 2 * max(longest // 40, 1) + 1
    rolling = rolling_mean(rates, problems, window)
    for part in _parts(longest):
        weights = problems[part]
        row = (
            *points([part.mean() + 1]),
            len(part),
            *points([np.average(rates[part], weights=weights), rolling[part].mean()]),
            round(float(weights.mean())),
        )
        sheets.add("rank_pass", [(name, *row)])
    sheets.note("rank_pass", f"{name}: the rolling mean is over {window} neighbouring ranks.")


def _parts(longest: int) -> list[NDArray[np.intp]]:
    """Ranks from 0: the first ones alone, the others in neighbourhoods."""
    alone = [np.array([at]) for at in range(min(longest, _RANKS_ALONE))]
    if longest <= _RANKS_ALONE:
        return alone
    others = np.arange(_RANKS_ALONE, longest)
    return alone + np.array_split(others, min(len(others), _MOST_RANKS - _RANKS_ALONE))


def _coverage(sheets: Sheets, name: str, log: Log) -> None:
    if not log.solvable:
        sheets.note("coverage", f"{name}: no problem is solvable, so nothing is ever covered.")
        return
    longest = max(map(len, log.solvable))
    spread = np.geomspace(1, longest, _MOST_KS // 2).round().astype(np.intp)
    ks = np.unique([*range(1, min(longest, _RANKS_ALONE) + 1), *spread.tolist()])
    found = [
        (covered_by_score(p.scores, p.passed, ks), covered_at_random(p.passed, ks))
        for p in log.solvable
    ]
    by_score, at_random = np.mean(found, axis=0)
    for k, best, random in zip(ks.tolist(), by_score, at_random, strict=True):
        sheets.add("coverage", [(name, k, *points([best, random]))])
    if len({len(problem) for problem in log.solvable}) > 1:
        text = f"{name}: where k is more than a problem's candidates, all of them are taken."
        sheets.note("coverage", text)


def aucs_of(log: Log) -> dict[str, float | None]:
    """The AUC of each problem; None without both passes and failures."""
    return {problem.id: auc(problem.scores, problem.passed) for problem in log.problems}


def _auc(sheets: Sheets, name: str, log: Log, seed: int) -> None:
    found = aucs_of(log)
    for problem in log.problems:
        value = found[problem.id]
        passed = int(problem.passed.sum())
        counts = (passed, len(problem) - passed, None if value is None else significant(value))
        sheets.add("auc_problems", [(name, problem.id, *counts)])
    known = np.array([value for value in found.values() if value is not None])
    if len(known) < len(found):
        text = f"{name}: {len(found) - len(known)} of {len(found)} problems have no AUC, as all of"
        sheets.note(("auc", "auc_summary"), f"{text} their candidates passed, or none.")
    if not len(known):
        return
    counts_by_bin, edges = np.histogram(known, bins=_AUC_BINS, range=(0.0, 1.0))
    for low, high, count in zip(edges, edges[1:], counts_by_bin.tolist(), strict=False):
        sheets.add("auc", [(name, *points([low, high]), count)])
    lower, median, upper = np.quantile(known, [0.25, 0.5, 0.75])
    ends: tuple[Cell, Cell] = (None, None)
    if len(known) > 1:
        ends = interval(Resampled(len(known), seed).totals(known) / len(known))
    numbers = (float(median), float(lower), float(upper), float((known > 0.5).mean()))
    sheets.add("auc_summary", [(name, len(known), float(known.mean()), *ends, *numbers)])
    sheets.note(
        "auc",
        f"{name}: mean {known.mean():.2f}, median {median:.2f}, quartiles {lower:.2f} and"
        f" {upper:.2f}; above one half on {numbers[-1]:.0%} of {len(known)} problems.",
    )


def _score_distribution(sheets: Sheets, name: str, log: Log) -> None:
    scores, passed = _scored(log)
    if not len(scores):
        return
    low, high = np.quantile(scores, [0.005, 0.995])
    spread = max(high - low, 0.0)
    if scores.min() >= low - spread / 10 and scores.max() <= high + spread / 10:
        low, high = scores.min(), scores.max()
    elif high > low:
        outside = int(((scores < low) | (scores > high)).sum())
        text = f"{name}: {outside} scores beyond the ends are counted in the first and last bin."
        sheets.note("score_distribution", text)
    if high <= low:
        low, high = scores.min() - 0.5, scores.max() + 0.5
    edges = np.linspace(low, high, _SCORE_BINS + 1)
    for verdict, chosen in (("passed", passed), ("failed", ~passed)):
        total = int(chosen.sum())
        if not total:
            continue
        counts, _ = np.histogram(np.clip(scores[chosen], low, high), bins=edges)
        for start, end, count in zip(edges, edges[1:], counts.tolist(), strict=False):
            row = (name, verdict, *points([start, end]), count, significant(count / total))
            sheets.add("score_distribution", [row])


def _scored(log: Log) -> tuple[Array, NDArray[np.bool_]]:
    """All candidates that have a score: scores and verdicts."""
    scores = np.concatenate([problem.scores for problem in log.problems])
    passed = np.concatenate([problem.passed for problem in log.problems])
    there = np.isfinite(scores)
    return scores[there], passed[there]


def _calibration(sheets: Sheets, name: str, log: Log) -> None:
    scores, passed = _scored(log)
    if not len(scores):
        return
    bins = min(_CALIBRATION_BINS, max(1, len(scores) // 10))  # of ten candidates at least
    inner = np.unique(np.quantile(scores, np.linspace(0, 1, bins + 1)[1:-1]))
    places = np.searchsorted(inner, scores, side="left")
    error = 0.0
    for place in np.unique(places).tolist():
        chosen = places == place
        count, good = int(chosen.sum()), int(passed[chosen].sum())
        mean = float(scores[chosen].mean())
        error += abs(good - mean * count) / len(scores)
        ends = points([scores[chosen].min(), scores[chosen].max(), mean])
        shares = points([good / count, *wilson(good, count)])
        sheets.add("calibration", [(name, *ends, count, good, *shares)])
    if scores.min() >= 0 and scores.max() <= 1:
        text = f"{name}: scores lie between 0 and 1; read as chances of passing they are off by"
        sheets.note("calibration", f"{text} {error:.1%} on average.")
    else:
        text = f"{name}: scores are no chances of passing; policies use their order only."
        sheets.note("calibration", text)
    sheets.note(
        "calibration",
        "The intervals take candidates as independent; those of one problem are not, so they are"
        " too narrow.",
    )
