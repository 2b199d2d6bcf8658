"""Paths that close the gap of Theorem 5, as far as computed (docs/theory/limits.md).

The letters: rho = s^2 - 1, so that the lower bound on a common constant is 3 - 2 / s.
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


def mixed_path(rho: float, best_slots: int = 12) -> SlotSchedule:
    """A path for any rho of at least 3 whose constants are near the lower bound of Theorem 5.

    The rates are those of `common_path`, (s + 1)^2 draws and (s + 1) / (s - 1) blind slots for each
    best slot, rounded down to whole numbers over a cycle of this many best slots.
    """
    if not rho >= 3:
        raise UsageError(f"needs a ratio of at least 3, not {rho}")
    s = math.sqrt(1 + rho)
    blind = (s + 1) / (s - 1)
    draws = (s + 1) ** 2
    cycle: list[Slot] = []
    for k in range(best_slots):
        cycle += [BLIND] * _more(k, blind)
        cycle.append(Slot(_more(k, draws)))
    return SlotSchedule((BLIND, Slot(5 * math.floor(draws) // 6)), tuple(cycle))


def _more(k: int, rate: float) -> int:
    """The whole number of slot k, if slots have `rate` each on average."""
    rounding = 1e-9
    return math.floor((k + 1) * rate + rounding) - math.floor(k * rate + rounding)


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
