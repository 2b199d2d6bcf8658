"""What a guarded policy may spend, and why that is enough."""

from __future__ import annotations

import math

import pytest

from grv.core.errors import UsageError
from grv.theory.constants import balanced_constant
from grv.theory.guard import FACTOR, allowance, guard_blocks, guarded_bound
from grv.theory.slots import block_draws

RATIOS = [0.1, 0.5, 1, 1.5, 2, 3, 4.7, 7, 10, 12.3, 30, 31.5, 100, 1000]
SHARES = [10 ** (-k / 8) for k in range(49)]  # q from 1 to a millionth
CHANCES = [1.0, 0.5, 0.1, 1e-3]


def test_the_sizes_are_those_of_balanced_and_the_allowance_grows_with_them() -> None:
    assert guard_blocks(10) == ((3, 5 * 8.0), (11, 5 * 11.0))
    assert [allowance(10, begun) for begun in range(4)] == [0, 40, 95, 150]


@pytest.mark.parametrize("rho", RATIOS)
def test_the_allowance_always_covers_a_balanced_round(rho: float) -> None:
    first, later = block_draws(rho)
    for factor in (2.0, FACTOR):
        for begun in range(1, 50):
            rounds = first + rho + (begun - 1) * (later + rho)
            assert rounds <= allowance(rho, begun, factor) + 1e-9


@pytest.mark.parametrize("rho", RATIOS)
@pytest.mark.parametrize("factor", [2.0, 5.0, 17.0])
def test_spending_the_whole_allowance_costs_at_most_the_factor_on_every_step_law(
    rho: float, factor: float
) -> None:
    """The sum of the proof: blocks that pass with the least chance there is, all spent."""
    first, later = guard_blocks(rho, factor)
    for q in SHARES:
        for p in CHANCES:
            begins, blocks = 1 - p * _some(q, first.draws), p * _some(q, later.draws)
            cost = first.allowance + begins / blocks * later.allowance
            assert cost <= guarded_bound(rho, factor) * (1 + rho * q) / (p * q) * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1.0, 3.0, 10.0, 30.0, 1000.0])
def test_a_tenth_more_would_be_too_much(rho: float) -> None:
    """The factor is what the proof gives, and not less: at needles the sum comes up to it."""
    first, later = guard_blocks(rho)
    q = 1e-7
    begins, blocks = 1 - _some(q, first.draws), _some(q, later.draws)
    cost = 1.1 * (first.allowance + begins / blocks * later.allowance)
    assert cost > guarded_bound(rho) * (1 + rho * q) / q


def _some(q: float, draws: int) -> float:
    """The chance that at least one of this many draws is among the share q."""
    return -math.expm1(draws * math.log1p(-q)) if q < 1 else 1.0


def test_the_bound_is_the_factor_and_never_below_balanced() -> None:
    assert guarded_bound(10) == FACTOR == 5
    for rho in RATIOS:
        assert balanced_constant(rho) <= guarded_bound(rho, 2.0) == 2.0


@pytest.mark.parametrize("wrong", [1.99, -1, math.nan, math.inf])
def test_a_factor_below_two_leaves_no_room(wrong: float) -> None:
    with pytest.raises(UsageError, match="a guard's factor must be at least 2"):
        guard_blocks(10, wrong)
