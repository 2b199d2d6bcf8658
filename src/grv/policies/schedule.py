"""How a path is followed: the plan of every policy that is a schedule of slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice

from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from ..theory.slots import Slot


def follow(slots: Callable[[Costs], Iterable[Slot]], pool: Pool) -> Iterator[Step]:
    """Yield the steps of each slot. What a slot cannot do is left out, and nothing put for it.

    Where costs turn out to be others, the next slot is the one of that number at those costs.

    So keys do not change the schedule of draws, which is what lets them keep a path's bounds: a
    blind draw whose key is refuted is neither verified nor drawn again.
    """
    for slot in _at_current_costs(slots, pool):
        seen = len(pool)
        if slot.blind:
            yield Generate(1, "one to verify unseen")
            if len(pool) > seen and pool.is_open(newest := CandidateId(seen)):
                yield Verify((newest,), "whatever its score")
        else:
            yield Generate(slot.draws, f"{slot.draws} more to choose from")
            yield Verify(pool.best(1), f"the best of {pool.waiting} that wait")


def _at_current_costs(slots: Callable[[Costs], Iterable[Slot]], pool: Pool) -> Iterator[Slot]:
    costs = pool.costs
    path = iter(slots(costs))
    for number in count():
        if pool.costs != costs:
            costs = pool.costs
            path = islice(slots(costs), number, None)
        slot = next(path, None)
        if slot is None:
            return
        yield slot
