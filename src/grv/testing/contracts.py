"""The contract of every policy, as tests to inherit. Needs the extra `testing`.

To test a policy, write `class TestPatient(PolicyContract): policy = Patient(batch=4)`.
"""

# ruff: noqa: D102 (the names of the tests are sentences)

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..core.limits import Limits
from ..core.pace import Pace
from ..core.search import Policy, Search
from ..core.values import (
    REFUTED,
    Bill,
    CandidateId,
    Costs,
    Generate,
    Generated,
    Outcome,
    Reason,
    Stop,
    Task,
    Verdict,
    Verified,
    Verify,
    What,
    arrivals,
)
from ..learning.prior_file import parse_policy
from ..policies import POLICIES
from ..policies.spec import spec
from ..replay.engine import replayed
from .drivers import batches, drive, run, verified
from .strategies import budgets, limits, paces, price_lists, widths, worlds
from .worlds import World, all_wrong

_Test = Callable[..., None]


_STRATEGIES: dict[str, tuple[st.SearchStrategy[Any], ...]] = {}  # by the name of the property


def _property(*strategies: st.SearchStrategy[Any]) -> Callable[[_Test], _Test]:
    """Register the strategies of a property."""

    def decorate(test: _Test) -> _Test:
        _STRATEGIES[test.__name__] = strategies
        return test

    return decorate


_APART = Pace(overlap=False)  # candidates and verdicts arrive in rounds of their own


