"""The tables of `docs/theory/limits.md` are what the functions say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from grv.core.values import Costs
from grv.policies import Alternate, Balanced, Hedged
from grv.theory.constants import (
    alternate_against_verify_all,
    alternate_constant,
    least_against_verify_all,
    least_common_constant,
    least_constant,
)
from grv.theory.proofs.steps import step_ratio, worst_ratio
from grv.theory.rounds import StepLaw
from grv.theory.shells import shells
from grv.theory.slots import Slot, one_by_one

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "limits.md"
ROWS = [
    [float(cell) for cell in line.strip("| ").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.fullmatch(r"(\| *[\d.]+ *)+\|", line)
]
WORST, BOTH = ROWS[:5], ROWS[5:]


def test_the_page_has_its_tables() -> None:
    assert [row[0] for row in WORST] == [1, 3, 10, 30, 100]
    assert [row[0] for row in BOTH] == [3, 10, 30, 100]


@pytest.mark.parametrize("row", WORST, ids=lambda row: f"rho {row[0]:g}")
def test_the_worst_ratios_and_that_none_beats_the_limit(row: list[float]) -> None:
    rho, least, balanced, alternate, hedged, adaptive, verify_all = row
    costs = Costs(1, rho)

    assert least == pytest.approx(least_constant(rho), abs=6e-4)
    for policy, shown in ((Balanced(), balanced), (Alternate(), alternate), (Hedged(), hedged)):
        found = worst_ratio(policy.slots(costs), rho, most=30).ratio
        assert found == pytest.approx(shown, abs=6e-4)
    assert verify_all == 1 + rho
    assert min(balanced, alternate, hedged, adaptive, verify_all) >= least


@pytest.mark.slow
@pytest.mark.parametrize("row", WORST, ids=lambda row: f"rho {row[0]:g}")
def test_the_worst_ratio_of_algorithm_1(row: list[float]) -> None:
    costs = Costs(1, row[0])

    def slots() -> Iterable[Slot]:
        return one_by_one((shell.draws(), shell.checks()) for shell in shells(costs))

    shares = np.geomspace(1e-3, 1, 13).tolist()
    laws = [StepLaw(q, p) for q in shares for p in (1.0, 0.5) if p == 1 or q > 0.01]
    found = max(step_ratio(slots(), law, row[0], most=30).low for law in laws)

    assert found == pytest.approx(row[5], abs=0.06)


@pytest.mark.parametrize("row", BOTH, ids=lambda row: f"rho {row[0]:g}")
def test_both_at_once(row: list[float]) -> None:
    rho, common, c1, c2, least_with_c1, least_with_least = row

    assert common == pytest.approx(least_common_constant(rho), abs=6e-4)
    assert c1 == pytest.approx(alternate_constant(rho), abs=6e-4)
    assert c2 == pytest.approx(alternate_against_verify_all(rho), abs=6e-4)
    assert least_with_c1 == pytest.approx(
        least_against_verify_all(rho, alternate_constant(rho)), abs=6e-4
    )
    assert least_with_least == pytest.approx(
        least_against_verify_all(rho, least_constant(rho)), rel=1e-5
    )
    assert max(c1, c2) >= common
