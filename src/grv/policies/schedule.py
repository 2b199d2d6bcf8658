"""The plan of every policy that follows a schedule: a fixed sequence of slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice

from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from ..theory.slots import Schedule, Slot


def follow(slots: Callable[[Costs], Iterable[Slot]], pool: Pool) -> Iterator[Step]:
    """Yield the steps of each slot. A step that is not possible is skipped, not replaced.

    So keys do not change when candidates are generated, and the bounds of the schedule hold with
    keys: if the key of a blind draw is refuted, the candidate is neither verified nor replaced.

    If the estimated costs change, the schedule at the new costs continues at the same slot number.
    """
    for number, slot in enumerate(_at_current_costs(slots, pool)):
        seen = len(pool)
        ahead = partial(_draws, slots, pool, number + 1)
        if slot.blind:
            yield Generate(1, "one to verify whatever its score", ahead)
            if len(pool) > seen and pool.is_open(newest := CandidateId(seen)):
                yield Verify((newest,), "the new one, whatever its score")
        else:
            yield Generate(slot.draws, f"{slot.draws} more to choose from", ahead)
            yield Verify(pool.best(1), f"the best of {pool.waiting} open candidates")


def _draws(slots: Callable[[Costs], Iterable[Slot]], pool: Pool, start: int, checks: int) -> int:
    """The candidates of the slots from `start` on, up to the last of `checks` verifications."""
    schedule = slots(pool.costs)
    if isinstance(schedule, Schedule):
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
