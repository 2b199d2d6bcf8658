"""The predecessor of alternate: rounds, and after some of them a blind verification."""

from __future__ import annotations

import itertools
import math

import pytest

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.policies import Hedged
from grv.testing import World, all_wrong, dialogue, run, verified
from grv.testing.contracts import PolicyContract
from grv.theory.slots import BLIND, Slot
from support.examples import examples


class TestHedged(PolicyContract):
    policy = Hedged()


class TestHedgedWithOtherParameters(PolicyContract, max_examples=examples(25)):
    policy = Hedged(alpha=0.2, every=1, first=0)


def test_its_rounds_at_a_ratio_of_ten() -> None:
    assert dialogue(Hedged(), Costs(generate=1, verify=10), all_wrong(27), Limits(width=None)) == [
        "generate 1",
        "verify 1",
        "generate 6",
        "verify 1",  # one half of 11, halves up
        "generate 6",
        "verify 1",
        "generate 6",
        "verify 1",
        "generate 1",
        "verify 1",  # whatever its score, behind the fourth
        "generate 6",
        "verify 1",
        "generate 6",  # one is left
        *("verify 1",) * 21,
        "exhausted",
    ]


@pytest.mark.parametrize(
    ("policy", "costs", "slots"),
    [
        (Hedged(every=2, first=3), Costs(1, 5), [Slot(1), Slot(1), BLIND, Slot(1), Slot(3), BLIND]),
        (Hedged(1, 3, 0), Costs(1, 2), [Slot(3), Slot(3), Slot(3), BLIND, Slot(3), Slot(3)]),
        (Hedged(every=1), Costs(1, 4), [Slot(1), BLIND, Slot(3), BLIND, Slot(3), BLIND]),
        (Hedged(0.01), Costs(1, 4), [Slot(1)] * 4 + [BLIND, Slot(1)]),
        (Hedged(0.35, 9, 0), Costs(1, 9), [Slot(4)] * 6),  # 3.5, a little less to a machine
    ],
)
def test_its_path(policy: Hedged, costs: Costs, slots: list[Slot]) -> None:
    assert list(itertools.islice(policy.slots(costs), 6)) == slots


def test_the_blind_one_is_the_newest_and_the_others_are_the_best() -> None:
    world = World.of("9- 1- 2- 0- 0- 4- 5- 0-")

    assert verified(run(Hedged(every=2), Costs(1, 3), world, Limits(width=None))) == [
        0,
        2,
        3,
        5,
        6,
        1,
        4,
        7,
    ]


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, 1e9])
def test_alpha_is_positive(wrong: float) -> None:
    with pytest.raises(UsageError, match=f"hedged: alpha must be positive .*, not {wrong}"):
        Hedged(alpha=wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, "2", 1_000_001])
def test_the_numbers_of_rounds_are_whole(wrong: int) -> None:
    with pytest.raises(UsageError, match=f"hedged: every must be .* from 1 to 1000, not {wrong!r}"):
        Hedged(every=wrong)
    with pytest.raises(UsageError, match=f"hedged: first must be .* from 0 to 1000, not {wrong!r}"):
        Hedged(first=wrong)
    with pytest.raises(
        UsageError, match="hedged: every must be a whole number from 1 to 1000, not 0"
    ):
        Hedged(every=0)
