"""The default: Alternate's rounds, with variety where the score repeats itself."""

from __future__ import annotations

import dataclasses
import sys
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from grv.comparing.compare import compare
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Search
from grv.core.values import Costs, Generate, Reason, Stop, Turn, Verify
from grv.logs.log import Log
from grv.policies import Alternate, Varied, VerifyAll
from grv.testing import World, dialogue, labelled, run, tied, verified
from grv.testing.contracts import PolicyContract
from grv.testing.strategies import price_lists, widths, worlds
from grv.testing.worlds import POPULATIONS

if TYPE_CHECKING:
    from _typeshed import TraceFunction

THREE = Costs(generate=1, verify=3)  # rounds of 1 + 1, then of 1 + 3


def verified_one(turn: Turn, id: int) -> bool:
    return isinstance(turn.action, Verify) and turn.action.ids == (id,)


class TestVaried(PolicyContract):
    policy = Varied()


@given(worlds(broken=False), price_lists(), widths())
def test_where_no_score_is_there_twice_it_is_alternate_to_the_last_draw(
    world: World, costs: Costs, width: int | None
) -> None:
    apart = World(tuple(range(len(world))), world.verdicts)  # all different, no keys

    ours, theirs = (
        run(policy, costs, apart, Limits(width=width, pace=Pace(overlap=False)))
        for policy in (Varied(), Alternate())
    )

    drawn = max((i for i, t in enumerate(ours.trace) if isinstance(t.action, Generate)), default=0)
    assert ours.trace[:drawn] == theirs.trace[:drawn]


@pytest.mark.parametrize("verify", [0.1, 1, 1.49])
def test_where_generating_is_dear_it_verifies_everything(verify: float) -> None:
    costs, world = Costs(generate=1, verify=verify), tied(40, pass_rate=0.02, seed=1)

    assert dialogue(Varied(), costs, world, Limits(width=None)) == dialogue(
        VerifyAll(), costs, world, Limits(width=None)
    )


def test_no_score_gets_three_best_slots_in_a_row_but_another_one_the_third() -> None:
    world = World.of("0- 9-  0- 9- 9- 5-  0- 9- 6- 9-  0- 9- 9- 9-  0- 9- 9- 9-  0- 1- 1- 1-")

    search = run(Varied(), THREE, world, Limits(width=None))

    best = verified(search)[1::2]
    assert [world.scores[id] for id in best[:6]] == [9, 9, 6, 9, 9, 5]
    reasons = [turn.action.why for turn in search.trace if verified_one(turn, best[2])]
    assert reasons == ["another score, after 2 in a row with the same score"]


def test_a_new_best_score_is_verified_at_once() -> None:
    world = World.of("0- 9-  0- 9- 9- 9-  0- 9- 10- 9-  0- 9- 9- 9-  0- 9- 9- 9-  0- 1- 1- 1-")

    best = verified(run(Varied(), THREE, world, Limits(width=None)))[1::2]

    assert [world.scores[id] for id in best[:5]] == [9, 9, 10, 9, 9]


def test_the_slot_of_a_refuted_draw_goes_to_the_key_with_the_most_candidates() -> None:
    world = World.of("1-a 5-b  2-e 4-c 3-d 3-d  1-b 4-f 1- 1-")

    search = run(Varied(), THREE, world, Limits(width=None))

    # a, e blindly, b, c as the best; then b comes again, and of what is there d came twice.
    assert verified(search)[:6] == [0, 1, 2, 3, 4, 7]
    assert [turn.action.why for turn in search.trace if verified_one(turn, 4)] == [
        "instead of the new one, whose key has failed"
    ]


def test_with_keys_equal_scores_are_nothing_special() -> None:
    ties = "9-{} 9-{} 9-{}"
    rounds = [f"0-x{i} " + ties.format(*(f"y{i}{j}" for j in range(3))) for i in range(4)]
    world = World.of("0-x 9-y  " + "  ".join(rounds) + "  0- 0- 0- 0-")

    best = verified(run(Varied(), THREE, world, Limits(width=None)))[1::2]

    assert [world.scores[id] for id in best[:5]] == [9, 9, 9, 9, 9]


