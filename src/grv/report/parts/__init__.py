"""The parts of a report, one file each: schema, rows, drawing. `PARTS` is the list to extend."""

from __future__ import annotations

from .advice import better_score, cheaper_verifier, generators, pays_for_itself, which_policy
from .costs import (
    budget_curve,
    difficulty,
    learning_curve,
    optimal_pairs,
    paired,
    sensitivity,
    summary,
    trials,
)
from .score import (
    auc,
    calibration,
    coverage,
    distribution,
    distrust,
    monotonicity,
    rank_pass,
    trained,
)
from .time import frontier, rounds, unsolved

_MODULES = (
    *(summary, learning_curve, paired, optimal_pairs, difficulty, budget_curve, trials),
    sensitivity,
    *(rank_pass, coverage, auc, distribution, calibration, monotonicity, distrust, trained),
    *(which_policy, pays_for_itself, better_score, cheaper_verifier, generators),
    *(rounds, frontier, unsolved),
)
PARTS = tuple(module.PART for module in _MODULES)  # in the order of the page
TABLES = {table.name: table for part in PARTS for table in part.tables}
