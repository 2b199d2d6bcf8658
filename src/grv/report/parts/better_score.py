"""What a better score would save, and what a worse one would cost."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ...logs.log import Log, LoggedProblem
from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name
from ..table import significant
from .auc import aucs_of

Array = NDArray[np.float64]

BETTER_SCORE = TableSchema(
    name="better_score",
    title="What would a better score save?",
    caption="The log with its score made worse by noise, or better by raising candidates that pass:"
    " the mean AUC of the changed score, and what the policies cost.",
    alt="For each policy a curve of the cost against the AUC; a line marks the present score.",
    columns=(
        c.LOG,
        c.COSTS,
        c.text("change", "change", "how the score was changed"),
        c.number("auc", "AUC", "mean over problems", 3),
        c.POLICY,
        c.COST,
        c.percent("saving", "saves", "share saved of its present cost"),
        c.SOLVED,
        c.number("now", "now", "1 for the present score, else 0"),
    ),
    drawings=(
        Drawing(
            Axis("auc", label="mean AUC of the score"),
            Axis("cost", zero=True),
            (
                Layer("line", "auc", "cost", by="policy"),
                Layer("points", "auc", "cost", by="policy"),
                Layer("rule", "auc", where=("now", 1), series="present score", tone="quiet"),
            ),
        ),
    ),
)

# Name, the share of the score that noise replaces, and the standard deviations by which candidates
# that pass are raised; infinity ranks all of them first.
CHANGES: tuple[tuple[str, float, float], ...] = (
    ("noise only", 1.0, 0.0),
    ("70 % noise", 0.7, 0.0),
    ("as it is", 0.0, 0.0),
    ("passes 0.5 higher", 0.0, 0.5),
    ("passes 1 higher", 0.0, 1.0),
    ("passes 2 higher", 0.0, 2.0),
    ("perfect", 0.0, np.inf),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per change, price list and live policy that ranks."""
    if not dataset.ranking:
        rows.note(BETTER_SCORE, dataset.no_ranking)
        return
    for words, noise, higher in CHANGES:
        now = noise == higher == 0
        log = dataset.log if now else changed(dataset.log, noise, higher, dataset.request.seed)
        known = [value for value in aucs_of(log).values() if value is not None]
        mean = significant(float(np.mean(known))) if known else None
        compared = dataset.main.rows
        with dataset.progress.stage() as tell:
            if not now:
                compared = dataset.compare(dataset.ranking, dataset.costs, tell, log).rows
        for row in compared:
            if row.policy in dataset.ranking:
                was = dataset.tried[row.costs, row.policy].row.cost
                head = (dataset.name, price_name(row.costs), words, mean, row.policy)
                rows.add(BETTER_SCORE, *head, row.cost, 1 - row.cost / was, row.solved, int(now))
    rows.note(
        BETTER_SCORE,
        "Each problem's scores become normal scores by their ranks. Noise replaces a share of them,"
        " or candidates that pass are raised by some standard deviations. A perfect score ranks all"
        " of them first. A real better score may make other errors.",
    )
    if dataset.cascade_note:
        rows.note(BETTER_SCORE, dataset.cascade_note)


def changed(log: Log, noise: float, higher: float, seed: int) -> Log:
    """The log with each problem's scores turned into normal scores by rank, then changed.

    Args:
        log: the log to change.
        noise: the weight of standard normal noise; the score keeps the weight `1 - noise**2`, as
            variances.
        higher: the amount added to the score of a candidate that passes.
        seed: the seed of the noise.
    """
    problems = [
        dataclasses.replace(
            problem, scores=_changed(problem, noise, higher, np.random.default_rng([seed, at]))
        )
        for at, problem in enumerate(log.problems)
    ]
    return dataclasses.replace(log, problems=tuple(problems))


def _changed(
    problem: LoggedProblem, noise: float, higher: float, generator: np.random.Generator
) -> Array:
    z = normal_scores(problem.scores)
    if noise:
        z = np.sqrt(1 - noise**2) * z + noise * generator.standard_normal(len(z))
    beyond = float(z.max() - z.min()) + 1.0
    return z + problem.passed * (higher if np.isfinite(higher) else beyond)


def normal_scores(scores: Array) -> Array:
    """Each score as the normal quantile of its rank; equal scores share their middle rank."""
    from scipy.special import ndtri

    _, level, size = np.unique(scores, return_inverse=True, return_counts=True)
    places = (np.cumsum(size) - size / 2) / len(scores)
    return np.asarray(ndtri(places)[level])


PART = Part("advice", (BETTER_SCORE,), of_log=add_log, stages=len(CHANGES))
