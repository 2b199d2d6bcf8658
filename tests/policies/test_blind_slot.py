"""Blind slots with keys: when they go on, and the run that the proof compares with.

`docs/theory/keys.md` has the proof. The *comparison run* draws as the policy does, and of all keys
uses only those of blind draws, to skip what verify-all would not verify.
"""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.search import Search
from grv.core.values import REFUTED, Costs, Verdict, Verify
from grv.policies import Alternate, Hedged, Varied, VerifyAll
from grv.testing import World, dialogue, labelled, run, verified
from grv.testing.strategies import price_lists, worlds
from grv.theory.constants import alternate_against_verify_all
from grv.theory.decimals import exact_ratio
from grv.theory.slots import alternate_draws, most_blind_draws
from grv.theory.varied_bound import period

THREE = Costs(generate=1, verify=3)  # rounds of 1 + 1, then of 1 + 3
BROAD = price_lists().filter(lambda costs: costs.ratio < 1000).map(lambda costs: costs.planning)


def given_away(world: World, costs: Costs) -> list[bool]:
    """Which best slots `varied` gives away if nothing passes and nothing has a key."""
    failing = World(world.scores, (Verdict.FAILED,) * len(world))
    reasons = [
        turn.action.why
        for turn in run(Varied(), costs, failing).trace
        if isinstance(turn.action, Verify)
    ]
    return [why.startswith("another score") for why in reasons[1::2]]


def comparison_run(world: World, costs: Costs, *, variety: bool) -> float:
    """What the comparison run pays until it passes; of `varied` if there is variety."""
    rho = exact_ratio(costs)
    draws = alternate_draws(rho)
    limit = period(draws.later) - 1
    lost = given_away(world, costs) if variety else []
    keys = world.keys or (None,) * len(world)
    waiting, tried = set[int](), {REFUTED}
    seen, cost, keyed, rounds = 0, 0.0, False, 0
    while True:
        repeats = most_blind_draws(rho) if keyed or not variety or rounds <= limit else 1
        for _ in range(repeats):
            newest, seen, cost = seen, seen + 1, cost + costs.candidate
            key = keys[newest]
            keyed = keyed or key is not None
            if key not in tried:
                tried |= {key} - {None}  # type: ignore[arg-type]
                cost += costs.verify
                if world.verdicts[newest] is Verdict.PASSED:
                    return cost
                break
        size = draws.later if rounds else draws.first
        waiting.update(range(seen, seen + size))
        seen, cost = seen + size, cost + costs.candidate * size + costs.verify
        is_kept = keyed or not variety or not lost[rounds]
        rounds += 1
        if is_kept:
            best = min(waiting, key=lambda id: (-world.scores[id], id))
            waiting.remove(best)
            if world.verdicts[best] is Verdict.PASSED:
                return cost


def endless(world: World, costs: Costs) -> World:
    """The world, and enough candidates that pass after it."""
    return world + labelled(4 * math.ceil(costs.ratio) + 9, lambda _: (0.0, True))


@given(worlds(broken=False), BROAD)
def test_alternate_never_costs_more_than_its_comparison_run(world: World, costs: Costs) -> None:
    world = endless(world, costs)
    theirs = comparison_run(world, costs, variety=False)
    assert run(Alternate(), costs, world).bill.total <= theirs * (1 + 1e-9)


@given(worlds(broken=False), BROAD)
def test_varied_never_costs_more_than_its_comparison_run(world: World, costs: Costs) -> None:
    world = endless(world, costs)
    theirs = comparison_run(world, costs, variety=True)
    assert run(Varied(), costs, world).bill.total <= theirs * (1 + 1e-9)


@given(worlds(broken=False), BROAD, st.sampled_from([Alternate(), Varied(), Hedged()]))
def test_rounds_are_paid_for_by_what_verify_all_pays_for_blind_draws(
    world: World, costs: Costs, policy: Alternate | Varied | Hedged
) -> None:
    """The bound, on every sequence, against verify-all on the candidates of the blind slots."""
    rho = costs.ratio
    world = endless(world, costs)
    search = run(policy, costs, world)
    blind, best, tried, seen = 0.0, 0, {REFUTED}, 0
    for turn in search.trace:
        why = turn.action.why
        if why == "one to verify whatever its score":
            key = search.pool.key(seen)  # type: ignore[arg-type]
            blind += 1 if key in tried else 1 + rho
            tried |= {key} - {None}  # type: ignore[arg-type]
        best += why.startswith("the best of") or why.startswith("another score")
        seen += len(getattr(turn.event, "scores", ()))
    each = 4 if isinstance(policy, Hedged) else 1
    assert best <= each * blind / (1 + rho) + each  # the last ones before a blind draw passes


