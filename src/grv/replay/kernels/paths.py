"""Runs a fixed schedule in one order of candidates, without a state machine.

Candidates are represented by their rank among all candidates of the problem, so a heap of integers
gives the best one generated so far. With keys, a candidate with a refuted key is dropped when it
reaches the top; until then the best candidate of a key is above the others, as in `core.pool`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from ...core.limits import Limits
from ...core.values import REFUTED_CODE, Costs
from ...theory.decimals import exact_ratio
from ...theory.slots import Path as SlotPath
from ...theory.slots import most_blind_draws
from ..orders import OrderBatch
from ..trials import Trials, rounds_of
from .blocks import Blocks, Solved, counted, looked_up

Kernel = Callable[[], Trials | None]
NARROW = Limits()  # one verification after the other


class PathStage(NamedTuple):
    """Generate `draws`, then verify the best `checks`; if blind, verify the new ones instead.

    A blind stage draws again, `most` times in all, while verify-all would not verify the new one.
    """

    draws: int
    checks: int = 1
    blind: bool = False
    most: int = 1


class Order(NamedTuple):
    """One order of a problem's candidates.

    Attributes:
        places: the rank of each candidate, in order of arrival; 0 is the best.
        passed: whether it passes, by rank.
        keys: key numbers by rank, -1 for none; None if there are none.
    """

    places: Sequence[int]
    passed: Sequence[bool]
    keys: Sequence[int] | None


class PathRun(NamedTuple):
    """The result of a schedule in one order."""

    solved: bool
    generated: int
    verified: int
    rounds: tuple[int, int]  # of generation and of verification
    passed: int  # of those verified


def run_stages(stages: Iterable[PathStage], order: Order, width: int | None) -> PathRun:
    """Follow the stages to the first pass, to the last candidate, or to the end of the stages."""
    places, passed, keys = order
    n = len(places)
    heap: list[int] = []
    refuted = {REFUTED_CODE}
    tried = {REFUTED_CODE}  # the keys of blind draws
    drawn = verified = generating = verifying = 0
    exhausted = False  # becomes True when more candidates are requested than there are
    for draws, checks, blind, most in stages:
        for _ in range(most):
            generating += not exhausted
            exhausted |= drawn + draws > n
            start = drawn
            drawn = min(n, drawn + draws)
            if exhausted or not (blind and _is_spared(places[start], keys, tried)):
                break
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
                passes = sum(passed[each] for each in chosen[:paid])
                return PathRun(True, drawn, verified + paid, rounds, passes)
        verified += len(chosen)
        verifying += _rounds(len(chosen), width)
        if exhausted and not heap:
            break
    return PathRun(False, drawn, verified, (generating, verifying), 0)


def run_blocks(stages: Sequence[PathStage], order: Order, blocks: Blocks) -> bool:
    """Follow the stages with a search that looks ahead; return whether it is solved."""
    places, passed, keys = order
    heap: list[int] = []
    refuted = {REFUTED_CODE}
    tried = {REFUTED_CODE}
    try:
        for number, (draws, checks, blind, most) in enumerate(stages):
            for _ in range(most):
                start = blocks.used
                end = start + blocks.generate(draws, partial(_ahead, stages, number))
                new = places[start:end]
                blocks.keyed |= keys is not None and any(keys[place] != -1 for place in new)
                if not (new and blind and _is_spared(new[0], keys, tried)):
                    break
            if blind:
                chosen = _open(new, keys, refuted)
            else:
                for place in new:
                    heapq.heappush(heap, place)
                chosen = _best(heap, checks, keys, refuted)
            for place in chosen:
                blocks.verify(passed[place])
            if blocks.exhausted and not heap:
                break
        blocks.finish()
    except Solved:
        return True
    return False


def _ahead(stages: Sequence[PathStage], number: int, checks: int) -> int:
    """The draws of later stages, up to the last of `checks` verifications from this stage on."""
    draws = 0
    while (checks := checks - stages[number].checks) > 0 and number + 1 < len(stages):
        number += 1
        draws += stages[number].draws
    return draws


def _rounds(checks: int, width: int | None) -> int:
    """The rounds of this many verifications of one step."""
    return min(checks, 1) if width is None else -(-checks // width)


def _best(heap: list[int], checks: int, keys: Sequence[int] | None, refuted: set[int]) -> list[int]:
    """Take the best of the heap, one per key, and mark their keys as refuted.

    If one of them passes, the search ends, so the marks do no harm.
    """
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
    """The candidates whose key is not refuted; their keys are then marked as refuted."""
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


def _is_spared(place: int, keys: Sequence[int] | None, tried: set[int]) -> bool:
    """Whether verify-all would not verify a blind draw; if it would, its key is marked as tried."""
    if keys is None or keys[place] < 0:
        return False
    spared = keys[place] in tried
    tried.add(keys[place])
    return spared


def path(policy: SlotPath, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials:
    """The kernel of path policies. A slot is one verification, so the width has no effect."""
    return staged(batch, slot_stages(policy, costs, len(batch.problem)), width=1)


def path_ahead(policy: SlotPath, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials:
    """The kernel of path policies that look ahead."""
    stages = slot_stages(policy, costs, len(batch.problem), limits.width or 1)
    return staged_ahead(batch, stages, lambda: path(policy, batch, costs, NARROW), costs, limits)


@lru_cache(maxsize=256)  # the problems of a log often have the same size
def slot_stages(
    policy: SlotPath, costs: Costs, candidates: int, beyond: int = 0
) -> tuple[PathStage, ...]:
    """The slots until the generator is exhausted, then a stage that verifies the rest.

    Before that come `beyond` slots more, for searches that look ahead.
    """
    drawn = 0
    stages = []
    most = most_blind_draws(exact_ratio(costs))
    for slot in policy.slots(costs):  # pragma: no branch (there is always another slot)
        stages.append(PathStage(slot.draws, 1, slot.blind, most if slot.blind else 1))
        beyond -= drawn > candidates
        drawn += slot.draws
        if drawn > candidates and beyond <= 0:
            break
    return (*stages, PathStage(0, candidates))


def staged(batch: OrderBatch, stages: Iterable[PathStage], width: int | None) -> Trials:
    """A fixed schedule in every order of the batch."""
    schedule = stages if isinstance(stages, tuple) else tuple(stages)
    return summed([run_stages(schedule, order, width) for order in _orders(batch)])


def staged_ahead(
    batch: OrderBatch, stages: Sequence[PathStage], one: Kernel, costs: Costs, limits: Limits
) -> Trials:
    """A fixed schedule in every order of the batch, with searches that look ahead.

    Without keys, `one` gives the trials with width 1, and all orders share one course.
    """
    size = len(batch.problem)
    if batch.keys is None and (alone := one()) is not None:
        return looked_up(alone, failing_course(tuple(stages), costs, limits, size))
    found = []
    for order in _orders(batch):
        blocks = Blocks(costs, limits, size)
        found.append((run_blocks(stages, order, blocks), blocks))
    return counted(found)


@lru_cache(maxsize=256)
def failing_course(
    stages: tuple[PathStage, ...], costs: Costs, limits: Limits, candidates: int
) -> Blocks:
    """A search in which nothing passes."""
    course = Blocks(costs, limits, candidates)
    run_blocks(stages, Order(range(candidates), [False] * candidates, None), course)
    return course


def _orders(batch: OrderBatch) -> list[Order]:
    keys = batch.keys
    classes = None if keys is None else np.take_along_axis(keys, batch.ranked, axis=1).tolist()
    return [
        Order(places, passed, classes[i] if classes else None)
        for i, (places, passed, _) in enumerate(batch.by_place)
    ]


def summed(runs: list[PathRun]) -> Trials:
    """Convert the runs, one per order, to arrays."""
    return Trials(
        np.array([run.solved for run in runs]),
        np.array([run.generated for run in runs], dtype=np.int32),
        np.array([run.verified for run in runs], dtype=np.int32),
        rounds_of(*np.array([run.rounds for run in runs], dtype=np.int32).T),
        np.array([run.passed for run in runs], dtype=np.int32),
    )
