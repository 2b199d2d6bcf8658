"""Runs a policy over the orders of many problems of one size together, without keys.

NumPy is called once per step instead of once per problem and step. Orders that such a kernel does
not finish are left to the kernel of single problems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.values import Costs
from ...policies import Adaptive, Alternate, Balanced, Fixed, Hedged, Varied, VerifyAll
from ...theory.slots import Path as SlotPath
from ..orders import ManyOrders
from ..trials import Trials, rounds_of
from .paths import PathStage, slot_stages
from .shells import adaptive_without_keys
from .simple import fixed_without_keys, verify_all_without_keys

Finished = tuple[Trials, NDArray[np.bool_]]  # the trials, and which of them are finished


def in_step(orders: ManyOrders, stages: Sequence[PathStage]) -> Finished:
    """A schedule of single verifications, slot by slot, until there are too few candidates.

    Orders that are not solved have drawn and verified equally many. The trials of orders that are
    not solved by then are without meaning.
    """
    n = orders.candidates
    found = [np.zeros(orders.size, dtype=np.int32) for _ in range(3)]
    generated, verified, generations = found
    finished = np.zeros(orders.size, dtype=np.bool_)
    levels = orders.levels.copy()  # of candidates that wait for their verification
    gone = np.iinfo(levels.dtype).max
    passed = orders.passed
    rows = np.arange(orders.size)  # the orders of `levels`
    going = np.ones(orders.size, dtype=np.bool_)
    drawn = checks = 0
    for number, (draws, at_once, blind, _) in enumerate(stages, 1):
        if drawn + draws > n or at_once != 1 or (blind and draws != 1):
            break
        drawn += draws
        if blind:
            levels[:, drawn - 1] = gone
            hits = passed[:, drawn - 1]
        elif checks == drawn:
            continue
        else:
            every = np.arange(len(rows))
            best = levels[:, :drawn].argmin(axis=1)
            levels[every, best] = gone
            hits = passed[every, best]
        checks += 1
        solved = hits & going
        if not solved.any():
            continue
        here = rows[solved]
        finished[here] = True
        generated[here] = drawn
        verified[here] = checks
        generations[here] = number
        going &= ~solved
        if 2 * np.count_nonzero(going) <= len(rows):
            rows = rows[going]
            levels = levels[going]
            passed = passed[going]
            going = going[going]
        if not len(rows):
            break
    rounds = rounds_of(generations, verified)
    return Trials(finished, generated, verified, rounds, finished.astype(np.int32)), finished


def _all(found: Trials) -> Finished:
    return found, np.ones(len(found.solved), dtype=np.bool_)


def _path(policy: SlotPath, orders: ManyOrders, costs: Costs, width: int | None) -> Finished:
    return in_step(orders, slot_stages(policy, costs, orders.candidates))


def _varied(policy: Varied, orders: ManyOrders, costs: Costs, width: int | None) -> Finished:
    """If no two candidates are alike, the second ranking is the first: the slots of alternate."""
    applies = not np.isfinite(policy.factor) and orders.distinct.any()
    slots = slot_stages(Alternate(), costs, orders.candidates) if applies else ()
    found, finished = in_step(orders, slots)
    return found, finished & orders.distinct


# A kernel takes the policy it is registered for, hence `Any`.
TOGETHER: dict[type[Any], Callable[[Any, ManyOrders, Costs, int | None], Finished]] = {
    Adaptive: lambda *given: _all(adaptive_without_keys(*given)),
    Alternate: _path,
    Balanced: _path,
    Fixed: lambda policy, orders, _, width: _all(fixed_without_keys(policy, orders, width)),
    Hedged: _path,
    Varied: _varied,
    VerifyAll: lambda policy, orders, costs, width: _all(verify_all_without_keys(orders)),
}
