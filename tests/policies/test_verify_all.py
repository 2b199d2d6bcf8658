"""The rule that does not use scores."""

from __future__ import annotations

from grv.core.limits import Limits
from grv.core.values import Bill, Costs, Generate
from grv.policies import VerifyAll
from grv.testing import Scripted, World, all_wrong, dialogue, empty, run, verified
from grv.testing.contracts import PolicyContract


class TestVerifyAll(PolicyContract):
    policy = VerifyAll()


def test_it_verifies_each_as_it_arrives() -> None:
    assert dialogue(VerifyAll(), Costs(), World.of("9- 1- 5+ 7+"), Limits(width=None)) == [
        "generate 1",
        "verify 1",
        "generate 1",
        "verify 1",
        "generate 1",
        "verify 1",
        "solved by 2",
    ]


def test_it_goes_on_to_the_end() -> None:
    assert dialogue(VerifyAll(), Costs(), all_wrong(2), Limits(width=None)) == [
        "generate 1",
        "verify 1",
        "generate 1",
        "verify 1",
        "generate 1",  # there is none
        "exhausted",
    ]
    assert dialogue(VerifyAll(), Costs(), empty(), Limits(width=None)) == [
        "generate 1",
        "exhausted",
    ]


def test_it_pays_for_one_of_each_per_round() -> None:
    assert run(
        VerifyAll(), Costs(generate=2, verify=3), all_wrong(7), Limits(width=None)
    ).bill == Bill(7, 7, 35.0)


def test_it_passes_over_a_key_that_was_refuted() -> None:
    assert verified(
        run(VerifyAll(), Costs(), World.of("1-a 1-b 1-a 1?c 1-c 1-"), Limits(width=None))
    ) == [
        0,
        1,
        3,
        4,
        5,
    ]


def test_in_a_pool_that_another_has_exhausted_it_has_nothing_to_do() -> None:
    pool = run(Scripted((Generate(3),)), Costs(), all_wrong(2), Limits(width=None)).pool

    assert list(VerifyAll().plan(pool, Costs())) == []


def test_it_says_why() -> None:
    search = run(VerifyAll(), Costs(), World.of("1+"), Limits(width=None))

    assert [turn.action.why for turn in search.trace] == [
        "the next candidate",
        "every candidate is verified",
    ]
