"""Paths that close the gap of Theorem 5 at some ratios, as far as computed (docs/theory/limits.md).

The letters: rho = s^2 - 1 for a whole s, so that the lower bound on a common constant is 3 - 2 / s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...core.errors import UsageError
from ..slots import BLIND, Slot, SlotSchedule


def common_path(s: int) -> SlotSchedule:
    """A path for rho = s^2 - 1 that, as far as computed, attains the lower bound of Theorem 5.

    Against both J* and verify-all its constant is 3 - 2 / s. Each best slot has (s + 1)^2 draws,
    and on average (s + 1) / (s - 1) blind slots come before it; the first has fewer draws and one
    blind slot.
    """
    if s < 2:
        raise UsageError(f"needs s of at least 2, not {s}")
    best = Slot((s + 1) ** 2)
    cycle: list[Slot] = []
    for k in range(1, s):
        blind = k * (s + 1) // (s - 1) - (k - 1) * (s + 1) // (s - 1)
        cycle += [*[BLIND] * blind, best]
    return SlotSchedule((BLIND, Slot(5 * best.draws // 6)), tuple(cycle))


def against_verify_all(path: SlotSchedule, rho: float, pass_rate: float) -> float:
    """What a path costs at most over verify-all, for any law: best slots may never pass.

    A slot is reached only if all blind slots before it have failed (Theorem 3).
    """
    first, blind = _best_slots(path.first, rho, pass_rate)
    cycle, more = _best_slots(path.cycle, rho, pass_rate)
    fails = 1 - pass_rate
    total = first + fails**blind * cycle / -math.expm1(more * math.log(fails))
    return 1 + pass_rate * total / (1 + rho)


def _best_slots(slots: Iterable[Slot], rho: float, pass_rate: float) -> tuple[float, int]:
    """The cost of the best slots times the chance to reach each, and the number of blind slots."""
    cost = 0.0
    blind = 0
    for slot in slots:
        if slot.blind:
            blind += 1
        else:
            cost += (1 - pass_rate) ** blind * (slot.draws + rho)
    return cost, blind
