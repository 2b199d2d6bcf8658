"""Histograms of the score by verdict."""

from __future__ import annotations

import numpy as np
import pytest

from grv.logs.log import Log, LoggedProblem
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from support.reports import FEW, OTHER, two_logs


def test_every_candidate_is_in_one_bin() -> None:
    passed = np.concatenate([problem.passed for problem in OTHER.problems])
    table = two_logs()["score_distribution"].only(log="second")
    for verdict, total in (("passed", passed.sum()), ("failed", (~passed).sum())):
        rows = table.only(verdict=verdict).records()
        assert sum(int(row["candidates"] or 0) for row in rows) == total
        assert sum(float(row["share"] or 0) for row in rows) == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
def test_outliers_are_counted_in_the_outer_bins() -> None:
    scores = np.concatenate([np.linspace(0, 1, 999), [1e6]])
    log = Log((LoggedProblem("a", scores, scores > 0.5),))
    made = make_report(
        [ReportSource("x", log=log)], ReportRequest(orders=1, many_orders=1, policies=FEW)
    )
    table = made["score_distribution"]
    assert max(float(end or 0) for end in table.column("to")) < 2
    assert sum(int(count or 0) for count in table.column("candidates")) == 1000
    assert "beyond their ends" in table.notes[0]
