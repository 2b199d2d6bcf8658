"""A rule that considers each candidate once."""

from __future__ import annotations

import math

import pytest

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.policies import Threshold
from grv.testing import World, dialogue, empty, run, verified
from grv.testing.contracts import PolicyContract


class TestThreshold(PolicyContract):
    policy = Threshold(1)


def test_it_verifies_what_scores_enough_as_it_arrives() -> None:
    assert dialogue(Threshold(2), Costs(), World.of("1- 2- 0+ 5+ 9+"), Limits(width=None)) == [
        "generate 1",  # scores 1
        "generate 1",
        "verify 1",  # scores 2, which is enough
        "generate 1",  # scores 0; that it would have passed is not known
        "generate 1",
        "verify 1",  # scores 5
        "solved by 3",
    ]


def test_what_it_passed_over_it_never_comes_back_to() -> None:
    assert dialogue(Threshold(2), Costs(), World.of("1+ 3-"), Limits(width=None)) == [
        "generate 1",
        "generate 1",
        "verify 1",
        "generate 1",  # there is none
        "finished",
    ]


def test_it_passes_over_a_key_that_was_refuted() -> None:
    assert verified(
        run(Threshold(0), Costs(), World.of("5-a 7-a 1-b 9-a"), Limits(width=None))
    ) == [0, 2]


def test_without_a_lower_end_it_verifies_everything() -> None:
    assert verified(
        run(Threshold(-math.inf), Costs(), World.of("-inf- 3- -9-"), Limits(width=None))
    ) == [0, 1, 2]


def test_an_empty_world_has_nothing_to_verify() -> None:
    assert dialogue(Threshold(0), Costs(), empty(), Limits(width=None)) == [
        "generate 1",
        "exhausted",
    ]


def test_it_says_why() -> None:
    search = run(Threshold(1.5), Costs(), World.of("2-"), Limits(width=None))

    assert [turn.action.why for turn in search.trace] == [
        "the next candidate",
        "score 2 is at least 1.5",
        "the next candidate",
    ]


@pytest.mark.parametrize("wrong", [math.nan, "high", None])
def test_the_threshold_is_a_number(wrong: float) -> None:
    with pytest.raises(UsageError, match=f"threshold: t must be a number, not {wrong!r}"):
        Threshold(wrong)
