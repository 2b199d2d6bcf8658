"""The plan of every policy that follows a schedule: a fixed sequence of slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice

from ..core.pool import Pool
from ..core.values import Costs, Generate, Step, Verify
from ..theory.slots import Slot, SlotSchedule
from .blind_slot import BlindSlots


def follow(slots: Callable[[Costs], Iterable[Slot]], pool: Pool) -> Iterator[Step]:
    """Yield the steps of each slot. A step that is not possible is skipped, not replaced.

    In a blind slot, candidates that verify-all would not verify are followed by others
    (`blind_slot.py`). If the last one has a key that has failed, the slot verifies nothing.

    If the estimated costs change, the schedule at the new costs continues at the same slot number.
    """
    blind = BlindSlots(pool)
    for number, slot in enumerate(_at_current_costs(slots, pool)):
        ahead = partial(_draws, slots, pool, number + 1)
        if slot.blind:
            newest = yield from blind.draw(ahead)
            if newest is not None and pool.is_open(newest):
                yield Verify((newest,), "the new one, whatever its score")
        else:
            yield Generate(slot.draws, f"{slot.draws} more to choose from", ahead)
            yield Verify(pool.best(1), f"the best of {pool.waiting} open candidates")


def _draws(slots: Callable[[Costs], Iterable[Slot]], pool: Pool, start: int, checks: int) -> int:
    """The candidates of the slots from `start` on, up to the last of `checks` verifications."""
    schedule = slots(pool.costs)
    if isinstance(schedule, SlotSchedule):
        return sum(schedule[at].draws for at in range(start, start + checks - 1))
    return sum(slot.draws for slot in islice(schedule, start, start + checks - 1))


def _at_current_costs(slots: Callable[[Costs], Iterable[Slot]], pool: Pool) -> Iterator[Slot]:
    costs = pool.costs
    schedule = iter(slots(costs))
    for number in count():
        if pool.costs != costs:
            costs = pool.costs
            schedule = islice(slots(costs), number, None)
        slot = next(schedule, None)
        if slot is None:
            return
        yield slot
