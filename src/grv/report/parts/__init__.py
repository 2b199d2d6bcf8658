"""The parts of a report, one file each: schema, rows, drawing. `PARTS` is the list to extend."""

from __future__ import annotations

from .advice import better_score, cheaper_verifier, pays_for_itself, which_policy
from .costs import (
    budget_curve,
    difficulty,
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
    distrust,
    monotonicity,
    rank_pass,
    score_distribution,
)
from .time import rounds, unsolved

# In the order of the page.
PARTS = (
    summary.PART,
    paired.PART,
    optimal_pairs.PART,
    difficulty.PART,
    budget_curve.PART,
    trials.PART,
    sensitivity.PART,
    rank_pass.PART,
    coverage.PART,
    auc.PART,
    score_distribution.PART,
    calibration.PART,
    monotonicity.PART,
    distrust.PART,
    which_policy.PART,
    pays_for_itself.PART,
    better_score.PART,
    cheaper_verifier.PART,
    rounds.PART,
    unsolved.PART,
)
TABLES = {table.name: table for part in PARTS for table in part.tables}
