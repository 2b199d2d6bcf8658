"""The ranking rule, by example and against a pool that sorts everything anew each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.pool import Pool
from grv.core.search import Search
from grv.core.values import (
    REFUTED,
    Bill,
    CandidateId,
    Costs,
    Event,
    Generate,
    Generated,
    Step,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from grv.testing import Scripted, World, run
from grv.testing.strategies import worlds


def pool_of(text: str, *verified: int) -> Pool:
    """The pool of a search that generated this world and verified these, one by one."""
    world = World.of(text)
    steps = [Verify((CandidateId(id),)) for id in verified]
    return run(Scripted((Generate(len(world)), *steps)), Costs(), world, Limits(width=None)).pool


class TestRefutedCandidates:
    WORLD = f"9-{REFUTED} 1- 8-{REFUTED} 2-a"

    def test_are_never_on_offer_and_do_not_wait(self) -> None:
        pool = pool_of(self.WORLD)

        assert pool.best(4) == (3, 1)
        assert (len(pool), pool.waiting, pool.refuted) == (4, 2, 2)
        assert not pool.is_open(CandidateId(0))
        assert pool.key(CandidateId(0)) == REFUTED
        assert pool.leader(REFUTED) is None

    def test_are_not_verified_whatever_the_plan_says(self) -> None:
        pool = pool_of(self.WORLD, 0, 1, 2)

        assert set(pool.verdicts) == {1}

    def test_are_in_the_bill_and_in_the_trace(self) -> None:
        world = World.of(self.WORLD)
        search = run(
            Scripted((Generate(4), Verify((CandidateId(1),)))),
            Costs(1, 10),
            world,
            Limits(width=None),
        )

        assert search.bill == Bill(4, 1, 14.0, refuted=2)
        assert str(search.trace[0]) == "generated 4, 2 of them refuted without verification"


class TestWithoutKeys:
    def test_higher_scores_come_first_and_ties_go_to_the_older(self) -> None:
        assert pool_of("1- 3- 2- 3- 1-").best(5) == (1, 3, 2, 0, 4)

    def test_minus_infinity_ranks_last_and_plus_infinity_first(self) -> None:
        assert pool_of("-inf- -5- inf- -inf-").best(4) == (2, 1, 0, 3)

    def test_the_two_zeros_are_one_score(self) -> None:
        assert pool_of("-0- 0- -0-").best(3) == (0, 1, 2)

    def test_no_more_are_offered_than_asked_for_or_than_there_are(self) -> None:
        pool = pool_of("1- 2-")

        assert pool.best(1) == (1,)
        assert pool.best(9) == (1, 0)
        assert pool.best(0) == ()

    def test_looking_changes_nothing(self) -> None:
        pool = pool_of("1- 3- 2-")

        assert pool.best(2) == pool.best(2) == (1, 2)
        assert pool.best(3) == (1, 2, 0)

    def test_verified_candidates_are_not_offered_again_whatever_the_verdict(self) -> None:
        pool = pool_of("5- 4? 3- 2-", 0, 1)

        assert pool.best(4) == (2, 3)
        assert pool.waiting == 2
        assert dict(pool.verdicts) == {0: Verdict.FAILED, 1: Verdict.BROKEN}
        assert not pool.is_open(CandidateId(0))
        assert pool.is_open(CandidateId(2))

    def test_scores_are_kept_in_order_of_arrival(self) -> None:
        pool = pool_of("5- 7- 6-")

        assert list(pool.scores) == [5, 7, 6]
        assert len(pool) == 3
        assert pool.key(CandidateId(0)) is None

    def test_a_new_pool_is_empty_and_not_exhausted(self) -> None:
        pool = Pool()

        assert (len(pool), pool.waiting, pool.exhausted, pool.best(3)) == (0, 0, False, ())

    def test_it_is_exhausted_when_fewer_came_than_were_asked_for(self) -> None:
        assert not pool_of("1- 2-").exhausted
        assert run(
            Scripted((Generate(3),)), Costs(), World.of("1- 2-"), Limits(width=None)
        ).pool.exhausted


class TestWithKeys:
    def test_the_leader_of_a_key_is_its_best_open_candidate(self) -> None:
        assert pool_of("1-a 3-a 2- 3-a 1-b").leader("a") == 1
        assert pool_of("3?a 2-b 1-a 2-a", 0).leader("a") == 3
        assert pool_of("3-a 2-b 1-a", 0).leader("a") is None
        assert pool_of("3-a").leader("b") is None

    def test_a_pool_is_keyed_from_the_first_key_on(self) -> None:
        assert not pool_of("1- 2-").keyed
        assert pool_of("1- 2-a", 1).keyed

    def test_of_one_key_only_the_best_is_on_offer(self) -> None:
        pool = pool_of("1-a 3-a 2- 3-a 1-b")

        assert pool.best(5) == (1, 2, 4)
        assert pool.waiting == 5
        assert pool.key(CandidateId(0)) == "a"

    def test_a_failure_refutes_all_of_its_key(self) -> None:
        pool = pool_of("3-a 2-b 1-a", 0)

        assert pool.best(3) == (1,)
        assert pool.waiting == 1
        assert not pool.is_open(CandidateId(2))
        assert CandidateId(2) not in pool.verdicts  # it was not verified, and not paid for

    def test_a_failure_of_any_but_the_best_refutes_as_well(self) -> None:
        assert pool_of("3-a 2-b 1-a", 2).best(3) == (1,)

    def test_a_broken_verdict_says_nothing_of_the_key_and_the_next_best_moves_up(self) -> None:
        pool = pool_of("3?a 2-b 1-a 2-a", 0)

        assert pool.best(4) == (1, 3)
        assert pool.waiting == 3

    def test_a_broken_verdict_behind_the_best_leaves_it_the_best(self) -> None:
        pool = pool_of("3?a 2?a 1-a", 1)
        assert pool.best(3) == (0,)

        pool = pool_of("3?a 2?a 1-a", 1, 0)
        assert pool.best(3) == (2,)

    def test_a_candidate_that_leads_its_key_again_is_offered_once(self) -> None:
        assert pool_of("1-a 2?a 0-", 1).best(3) == (0, 2)

    def test_when_all_of_a_key_are_broken_none_is_on_offer(self) -> None:
        pool = pool_of("2?a 1?a 0-", 0, 1)

        assert pool.best(3) == (2,)
        assert pool.waiting == 1

    def test_late_arrivals_join_their_key(self) -> None:
        world = World.of("2?a 1-b 3-a 0-b 5-b")
        steps = (Generate(2), Verify((CandidateId(0), CandidateId(1))), Generate(3))

        pool = run(Scripted(steps), Costs(), world, Limits(width=None)).pool

        assert pool.best(5) == (2,)  # b was refuted before they came
        assert pool.waiting == 1


@dataclass
class NaivePool:
    """The same pool by its definition."""

    scores: list[float] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    verdicts: dict[CandidateId, Verdict] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        match event:
            case Generated(scores, keys):
                self.scores += scores
                self.keys += keys or (None,) * len(scores)
            case Verified(verdicts):
                self.verdicts |= verdicts

    def open(self) -> list[CandidateId]:
        sure = [id for id, verdict in self.verdicts.items() if verdict is not Verdict.BROKEN]
        closed = {self.keys[id] for id in sure} - {None} | {REFUTED}
        return [
            CandidateId(id)
            for id, key in enumerate(self.keys)
            if id not in self.verdicts and key not in closed
        ]

    def best(self, k: int) -> tuple[CandidateId, ...]:
        taken: list[CandidateId] = []
        for id in sorted(self.open(), key=lambda id: (-self.scores[id], id)):
            if self.keys[id] is None or self.keys[id] not in {self.keys[other] for other in taken}:
                taken.append(id)
        return tuple(taken[:k])


@dataclass(frozen=True)
class Whims:
    """Generate some, verify some of the best, verify anything: as the numbers have it."""

    numbers: tuple[int, ...]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        for number in self.numbers:
            n, kind = divmod(number, 3)
            unverified = [CandidateId(i) for i in range(len(pool)) if i not in pool.verdicts]
            if kind == 0:
                yield Generate(n + 1)
            elif kind == 1:
                yield Verify(pool.best(n))
            else:
                yield Verify(tuple(unverified[n::3]))


@given(worlds(), st.lists(st.integers(0, 14), max_size=12), st.sampled_from([None, 1]))
def test_it_agrees_with_its_definition(world: World, numbers: list[int], width: int | None) -> None:
    search, naive = (
        Search(Whims(tuple(numbers)), Costs(), Limits(width=width, pace=Pace(overlap=False))),
        NaivePool(),
    )
    while not isinstance(action := search.ask(), Stop):
        event = world.event(action, seen=len(search.pool))
        search.tell(event)
        naive.add(event)
        pool = search.pool
        assert list(pool.scores) == naive.scores
        assert pool.waiting == len(naive.open())
        assert [id for id in map(CandidateId, range(len(pool))) if pool.is_open(id)] == naive.open()
        for k in (1, 2, len(pool)):
            assert pool.best(k) == naive.best(k)
