"""Pass rate by score."""

from __future__ import annotations

import pytest

from support.reports import by_hand


def test_few_candidates_share_one_bin_with_its_wilson_interval() -> None:
    (row,) = by_hand()["calibration"].records()  # 6 of 18, Wilson: (0.1628, 0.5626)
    assert (row["candidates"], row["passed"]) == (18, 6)
    assert (row["low"], row["high"]) == pytest.approx((0.1628, 0.5626), abs=2e-4)
