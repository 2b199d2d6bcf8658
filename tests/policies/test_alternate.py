"""The rule for a score of unknown quality: one verified blindly, one chosen, in turns."""

from __future__ import annotations

import itertools

import pytest

from grv.core.limits import Limits
from grv.core.values import Bill, Costs
from grv.policies import Alternate, VerifyAll
from grv.testing import World, all_wrong, dialogue, run, tied, verified
from grv.testing.contracts import PolicyContract
from grv.theory.slots import BLIND, Slot


class TestAlternate(PolicyContract):
    policy = Alternate()


def test_its_rounds_at_a_ratio_of_ten() -> None:
    assert dialogue(
        Alternate(), Costs(generate=1, verify=10), all_wrong(18), Limits(width=None)
    ) == [
        "generate 1",
        "verify 1",
        "generate 3",
        "verify 1",  # an early look: a quarter of 10
        "generate 1",
        "verify 1",
        "generate 10",
        "verify 1",
        "generate 1",
        "verify 1",
        "generate 10",
        "verify 1",  # two are left
        *("verify 1",) * 12,  # there is nothing more to draw: the best, the next best, ...
        "exhausted",
    ]


@pytest.mark.parametrize(
    ("costs", "first", "later"),
    [
        (Costs(1, 0.3), 1, 1),
        (Costs(1, 1.49), 1, 1),
        (Costs(1, 1.5), 1, 2),  # halves are rounded up
        (Costs(1, 2.5), 1, 3),
        (Costs(0.2, 0.5), 1, 3),
        (Costs(0.1, 0.35), 1, 4),  # to a machine the ratio is a little less than 3.5
        (Costs(1, 4.49), 1, 4),
        (Costs(1, 4.5), 2, 5),
        (Costs(0.5, 10, score=0.5), 3, 10),  # scoring is part of generating
        (Costs(1, 100), 25, 100),
    ],
)
def test_the_sizes_of_its_rounds(costs: Costs, first: int, later: int) -> None:
    slots = itertools.islice(Alternate().slots(costs), 6)

    assert list(slots) == [BLIND, Slot(first), BLIND, Slot(later), BLIND, Slot(later)]


def test_every_other_verification_is_of_the_newest_whatever_its_score() -> None:
    world = World.of("1- 3-  0- 5- 9- 4-  0- 7- 2- 8+ 9-")

    search = run(
        Alternate(), Costs(generate=1, verify=3), world, Limits(width=None)
    )  # 1 + 1, then 1 + 3 at a time

    assert verified(search) == [0, 1, 2, 4, 6, 9]
    assert search.bill == Bill(10, 6, 28.0)


def test_what_was_passed_over_stays_in_the_pool() -> None:
    search = run(
        Alternate(),
        Costs(generate=1, verify=2),
        World.of("1- 1- 0- 8- 9- 0- 1- 2- 0-"),
        Limits(width=None),
    )

    assert verified(search)[:6] == [0, 1, 2, 4, 5, 3]  # 8 waits for one round, then is the best


@pytest.mark.parametrize("verify", [0.1, 1, 1.49])
def test_where_generating_is_dear_it_verifies_everything(verify: float) -> None:
    costs, world = Costs(generate=1, verify=verify), tied(40, pass_rate=0.02, seed=1)

    assert dialogue(Alternate(), costs, world, Limits(width=None)) == dialogue(
        VerifyAll(), costs, world, Limits(width=None)
    )


def test_where_nothing_comes_any_more_an_old_candidate_is_not_taken_for_a_new_one() -> None:
    search = run(
        Alternate(), Costs(generate=1, verify=3), World.of("1- 1- 1- 9- 8- 0-"), Limits(width=None)
    )

    # The blind slot of the third round gets nothing: the best of those left is next, not the last.
    assert verified(search) == [0, 1, 2, 3, 4, 5]
    assert search.trace[-1].action.why == "the best of 1 open candidates"


def test_it_says_why() -> None:
    search = run(Alternate(), Costs(), all_wrong(4), Limits(width=None))

    assert [turn.action.why for turn in search.trace][:4] == [
        "one to verify whatever its score",
        "the new one, whatever its score",
        "3 more to choose from",
        "the best of 3 open candidates",
    ]