def test_the_rest_is_verified_by_worth_and_every_third_time_by_age() -> None:
    """Of ten candidates three have 90, so the worth of 50 is a quarter of theirs, and so on."""
    world = World.of("0- 90-  1- 90- 90- 50-  0- 20- 30- 40-")  # then there are no more

    search = run(Varied(), THREE, world, Limits(width=None))

    assert verified(search)[:6] == [0, 1, 2, 3, 6, 5]
    left = [world.scores[id] for id in verified(search)[6:]]
    assert left == [90, 40, 30, 20]  # 90 failed twice: a quarter, and 40 has a fifth
    assert search.outcome is not None
    assert search.outcome.reason is Reason.EXHAUSTED


def test_marks_on_a_scale_are_tried_from_the_top_and_the_oldest_in_time() -> None:
    """Verify-all pays 4 for candidate 1 and 4 for candidate 3: 20 is 2.5 times that."""
    world = World.of("3- 5-  1- 2- 5- 5-  3- 5- 4- 5-  1- 5- 4- 5-  3- 4- 4- 5-")

    search = run(Varied(), THREE, world, Limits(width=None))

    assert verified(search)[1:10:2] == [1, 4, 5, 7, 9]  # no slot is given away: all have a 5
    rest = [world.scores[id] for id in verified(search)[10:]]
    assert rest == [5, 5, 5, 4, 4, 2, 4, 4]  # after five of the rest, the oldest is due


def test_inside_a_guard_the_rest_is_tried_from_the_top() -> None:
    """The guard has the oldest verified in time, by its own factor."""
    world = World.of("3- 5-  1- 2- 5- 5-  3- 5- 4- 5-  1- 5- 4- 5-  3- 4- 4- 5-")

    search = run(Varied(factor=20), THREE, world, Limits(width=None))

    rest = [world.scores[id] for id in verified(search)[10:]]
    assert rest == [5, 5, 5, 4, 4, 4, 4, 2]


def test_rounded_scores_cost_it_little_more_than_they_cost_alternate() -> None:
    """Two verifications of three, at the end, go where all of them go; nothing more is lost."""
    drawn = [POPULATIONS["coding"].problem(f"{i}", 100, (11, i)) for i in range(83)]
    rounded = [dataclasses.replace(each, scores=each.scores.round(0)) for each in drawn]
    prices = Costs(generate=1, verify=30)

    found = compare(["varied", "alternate"], Log(tuple(rounded), path="rounded"), prices, orders=2)

    ours, theirs = (trials.costs(prices).mean() for trials in found.trials)
    assert ours < 1.15 * theirs


def test_a_broken_verdict_is_no_failure() -> None:
    search = run(Varied(), THREE, World.of("0- 9?  0- 9? 9? 9?  0- 9? 8- 9?"), Limits(width=None))

    assert search.outcome is not None
    assert search.outcome.reason is Reason.EXHAUSTED
    assert len(search.pool.verdicts) == 10


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True])
def test_a_decision_at_ten_thousand_candidates_does_not_visit_them_all(keyed: bool) -> None:
    """Time is not asserted on; the steps of the interpreter are."""
    search = Search(Varied(), Costs(generate=1, verify=10))
    world = labelled(10_200, lambda i: (float(i * 7919 % 1000), False))
    keys = tuple(f"k{i % 5000}" for i in range(len(world))) if keyed else ()
    world = dataclasses.replace(world, keys=keys)
    lines = 0

    def count(frame: FrameType, event: str, arg: object) -> TraceFunction:
        nonlocal lines
        lines += event == "line"
        return count

    decisions: list[int] = []
    while len(search.pool) < 10_100 and not isinstance(action := search.ask(), Stop):
        search.tell(world.event(action, seen=len(search.pool)))
        if len(search.pool) > 9_900:
            lines, before = 0, sys.gettrace()
            sys.settrace(count)
            try:
                search.ask()
            finally:
                sys.settrace(before)
            decisions.append(lines)

    assert sum(decisions) / len(decisions) < 300
    assert max(decisions) < 5000
