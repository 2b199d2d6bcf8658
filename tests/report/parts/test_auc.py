"""AUC of each problem, its histogram and its summary."""

from __future__ import annotations

import numpy as np
import pytest

from support.reports import OTHER, two_logs


def test_auc_is_a_count_of_pairs() -> None:
    report = two_logs()
    values = []
    for problem in OTHER.problems:
        good, bad = problem.scores[problem.passed], problem.scores[~problem.passed]
        wins = (good[:, None] > bad).sum() + (good[:, None] == bad).sum() / 2
        values.append(wins / (len(good) * len(bad)))
    row = report["auc_summary"].only(log="second").records()[0]
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["median"] == pytest.approx(np.median(values))
    assert row["above_chance"] == pytest.approx(np.mean(np.array(values) > 0.5))
    counts = report["auc"].only(log="second").column("problems")
    assert sum(int(count or 0) for count in counts) == len(values)
