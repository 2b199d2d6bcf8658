"""Changed scores rank as they should."""

from __future__ import annotations

import numpy as np
import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs
from grv.report.parts.auc import aucs_of
from grv.report.parts.better_score import changed, normal_scores
from support.reports import OTHER, two_logs


@pytest.mark.slow
def test_a_better_score_ranks_better_and_a_perfect_one_perfectly() -> None:
    report = two_logs()
    rows = report["better_score"].only(log="second", costs="1,10", policy="adaptive").records()
    aucs = [float(row["auc"] or 0) for row in rows]
    assert aucs == sorted(aucs)
    assert aucs[-1] == 1.0
    assert [row["saving"] for row in rows if row["now"]] == [0.0]
    assert abs(aucs[0] - 0.5) < 0.15


def test_a_score_as_it_is_keeps_its_order() -> None:
    again = changed(OTHER, 0.0, 0.0, seed=1)
    assert aucs_of(again) == aucs_of(OTHER)
    assert compare(["adaptive"], again, Costs(), orders=2).rows == (
        compare(["adaptive"], OTHER, Costs(), orders=2).rows
    )


def test_normal_scores_keep_order_and_ties() -> None:
    found = normal_scores(np.array([5.0, -np.inf, 5.0, 7.0]))
    assert found[0] == found[2]
    assert found[1] < found[0] < found[3]
    assert found[1] == pytest.approx(-found[3])
