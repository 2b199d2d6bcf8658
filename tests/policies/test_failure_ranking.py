"""The second ranking, compared with one that sorts the whole pool; and what ties mean."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.pool import Pool
from grv.core.values import CandidateId, Costs, Generate, Step, Verdict, Verify
from grv.policies.failure_ranking import ENOUGH, FailureRanking, ties_are_evidence
from grv.testing import World, run
from grv.testing.strategies import worlds


def failures(pool: Pool, id: CandidateId, *, count: bool) -> int:
    told = [other for other, verdict in pool.verdicts.items() if verdict is Verdict.FAILED]
    return count * sum(pool.scores[other] == pool.scores[id] for other in told)


def slow_first(pool: Pool, *, count: bool) -> CandidateId | None:
    """Sort those that speak: of each key the best open one, ties to the older."""
    scores, everyone = pool.scores, [CandidateId(i) for i in range(len(pool))]
    ranked = sorted(filter(pool.is_open, everyone), key=lambda id: (-scores[id], id))
    speaking: dict[object, CandidateId] = {}
    for id in ranked:
        speaking.setdefault(id if pool.key(id) is None else pool.key(id), id)
    keys = [pool.key(id) for id in everyone if pool.key(id) is not None]

    def place(id: CandidateId) -> tuple[int, int, float, int]:
        failed = failures(pool, id, count=count)
        return failed, -max(1, keys.count(pool.key(id))), -scores[id], id

    return min(speaking.values(), key=place, default=None)


def slow_oldest(pool: Pool) -> CandidateId | None:
    return min(filter(pool.is_open, map(CandidateId, range(len(pool)))), default=None)


@dataclass(frozen=True)
class Comparing:
    """Takes the first or the oldest, after the given draws; both rankings must agree."""

    rounds: tuple[tuple[int, bool], ...]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        ranking, checked = FailureRanking(pool), 0
        for draws, age in self.rounds:
            if draws:
                yield Generate(draws)
                ranking.add_new()
            first = ranking.first()
            if len(pool) >= 2 * checked:
                checked = len(pool)
                assert ranking.ties_count is ties_are_evidence(pool.scores)
            assert first == slow_first(pool, count=ranking.ties_count)
            taken = slow_oldest(pool) if age else first
            if taken is not None:
                yield Verify((taken,))
                ranking.record_verdict(taken)


@given(worlds(), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=20))
def test_it_is_the_first_of_a_sorted_pool(world: World, rounds: list[tuple[int, bool]]) -> None:
    run(Comparing(tuple(rounds)), Costs(), world, Limits(width=None))


def test_the_ranking_changes_when_ties_start_to_count() -> None:
    """Three marks, then scores between them: now the mark that failed is no mark."""

    class Looking:
        def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
            ranking = FailureRanking(pool)
            yield Generate(4)
            ranking.add_new()
            assert ranking.first() == 0
            yield Verify((CandidateId(0),))
            ranking.record_verdict(CandidateId(0))
            assert (ranking.ties_count, ranking.first()) == (False, 1)
            yield Generate(4)
            ranking.add_new()
            assert (ranking.first(), ranking.ties_count) == (4, True)

    run(Looking(), Costs(), World.of("3- 3- 2- 1-  2.7- 2.01- 2- 1-"), Limits(width=None))


@pytest.mark.parametrize("digits", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [64, 512])
def test_ties_by_rounding_are_no_evidence(digits: int, size: int) -> None:
    chance = random.Random(f"{digits} {size}")
    pools = [[round(chance.gauss(), digits) for _ in range(size)] for _ in range(50)]

    assert sum(map(ties_are_evidence, pools)) <= 6


@pytest.mark.parametrize("digits", [3, 17])
def test_ties_of_repeated_answers_are_evidence(digits: int) -> None:
    chance = random.Random(digits)

    def pool() -> list[float]:
        answers = [round(chance.gauss(), digits) for _ in range(60)]
        return answers + [answers[int(60 * chance.random() ** 3)] for _ in range(40)]

    assert sum(ties_are_evidence(pool()) for _ in range(50)) == 50


@pytest.mark.parametrize(
    "scores",
    [
        [],
        [1.0],
        [1.0, 1.0, 1.0],
        [0.0] * 90 + [1.0] * 10,
        [1.0] * 3 + [2.0] * 7 + [3.0] * 10 + [4.0] * 20 + [5.0] * 60,
        [0.1] * 9 + [0.2] * 2 + [0.3] * 5,  # the differences are not quite equal
        [-math.inf] * 5 + [1.0, 2.0, 3.0, 3.0],  # what has no score is on no scale
        [1.0, 2.0, 3.5, 7.0],
    ],
)
def test_ties_on_a_scale_of_marks_are_no_evidence(scores: list[float]) -> None:
    assert not ties_are_evidence(scores)


@given(st.lists(st.integers(-9, 9)), st.integers(-20, 20), st.integers(-9, 9))
def test_units_do_not_matter(marks: list[int], exponent: int, zero: int) -> None:
    moved = [math.ldexp(mark + zero, exponent) for mark in marks]

    assert ties_are_evidence(moved) is ties_are_evidence([float(mark) for mark in marks])


@dataclass(frozen=True)
class Asking:
    """Generates twice, and checks after each whether ties count."""

    draws: tuple[int, int]
    told: list[bool]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        ranking = FailureRanking(pool)
        for draws in self.draws:
            yield Generate(draws)
            ranking.add_new()
            ranking.recheck_ties()
            self.told.append(ranking.ties_count)


@pytest.mark.parametrize(("first", "told"), [(ENOUGH // 2, [False, True]), (ENOUGH, [False] * 2)])
def test_enough_candidates_decide_once_and_for_all(first: int, told: list[bool]) -> None:
    drawn = random.Random(0)
    scores = tuple(drawn.random() for _ in range(first)) + (2.0,) * ENOUGH
    asking = Asking((first, ENOUGH), [])
    run(asking, Costs(1, 10), World(scores, (Verdict.FAILED,) * len(scores)), Limits(width=None))
    assert asking.told == told
