"""What the score saves, and from which cost ratio."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grv.report.parts.pays_for_itself import break_even
from support.reports import two_logs


def test_savings_are_against_verifying_in_order() -> None:
    report = two_logs()
    summary = {r["policy"]: r for r in report["summary"].only(log="first", costs="1,3").records()}
    in_order = float(summary["verify-all"]["cost"] or 0)
    for row in report["pays_for_itself"].only(log="first", costs="1,3").records():
        mine = summary[row["policy"]]
        assert row["in_order"] == in_order
        saved = in_order - float(mine["cost"] or 0)
        assert row["saving"] == pytest.approx(saved / in_order)
        assert row["worth"] == pytest.approx(saved / float(mine["generated"] or 0))
        assert float(row["low"] or 0) <= float(row["saving"] or 0) <= float(row["high"] or 0)


def test_break_even_is_the_last_crossing() -> None:
    rhos = np.array([1.0, 10.0, 100.0])
    ratios = np.array([[1.2, 0.8, 0.7], [0.9, 0.8, 0.7], [0.9, 1.1, 1.2], [0.9, 1.1, 0.9]])
    found = break_even(rhos, ratios)
    assert found == pytest.approx([math.sqrt(10), 1.0, math.inf, 10**1.5])
