"""The price of a failure: what a search plans with, what it reserves, and what it bills."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.pool import Pool
from grv.core.search import Search
from grv.core.values import (
    CandidateId,
    Costs,
    Generate,
    Generated,
    Measured,
    Reason,
    Step,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from grv.policies import Balanced, Fixed, Varied, VerifyAll
from grv.testing import World, run
from grv.testing.strategies import limits, worlds
from support.examples import examples

COSTS = Costs(1, 10, failure=2)
FAILED, PASSED, BROKEN = Verdict.FAILED, Verdict.PASSED, Verdict.BROKEN
POLICIES = (Balanced(), Varied(), Fixed(6, 3), VerifyAll())


@dataclass(frozen=True)
class Curious:
    """Generates and verifies one at a time, and keeps the prices that it is shown."""

    seen: list[tuple[float, float]]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Note the prices before each step."""
        self.seen.append((costs.candidate, costs.verify))
        while True:
            self.seen.append((pool.costs.candidate, pool.costs.verify))
            yield Generate(1)
            yield Verify(pool.best(1))


def test_a_failure_costs_as_much_as_a_pass_unless_it_has_a_price() -> None:
    assert Costs(1, 10) == Costs(1, 10, failure=10) == Costs(1, 10, failure=None)
    assert Costs(1, 10).failure == 10
    assert not Costs(1, 10).has_failure
    assert Costs(1, 10).planning is not None
    assert Costs(1, 10).planning == Costs(1, 10)


