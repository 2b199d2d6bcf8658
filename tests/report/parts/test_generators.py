"""What each generator contributes."""

from __future__ import annotations

import numpy as np
import pytest

from grv.comparing.portfolio import compare_generators
from grv.comparing.settings import ComparisonSettings
from grv.core.values import Costs
from grv.logs.log import Log, LoggedProblem
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest
from support.reports import FEW, two_logs


def log() -> Log:
    rng = np.random.default_rng(2)
    problems = []
    for at in range(8):
        rates = np.repeat([0.1 if at else 1.0, 0.7 if at else 0.0], 10)
        passed = rng.random(20) < rates
        of = np.repeat([0, 1], 10).astype(np.int32)
        problems.append(LoggedProblem(f"p{at}", rng.normal(size=20), passed, generators=of))
    return Log(tuple(problems), generators=("small", "large"))


def test_the_tables_are_those_of_the_comparison() -> None:
    request = ReportRequest(
        orders=2, many_orders=1, policies=FEW, generators=(("small", 1.0), ("large", 20.0))
    )
    report = make_report([ReportSource("x", log=log())], request)
    prices = {"small": Costs(1, 10), "large": Costs(20, 10)}
    found = compare_generators(log(), prices, ComparisonSettings(orders=2))

    together = report["generators_together"]
    assert together.column("way") == [row.name for row in found.rows]
    assert together.column("cost") == [row.cost for row in found.rows]
    contributions = report["generators"]
    assert contributions.column("generator") == ["small", "large"]
    assert sum(contributions.column("answers")) == pytest.approx(1)  # type: ignore[arg-type]
    needed = report["generators_needed"]
    assert ("p0", "small") in set(
        zip(needed.column("problem"), needed.column("generator"), strict=True)
    )


def test_without_generators_the_tables_say_how_to_get_them() -> None:
    assert "--generator NAME=COST" in two_logs()["generators"].notes[0]


def test_wide_searches_are_left_out() -> None:
    request = ReportRequest(
        orders=1, many_orders=1, policies=FEW, width=2, generators=(("small", 1.0), ("large", 2.0))
    )
    report = make_report([ReportSource("x", log=log())], request)
    assert "only for width 1" in report["generators"].notes[0]
