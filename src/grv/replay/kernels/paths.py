"""A fixed schedule in one order of candidates, without a state machine.

Candidates are known by their place in the final ranking, so a heap of whole numbers says which of
those generated so far is next. With keys, a candidate of a class that was refuted is dropped when
it comes to the top; until then the best of a class is above the others of it, as in `core.pool`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...core.values import Costs
from ...theory.slots import Path as SlotPath
from ..orders import Batch
from ..trials import Trials, rounds_of


class Stage(NamedTuple):
    """Generate `draws`, then verify the best `checks`; or, if blind, the newest instead."""

    draws: int
    checks: int = 1
    blind: bool = False


class Order(NamedTuple):
    """One order of a problem's candidates.

    Attributes:
        places: of each candidate in the ranking of all, in order of arrival; 0 is the best.
        passed: by place.
        keys: class numbers by place, -1 for none; None where classes do not count.
    """

    places: Sequence[int]
    passed: Sequence[bool]
    keys: Sequence[int] | None


class Run(NamedTuple):
    """How a schedule fared in one order."""

    solved: bool
    generated: int
    verified: int
    rounds: tuple[int, int]  # of generation and of verification


def run_stages(stages: Iterable[Stage], order: Order, width: int | None) -> Run:
    """Follow the stages to the first pass, or until nothing is left, or to their end."""
    places, passed, keys = order
    n = len(places)
    heap: list[int] = []
    refuted: set[int] = set()
    drawn = verified = generating = verifying = 0
    exhausted = False  # that there are no more is known when more were asked for
    for draws, checks, blind in stages:
        generating += not exhausted
        exhausted |= drawn + draws > n
        start, drawn = drawn, min(n, drawn + draws)
        if blind:
            chosen = _open(places[start:drawn], keys, refuted)
        else:
            for place in places[start:drawn]:
                heapq.heappush(heap, place)
            chosen = _best(heap, checks, keys, refuted)
        for at, place in enumerate(chosen):
            if passed[place]:
                whole = len(chosen) if width is None else -(-(at + 1) // width) * width
                paid = min(len(chosen), whole)
                rounds = (generating, verifying + _rounds(paid, width))
                return Run(True, drawn, verified + paid, rounds)
        verified += len(chosen)
        verifying += _rounds(len(chosen), width)
        if exhausted and not heap:
            break
    return Run(False, drawn, verified, (generating, verifying))


def _rounds(checks: int, width: int | None) -> int:
    """Rounds that so many verifications of one step take."""
    return min(checks, 1) if width is None else -(-checks // width)


def _best(heap: list[int], checks: int, keys: Sequence[int] | None, refuted: set[int]) -> list[int]:
    """Take the best of the heap, one a class; their classes are refuted, unless one passes."""
    if checks == 1 and keys is None:
        return [heapq.heappop(heap)] if heap else []
    if checks >= len(heap):
        chosen = _open(sorted(heap), keys, refuted)
        heap.clear()
        return chosen
    chosen = []
    while heap and len(chosen) < checks:
        chosen += _open((heapq.heappop(heap),), keys, refuted)
    return chosen


def _open(places: Sequence[int], keys: Sequence[int] | None, refuted: set[int]) -> list[int]:
    """Those whose class is not refuted, which it is from now on, unless one passes."""
    if keys is None:
        return list(places)
    chosen = []
    for place in places:
        key = keys[place]
        if key < 0:
            chosen.append(place)
        elif key not in refuted:
            refuted.add(key)
            chosen.append(place)
    return chosen


def path(policy: SlotPath, batch: Batch, costs: Costs, width: int | None) -> Trials:
    """Slot by slot; a slot is one verification, so the width makes no difference."""
    return staged(batch, _slot_stages(policy, costs, len(batch.problem)), width=1)


@lru_cache(maxsize=256)  # problems of one log are often of one size
def _slot_stages(policy: SlotPath, costs: Costs, candidates: int) -> tuple[Stage, ...]:
    """The slots until there is no more to generate; after that, the rest is verified."""
    drawn, stages = 0, []
    for slot in policy.slots(costs):  # pragma: no branch (there is always another)
        stages.append(Stage(slot.draws, 1, slot.blind))
        drawn += slot.draws
        if drawn > candidates:
            break
    return (*stages, Stage(0, candidates))


def staged(batch: Batch, stages: Iterable[Stage], width: int | None) -> Trials:
    """A fixed schedule, in one order after the other."""
    keys = batch.keys
    classes = None if keys is None else np.take_along_axis(keys, batch.ranked, axis=1).tolist()
    orders = [
        Order(places, passed, classes[i] if classes else None)
        for i, (places, passed, _) in enumerate(batch.by_place)
    ]
    schedule = stages if isinstance(stages, tuple) else tuple(stages)
    return summed([run_stages(schedule, order, width) for order in orders])


def summed(runs: list[Run]) -> Trials:
    """The runs, one per order, as arrays."""
    return Trials(
        np.array([run.solved for run in runs]),
        np.array([run.generated for run in runs], dtype=np.int32),
        np.array([run.verified for run in runs], dtype=np.int32),
        rounds_of(*np.array([run.rounds for run in runs], dtype=np.int32).T),
    )
