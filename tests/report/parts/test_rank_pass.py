"""Pass rate by rank."""

from __future__ import annotations

import numpy as np
import pytest

from grv.logs.log import Log
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from grv.testing import population
from support.reports import FEW, PASSED, by_hand


def test_pass_rates_by_rank_are_counted_by_hand() -> None:
    by_rank = np.mean(PASSED, axis=0)
    assert by_hand()["rank_pass"].column("pass_rate") == pytest.approx(by_rank.tolist(), abs=1e-4)


@pytest.mark.slow
def test_late_ranks_are_averaged() -> None:
    log = Log((population("coding", problems=1, candidates=500, seed=1).problems[0],))
    made = make_report(
        [ReportSource("x", log=log)], ReportRequest(orders=1, many_orders=1, policies=FEW)
    )
    table = made["rank_pass"]
    assert len(table) == 200
    assert table.column("ranks")[:64] == [1] * 64
    assert sum(int(count or 0) for count in table.column("ranks")) == 500
