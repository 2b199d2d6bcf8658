"""The second ranking, beside a slow one that sorts the whole pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from grv.core.pool import Pool
from grv.core.values import CandidateId, Costs, Generate, Step, Verdict, Verify
from grv.policies.variety import Variety
from grv.testing import World, run
from grv.testing.strategies import worlds


def slow_first(pool: Pool) -> CandidateId | None:
    """Sort those that speak: of each key the best open one, ties to the older."""
    scores, everyone = pool.scores, [CandidateId(i) for i in range(len(pool))]
    ranked = sorted(filter(pool.is_open, everyone), key=lambda id: (-scores[id], id))
    speaking: dict[object, CandidateId] = {}
    for id in ranked:
        speaking.setdefault(id if pool.key(id) is None else pool.key(id), id)
    failed = [scores[id] for id, told in pool.verdicts.items() if told is Verdict.FAILED]
    keys = [pool.key(id) for id in everyone if pool.key(id) is not None]

    def place(id: CandidateId) -> tuple[int, int, float, int]:
        return failed.count(scores[id]), -max(1, keys.count(pool.key(id))), -scores[id], id

    return min(speaking.values(), key=place, default=None)


@dataclass(frozen=True)
class Comparing:
    """Takes what variety says is first, after so many draws each; both rankings must agree."""

    rounds: tuple[int, ...]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        variety = Variety(pool)
        for draws in self.rounds:
            if draws:
                yield Generate(draws)
                variety.take_in()
            first = variety.first()
            assert first == slow_first(pool)
            if first is not None:
                yield Verify((first,))
                variety.told(first)


@given(worlds(), st.lists(st.integers(0, 3), max_size=20))
def test_it_is_the_first_of_a_sorted_pool(world: World, rounds: list[int]) -> None:
    run(Comparing(tuple(rounds)), Costs(), world)
