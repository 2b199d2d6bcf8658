"""The state machine: what it asks, what it accepts, what it bills, when it stops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from grv.core.errors import EventError, PolicyError, UsageError
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.pool import Pool
from grv.core.search import Policy, Search, _largest
from grv.core.values import (
    Action,
    Bill,
    CandidateId,
    Cascade,
    Costs,
    Event,
    Generate,
    Generated,
    Outcome,
    Reason,
    Rescore,
    Rescored,
    Rounds,
    Step,
    Stop,
    Turn,
    Verdict,
    Verified,
    Verify,
)
from grv.policies import Adaptive, Fixed, KnownLaw, Threshold, VerifyAll
from grv.testing import Scripted, World, all_wrong, dialogue, empty, run, verified
from grv.testing.strategies import limits, price_lists, worlds

COSTS = Costs(generate=1, verify=10)
PASSED, FAILED, BROKEN = Verdict.PASSED, Verdict.FAILED, Verdict.BROKEN


def check(*ids: int, why: str = "") -> Verify:
    """The step that verifies these."""
    return Verify(tuple(CandidateId(id) for id in ids), why)


def say(verdicts: Mapping[int, Verdict], paid: float | None = None) -> Verified:
    """The event that tells these."""
    return Verified({CandidateId(id): verdict for id, verdict in verdicts.items()}, paid)


def script(*steps: Step) -> Scripted:
    """The policy that takes these steps."""
    return Scripted(steps)


def told(policy: Policy, *events: Event, budget: float = math.inf) -> Search:
    """A search that was told these events, and has asked for what comes next."""
    search = Search(policy, COSTS, Limits(budget=budget, width=None))
    search.ask()
    for event in events:
        search.tell(event)
        search.ask()
    return search


def outcome(search: Search) -> Outcome:
    """How it ended."""
    assert search.outcome is not None
    return search.outcome


class TestASearch:
    def test_asks_for_the_steps_of_the_plan_and_tells_how_it_ended(self) -> None:
        search = Search(Fixed(3, 2), COSTS, Limits(width=None))

        assert search.ask() == Generate(3)
        search.tell(Generated((1.0, 5.0, 3.0)))
        assert search.ask() == check(1, 2)
        assert search.outcome is None
        search.tell(say({1: FAILED, 2: PASSED}))
        assert search.ask() == Stop(Reason.SOLVED, CandidateId(2))
        assert search.outcome == Outcome(Reason.SOLVED, CandidateId(2), Bill(3, 2, 23.0))

    def test_asks_the_same_until_it_is_told(self) -> None:
        search = Search(Fixed(3, 2), COSTS, Limits(width=None))

        assert search.ask() is search.ask()
        search.tell(Generated((1.0, 5.0, 3.0)))
        assert search.ask() is search.ask()

    def test_stays_stopped(self) -> None:
        search = run(Fixed(1, 1), COSTS, World.of("1+"), Limits(width=None))

        assert search.ask() is search.ask()
        assert isinstance(search.ask(), Stop)

    def test_keeps_all_actions_and_results(self) -> None:
        search = Search(
            script(Generate(1, "to begin"), check(0, why="the only one")), COSTS, Limits(width=None)
        )
        made, found = Generated((1.0,)), say({0: FAILED})
        search.ask()
        assert list(search.trace) == []
        search.tell(made)
        search.ask()
        search.tell(found)

        assert list(search.trace) == [Turn(Generate(1), made), Turn(check(0), found)]
        assert [turn.action.why for turn in search.trace] == ["to begin", "the only one"]

    def test_keeps_the_policys_reason_when_it_cuts_a_step(self) -> None:
        steps = (Generate(3, "some"), check(0, 1, 2, why="all"))
        search = run(
            script(*steps),
            COSTS,
            all_wrong(3),
            Limits(width=2, budget=23, pace=Pace(overlap=False)),
        )

        assert [(turn.action, turn.action.why) for turn in search.trace] == [
            (Generate(3), "some"),
            (check(0, 1), "all"),
        ]

    def test_waits_once_for_each_action_also_for_one_that_brings_nothing(self) -> None:
        search = run(Fixed(3, 3), COSTS, all_wrong(3), Limits(width=2, pace=Pace(overlap=False)))
        assert search.rounds == Rounds(generate=1, verify=2)
        assert search.rounds.total == len(search.trace) == 3

        search = run(VerifyAll(), COSTS, all_wrong(3), Limits(width=None))
        assert search.rounds == Rounds(generate=4, verify=3)

    def test_gives_up_before_it_spends_more_than_an_answer_is_worth(self) -> None:
        search = run(VerifyAll(), COSTS, all_wrong(9), Limits(value=35, width=None))

        assert search.outcome == Outcome(Reason.FINISHED, None, Bill(3, 3, 33.0))
        assert outcome(search).why == (
            "an answer is worth 35; the next attempt would raise the cost to 44"
        )

    def test_generates_nothing_that_it_cannot_afford_to_verify(self) -> None:
        assert run(VerifyAll(), COSTS, World.of("1+"), Limits(value=10, width=None)).bill == Bill(
            0, 0, 0.0
        )
        assert run(VerifyAll(), COSTS, World.of("1+"), Limits(value=11, width=None)).bill == Bill(
            1, 1, 11.0
        )

    def test_cuts_a_step_so_that_a_verification_is_left(self) -> None:
        search = run(Fixed(8, 3), COSTS, all_wrong(9), Limits(value=17, width=None))

        assert dialogue(Fixed(8, 3), COSTS, all_wrong(9), Limits(width=None))[0] == "generate 8"
        assert search.bill == Bill(7, 1, 17.0)

    def test_is_out_of_budget_if_the_budget_is_below_the_value(self) -> None:
        search = Search(VerifyAll(), COSTS, Limits(budget=12, value=35, width=None))
        for event in (Generated((1.0,)), say({0: FAILED})):
            search.ask()
            search.tell(event)

        assert search.ask() == Stop(Reason.OUT_OF_BUDGET)

    @pytest.mark.parametrize("wrong", [-1, math.nan, -math.inf])
    def test_refuses_a_negative_value(self, wrong: float) -> None:
        with pytest.raises(UsageError, match=f"what an answer is worth cannot be {wrong}"):
            Search(VerifyAll(), COSTS, Limits(value=wrong, width=None))

    def test_ends_with_the_plan(self) -> None:
        assert dialogue(script(), COSTS, all_wrong(3), Limits(width=None)) == ["finished"]

    def test_of_an_empty_world_is_exhausted_at_once(self) -> None:
        assert dialogue(Adaptive(), COSTS, empty(), Limits(width=None)) == [
            "generate 8",
            "exhausted",
        ]

    def test_takes_the_best_ranked_of_several_passes_in_one_action(self) -> None:
        search = run(Fixed(4, 3), COSTS, World.of("1+ 2+ 3- 0-"), Limits(width=None))

        assert verified(search) == [2, 1, 0]
        assert outcome(search).answer == 1

    def test_passes_over_a_generation_that_cannot_succeed(self) -> None:
        steps = (Generate(3), Generate(2), check(0))

        assert dialogue(script(*steps), COSTS, all_wrong(2), Limits(width=None)) == [
            "generate 3",
            "verify 1",
            "finished",
        ]

    def test_is_exhausted_when_nothing_is_left_to_generate_or_to_verify(self) -> None:
        steps = (Generate(3), check(0, 1), Generate(5))

        assert dialogue(script(*steps), COSTS, all_wrong(2), Limits(width=None)) == [
            "generate 3",
            "verify 2",
            "exhausted",
        ]

    @pytest.mark.parametrize("budget", [-1, -math.inf, math.nan])
    def test_refuses_an_impossible_budget(self, budget: float) -> None:
        with pytest.raises(UsageError, match=f"the budget cannot be {budget}"):
            Search(VerifyAll(), COSTS, Limits(budget=budget, width=None))

    @pytest.mark.parametrize("width", [0, -3])
    def test_refuses_a_width_below_one(self, width: int) -> None:
        with pytest.raises(UsageError, match=f"the width must be at least 1, not {width}"):
            Search(VerifyAll(), COSTS, Limits(width=width, pace=Pace(overlap=False)))


class TestABrokenVerdict:
    def test_is_paid_for_and_proves_nothing(self) -> None:
        search = run(Fixed(2, 2), COSTS, World.of("2? 1+"), Limits(width=None))

        assert outcome(search) == Outcome(Reason.SOLVED, CandidateId(1), Bill(2, 2, 22.0))

    def test_is_no_pass(self) -> None:
        search = run(Fixed(2, 2), COSTS, World.of("2? 1?"), Limits(width=None))

        assert outcome(search) == Outcome(Reason.FINISHED, None, Bill(2, 2, 22.0))


class TestWidth:
    WORLD = World.of("5- 4- 3+ 2- 1+")

    def test_none_pays_for_the_whole_step_though_its_third_passes(self) -> None:
        assert dialogue(Fixed(5, 5), COSTS, self.WORLD, Limits(width=None)) == [
            "generate 5",
            "verify 5",
            "solved by 2",
        ]

    def test_one_stops_at_the_first_pass(self) -> None:
        assert dialogue(Fixed(5, 5), COSTS, self.WORLD) == [
            "generate 5",
            "verify 1",
            "verify 1",
            "verify 1",
            "solved by 2",
        ]

    def test_two_stops_at_the_first_pair_with_a_pass(self) -> None:
        assert dialogue(
            Fixed(5, 5), COSTS, self.WORLD, Limits(width=2, pace=Pace(overlap=False))
        ) == [
            "generate 5",
            "verify 2",
            "verify 2",
            "solved by 2",
        ]

    def test_wider_than_the_step_is_the_whole_step(self) -> None:
        whole = dialogue(Fixed(5, 5), COSTS, self.WORLD, Limits(width=None))
        assert (
            dialogue(
                Fixed(5, 5),
                COSTS,
                self.WORLD,
                Limits(width=9, pace=Pace(ramp=False, overlap=False)),
            )
            == whole
        )


class TestBudget:
    def test_covers_the_affordable_part_of_a_generation(self) -> None:
        assert dialogue(Fixed(8, 2), COSTS, all_wrong(8), Limits(budget=15, width=None)) == [
            "generate 5",
            "verify 1",
            "out of budget",
        ]

    @pytest.mark.parametrize("least", [1e-9, 2e-9, 1.4e-8])
    def test_covers_all_that_the_bill_covers_however_small_their_price(self, least: float) -> None:
        """Beside a verification for 1e9, many candidates for 1e-9 do not change the bill."""
        costs = Costs(generate=least, verify=1e9)
        budget = costs.of(4, 1)
        world = World.of("0- 1- 2- 3+") + all_wrong(30)
        search = run(Fixed(4, 1), costs, world, Limits(budget=budget, width=None))

        assert [turn.action for turn in search.trace] == [Generate(4), check(3)]
        assert search.bill == Bill(4, 1, budget)

    @pytest.mark.parametrize("number", [0, 1, 2, 59, 10**12, 2**62 - 1, 2**62])
    @pytest.mark.parametrize("guess", [0, 1, 2, 58, 60, 10**12 + 1, 2**62])
    def test_is_used_up_in_a_few_steps_whatever_the_guess(self, number: int, guess: int) -> None:
        tried: list[int] = []

        def fits(n: int) -> bool:
            tried.append(n)
            return n <= number

        assert _largest(fits, guess) == number
        assert len(tried) <= 130
        assert all(0 <= n <= 2**62 for n in tried)

    def test_that_covers_no_verification_buys_no_candidate(self) -> None:
        assert dialogue(Fixed(8, 2), COSTS, all_wrong(8), Limits(budget=10.5, width=None)) == [
            "out of budget"
        ]

    @pytest.mark.parametrize("limit", ["budget", "value"])
    def test_verifies_the_best_open_candidate_with_the_last_money(self, limit: str) -> None:
        """A plan that would only generate: 20 are open, and 10 is left."""
        world = World.of(" ".join(f"{score % 7}-" for score in range(30)))
        options: dict[str, Any] = {limit: 30}
        limits = Limits(width=None, **options)
        search = run(script(Generate(20), Generate(10)), COSTS, world, limits)

        assert [turn.action for turn in search.trace] == [Generate(20), check(6)]
        assert search.bill == Bill(20, 1, 30.0)

    def test_goes_on_with_the_next_best_as_long_as_the_money_lasts(self) -> None:
        costs = Costs(generate=10, verify=2)
        world = World.of("1-a 3-b 2+c 3-b 9-")
        search = run(script(Generate(4), Generate(1)), costs, world, Limits(budget=46))

        assert [turn.action for turn in search.trace] == [Generate(4), check(1), check(2)]
        assert outcome(search).answer == 2

    def test_of_a_cascade_goes_to_the_best_by_its_second_score(self) -> None:
        steps = (Generate(3), Generate(3))
        search = Search(
            script(*steps), Costs(2, 10), Limits(budget=17.5, cascade=Cascade(2, 0.5), width=None)
        )
        assert search.ask() == Generate(3)
        search.tell(Generated((3.0, 2.0, 1.0)))
        assert search.ask() == Rescore((CandidateId(0), CandidateId(1)))
        search.tell(Rescored({CandidateId(0): 0.0, CandidateId(1): 1.0}))

        assert search.ask() == check(1)

    def test_covers_the_affordable_part_of_a_step_of_verifications(self) -> None:
        assert dialogue(Fixed(8, 4), COSTS, all_wrong(8), Limits(budget=30, width=None)) == [
            "generate 8",
            "verify 2",
            "out of budget",
        ]

    def test_goes_on_after_a_cut_generation_if_verifying_is_cheaper(self) -> None:
        costs = Costs(generate=3, verify=1)

        assert dialogue(Fixed(8, 4), costs, all_wrong(8), Limits(budget=8, width=None)) == [
            "generate 2",
            "verify 2",
            "finished",
        ]

    def test_of_zero_buys_nothing(self) -> None:
        assert dialogue(VerifyAll(), COSTS, all_wrong(2), Limits(budget=0, width=None)) == [
            "out of budget"
        ]

    def test_is_not_spent_on_candidates_of_a_refuted_key(self) -> None:
        world = World.of("2-a 1-a")
        steps = (Generate(2), check(0), check(1))

        assert dialogue(script(*steps), COSTS, world, Limits(budget=12, width=None)) == [
            "generate 2",
            "verify 1",
            "finished",
        ]

    def test_may_be_met_exactly_whatever_the_rounding(self) -> None:
        # 7 * 0.1 is a little more than 0.7, and 0.7 / 0.1 a little less than 7.
        costs = Costs(generate=0.1, verify=0.1)

        assert (
            dialogue(Fixed(9, 1), costs, all_wrong(9), Limits(budget=6 * 0.1 + 0.1, width=None))[0]
            == "generate 6"
        )
        assert (
            dialogue(Fixed(9, 1), costs, all_wrong(9), Limits(budget=0.3, width=None))[0]
            == "generate 1"
        )

    def test_may_be_astronomical(self) -> None:
        costs = Costs(generate=1e-300, verify=1e-300)

        assert dialogue(Fixed(2, 1), costs, all_wrong(2), Limits(budget=1e300, width=None)) == [
            "generate 2",
            "verify 1",
            "finished",
        ]

    @given(price_lists(), st.floats(0, 1e6), st.integers(1, 50))
    def test_is_used_to_the_last_candidate_and_never_exceeded(
        self, costs: Costs, budget: float, n: int
    ) -> None:
        asked = Search(Fixed(n, 1), costs, Limits(budget=budget, width=None)).ask()

        most = max(m for m in range(n + 1) if m == 0 or costs.of(m, 1) <= budget)
        assert asked == (Generate(most) if most else Stop(Reason.OUT_OF_BUDGET))


class TestTheBill:
    def test_is_by_the_price_list_unless_told_what_was_paid(self) -> None:
        search = told(Fixed(4, 2), Generated((1.0,) * 4), say({0: FAILED, 1: FAILED}))

        assert search.bill == Bill(4, 2, 24.0)

    def test_adds_up_what_was_really_paid(self) -> None:
        search = told(
            script(Generate(2), check(0), Generate(1), check(1)),
            Generated((1.0, 1.0), paid=5.5),
            say({0: FAILED}, paid=0.25),
            Generated((1.0,)),
            say({1: FAILED}),
        )

        assert search.bill == Bill(3, 2, 5.5 + 0.25 + 1 + 10)

    def test_of_nothing_is_nothing(self) -> None:
        assert Search(VerifyAll(), COSTS, Limits(width=None)).bill == Bill(0, 0, 0.0)

    def test_may_be_paid_for_with_nothing(self) -> None:
        assert told(Fixed(4, 2), Generated((1.0,) * 4, paid=0)).bill == Bill(4, 0, 0.0)

    def test_moves_the_costs_that_the_policy_sees(self) -> None:
        search = Search(Fixed(3, 2), Costs(1, 10))
        seen = [search.pool.costs]
        search.ask()
        search.tell(Generated((1.0, 1.0, 1.0), paid=9))
        seen.append(search.pool.costs)
        search.ask()
        search.tell(say({0: FAILED}, paid=40))
        seen.append(search.pool.costs)
        search.ask()
        search.tell(say({1: FAILED}))  # the payment is unknown

        assert seen == [Costs(1, 10), Costs(3, 10), Costs(3, 40)]
        assert search.pool.costs == seen[-1]
        assert search.bill.total == 9 + 40 + 10
        assert search.costs == Costs(1, 10)

    def test_reserves_as_much_as_the_dearest_so_far(self) -> None:
        search = told(script(Generate(1), Generate(4)), Generated((1.0,), paid=5), budget=26)

        assert search.ask() == Generate(2)

    def test_reserves_the_most_that_one_can_cost(self) -> None:
        most = Costs(generate=4, verify=50)
        search = Search(
            script(Generate(9), check(0, 1)), COSTS, Limits(budget=86, most=most, width=None)
        )
        assert search.ask() == Generate(9)
        search.tell(Generated((1.0,) * 9, paid=18))
        assert search.ask() == check(0)  # 18 + 50 is within 86
        search.tell(say({0: FAILED}, paid=30))
        assert search.ask() == Stop(Reason.OUT_OF_BUDGET)  # 48 + 50 is not
        assert outcome(search).bill.total == 48

    def test_counts_against_the_budget_as_it_was_really_paid(self) -> None:
        dear = told(Fixed(4, 2), Generated((1.0,) * 4, paid=100), budget=24)
        cheap = told(Fixed(4, 2), Generated((1.0,) * 4, paid=1), budget=24)

        assert dear.ask() == Stop(Reason.OUT_OF_BUDGET)
        assert dear.bill.total == 100
        assert cheap.ask() == check(0, 1)

    def test_includes_verifications_that_were_cancelled_because_another_passed(self) -> None:
        search = told(Fixed(4, 3), Generated((1.0,) * 4), say({1: PASSED}))

        assert search.bill == Bill(4, 3, 34.0)
        assert search.ask() == Stop(Reason.SOLVED, CandidateId(1))
        assert dict(search.pool.verdicts) == {1: PASSED}


class TestKeys:
    def test_two_of_one_key_are_never_in_flight_together(self) -> None:
        world = World.of("1?a 1?a 1- 1?a")
        search = run(script(Generate(4), check(0, 1, 2, 3)), COSTS, world, Limits(width=None))

        asked = [turn.action for turn in search.trace[1:]]
        assert asked == [check(0, 2), check(1), check(3)]

    def test_the_rest_of_a_step_keeps_its_order(self) -> None:
        world = World.of("1?a 1?a 1?b 1?b 1- 1-")
        search = run(script(Generate(6), check(*range(6))), COSTS, world, Limits(width=None))

        asked = [turn.action for turn in search.trace[1:]]
        assert asked == [check(0, 2, 4, 5), check(1, 3)]

    def test_the_rest_of_a_step_is_passed_over_once_its_key_is_refuted(self) -> None:
        world = World.of("1-a 1-a 1- 1-a")
        search = run(script(Generate(4), check(0, 1, 2, 3)), COSTS, world, Limits(width=None))

        assert verified(search) == [0, 2]
        assert outcome(search).bill == Bill(4, 2, 24.0)

    def test_candidates_of_a_refuted_key_in_a_step_are_skipped(self) -> None:
        world = World.of("1-a 1-a 1-")
        steps = (Generate(3), check(0), check(1), check(2))

        assert verified(run(script(*steps), COSTS, world, Limits(width=None))) == [0, 2]

    def test_a_world_whose_keys_are_all_refuted_is_exhausted(self) -> None:
        world = World.of("1-a 1-a 1-a")

        assert dialogue(VerifyAll(), COSTS, world, Limits(width=None)) == [
            "generate 1",
            "verify 1",
            "generate 1",
            "generate 1",
            "generate 1",
            "exhausted",
        ]


class TestAnIllegalStep:
    @pytest.mark.parametrize(
        ("step", "message"),
        [
            (check(7), r"cannot verify \(7,\): unknown, repeated or already verified"),
            (check(-1), r"cannot verify \(-1,\)"),
            (check(1, 1), r"cannot verify \(1, 1\)"),
            (check(0), r"cannot verify \(0,\)"),
            (Generate(0), r"not a legal step: Generate\(n=0"),
            (Generate(-2), r"not a legal step: Generate\(n=-2"),
            (Stop(Reason.FINISHED), "not a legal step: Stop"),
        ],
        ids=["unknown", "negative", "repeated", "verified", "nothing", "less than nothing", "stop"],
    )
    def test_is_a_policy_error_and_the_end(self, step: Step, message: str) -> None:
        search = Search(script(Generate(3), check(0), step), COSTS, Limits(width=None))
        search.ask()
        search.tell(Generated((1.0, 2.0, 3.0)))
        search.ask()
        search.tell(say({0: FAILED}))

        for _ in range(2):
            with pytest.raises(PolicyError, match=message):
                search.ask()
        with pytest.raises(PolicyError, match=message):
            search.tell(Generated((1.0,)))
        assert search.outcome is None
        assert search.bill == Bill(3, 1, 13.0)

    def test_includes_a_thousand_that_change_nothing(self) -> None:
        idle = [check()] * 999

        assert Search(script(*idle, Generate(1)), COSTS, Limits(width=None)).ask() == Generate(1)
        with pytest.raises(PolicyError, match="the plan took 1000 steps in a row that change"):
            Search(script(*idle, check(), Generate(1)), COSTS, Limits(width=None)).ask()


GENERATING = script(Generate(3), check(2, 0), check(1))
MADE = Generated((1.0, 2.0, 3.0))
WRONG: dict[str, tuple[list[Event], Event, str]] = {
    "too many candidates": ([], Generated((1.0,) * 4), "asked for 3 candidates, got 4"),
    "a score that is no number": ([], Generated((1.0, math.nan)), "a score is NaN; use -inf"),
    "too few keys": ([], Generated((1.0, 2.0), ("a",)), "2 candidates have 1 keys"),
    "too many keys": ([], Generated((1.0,), ("a", None)), "1 candidates have 2 keys"),
    "a negative payment": ([], Generated((1.0,), paid=-0.5), "must be .* not negative, not -0.5"),
    "a payment of NaN": ([], Generated((1.0,), paid=math.nan), "must be finite .*, not nan"),
    "an endless payment": ([], Generated((1.0,), paid=math.inf), "must be finite .*, not inf"),
    "verdicts too early": ([], say({0: FAILED}), r"asked Generate\(.*, told Verified\("),
    "a missing verdict": ([MADE], say({2: FAILED}), r"asked about \(2, 0\), told about \(2,\)"),
    "no verdict at all": ([MADE], say({}), r"asked about \(2, 0\), told about \(\)"),
    "another's verdict": ([MADE], say({2: FAILED, 1: FAILED}), r"told about \(2, 1\)"),
    "one verdict too many": ([MADE], say({2: FAILED, 0: FAILED, 1: FAILED}), "told about"),
    "only a stranger's pass": ([MADE], say({1: PASSED}), r"told about \(1,\)"),
    "a pass and a stranger": ([MADE], say({0: PASSED, 1: FAILED}), r"told about \(0, 1\)"),
    "a bad payment for a verdict": ([MADE], say({2: FAILED, 0: FAILED}, -1), "not -1"),
    "candidates too early": ([MADE], Generated((1.0,)), r"asked Verify\(.*, told Generated\("),
    "something after the end": (
        [MADE, say({2: FAILED, 0: PASSED})],
        say({1: FAILED}),
        r"asked Stop\(.*, told Verified\(",
    ),
    "no event at all": ([], cast(Event, "three candidates"), "told three candidates"),
}


class TestAWrongEvent:
    @pytest.mark.parametrize(("before", "wrong", "message"), WRONG.values(), ids=WRONG)
    def test_raises_and_changes_nothing_and_the_search_is_dead(
        self, before: list[Event], wrong: Event, message: str
    ) -> None:
        search = told(GENERATING, *before)
        state = visible(search)

        with pytest.raises(EventError, match=message):
            search.tell(wrong)

        assert visible(search) == state
        with pytest.raises(EventError, match=message):
            search.ask()
        with pytest.raises(EventError, match=message):
            search.tell(MADE)
        assert visible(search) == state

    def test_is_anything_told_before_it_was_asked_for(self) -> None:
        with pytest.raises(EventError, match="asked None, told Generated"):
            Search(GENERATING, COSTS, Limits(width=None)).tell(MADE)


def visible(search: Search) -> object:
    """All that can be seen of a search."""
    pool = search.pool
    return (
        list(pool.scores),
        dict(pool.verdicts),
        [pool.key(CandidateId(i)) for i in range(len(pool))],
        pool.waiting,
        pool.exhausted,
        pool.best(len(pool)),
        search.bill,
        search.outcome,
        list(search.trace),
    )


def wrong_events(action: Action | None) -> list[Event]:
    """Events that do not answer this action."""
    anything: list[Event] = [Generated(()), Generated((1.0,)), say({}), say({0: FAILED})]
    match action:
        case Generate(n):
            return [
                *([Generated((0.0,) * (n + 1))] if n < 1000 else []),
                Generated((math.nan,)),
                Generated((0.0,), ("a", "b")),
                Generated((), paid=-1),
                *anything[2:],
            ]
        case Verify(ids):
            stranger = max(ids) + 1
            return [
                Verified(dict.fromkeys(ids[1:], FAILED)),
                Verified({**dict.fromkeys(ids, FAILED), CandidateId(stranger): FAILED}),
                Verified({CandidateId(stranger): PASSED}),
                Verified(dict.fromkeys(ids, FAILED), paid=math.nan),
                *anything[:2],
            ]
        case _:
            return anything


class Conversation(RuleBasedStateMachine):
    """Tell right and wrong events in any order. After a wrong one, take the search up again.

    Everything is small, so that a few steps reach every corner.
    """

    @initialize(
        policy=st.sampled_from(
            [
                Adaptive(draws=0.5, checks=1),
                Fixed(5, 3),
                KnownLaw((0.0, 1.0), (0.1, 0.5)),
                Threshold(1),
                VerifyAll(),
            ]
        ),
        costs=price_lists(),
        limits=limits(),
    )
    def begin(self, policy: Policy, costs: Costs, limits: Limits) -> None:
        self.policy, self.costs, self.limits = policy, costs, limits
        self.search = Search(policy, costs, limits)
        self.action: Action | None = None

    @rule()
    def ask(self) -> None:
        action = self.search.ask()
        assert self.action in (None, action)
        self.action = action

    @precondition(lambda self: isinstance(self.action, Generate))
    @rule(world=worlds(candidates=4), paid=st.sampled_from([None, 0.0, 2.5]))
    def tell_of_candidates(self, world: World, paid: float | None) -> None:
        assert isinstance(self.action, Generate)
        some = world.first(self.action.n)
        bill, seen = self.search.bill, self.search.arrived
        self.search.tell(Generated(some.scores, some.keys, paid))
        assert self.search.arrived == seen + len(some)
        if not self.limits.looks_ahead:
            assert len(self.search.pool) == self.search.arrived
            assert self.search.pool.exhausted == (len(some) < self.action.n)
        self.check_bill(bill, Bill(len(some), 0, self.costs.of(len(some), 0)), paid)

    @precondition(lambda self: isinstance(self.action, Verify))
    @rule(
        verdicts=st.lists(st.sampled_from([FAILED, FAILED, BROKEN, PASSED]), min_size=1),
        paid=st.sampled_from([None, 0.0, 2.5]),
        cancel=st.booleans(),
    )
    def tell_of_verdicts(self, verdicts: list[Verdict], paid: float | None, cancel: bool) -> None:
        assert isinstance(self.action, Verify)
        ids = self.action.ids
        given = {id: verdicts[i % len(verdicts)] for i, id in enumerate(ids)}
        passed = [id for id in ids if given[id] is PASSED]
        if cancel and passed:
            given = {passed[0]: PASSED}
        bill, n = self.search.bill, self.action.meanwhile
        ahead = Generated((1.0,) * (n // 2), paid=paid and 0.0) if n else None
        if cancel and passed:
            ahead = None
        self.search.tell(Verified(given, paid, ahead))
        n = 0 if ahead is None else len(ahead.scores)
        failed = list(given.values()).count(FAILED)
        more = Bill(n, len(ids), self.costs.of(n, len(ids), failed))
        self.check_bill(bill, more, paid)
        if passed:
            assert self.search.ask() == Stop(Reason.SOLVED, passed[0])
            self.action = self.search.ask()

    def check_bill(self, before: Bill, more: Bill, paid: float | None) -> None:
        assert self.search.bill.generated == before.generated + more.generated
        assert self.search.bill.verified == before.verified + more.verified
        added = more.total if paid is None else paid
        assert self.search.bill.total == pytest.approx(before.total + added)
        self.action = None

    @rule(data=st.data())
    def tell_something_wrong(self, data: st.DataObject) -> None:
        state = visible(self.search)
        with pytest.raises(EventError):
            self.search.tell(data.draw(st.sampled_from(wrong_events(self.action))))
        assert visible(self.search) == state
        with pytest.raises(EventError):
            self.search.ask()
        self.resume()
        assert visible(self.search) == state

    def resume(self) -> None:
        turns, asked = self.search.trace, self.action
        self.search = Search(self.policy, self.costs, self.limits)
        for turn in turns:
            assert self.search.ask() == turn.action
            self.search.tell(turn.event)
        if asked is not None:
            assert self.search.ask() == asked

    @invariant()
    def an_outcome_is_there_exactly_when_it_has_stopped(self) -> None:
        assert (self.search.outcome is not None) == isinstance(self.action, Stop)


def test_right_events_are_taken_and_wrong_ones_change_nothing_in_any_order() -> None:
    run_state_machine_as_test(Conversation, settings=settings(stateful_step_count=20))


@dataclass(frozen=True)
class Odd:
    """Yields whatever it is given, and raises it if it is an exception."""

    steps: tuple[object, ...]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Any]:
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            yield step


@pytest.mark.parametrize(
    "step", [None, Stop(Reason.FINISHED), Stop(Reason.SOLVED), Generate(cast(int, 1.5))]
)
def test_a_plan_may_yield_nothing_but_steps(step: object) -> None:
    with pytest.raises(PolicyError, match="not a legal step"):
        Search(Odd((step,)), Costs(), Limits(width=None)).ask()


def test_a_plan_that_raised_something_cannot_go_on() -> None:
    search = Search(
        Odd((ZeroDivisionError("in the plan"), Generate(1))), Costs(), Limits(width=None)
    )
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the plan"):
            search.ask()
    with pytest.raises(ZeroDivisionError):
        search.tell(Generated((1.0,)))
