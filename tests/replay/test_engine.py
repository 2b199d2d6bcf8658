"""Replay drives the same search over a log: orders, limits, keys."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.search import Policy
from grv.core.values import Bill, CandidateId, Costs, Generated, Outcome, Reason, Verify
from grv.policies import Adaptive, Fixed, Threshold, VerifyAll
from grv.replay.engine import replay, replayed
from grv.testing import World, empty, run, verified
from grv.testing.strategies import limits, price_lists, worlds

COSTS = Costs(generate=1, verify=10)
PROBLEM = World.of("1- 5- 3+ 4-").logged()


def test_a_replay_is_a_search_over_the_logged_order() -> None:
    assert replay(Fixed(4, 3), PROBLEM, COSTS, Limits(width=None)) == Outcome(
        Reason.SOLVED, CandidateId(2), Bill(4, 3, 34.0)
    )


def test_candidates_arrive_in_the_given_order() -> None:
    # The third of the log arrives first; answers are numbered by arrival.
    assert replay(VerifyAll(), PROBLEM, COSTS, Limits(width=None), order=[2, 0, 1, 3]) == Outcome(
        Reason.SOLVED, CandidateId(0), Bill(1, 1, 11.0)
    )
    assert replay(VerifyAll(), PROBLEM, COSTS, Limits(width=None), order=[3, 2, 1, 0]) == Outcome(
        Reason.SOLVED, CandidateId(1), Bill(2, 2, 22.0)
    )


def test_an_order_may_leave_candidates_out_or_bring_them_twice() -> None:
    assert replay(VerifyAll(), PROBLEM, COSTS, Limits(width=None), order=[0, 0, 3]).bill == Bill(
        3, 3, 33.0
    )
    assert (
        replay(VerifyAll(), PROBLEM, COSTS, Limits(width=None), order=[]).reason is Reason.EXHAUSTED
    )


def test_width_and_budget_are_those_of_the_search() -> None:
    assert replay(Fixed(4, 4), PROBLEM, COSTS, Limits(width=None)).bill.verified == 4
    assert replay(Fixed(4, 4), PROBLEM, COSTS).bill.verified == 3
    assert (
        replay(Fixed(4, 4), PROBLEM, COSTS, Limits(budget=24, width=None)).reason
        is Reason.OUT_OF_BUDGET
    )


def test_keys_are_known_to_the_search_only_when_asked_for() -> None:
    problem = World.of("5-a 5-a 4- 3-a 1+").logged()

    assert verified(replayed(Fixed(5, 5), problem, COSTS, Limits(width=None))) == [0, 1, 2, 3, 4]
    assert verified(replayed(Fixed(5, 5), problem, COSTS, Limits(width=None), keys=True)) == [
        0,
        2,
        4,
    ]


def test_asking_for_keys_that_a_log_does_not_have_is_no_error() -> None:
    told = replayed(Fixed(4, 3), PROBLEM, COSTS, Limits(width=None), keys=True).trace[0].event

    assert told == Generated((1.0, 5.0, 3.0, 4.0))


def test_keys_travel_with_their_candidates() -> None:
    problem = World.of("1- 2-a 3-b 4-a").logged()

    told = (
        replayed(Fixed(4, 1), problem, COSTS, Limits(width=None), order=[3, 0, 2, 1], keys=True)
        .trace[0]
        .event
    )

    assert told == Generated((4.0, 1.0, 3.0, 2.0), ("0", None, "1", "0"))


def test_the_end_of_the_log_is_known_only_when_more_was_asked_for() -> None:
    search = replayed(Fixed(4, 1), PROBLEM, COSTS, Limits(width=None))
    assert not search.pool.exhausted

    search = replayed(Fixed(5, 1), PROBLEM, COSTS, Limits(width=None))
    assert search.pool.exhausted


def test_an_empty_problem_is_exhausted() -> None:
    assert replay(Adaptive(), empty().logged(), COSTS, Limits(width=None)) == Outcome(
        Reason.EXHAUSTED, None, Bill(0, 0, 0.0)
    )


def test_the_whole_search_can_be_inspected() -> None:
    search = replayed(Threshold(4), PROBLEM, COSTS, Limits(width=None))

    assert [turn.action for turn in search.trace if isinstance(turn.action, Verify)] == [
        Verify((CandidateId(1),)),
        Verify((CandidateId(3),)),
    ]


@pytest.mark.parametrize("policy", [Adaptive(draws=0.5, checks=1), Fixed(6, 3), Threshold(1)])
@given(worlds(broken=False), price_lists(), limits(), st.data())
def test_an_order_is_a_world_in_that_order(
    policy: Policy, world: World, costs: Costs, limits: Limits, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(world))))
    reordered = World(
        tuple(world.scores[i] for i in order),
        tuple(world.verdicts[i] for i in order),
        tuple(world.keys[i] for i in order) if world.keys else (),
    )

    there = replayed(policy, world.logged(), costs, limits, order=order, keys=True)

    pace = limits.pace.of(world.logged().id)  # a random phase depends on the problem
    here = run(policy, costs, reordered, dataclasses.replace(limits, pace=pace))
    assert there.outcome == here.outcome
    assert [turn.action for turn in there.trace] == [turn.action for turn in here.trace]
