"""How a path is followed: the plan of every policy that is a schedule of slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.pool import Pool
from ..core.values import CandidateId, Generate, Step, Verify
from ..theory.slots import Slot


def follow(slots: Iterable[Slot], pool: Pool) -> Iterator[Step]:
    """Yield the steps of each slot. What a slot cannot do is left out, and nothing put for it.

    So keys do not change the schedule of draws, which is what lets them keep a path's bounds: a
    blind draw whose key is refuted is neither verified nor drawn again.
    """
    for slot in slots:
        seen = len(pool)
        if slot.blind:
            yield Generate(1, "one to verify unseen")
            if len(pool) > seen and pool.is_open(newest := CandidateId(seen)):
                yield Verify((newest,), "whatever its score")
        else:
            yield Generate(slot.draws, f"{slot.draws} more to choose from")
            yield Verify(pool.best(1), f"the best of {pool.waiting} that wait")
