"""The parts of a report, one file each: schema, rows, drawing. `PARTS` is the list to extend."""

from __future__ import annotations

from . import (
    auc,
    better_score,
    budget_curve,
    calibration,
    cheaper_verifier,
    coverage,
    difficulty,
    distribution,
    distrust,
    frontier,
    generators,
    learning_curve,
    monotonicity,
    optimal_pairs,
    paired,
    pays_for_itself,
    rank_pass,
    rounds,
    sensitivity,
    summary,
    trained,
    trials,
    unsolved,
    which_policy,
)

_MODULES = (
    summary,
    learning_curve,
    paired,
    optimal_pairs,
    difficulty,
    budget_curve,
    trials,
    sensitivity,
    rank_pass,
    coverage,
    auc,
    distribution,
    calibration,
    monotonicity,
    distrust,
    trained,
    which_policy,
    pays_for_itself,
    better_score,
    cheaper_verifier,
    generators,
    rounds,
    frontier,
    unsolved,
)
PARTS = tuple(module.PART for module in _MODULES)  # in the order of the page
TABLES = {table.name: table for part in PARTS for table in part.tables}