def test_prices_after_the_cost_to_verify_are_named() -> None:
    with pytest.raises(TypeError):
        Costs(1, 10, 2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (11, "cannot cost 11, more than one that passes, 10"),
        (0, "positive and finite, not 0"),
        (-1, "positive and finite, not -1"),
        (math.nan, "positive and finite, not nan"),
        (math.inf, "positive and finite, not inf"),
        (1e-299, "too far apart"),
    ],
)
def test_a_price_that_cannot_be_is_refused(failure: float, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        Costs(1, 10, failure=failure)
    assert "\n" not in str(refused.value)


def test_what_verifications_cost_is_defined_once() -> None:
    assert COSTS.of(4, 3, failed=2) == 4 + 10 + 2 * 2
    assert COSTS.of(0, 1, failed=1) == 2
    assert COSTS.of(0, 1) == 10
    assert COSTS.planning == Costs(1, 2)
    assert Costs(1, 10, failure=2, score=0.5).planning == Costs(1, 2, score=0.5)
    assert Measured(1, 10, failure=2).planning == Measured(1, 2)


def test_a_policy_is_shown_the_price_of_a_failure_only() -> None:
    policy = Curious([])
    run(policy, COSTS, World.of("1- 2- 3+"))
    assert set(policy.seen) == {(1.0, 2.0)}


def test_a_broken_verification_and_a_cancelled_one_cost_as_much_as_a_pass() -> None:
    search = Search(Fixed(3, 3), COSTS, Limits(width=None))
    search.ask()
    search.tell(Generated((3.0, 2.0, 1.0)))
    search.ask()
    search.tell(Verified({CandidateId(0): BROKEN, CandidateId(1): PASSED}))  # 2 is cancelled
    assert search.bill.total == 3 + 30
    assert search.failed == 0


def test_a_known_verdict_costs_nothing() -> None:
    search = Search(Fixed(2, 2), COSTS, Limits(width=None))
    search.ask()
    search.tell(Generated((2.0, 1.0)))
    search.ask()
    ids = CandidateId(0), CandidateId(1)
    search.tell(Verified(dict.fromkeys(ids, FAILED), shared=frozenset(ids[:1])))
    assert (search.bill.total, search.failed) == (2 + 2, 1)


@settings(max_examples=examples(200))
@given(
    st.sampled_from(POLICIES),
    worlds(),
    st.sampled_from([1.0, 0.25, 3.0]),
    st.sampled_from([10.0, 0.5, 64.0]),
    st.sampled_from([1.0, 0.5, 0.125]),
    limits(),
)
def test_the_total_is_the_sum_over_candidates_failures_and_the_rest(
    policy: Balanced | Varied | Fixed | VerifyAll,
    world: World,
    generate: float,
    verify: float,
    share: float,
    within: Limits,
) -> None:
    costs = Costs(generate, verify, failure=share * verify)
    search = run(policy, costs, world, within)
    verdicts = [
        verdict
        for turn in search.trace
        if isinstance(turn.event, Verified)
        for verdict in turn.event.verdicts.values()
    ]
    failed = verdicts.count(FAILED)
    others = len(verdicts) - failed
    total = generate * search.bill.generated + share * verify * failed + verify * others
    assert search.bill.total == total  # exact: all prices are binary fractions
    assert search.bill.total <= within.budget
    assert search.failed == failed


@settings(max_examples=examples(100))
@given(st.sampled_from(POLICIES), worlds(), st.sampled_from([Costs(1, 10), Costs(0.1, 0.7)]))
def test_a_failure_at_full_price_changes_nothing(
    policy: Balanced | Varied | Fixed | VerifyAll, world: World, costs: Costs
) -> None:
    named = Costs(costs.generate, costs.verify, failure=costs.verify)
    one, two = run(policy, costs, world), run(policy, named, world)
    assert one.outcome == two.outcome
    assert one.trace == two.trace


@settings(max_examples=examples(100))
@given(st.sampled_from(POLICIES), worlds(broken=False), st.sampled_from([1, None]))
def test_a_search_does_what_it_would_do_at_the_price_of_a_failure(
    policy: Balanced | Varied | Fixed | VerifyAll, world: World, width: int | None
) -> None:
    cheap = run(policy, COSTS.planning, world, Limits(width=width))
    search = run(policy, COSTS, world, Limits(width=width))
    assert search.trace == cheap.trace
    passed = search.bill.verified - search.failed
    assert search.bill.total == cheap.bill.total + passed * 8


def test_a_budget_reserves_a_pass_and_bills_a_failure() -> None:
    world = World.of("1- 2- 3- 4+")
    # Three candidates and failures cost 9. The fourth pass needs 1 + 10 more.
    enough = run(VerifyAll(), COSTS, world, Limits(budget=20))
    assert enough.outcome is not None
    assert enough.outcome.solved
    assert enough.bill.total == 4 + 3 * 2 + 10

    little = run(VerifyAll(), COSTS, world, Limits(budget=19.9))
    assert little.outcome is not None
    assert little.outcome.reason is Reason.OUT_OF_BUDGET
    assert little.bill.total == 9


def test_a_value_reserves_a_pass_too() -> None:
    world = World.of("1- 2- 3- 4+")
    assert run(VerifyAll(), COSTS, world, Limits(value=20)).outcome.solved  # type: ignore[union-attr]
    given_up = run(VerifyAll(), COSTS, world, Limits(value=19))
    assert isinstance(given_up.ask(), Stop)
    assert given_up.bill.total == 9


def test_measured_costs_plan_with_what_failures_cost() -> None:
    search = Search(Curious([]), Measured(1, 10, failure=4), Limits(answers=3))
    assert search.pool.costs.verify == 4
    for number, (verdict, paid) in enumerate([(FAILED, 3.0), (PASSED, 20.0), (FAILED, 1.0)]):
        search.ask()
        search.tell(Generated((1.0,), (f"key {number}",), paid=1.0))
        action = search.ask()
        assert isinstance(action, Verify)
        search.tell(Verified({action.ids[0]: verdict}, paid=paid))
    assert search.pool.costs.verify == 2  # the pass does not count
    assert search.bill.total == 3 + 24


def test_measured_costs_reserve_the_highest_payment() -> None:
    search = Search(VerifyAll(), Measured(1, 10, failure=2), Limits(budget=30))
    search.ask()
    search.tell(Generated((1.0,), paid=1.0))
    search.ask()
    search.tell(Verified({CandidateId(0): FAILED}, paid=2.0))
    # 3 are paid. A candidate and a verification may cost 11 more.
    assert isinstance(search.ask(), Generate)
    search.restrict(13.9)
    assert isinstance(search.ask(), Stop)
