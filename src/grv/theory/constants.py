"""The constants: upper bounds on the cost of policies relative to an optimum, and lower bounds.

The letters: rho = c_ver / c_rew; n is the number of draws of a round of Alternate
(`slots.py`); J* is the optimum if the law is known; J_VA = (1 + rho) / p is the cost of verifying
everything at pass rate p. Bounds against J* hold for laws with non-decreasing h; bounds against
J_VA hold for any law. The theorems are those of `docs/theory/`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ..core.errors import UsageError
from .slots import alternate_draws, block_draws, hedged_draws

Ratio = Fraction | float  # rho
SMALL_RATIO_EXCESS = 2e-7  # what the bound of Balanced adds for rho below 1/67


def rounds_constant(g: int, rho: Ratio) -> float:
    """Theorem 0: repeating "generate g, verify the best" costs at most c * J*; this is c."""
    return float(max((g + rho) / g, (g + rho) / (1 + rho)))


def best_round(rho: Ratio) -> int:
    """The g with the lowest constant of Theorem 0; floor(1 + rho) if rho is whole."""
    g = math.floor(1 + rho)
    return min((g, g + 1), key=lambda size: rounds_constant(size, rho))


def equal_rounds_constant(rho: Ratio) -> float:
    """Theorem 1 for equal rounds of g = floor(1 + rho): (g + rho) / g, less than 2."""
    g = block_draws(rho).later
    return float((g + rho) / g)


def balanced_constant(rho: Ratio) -> float:
    """Theorem 8: 2 - 1 / (1 + rho), the least constant of all; for rho below 1/67, 2e-7 more."""
    return least_constant(rho) + (0.0 if 67 * rho >= 1 else SMALL_RATIO_EXCESS)


def several_answers_excess(rho: Ratio) -> float:
    """What k answers may cost Balanced beyond k times the bound for one (docs/theory/portfolio.md).

    (1 - rho) / 2 for rho below 1, nothing for whole rho, 1 otherwise, in candidates. From 1 on none
    was needed at any ratio that was checked (`theory.proofs.several_answers`).
    """
    if rho < 1:
        return float((1 - rho) / 2)
    return 0.0 if rho == math.floor(rho) else 1.0


def alternate_constant(rho: Ratio) -> float:
    """Theorem 2: 1 + 2 rho / (1 + n), less than 3; 3 - 2 / (1 + rho) at whole rho.

    No smaller constant holds for Alternate. For rho below 1.5 it verifies everything, and the
    constant is 1 + rho.
    """
    n = alternate_draws(rho).later
    return float(1 + rho if n == 1 else (1 + n + 2 * rho) / (1 + n))


def full_rounds_constant(rho: Ratio) -> float:
    """Theorem 2 if each round is charged in full: (1 + n + 2 rho) / (1 + min(n, rho)), less than 3.

    The proof of Theorem 7 uses it.
    """
    n = alternate_draws(rho).later
    return float((1 + n + 2 * rho) / (1 + min(n, rho)))


def alternate_against_verify_all(rho: Ratio, pass_rate: float = 0.0) -> float:
    """Theorem 3, any law: 1 + (1 - p) (n + rho) / (1 + rho), at most 1 + 2 (1 - p).

    For rho below 1.5 the two policies are the same.
    """
    n = alternate_draws(rho).later
    return 1.0 if n == 1 else float(1 + (1 - pass_rate) * (n + rho) / (1 + rho))


def alternate_against_verify_all_monotone(rho: Ratio, pass_rate: float = 0.0) -> float:
    """Theorem 3, non-decreasing h: (1 + (1 - p) (n + rho) / (1 + rho)) / (2 - p), at most 1.5."""
    return alternate_against_verify_all(rho, pass_rate) / (
        1.0 if alternate_draws(rho).later == 1 else 2 - pass_rate
    )


def hedged_against_verify_all(rho: Ratio, alpha: float = 0.5, every: int = 4) -> float:
    """Any law: 1 + e (g + rho) / (1 + rho); at most 7 - 2 / (1 + rho) for the default Hedged."""
    g = hedged_draws(rho, alpha)
    return float(1 + every * (g + rho) / (1 + rho))


def guarded_constant(constant: float, allowance: float) -> float:
    """(1 + K) C + 1: a policy that may spend K times as much as rounds of constant C.

    It may spend 1 + rho more, which is at most J*.
    """
    if not (constant >= 1 and allowance >= 0):
        raise UsageError(
            f"a guard needs a constant of at least 1 and an allowance of at least 0,"
            f" not {constant} and {allowance}"
        )
    return (1 + allowance) * constant + 1


def least_constant(rho: Ratio) -> float:
    """Theorem 4: 2 - 1 / (1 + rho). No policy has a smaller constant against J*."""
    return float(2 - 1 / (1 + rho))


def tradeoff(rho: Ratio, share: float, c1: float, c2: float) -> float:
    """Theorem 5: 1/C1 + rho q0 / ((1 + rho q0) C1) + rho (1 - q0) / ((1 + rho) C2), at most 1.

    It holds for every share q0 between 0 and 1, and every policy that costs at most C1 J* if h is
    non-decreasing and at most C2 J_VA for any h.
    """
    if not 0 < share < 1:
        raise UsageError(f"the share must be between 0 and 1, not {share}")
    above = rho * share / (1 + rho * share)
    return float((1 + above) / c1 + rho * (1 - share) / ((1 + rho) * c2))


def best_share(rho: Ratio) -> float:
    """The q0 with the best lower bound of Theorem 5 for C1 = C2: (sqrt(1 + rho) - 1) / rho."""
    return float((math.sqrt(1 + rho) - 1) / rho)


def least_common_constant(rho: Ratio) -> float:
    """Theorem 5 with C1 = C2 and the best q0: 3 - 2 / sqrt(1 + rho)."""
    return 3 - 2 / math.sqrt(1 + rho)


def least_against_verify_all(rho: Ratio, c1: float) -> float:
    """Theorem 5: the lowest C2 of a policy with C1 against J*; infinite if no policy has this C1.

    With y = 1 + rho q0 the theorem reads C2 >= y (1 + rho - y) / ((1 + rho) (B y + 1/C1)), where
    B = 1 - 2/C1; the best y solves B y^2 + 2 y / C1 = (1 + rho) / C1. And C2 >= 1, because
    verifying everything is optimal if the score carries no information.
    """
    if c1 < least_constant(rho):
        return math.inf
    a = 1 / c1
    size = float(1 + rho)
    b = 1 - 2 * a
    y = size / 2 if b == 0 else a * (math.sqrt(max(1 + b * size / a, 0)) - 1) / b
    if b < 0 and size - y < 1e-9 * size:  # C1 is the least constant: both sides vanish
        return -y / (size * b)
    return max(1.0, y * (size - y) / (size * (b * y + a)))