def blind_first(world: World, search: Search) -> World:
    """The candidates of the blind slots, then all others; both in order of arrival."""
    blind, seen = list[int](), 0
    for turn in search.trace:
        made = len(getattr(turn.event, "scores", ()))
        if turn.action.why == "one to verify whatever its score":
            blind += range(seen, seen + made)
        seen += made
    order = [*blind, *(id for id in range(len(world)) if id not in set(blind))]
    scores = tuple(world.scores[id] for id in order)
    verdicts = tuple(world.verdicts[id] for id in order)
    return World(scores, verdicts, tuple(world.keys[id] for id in order) if world.keys else ())


RATIOS = [1.5, 1.6, 2.49, 2.5, 3, 7.3, 30]


@given(worlds(), st.sampled_from(RATIOS))
def test_the_bound_holds_on_every_sequence_that_ends_with_its_blind_draws_first(
    world: World, rho: float
) -> None:
    """The step of Theorem 10 before its mean: against verify-all in that order."""
    costs = Costs(1, rho)
    search = run(Varied(), costs, world)
    if not (search.pool.exhausted and search.answers):
        return
    theirs = run(VerifyAll(), costs, blind_first(world, search)).bill.total
    exception = alternate_draws(rho).later + rho if world.keys else 0.0
    bound = alternate_against_verify_all(rho) * theirs + exception
    assert search.bill.total <= bound * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [1.5, 3, 10, 30, 100])
def test_the_end_of_a_pool_reaches_its_bound_and_does_not_exceed_it(rho: float) -> None:
    """The score is upside down. The first candidates that could be the oldest ones pass."""
    costs, highest = Costs(1, rho), 0.0
    for right in range(2, 90):
        world = World(
            tuple(float(id) for id in range(90)),
            tuple(Verdict.PASSED if id == right else Verdict.FAILED for id in range(90)),
        )
        search = run(Varied(), costs, world)
        if search.pool.exhausted:
            theirs = run(VerifyAll(), costs, blind_first(world, search)).bill.total
            highest = max(highest, search.bill.total / theirs)
    bound = alternate_against_verify_all(rho)
    assert 0.85 * bound <= highest <= bound * (1 + 1e-9)


def test_a_blind_draw_that_verify_all_would_not_verify_is_followed_by_another() -> None:
    world = World.of("1-a 2-b  5-a 3-c 4-b 4-a 6-d  5-a 3+e 1- 1-")

    assert dialogue(Alternate(), THREE, world, Limits(width=None)) == [
        "generate 1",
        "verify 1",
        "generate 1",
        "verify 1",  # a and b
        "generate 1",  # a again
        "generate 1",
        "verify 1",  # c
        "generate 3",
        "verify 1",  # d
        "generate 1",  # a again
        "generate 1",
        "verify 1",
        "solved by 8",
    ]


def test_a_slot_ends_when_verify_all_has_paid_for_a_verification() -> None:
    """At a ratio of 3 that is after four candidates; the round goes on with its best slot."""
    world = World.of("1-a 2-b  " + "5-a " * 4 + "3-c 4-b 9+d  1- 1- 1- 1-")

    assert verified(run(Alternate(), THREE, world)) == [0, 1, 8]


@pytest.mark.parametrize("policy", [Alternate(), Varied()])
def test_only_keys_of_blind_draws_count(policy: Alternate | Varied) -> None:
    """b failed as the best, so its slot is spent; verify-all on the blind draws would verify it."""
    world = World.of("1-a 2-b  5-b 3-c 4-d 4-e  1+ 1+ 1+ 1+ 1+")
    search = run(policy, THREE, world)
    draws = [turn.action.why for turn in search.trace].count("one to verify whatever its score")
    assert draws == 3


def test_a_key_whose_verdict_was_broken_is_tried_again() -> None:
    assert verified(run(Alternate(), THREE, World.of("1?a 2-b 3+a 1- 1- 1-")))[:3] == [0, 1, 2]


def test_late_refuted_candidates_do_not_prolong_the_first_slot_they_come_in() -> None:
    """The slot before may have been given away, and the best candidate still waits."""
    rounds = "0- 9-  " + "0- 9- 9- 5-  " * 3
    world = World.of(rounds + f"0-{REFUTED} 9- 9- 9-  0-{REFUTED} 0- 9- 9- 9-  1+ 1+ 1+ 1+ 1+")
    search = run(Varied(), THREE, world)
    sizes = [len(getattr(turn.event, "scores", ())) for turn in search.trace]
    assert [size for size in sizes if size] == [1, 1, *[1, 3] * 4, 1, 1, 3, 1]


@pytest.mark.parametrize("rho", [0.1, 1, 1.49])
@given(worlds(broken=False))
def test_where_verifying_is_cheap_it_is_verify_all_with_keys(rho: float, world: World) -> None:
    costs = Costs(1, rho)
    ours, theirs = (run(policy, costs, world) for policy in (Alternate(), VerifyAll()))
    assert verified(ours) == verified(theirs)
    assert ours.bill == dataclasses.replace(theirs.bill)
