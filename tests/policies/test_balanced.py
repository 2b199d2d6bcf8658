"""The rule for a score one trusts: as much is spent on generating as on verifying."""

from __future__ import annotations

import itertools

import pytest

from grv.core.limits import Limits
from grv.core.values import Bill, Costs, Generate
from grv.policies import Balanced
from grv.testing import World, all_wrong, dialogue, run, verified
from grv.testing.contracts import PolicyContract
from grv.theory.slots import Slot


class TestBalanced(PolicyContract):
    policy = Balanced()


def test_its_rounds_at_a_ratio_of_ten() -> None:
    assert dialogue(
        Balanced(), Costs(generate=1, verify=10), all_wrong(28), Limits(width=None)
    ) == [
        "generate 3",
        "verify 1",  # an early look: a quarter of 11, rounded up
        "generate 11",
        "verify 1",  # floor(1 + 10)
        "generate 11",
        "verify 1",
        "generate 11",  # three are left
        *("verify 1",) * 25,  # there is nothing more to draw: the best, the next best, ...
        "exhausted",
    ]


@pytest.mark.parametrize(
    ("costs", "sizes"),
    [
        (Costs(1, 0.3), (1, 1, 2)),  # 1, 1.3 and 1.3, the sum rounded
        (Costs(1, 0.9), (1, 2, 2)),
        (Costs(1, 1), (1, 2, 2)),
        (Costs(1, 1.9), (1, 3, 3)),
        (Costs(1, 3.5), (2, 5, 4)),
        (Costs(1, 3), (1, 4, 4)),
        (Costs(1, 4), (2, 5, 5)),
        (Costs(1, 7), (2, 8, 8)),
        (Costs(0.1, 0.7), (2, 8, 8)),  # to a machine the ratio is a little less than 7
        (Costs(0.25, 3.5, score=0.25), (2, 8, 8)),  # scoring is part of generating
        (Costs(0.1, 0.9, score=0.2), (1, 4, 4)),  # and decimals are added as such
        (Costs(1, 100), (26, 101, 101)),
    ],
)
def test_the_first_round_is_a_quarter_of_the_others(
    costs: Costs, sizes: tuple[int, int, int]
) -> None:
    slots = itertools.islice(Balanced().slots(costs), 3)

    assert list(slots) == [Slot(size) for size in sizes]


def test_it_verifies_the_best_of_all_that_was_seen() -> None:
    world = World.of("5- 7-  1- 2- 6- 3-  0- 0- 0- 0-  9+ 0- 0- 0-")

    search = run(
        Balanced(), Costs(generate=1, verify=3), world, Limits(width=None)
    )  # one, then four at a time

    assert verified(search) == [0, 1, 4, 10]
    assert search.bill == Bill(13, 4, 25.0)


def test_of_equals_the_older_is_verified_first() -> None:
    search = run(
        Balanced(),
        Costs(generate=1, verify=3),
        World.of("1- 2- 2- 2- 2- 2- 2- 2- 2-"),
        Limits(width=None),
    )

    assert verified(search) == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_where_generating_is_dear_it_leaves_few_candidates_unverified() -> None:
    costs = Costs(generate=1, verify=0.1)

    search = run(Balanced(), costs, all_wrong(1100), Limits(width=None))

    turns = [turn.action for turn in search.trace]
    doubles = [i // 2 + 1 for i, turn in enumerate(turns) if turn == Generate(2)]
    assert doubles[:3] == [6, 16, 26]  # in the middle of each ten rounds


def test_a_refuted_key_takes_no_verification_and_changes_no_draw() -> None:
    world = World.of("5-a 5-a 4-a 4-a 4-a 9-b 9-b 9-b 9-b 1+ 9-b")

    assert dialogue(Balanced(), Costs(generate=1, verify=3), world, Limits(width=None)) == [
        "generate 1",
        "verify 1",
        "generate 4",  # all of them refuted already
        "generate 4",
        "verify 1",  # b
        "generate 4",
        "verify 1",
        "solved by 9",
    ]


def test_it_says_why() -> None:
    search = run(Balanced(), Costs(), all_wrong(8), Limits(width=None))

    assert [turn.action.why for turn in search.trace][:4] == [
        "3 more to choose from",
        "the best of 3 open candidates",
        "11 more to choose from",
        "the best of 7 open candidates",  # there were only five more
    ]
