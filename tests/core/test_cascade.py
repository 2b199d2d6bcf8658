"""Second scores: only for candidates that could be verified next; they are billed and rank."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import EventError, UsageError
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy, Search
from grv.core.values import (
    Bill,
    CandidateId,
    Cascade,
    Costs,
    Generate,
    Generated,
    Latency,
    Rescore,
    Rescored,
    Rounds,
    Turn,
    Verdict,
    Verified,
    Verify,
)
from grv.policies import Adaptive, Fixed, Threshold, VerifyAll
from grv.replay.engine import replayed
from grv.testing import Scripted, World, run, verified
from grv.testing.drivers import words
from grv.testing.strategies import budgets, price_lists, widths, worlds

COSTS = Costs(1, 10)
POLICIES: list[Policy] = [Adaptive(), Fixed(6, 4), VerifyAll(), Threshold(0.5)]


def world(text: str, second: list[float]) -> World:
    return dataclasses.replace(World.of(text), second=tuple(second))


def ids(*numbers: int) -> tuple[CandidateId, ...]:
    return tuple(CandidateId(number) for number in numbers)


def asked(search: Search) -> list[str]:
    return [words(turn.action) for turn in search.trace]


SIX = world("9- 8- 7+ 6- 5- 4-", [1, 2, 3, 9, 9, 9])


def test_the_best_few_get_a_second_score_and_the_best_by_that_is_verified() -> None:
    search = run(Fixed(6, 1), COSTS, SIX, Limits(cascade=Cascade(top=3, cost=0.5), width=None))

    assert [turn.action for turn in search.trace][1:] == [Rescore(ids(0, 1, 2)), Verify(ids(2))]
    assert search.bill == Bill(6, 1, 6 + 10 + 1.5, rescored=3)
    assert search.rounds == Rounds(1, 1, 1)
    assert Latency(2, 3, 5).of(search.rounds) == 10


def test_with_width_one_the_next_candidates_get_a_second_score_when_others_fail() -> None:
    wrong = dataclasses.replace(SIX, verdicts=World.of("1- 1- 1- 1- 1- 1-").verdicts)
    search = run(Fixed(6, 4), COSTS, wrong, Limits(cascade=Cascade(top=2)))

    # The choice is between 0 and 1; 1 fails, 2 follows and is better than 0; then 3, then 4.
    assert verified(search) == [1, 2, 3, 4]
    assert asked(search) == [
        "generate 6",
        "rescore 2",
        "verify 1",
        "rescore 1",
        "verify 1",
        "rescore 1",
        "verify 1",
        "rescore 1",
        "verify 1",
    ]


def test_in_a_whole_step_the_best_by_their_second_scores_are_verified_together() -> None:
    search = run(Fixed(6, 3), COSTS, SIX, Limits(cascade=Cascade(top=5), width=None))

    assert asked(search) == ["generate 6", "rescore 5", "verify 3"]
    assert verified(search) == [3, 4, 2]
    # All three on the shortlist are verified, so none needs a second score.
    assert (
        run(Fixed(6, 3), COSTS, SIX, Limits(cascade=Cascade(top=2), width=None)).bill.rescored == 0
    )


def test_without_a_choice_there_are_no_second_scores() -> None:
    assert (
        run(VerifyAll(), COSTS, SIX, Limits(cascade=Cascade(top=4), width=None)).bill.rescored == 0
    )
    assert (
        run(Fixed(6, 6), COSTS, SIX, Limits(cascade=Cascade(top=4), width=None)).bill.rescored == 0
    )


def test_a_policy_that_ignores_scores_gets_the_candidates_it_named() -> None:
    assert verified(run(VerifyAll(), COSTS, SIX, Limits(cascade=Cascade(top=4), width=None))) == [
        0,
        1,
        2,
    ]
    assert verified(
        run(Threshold(6.5), COSTS, SIX, Limits(cascade=Cascade(top=4), width=None))
    ) == [0, 1, 2]


def test_candidates_with_a_second_score_come_before_better_new_ones() -> None:
    search = Search(
        Scripted((Generate(3), Verify(ids(1)), Generate(1))),
        COSTS,
        Limits(cascade=Cascade(3), width=None),
    )
    search.ask()
    search.tell(Generated((1.0, 5.0, 3.0)))
    search.ask()
    search.tell(Rescored({CandidateId(0): 0.2, CandidateId(1): 0.1, CandidateId(2): 0.2}))
    assert search.ask() == Verify(ids(0))  # a tie goes to the older
    search.tell(Verified({CandidateId(0): Verdict.FAILED}))
    search.ask()
    search.tell(Generated((9.0,)))

    assert search.pool.best(3) == ids(2, 1, 3)
    assert search.pool.best(1) == ids(2)
    assert search.pool.shortlist(3) == ids(3, 1, 2)


def test_without_money_for_second_scores_there_are_none() -> None:
    tight = run(
        Fixed(6, 1), COSTS, SIX, Limits(budget=17, cascade=Cascade(top=3, cost=0.5), width=None)
    )

    assert tight.bill.rescored == 2
    assert tight.bill.total == 17


def test_refuted_keys_are_not_scored_again() -> None:
    keyed = world("9-a 8-a 7- 6+b 5-c", [1, 2, 3, 9, 0])
    search = run(Fixed(5, 5), COSTS, keyed, Limits(cascade=Cascade(top=3)))

    rescored = [i for t in search.trace if isinstance(t.action, Rescore) for i in t.action.ids]
    assert rescored == [0, 2, 3]  # one per key
    assert verified(search) == [3]


@pytest.mark.parametrize(
    "event",
    [
        Rescored({CandidateId(0): 1.0}),
        Rescored({CandidateId(0): 1.0, CandidateId(5): 1.0}),
        Rescored({CandidateId(0): 1.0, CandidateId(1): math.nan}),
        Rescored({CandidateId(0): 1.0, CandidateId(1): 1.0}, paid=-1.0),
    ],
)
def test_wrong_second_scores_are_refused(event: Rescored) -> None:
    search = Search(Fixed(3, 1), COSTS, Limits(cascade=Cascade(top=2), width=None))
    search.ask()
    search.tell(Generated((3.0, 2.0, 1.0)))
    assert search.ask() == Rescore(ids(0, 1))

    with pytest.raises(EventError):
        search.tell(event)


def test_what_was_really_paid_for_a_second_score_is_billed() -> None:
    search = Search(Fixed(3, 1), COSTS, Limits(cascade=Cascade(top=2, cost=1), width=None))
    search.ask()
    search.tell(Generated((3.0, 2.0, 1.0)))
    search.ask()
    search.tell(Rescored(dict.fromkeys(ids(0, 1), 1.0), paid=0.25))

    assert search.bill == Bill(3, 0, 3.25, rescored=2)
    assert str(search.trace[-1]) == "rescored 0, 1 (the best 1 of 3)"
    assert isinstance(search.trace[-1], Turn)


@pytest.mark.parametrize(("top", "cost"), [(0, 1), (-3, 1), (2, -1), (2, math.nan), (2, math.inf)])
def test_a_cascade_has_a_choice_and_a_price(top: int, cost: float) -> None:
    with pytest.raises(UsageError):
        Cascade(top, cost)


tops = st.sampled_from([1, 2, 5, 40])


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@given(
    worlds(broken=False).filter(len), price_lists(), widths(), budgets(), tops, st.integers(0, 99)
)
def test_whatever_the_second_scores_are_the_promises_hold(
    policy: Policy,
    world: World,
    costs: Costs,
    width: int | None,
    budget: float,
    top: int,
    seed: int,
) -> None:
    second = tuple(float((7 * i + seed) % (2 + seed % 5)) for i in range(len(world)))
    world = dataclasses.replace(world, second=second)
    cascade = Cascade(top, cost=0.3)
    search = run(
        policy, costs, world, Limits(width=width, budget=budget, cascade=cascade, pace=Pace())
    )

    assert search.bill.total <= budget * (1 + 1e-12)
    rescored = [i for t in search.trace if isinstance(t.action, Rescore) for i in t.action.ids]
    assert len(set(rescored)) == len(rescored) == search.bill.rescored
    assert search.bill.total == pytest.approx(
        costs.of(search.bill.generated, search.bill.verified, search.failed) + 0.3 * len(rescored)
    )
    # A search told the same events asks for the same actions, so it can be resumed at any point.
    again = Search(policy, costs, Limits(width=width, budget=budget, cascade=cascade, pace=Pace()))
    for turn in search.trace:
        assert again.ask() == turn.action
        again.tell(turn.event)
    assert again.ask() == search.ask()
    # And so does replay.
    logged = world.logged()
    there = replayed(
        policy, logged, costs, Limits(width=width, budget=budget, cascade=cascade), keys=True
    )
    assert [turn.action for turn in there.trace] == [turn.action for turn in search.trace]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@given(worlds(), price_lists(), tops)
def test_a_second_score_that_says_the_same_changes_nothing_but_the_bill(
    policy: Policy, world: World, costs: Costs, top: int
) -> None:
    plain = run(policy, costs, world)
    twice = run(policy, costs, world, Limits(cascade=Cascade(top)))

    if not world.keys:
        assert verified(twice) == verified(plain)
        assert twice.bill == dataclasses.replace(plain.bill, rescored=twice.bill.rescored)
