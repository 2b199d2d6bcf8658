"""Algorithm 1. The shells below are worked out by hand from its definition."""

from __future__ import annotations

import math

import pytest

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.policies import Adaptive
from grv.testing import all_wrong, dialogue, needle, run
from grv.testing.contracts import PolicyContract
from support.examples import examples


class TestAdaptive(PolicyContract):
    policy = Adaptive()


class TestAdaptiveWithOtherFactors(PolicyContract, max_examples=examples(25)):
    policy = Adaptive(draws=0.3, checks=1)


def test_when_a_verification_costs_ten() -> None:
    # 2^b candidates and 2^j verifications, j <= b, cost 2^b + 10 2^j.
    assert dialogue(
        Adaptive(), Costs(generate=1, verify=10), all_wrong(40), Limits(width=None)
    ) == [
        "generate 8",
        "verify 6",  # costs from 8 to 16: b <= 2 (4 + 10), j = 0
        "generate 32",
        "verify 12",  # costs from 16 to 32: b <= 4 (16 + 10), j <= 1 (8 + 20)
        "generate 64",
        "verify 22",  # from 32 to 64: b <= 5, j <= 2, so 24; only 22 are left
        "exhausted",
    ]


def test_when_both_cost_the_same() -> None:
    # 2^b + 2^j: 2, 3 in the first shell; 4, 5, 6 in the second; 8, 9, 10, 12 in the third.
    assert dialogue(Adaptive(), Costs(generate=1, verify=1), all_wrong(30), Limits(width=None)) == [
        "generate 4",
        "verify 4",  # b <= 1, j = 0: 4 and 6, but there are only 4
        "generate 8",
        "verify 8",  # b <= 2, j <= 1: 8 and 12
        "generate 16",
        "verify 16",  # b <= 3, j <= 2: 16 and 24
        "generate 32",
        "verify 2",  # the last two of thirty
        "exhausted",
    ]


def test_when_verifying_is_cheap_all_are_verified() -> None:
    # 10 2^b + 2^j in [2^s, 2^(s+1)): 11 in the first, 21 and 22 in the next, 41 to 44 after that.
    assert dialogue(
        Adaptive(), Costs(generate=10, verify=1), all_wrong(14), Limits(width=None)
    ) == [
        "generate 2",
        "verify 2",  # b = 0, j = 0: 2 and 6
        "generate 4",
        "verify 4",  # b = 1, j <= 1: 4 and 12
        "generate 8",
        "verify 8",  # b = 2, j <= 2: 8 and 24
        "generate 16",
        "exhausted",
    ]


def test_the_two_accountings_differ_in_the_last_shell_only() -> None:
    costs, world = Costs(generate=1, verify=10), needle(40, at=20)

    assert dialogue(Adaptive(), costs, world, Limits(width=None)) == [
        "generate 8",
        "verify 6",
        "generate 32",
        "verify 12",  # the needle is the best of the pool
        "solved by 20",
    ]
    assert run(Adaptive(), costs, world, Limits(width=None)).bill.total == 40 + 10 * (6 + 12)
    assert run(Adaptive(), costs, world).bill.total == 40 + 10 * (6 + 1)


def test_the_factors_scale_each_shell() -> None:
    # Shells (b, j) = (2, 0), (4, 1): one half of 4 and of 16, one and a quarter of 1 and of 2.
    assert dialogue(Adaptive(draws=0.5, checks=1.25), Costs(), all_wrong(10), Limits(width=None))[
        :4
    ] == [
        "generate 2",
        "verify 2",
        "generate 8",
        "verify 3",
    ]


def test_it_says_which_shell_it_is_in() -> None:
    search = run(
        Adaptive(), Costs(generate=0.5, verify=5), all_wrong(40), Limits(budget=30, width=None)
    )

    assert [turn.action.why for turn in search.trace] == [
        "cost shell 3, from 4 to 8",
        "cost shell 3, from 4 to 8",
    ]


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, 1e9])
def test_the_factors_are_positive(wrong: float) -> None:
    with pytest.raises(UsageError, match=f"adaptive: draws must be .*, not {wrong}"):
        Adaptive(draws=wrong)
    with pytest.raises(UsageError, match=f"adaptive: checks must be .*, not {wrong}"):
        Adaptive(checks=wrong)
