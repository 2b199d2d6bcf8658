"""Paths whose constants against J* and against verify-all are both the lower bound of Theorem 5."""

from __future__ import annotations

import numpy as np
import pytest

from grv.core.errors import UsageError
from grv.theory.constants import least_common_constant
from grv.theory.proofs.common_path import against_verify_all, common_path, mixed_path
from grv.theory.proofs.steps import step_ratio
from grv.theory.rounds import StepLaw

SHARES: list[float] = [*np.geomspace(1e-6, 0.1, 10).tolist(), *np.linspace(0.13, 1, 14).tolist()]
ROOTS = [2, 3, 4, 5, 7, 10]  # ratios of 3, 8, 15, 24, 48 and 99


@pytest.mark.parametrize("s", ROOTS)
def test_against_the_optimum_no_law_of_the_grid_exceeds_the_lower_bound(s: int) -> None:
    rho, path = s * s - 1, common_path(s)
    least = least_common_constant(rho)
    for p in (1.0, 0.7, 0.3, 0.05):
        for q in SHARES:
            assert step_ratio(path, StepLaw(q, p), rho, most=40).high <= least + 1e-6


@pytest.mark.parametrize("s", ROOTS)
def test_against_verifying_everything_no_pass_rate_exceeds_it(s: int) -> None:
    rho, path = s * s - 1, common_path(s)
    for rate in [*np.geomspace(1e-6, 0.1, 30).tolist(), *np.linspace(0.11, 0.999, 30).tolist()]:
        assert against_verify_all(path, rho, rate) <= least_common_constant(rho) + 1e-9


@pytest.mark.parametrize("s", ROOTS)
def test_a_needle_reaches_it(s: int) -> None:
    rho = s * s - 1
    needle = step_ratio(common_path(s), StepLaw(1e-8, 1.0), rho, most=40)

    assert needle.low == pytest.approx(least_common_constant(rho), abs=1e-4)


def test_smaller_ratios_are_refused() -> None:
    with pytest.raises(UsageError, match="needs s of at least 2"):
        common_path(1)


@pytest.mark.parametrize(
    ("rho", "first", "second"), [(3, 2.001, 2.001), (10, 2.388, 2.418), (30, 2.630, 2.665)]
)
def test_between_the_squares_mixed_paths_are_near_the_lower_bound(
    rho: float, first: float, second: float
) -> None:
    """The figures of docs/research/common-constant.md, on fewer laws."""
    path = mixed_path(rho)
    laws = [StepLaw(q, p) for q in (1e-6, 1e-3, 0.02, 0.1, 0.4, 1) for p in (1.0, 0.3)]
    assert max(step_ratio(path, law, rho, most=40).high for law in laws) <= first
    rates = [1e-6, 1e-4, 0.01, 0.1, 0.3, 0.6, 0.9]
    assert max(against_verify_all(path, rho, rate) for rate in rates) <= second


def test_mixed_paths_follow_common_paths_at_a_square() -> None:
    assert mixed_path(3, best_slots=1) == common_path(2)
    assert mixed_path(8, best_slots=2) == common_path(3)
    with pytest.raises(UsageError, match="at least 3"):
        mixed_path(2.9)
