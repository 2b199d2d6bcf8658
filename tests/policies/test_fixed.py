"""One pair of numbers for every problem."""

from __future__ import annotations

import re

import pytest

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Bill, Costs
from grv.policies import Fixed
from grv.testing import World, all_wrong, dialogue, run, verified
from grv.testing.contracts import PolicyContract
from support.examples import examples


class TestFixed(PolicyContract):
    policy = Fixed(6, 3)


class TestVerifyingAllThatWasGenerated(PolicyContract, max_examples=examples(25)):
    policy = Fixed(4, 4)


def test_it_gives_up_after_its_two_steps() -> None:
    assert dialogue(Fixed(4, 2), Costs(), all_wrong(9), Limits(width=None)) == [
        "generate 4",
        "verify 2",
        "finished",
    ]


def test_it_verifies_the_best_and_among_equals_the_oldest() -> None:
    search = run(
        Fixed(5, 3), Costs(generate=1, verify=10), World.of("1- 3- 2- 2+ 2-"), Limits(width=None)
    )

    assert verified(search) == [1, 2, 3]
    assert search.bill == Bill(5, 3, 35.0)


def test_it_makes_do_with_fewer_than_it_wanted() -> None:
    assert dialogue(Fixed(9, 5), Costs(), all_wrong(3), Limits(width=None)) == [
        "generate 9",
        "verify 3",
        "exhausted",
    ]


def test_it_says_what_it_takes() -> None:
    search = run(Fixed(9, 2), Costs(), all_wrong(3), Limits(width=None))

    assert [turn.action.why for turn in search.trace] == ["9 to choose from", "the best 2 of 3"]


@pytest.mark.parametrize(("m", "k"), [(3, 4), (0, 0), (3, 0), (-1, -1), (2.5, 1), (3, 1.0)])
def test_it_needs_at_least_one_of_each_and_no_more_checks_than_candidates(
    m: float, k: float
) -> None:
    message = re.escape(f"fixed: needs whole numbers 1 <= k <= m, not m={m}, k={k}")
    with pytest.raises(UsageError, match=message):
        Fixed(m, k)  # type: ignore[arg-type]
