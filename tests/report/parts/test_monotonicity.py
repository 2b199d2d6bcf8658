"""Whether a higher score is never worse."""

from __future__ import annotations

import numpy as np
import pytest

from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts.better_score import changed
from grv.report.request import ReportRequest
from grv.testing import population
from support.reports import PASSED, by_hand


def test_bins_of_the_ranking_are_counted_by_hand() -> None:
    worse, better = by_hand()["monotonicity"].records()  # the lower half of each ranking, the upper
    rates = [np.mean([flags[3:] for flags in PASSED]), np.mean([flags[:3] for flags in PASSED])]
    assert rates[0] > rates[1]
    assert [worse["pass_rate"], better["pass_rate"]] == pytest.approx(rates, abs=1e-4)
    pooled = [np.mean(rates)] * 2
    assert [worse["isotonic"], better["isotonic"]] == pytest.approx(pooled, abs=1e-4)


@pytest.mark.slow
def test_an_inverted_score_is_warned_of() -> None:
    log = population("coding", problems=12, candidates=80, seed=3)
    asked = ReportRequest(orders=4, many_orders=2, policies=("adaptive", "verify-all"))
    made = make_report([ReportSource("x", log=changed(log, 0.0, -4.0, seed=0))], asked)
    summary = made["monotonicity_summary"].records()[0]
    assert summary["by_chance"] == 0
    assert float(summary["fall"] or 0) > 0.2
    assert summary["inverted"] == 12
    assert any("higher scores are worse" in warning for warning in made.warnings)
    right = make_report([ReportSource("x", log=changed(log, 0.0, 3.0, seed=0))], asked)
    assert float(right["monotonicity_summary"].records()[0]["by_chance"] or 0) > 0.05
    assert not right.warnings
