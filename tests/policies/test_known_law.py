"""The optimum of a known law. Break-even chances are worked out by hand."""

from __future__ import annotations

import pytest

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.policies import KnownLaw
from grv.testing import World, dialogue, empty, run, verified
from grv.testing.contracts import PolicyContract
from support.examples import examples

COIN = KnownLaw(scores=(0.0, 1.0), passes=(0.1, 0.5))


class TestKnownLaw(PolicyContract):
    policy = COIN


class TestALawThatIsNotMonotone(PolicyContract, max_examples=examples(25)):
    policy = KnownLaw(scores=(0.0, 1.0, 2.0), passes=(0.2, 0.9, 0.1), masses=(2.0, 1.0, 3.0))


def test_when_a_verification_is_dear_only_the_likely_are_verified() -> None:
    # The upper half alone: (1 + 10 / 2) / .25 = 24. Both: (1 + 10) / .3 = 36.7.
    # So J* = 24, and 10 / 24 = .417 is the break-even chance.
    assert dialogue(
        COIN, Costs(generate=1, verify=10), World.of("0- 1- 0- 1+"), Limits(width=None)
    ) == [
        "generate 1",
        "generate 1",
        "verify 1",
        "generate 1",
        "generate 1",
        "verify 1",
        "solved by 3",
    ]


def test_when_a_candidate_is_dear_all_are_verified() -> None:
    # The upper half alone: (10 + 1 / 2) / .25 = 42. Both: (10 + 1) / .3 = 36.7, break-even .027.
    assert dialogue(
        COIN, Costs(generate=10, verify=1), World.of("0- 1- 0+"), Limits(width=None)
    ) == [
        "generate 1",
        "verify 1",
        "generate 1",
        "verify 1",
        "generate 1",
        "verify 1",
        "solved by 2",
    ]


def test_masses_weigh_the_atoms() -> None:
    # The upper atom alone: (1 + 10 / 100) / .005 = 220. Both: 11 / (.099 + .005) = 105.8, .095.
    rare = KnownLaw(scores=(0.0, 1.0), passes=(0.1, 0.5), masses=(99.0, 1.0))

    assert verified(
        run(rare, Costs(generate=1, verify=10), World.of("0- 1-"), Limits(width=None))
    ) == [0, 1]
    assert verified(
        run(COIN, Costs(generate=1, verify=10), World.of("0- 1-"), Limits(width=None))
    ) == [1]


def test_a_score_between_two_atoms_counts_as_the_lower_and_below_all_as_hopeless() -> None:
    costs = Costs(generate=10, verify=1)

    assert verified(run(COIN, costs, World.of("-1- 0.7- 5- -inf-"), Limits(width=None))) == [1, 2]


def test_an_empty_world_has_nothing_to_verify() -> None:
    assert dialogue(COIN, Costs(), empty(), Limits(width=None)) == ["generate 1", "exhausted"]


def test_it_passes_over_a_key_that_was_refuted() -> None:
    assert verified(run(COIN, Costs(), World.of("1-a 2-a 1-b"), Limits(width=None))) == [0, 2]


def test_it_says_why() -> None:
    search = run(COIN, Costs(generate=1, verify=10), World.of("1+"), Limits(width=None))

    assert [turn.action.why for turn in search.trace] == [
        "the next candidate",
        "chance of passing 0.5, at least the break-even 0.417",
    ]


@pytest.mark.parametrize(
    ("scores", "passes", "message"),
    [
        ((), (), "at least one"),
        ((0.0, 1.0), (0.5,), "as many scores as masses and passes"),
        ((1.0, 0.0), (0.1, 0.5), "must increase"),
        ((0.0, 1.0), (0.0, 0.0), "no candidate of this law ever passes"),
        ((0.0, 1.0), (0.1, 1.5), "between 0 and 1"),
    ],
)
def test_an_invalid_law_is_refused(
    scores: tuple[float, ...], passes: tuple[float, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        KnownLaw(scores, passes)
