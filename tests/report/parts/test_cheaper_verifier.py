"""A cheaper verifier is another price list."""

from __future__ import annotations

import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs
from support.reports import OTHER, two_logs

pytestmark = pytest.mark.slow


def test_a_cheaper_verifier_is_another_price_list() -> None:
    report = two_logs()
    saved = compare(["adaptive"], OTHER, Costs(1, 5), orders=4)["adaptive"]
    row = report["cheaper_verifier"].only(log="second", costs="1,10", price=0.5, policy="adaptive")
    assert row.column("cost") == [saved.cost]
