"""The highest cost of a guarded policy, whatever the policy does (docs/theory/guard.md).

The candidates of a search are divided into *blocks* in order of arrival: g1 candidates in the first
block, g in every later one, the sizes of Balanced. The best candidate of each block is verified
before the next block begins. And the cost so far, plus the cost to complete the current block,
stays within the *allowance* of the blocks begun,

    F (g1 + (g - 1) / 2)  for the first,  F g  for every later one,

in units of c_rew. Then the expected cost is at most F J* if the chance of passing does not decrease
with the score.

The oldest open candidate must be verified in time: until the n-th draw is verified, or known to
fail, the cost stays within F times what verify-all pays for the first n draws. Then the cost is at
most F times that of verify-all on the same candidates, for any score.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ..core.errors import UsageError
from .constants import balanced_constant
from .slots import block_draws

FACTOR = 5.0  # the default F
LEAST_FACTOR = 2.0  # above the constant of Balanced, so that the policy can always spend something
LEAST_FOR_BOTH = 3.0  # a block's allowance then covers its draws, its best and its oldest


class GuardBlock(NamedTuple):
    """The number of candidates of a block, and what the block adds to the allowance."""

    draws: int
    allowance: float


def guard_blocks(rho: Fraction | float, factor: float = FACTOR) -> tuple[GuardBlock, GuardBlock]:
    """The first block, and every later one."""
    if not LEAST_FACTOR <= factor < float("inf"):
        raise UsageError(f"a guard's factor must be at least {LEAST_FACTOR:g}, not {factor}")
    first, later = block_draws(rho)
    return GuardBlock(first, factor * (first + (later - 1) / 2)), GuardBlock(later, factor * later)


def oldest_limit(rho: float, settled: int, factor: float = FACTOR, *, spared: int = 0) -> float:
    """The most that may be spent in all until the oldest open candidate is verified, in candidates.

    That is `factor` times what verify-all pays up to this candidate. `settled` is the number of
    candidates before it; all of them were verified or are known to fail. Of these, verify-all does
    not verify those that are `spared`: refuted candidates, and further candidates of a key.
    """
    return factor * (1 + rho) * (settled + 1) - factor * rho * spared


def guarded_bound(rho: Fraction | float, factor: float = FACTOR) -> float:
    """The bound on the cost of any guarded policy, over J*: the factor itself.

    If the factor is the constant of Balanced, only balanced rounds fit into the allowance, and the
    bound is Theorem 1.
    """
    guard_blocks(rho, factor)
    return max(factor, balanced_constant(rho))


def allowance(rho: Fraction | float, begun: int, factor: float = FACTOR) -> float:
    """The allowance in units of c_rew, after `begun` blocks have begun."""
    first, later = guard_blocks(rho, factor)
    return first.allowance + (begun - 1) * later.allowance if begun else 0.0


def cold_guard_constant(factor: float) -> float:
    """(3 F + 1) / (F - 1): the bound of `varied(factor=F)` over J*, in the mean."""
    return (3 * factor + 1) / (factor - 1)


def guarded_width_factor(*, random_phase: bool = False) -> float:
    """How much a width adds to a guarded search with the ramp, without keys: a factor of 5.

    With a random phase it is 3.9 in the mean over phases.
    """
    return 3.9 if random_phase else 5.0
