"""What k answers cost (docs/theory/portfolio.md, Theorem 7).

A threshold has the share q of the candidates above it, and the chance p that one of these passes.
A slot with g new candidates passes with probability at least p (1 - (1 - q)^g) whatever happened
before; `answers_cost` is the exact cost if it passes with exactly this probability, which bounds
the cost of a search.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from ..constants import balanced_constant
from ..slots import BalancedPath, Slot

_REST = 1e-12  # a search that goes on with a smaller probability is cut off
Number = TypeVar("Number", Fraction, float)


def answers_cost(slots: Iterable[Slot], rho: float, p: float, q: float, answers: int) -> float:
    """The expected cost of a schedule until `answers` of its slots have passed."""
    left = [0.0] * answers  # by the number of passes so far: the chance to be there
    left[0] = 1.0
    cost = 0.0
    for slot in slots:
        going = math.fsum(left)
        if going < _REST:
            break
        cost += going * (slot.draws + rho)
        passes = p * (q if slot.blind else 1 - (1 - q) ** slot.draws)
        before = [0.0, *left[:-1]]
        left = [now * (1 - passes) + less * passes for now, less in zip(left, before, strict=True)]
    return cost


class AnswerDrift(NamedTuple, Generic[Number]):
    """What the rounds of Balanced cost beyond C J_t times their expected passes.

    Attributes:
        first: of the first round.
        mean: of the later rounds, on average; never positive.
        step: what one candidate more in a round adds.
        most: an upper bound on the chance that a round passes, over p.
    """

    first: Number
    mean: Number
    step: Number
    most: Number


def balanced_drift(rho: Number, q: Number) -> AnswerDrift[Number]:
    """The drift at a threshold of share q. It does not depend on p. For rho from 1 on."""
    constant = (1 + 2 * rho) / (1 + rho)
    a = 1 - q
    size = math.floor(1 + rho)
    more = rho - (size - 1)
    first = BalancedPath(Fraction(rho)).drawn(1)
    gain = constant * (1 + rho * q)
    below = (1 + rho * q) * a ** (size - 1) * (1 - more * q)
    return AnswerDrift(
        first + rho - gain * (1 - a**first) / q,
        -constant * a * (1 - below) / q,
        1 - gain * a**size,
        1 - a ** (size + 1),
    )


def needs_no_excess(rho: float, q: float) -> bool:
    """Whether k answers cost at most k C J_t at this threshold, for every p and every k >= 2.

    Either the rounds so far never cost more than C J_t times their expected passes, or one more
    answer costs less than the rounding of the sizes can add.
    """
    first, mean, step, most = balanced_drift(rho, q)
    return first + mean + max(step, 0) <= 0 or -mean >= abs(step) * most


def middle_of_first_round(n: int) -> tuple[Fraction, Fraction, Fraction]:
    """E_0, E_1 and E_2 of the proof for Alternate, for all rho with this n: the worst of each.

    From the middle of the first round the next pass costs at most C J_t if E_1^2 <= 4 E_0 E_2.
    """
    draws = -(-n // 4)
    low = Fraction(2 * n - 1, 2)
    high = Fraction(2 * n + 1, 2)
    slots = (n + low) / (1 + n)
    least = 1 + 2 * low / (1 + n)
    return (
        least * (low - Fraction(n, 2) + draws) - draws - low + slots,
        (1 + 2 * high / (1 + n)) * (n - draws) - slots * (Fraction(n, 2) - draws),
        slots * (n - draws),
    )


def answers_bound(rho: float, p: float, q: float, answers: int) -> float:
    """The bound for Balanced: k C J_t."""
    return answers * balanced_constant(rho) * (1 + rho * q) / (p * q)


def shares(count: int) -> list[float]:
    """Shares from 1e-5 to almost 1, dense at both ends."""
    low = [10 ** (-5 + 3.5 * at / count) for at in range(count)]
    high = [1 - 0.97 * (1 - at / count) for at in range(count)]
    return list(itertools.chain(low, high))
