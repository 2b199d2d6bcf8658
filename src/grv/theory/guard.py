"""What a guarded policy costs at most, whatever it does (docs/theory/guard.md).

The draws of a search, whoever asked for them, are cut into *blocks*: the first of g1 candidates,
every later one of g, the sizes of Balanced. The guard sees to two things. Of each block the best
candidate is verified before the next block begins; and what was spent, together with what the
current block still owes, stays within the *allowance* of the blocks begun,

    F (g1 + (g - 1) / 2)  for the first,  F g  for every later one,

in candidates. Then the search costs at most F J* on average if higher scores pass no less often.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ..core.errors import UsageError
from .constants import balanced_constant
from .slots import balanced_draws

FACTOR = 5.0  # times J*, where nothing else is said
LEAST_FACTOR = 2.0  # above the constant of Balanced, so there is always room for the policy itself


class Block(NamedTuple):
    """So many draws, the best of which is verified; and what it adds to the allowance."""

    draws: int
    allowance: float


def guard_blocks(rho: Fraction | float, factor: float = FACTOR) -> tuple[Block, Block]:
    """The first block, and every later one."""
    if not LEAST_FACTOR <= factor < float("inf"):
        raise UsageError(f"a guard's factor must be at least {LEAST_FACTOR:g}, not {factor}")
    first, later = balanced_draws(rho)
    return Block(first, factor * (first + (later - 1) / 2)), Block(later, factor * later)


def guarded_bound(rho: Fraction | float, factor: float = FACTOR) -> float:
    """At most this times J*, whatever the guarded policy does: the factor itself.

    With the constant of Balanced for a factor there is room for nothing but balanced rounds, and
    this is Theorem 1.
    """
    guard_blocks(rho, factor)
    return max(factor, balanced_constant(rho))


def allowance(rho: Fraction | float, begun: int, factor: float = FACTOR) -> float:
    """What may be spent, in candidates, while so many blocks have begun."""
    first, later = guard_blocks(rho, factor)
    return first.allowance + (begun - 1) * later.allowance if begun else 0.0