class PolicyContract:
    """Properties of every policy, in any world. Inherit, and set `policy`.

    If the policy has a class attribute `rank_only = True`, a test checks that it only compares
    scores. Keywords are settings of hypothesis, as in
    `class TestPatient(PolicyContract, max_examples=1000)`.
    """

    policy: ClassVar[Policy]

    def __init_subclass__(cls, **options: Any) -> None:
        """Make tests of the properties, new ones for each policy: hypothesis needs that.

        A property that the class overrides stays as it is.
        """
        super().__init_subclass__()
        for name, strategies in _STRATEGIES.items():
            test = getattr(PolicyContract, name)
            if getattr(cls, name) is test:
                setattr(cls, name, settings(deadline=None, **options)(given(*strategies)(test)))

    @_property(worlds(), price_lists(), limits())
    def test_it_ends_and_verifies_only_what_is_known_and_new(
        self, world: World, costs: Costs, limits: Limits
    ) -> None:
        search = run(self.policy, costs, world, limits)  # an illegal step is a PolicyError
        assert search.outcome is not None
        assert len(search.trace) <= 2 * len(world) + 1
        known = 0
        seen: set[CandidateId] = set()
        for turn in search.trace:
            if isinstance(turn.event, Verified):
                ids = set(turn.event.verdicts)
                assert ids <= set(range(known))
                assert not ids & seen
                seen |= ids
            known += sum(len(batch.scores) for batch in arrivals(turn.event))

    @_property(worlds(), price_lists(), limits())
    def test_the_same_events_get_the_same_actions(
        self, world: World, costs: Costs, limits: Limits
    ) -> None:
        before = run(self.policy, costs, world, limits)
        one = Search(self.policy, costs, limits)
        two = Search(self.policy, costs, limits)
        while not isinstance(action := one.ask(), Stop):  # interleaved: they must not share state
            assert two.ask() == action
            event = world.event(action, seen=one.arrived)
            one.tell(event)
            two.tell(event)
        assert two.ask() == action
        assert two.outcome == one.outcome == before.outcome
        assert two.trace == one.trace == before.trace

    @_property(worlds(), price_lists(), limits())
    def test_asking_twice_is_asking_once(self, world: World, costs: Costs, limits: Limits) -> None:
        search = Search(self.policy, costs, limits)
        while not isinstance(action := search.ask(), Stop):
            assert search.ask() is action
            search.tell(world.event(action, seen=search.arrived))
        assert search.ask() is action
        assert search.trace == run(self.policy, costs, world, limits).trace

    @_property(worlds(), price_lists(), limits())
    def test_the_bill_is_the_sum_of_the_events_and_within_the_budget(
        self, world: World, costs: Costs, limits: Limits
    ) -> None:
        search = run(self.policy, costs, world, limits)
        generated = sum(len(batch.scores) for batch in batches(search))
        asked = len(verified(search))
        refuted = sum(batch.keys.count(REFUTED) for batch in batches(search))
        unneeded = generated - len(search.pool)
        verdicts = [world.verdicts[id] for id in verified(search)]
        total = costs.of(generated, asked, verdicts.count(Verdict.FAILED))
        bill = Bill(generated, asked, total, 0, refuted, unneeded)
        assert search.bill == bill
        assert search.bill.total <= limits.budget

    @_property(worlds(), price_lists(), widths())
    def test_a_budget_that_just_covers_a_search_changes_nothing(
        self, world: World, costs: Costs, width: int | None
    ) -> None:
        """If the end of the world is not reached: with less money, fewer are requested.

        A verification that fails may cost less than was reserved for it. The budget covers this.
        And if the last action verifies: candidates are generated only with money to verify one,
        also if all of them turn out to be refuted. A search that looks ahead may generate fewer
        of those; it finds the same answer.
        """
        world += all_wrong(30)
        free = run(self.policy, costs, world, Limits(width=width, pace=_APART))
        last = free.trace[-1].action if free.trace else None
        verifies = isinstance(last, Verify) and not last.meanwhile
        requested = [turn.action.n for turn in free.trace if isinstance(turn.action, Generate)]
        if sum(requested) == free.bill.generated and verifies:
            budget = _reserved(free)
            bounded = run(
                self.policy, costs, world, Limits(width=width, budget=budget, pace=_APART)
            )
            if width is None or width == 1:
                assert bounded.outcome == free.outcome
                assert bounded.trace == free.trace
            assert _outcome(bounded).answer == _outcome(free).answer
            assert bounded.bill.total <= free.bill.total

    @_property(worlds(), price_lists(), limits(), st.sampled_from([1.0, 7, 30, 1e9]))
    def test_the_last_money_is_for_a_verification(
        self, world: World, costs: Costs, limits: Limits, value: float
    ) -> None:
        """No candidate is generated that cannot be verified, and none is left that could be."""
        search = Search(self.policy, costs, dataclasses.replace(limits, value=value))
        limit = min(value, limits.budget)
        while not isinstance(action := search.ask(), Stop):
            made = action.n if isinstance(action, Generate) else 0
            if isinstance(action, Verify) and action.meanwhile:
                made = action.meanwhile
            checks = len(action.ids) if isinstance(action, Verify) else 0
            if made:
                bill = search.bill
                after = costs.of(bill.generated + made, bill.verified + checks + 1, search.failed)
                assert after <= limit
            search.tell(world.event(action, seen=search.arrived))
        if action.reason is Reason.OUT_OF_BUDGET or action.why:
            bill = search.bill
            one_more = costs.of(bill.generated, bill.verified + 1, search.failed)
            assert one_more > limit or not search.pool.waiting

    @_property(worlds(), price_lists(), limits())
    def test_it_is_solved_exactly_when_the_answer_passed(
        self, world: World, costs: Costs, limits: Limits
    ) -> None:
        search = run(self.policy, costs, world, limits)
        outcome = _outcome(search)
        passed = {id for id in verified(search) if world.verdicts[id] is Verdict.PASSED}
        assert outcome.solved == (outcome.answer is not None) == bool(passed)
        if outcome.answer is not None:
            assert outcome.answer in passed
            assert search.pool.verdicts[outcome.answer] is Verdict.PASSED

    @_property(worlds(broken=False), price_lists(), limits(), st.booleans())
    def test_replay_agrees(
        self, world: World, costs: Costs, limits: Limits, with_keys: bool
    ) -> None:
        """This also shows that keys are only compared: a log has other names for them."""
        if not with_keys:
            world = dataclasses.replace(world, keys=())
        logged = world.logged()
        of_problem = dataclasses.replace(limits, pace=limits.pace.of(logged.id))
        here = run(self.policy, costs, world, of_problem)
        there = replayed(self.policy, logged, costs, limits, keys=with_keys)
        assert there.outcome == here.outcome
        assert _actions(there) == _actions(here)

    @_property(worlds(), price_lists(), limits(), st.integers(0, 40))
    def test_a_crash_anywhere_changes_nothing(
        self, world: World, costs: Costs, limits: Limits, cut: int
    ) -> None:
        whole = run(self.policy, costs, world, limits)
        resumed = Search(self.policy, costs, limits)
        for turn in whole.trace[:cut]:
            assert resumed.ask() == turn.action
            resumed.tell(turn.event)
        drive(resumed, world)
        assert resumed.outcome == whole.outcome
        assert resumed.trace == whole.trace

    @_property(worlds(), price_lists(), widths(), st.sampled_from([0, 0.5, 7, 11, 30, 77.7, 150]))
    def test_it_spends_no_more_than_it_is_worth_and_solves_what_costs_no_more(
        self, world: World, costs: Costs, width: int | None, value: float
    ) -> None:
        free = run(self.policy, costs, world, Limits(width=width, pace=_APART))
        bounded = run(self.policy, costs, world, Limits(width=width, value=value, pace=_APART))
        assert bounded.bill.total <= value
        # A step that the value shortens may miss the end of the generator. Until their verdicts are
        # known, verifications in flight together count as if all of them passed.
        needed = free.bill.total if width == 1 else _reserved(free)
        if _outcome(free).solved and needed <= value and not free.pool.exhausted:
            assert bounded.outcome == free.outcome
        # The converse is not promised: if the value lets `fixed` generate fewer candidates, it
        # verifies others, and may pass only then.

    @_property(worlds(), price_lists(), limits(), st.randoms())
    def test_what_is_really_paid_is_billed_within_the_budget_and_decides_alike(
        self, world: World, costs: Costs, limits: Limits, random: Random
    ) -> None:
        """If no candidate and no verification costs more than `most` says."""
        most = Costs(3 * costs.candidate, 3 * costs.verify)
        whole = Search(self.policy, costs, dataclasses.replace(limits, most=most))
        paid = 0.0
        while not isinstance(action := whole.ask(), Stop):
            event = world.event(action, seen=whole.arrived)
            what: What = "generate" if isinstance(event, Generated) else "verify"
            number = len(event.verdicts if isinstance(event, Verified) else event.scores)
            share = number * most.price(what) * random.choice((0.0, 0.01, 0.3, 1.0))
            event = dataclasses.replace(event, paid=share)
            if isinstance(event, Verified) and event.meanwhile is not None:
                ahead = len(event.meanwhile.scores) * most.candidate * random.random()
                paid += ahead
                meanwhile = dataclasses.replace(event.meanwhile, paid=ahead)
                event = dataclasses.replace(event, meanwhile=meanwhile)
            whole.tell(event)
            paid += share
        assert whole.bill.total == pytest.approx(paid)
        assert whole.bill.total <= limits.budget * (1 + 1e-12)
        again = Search(self.policy, costs, dataclasses.replace(limits, most=most))
        for turn in whole.trace:
            assert again.ask() == turn.action
            again.tell(turn.event)
        assert again.ask() == action
        assert again.outcome == whole.outcome

    @_property(worlds(), price_lists(), limits(), st.data())
    def test_only_the_order_of_scores_matters(
        self, world: World, costs: Costs, limits: Limits, data: st.DataObject
    ) -> None:
        if not getattr(self.policy, "rank_only", False):
            pytest.skip("the policy uses the values of scores")
        levels = sorted(set(world.scores))
        numbers = st.floats(allow_nan=False)
        new = sorted(data.draw(st.sets(numbers, min_size=len(levels), max_size=len(levels))))
        moved = dict(zip(levels, new, strict=True))
        other = dataclasses.replace(world, scores=tuple(moved[score] for score in world.scores))
        before = run(self.policy, costs, world, limits)
        after = run(self.policy, costs, other, limits)
        assert after.outcome == before.outcome
        assert _actions(after) == _actions(before)

    @_property(worlds(broken=False) | worlds(keys=False), price_lists(), budgets())
    def test_one_at_a_time_never_costs_more_and_finds_the_same(
        self, world: World, costs: Costs, budget: float
    ) -> None:
        """If no key has a broken verdict.

        Otherwise the next candidate of that key is verified after the others in flight, but one at
        a time it is verified before them. The order may differ, and so may the answer.
        """
        batch = run(self.policy, costs, world, Limits(width=None, budget=budget))
        single = run(self.policy, costs, world, Limits(budget=budget))
        assert _outcome(single).answer == _outcome(batch).answer
        assert single.bill.generated == batch.bill.generated
        assert single.bill.verified <= batch.bill.verified

    @_property(worlds(broken=False), price_lists(), st.sampled_from([2, 3, 5, 16]), paces())
    def test_looking_ahead_follows_the_course_one_at_a_time(
        self, world: World, costs: Costs, width: int, pace: Pace
    ) -> None:
        """Up to the first pass; beyond it, only to the end of its block."""
        single = run(self.policy, costs, world)
        ahead = run(self.policy, costs, world, Limits(width=width, pace=pace))
        assert _outcome(ahead).answer == _outcome(single).answer
        assert _outcome(ahead).reason == _outcome(single).reason
        course = verified(single)
        asked = verified(ahead)
        assert asked[: len(course)] == course
        blocks = [turn.action for turn in ahead.trace if isinstance(turn.action, Verify)]
        assert all(len(block.ids) <= width for block in blocks)
        last = len(blocks[-1].ids) if blocks else 1
        assert len(asked) - len(course) <= (last - 1 if _outcome(ahead).solved else 0)

    @_property(worlds(), worlds(keys=False), price_lists(), limits())
    def test_what_was_not_generated_does_not_matter(
        self, world: World, more: World, costs: Costs, limits: Limits
    ) -> None:
        """If the end of the world is not reached: a policy may react to it."""
        before = run(self.policy, costs, world, limits)
        looks_ahead = limits.looks_ahead
        if not before.pool.exhausted and not (looks_ahead and before.arrived == len(world)):
            after = run(self.policy, costs, world.first(before.arrived) + more, limits)
            assert after.outcome == before.outcome
            assert after.trace == before.trace

    @_property(worlds(), price_lists(), limits())
    def test_a_refuted_key_is_never_verified_and_one_in_flight_is_enough(
        self, world: World, costs: Costs, limits: Limits
    ) -> None:
        search = run(self.policy, costs, world, limits)
        refuted: set[str] = set()
        for turn in search.trace:
            if isinstance(turn.action, Verify) and world.keys:
                keys = [world.keys[id] for id in turn.action.ids]
                named = [key for key in keys if key is not None]
                assert len(set(named)) == len(named)
                assert not refuted & set(named)
                refuted |= {
                    key
                    for id, key in zip(turn.action.ids, keys, strict=True)
                    if key is not None and world.verdicts[id] is Verdict.FAILED
                }

    def test_its_specification_reads_back(self) -> None:
        if type(self.policy) not in POLICIES.values():
            pytest.skip("only policies in grv.policies.POLICIES have a specification")
        assert parse_policy(spec(self.policy)) == self.policy


def _outcome(search: Search) -> Outcome:
    assert search.outcome is not None
    return search.outcome


def _reserved(search: Search) -> float:
    """The budget that just covers a search: what a verification may cost, until it has failed."""
    costs = search.costs
    if not costs.has_failure:
        return search.bill.total
    most = 0.0
    failed = asked = made = 0
    for turn in search.trace:
        if isinstance(turn.event, Verified):
            asked += len(turn.event.verdicts)
            most = max(most, costs.of(made, asked, failed))
            failed += list(turn.event.verdicts.values()).count(Verdict.FAILED)
        made += sum(len(batch.scores) for batch in arrivals(turn.event))
    return most


def _actions(search: Search) -> list[Task]:
    return [turn.action for turn in search.trace]
