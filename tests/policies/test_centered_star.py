"""Batches certified by a class. Star numbers and hitting sets are worked out by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import grv
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.policies import Adaptive, CenteredStar, VerifyAll
from grv.policies.spec import spec
from grv.testing import World, all_wrong, dialogue, empty, labelled, run, verified
from grv.testing.contracts import PolicyContract
from support.examples import examples

ONE_TEN = Costs(generate=1, verify=10)


class TestCenteredStar(PolicyContract, max_examples=examples(60)):
    policy = CenteredStar("singletons:3")


class TestAChain(PolicyContract, max_examples=examples(15)):
    policy = CenteredStar("thresholds:2", points=(0.0, 1.0))


class TestThePapersOwn(PolicyContract, max_examples=examples(15)):
    policy = CenteredStar("011 110 100", remember=False)


class TestAnUnknownClass(PolicyContract, max_examples=examples(10)):
    policy = CenteredStar()


def test_of_a_threshold_the_best_of_a_batch_tells() -> None:
    # s_0 = 1, so batches of ten; whatever threshold holds, the highest score passes if any does.
    world = World.of(" ".join(f"{score}-" for score in [3, 1, 4, 1, 5, 2, 6, 5, 3, 5] * 3))

    search = run(
        CenteredStar("thresholds:8"), ONE_TEN, world + World.of("7+ " * 10), Limits(width=None)
    )

    assert dialogue(
        CenteredStar("thresholds:8"), ONE_TEN, world + World.of("7+ " * 10), Limits(width=None)
    ) == [
        "generate 10",
        "verify 1",
        "generate 10",
        "generate 10",  # what is at 6 or below is known to fail
        "generate 10",
        "verify 1",
        "solved by 30",
    ]
    assert verified(search) == [6, 30]


def test_the_papers_algorithm_asks_about_every_batch() -> None:
    world = World.of(" ".join(f"{score}-" for score in [3, 1, 4, 1, 5, 2, 6, 5, 3, 5] * 3))

    assert dialogue(
        CenteredStar("thresholds:8", remember=False), ONE_TEN, world, Limits(width=None)
    ) == [
        *("generate 10", "verify 1") * 3,
        "generate 10",
        "finished",
    ]


def test_a_batch_is_the_star_number_times_the_ratio_rounded_up() -> None:
    # {0}, {1}, {2}: s_0 = 3.
    asked = dialogue(
        CenteredStar("100 010 001"), Costs(generate=2, verify=7), all_wrong(40), Limits(width=None)
    )

    assert asked[0] == "generate 11"  # 3 * 3.5 = 10.5
    # In binary, 0.3 / 0.1 is less than 3; the ratio is 3 all the same.
    assert (
        dialogue(CenteredStar("100 010 001"), Costs(0.1, 0.3), all_wrong(40), Limits(width=None))[0]
        == "generate 9"
    )


def test_a_hitting_set_is_the_smallest_one() -> None:
    # Points 0 and 3, or 1 and 2, hit the first four concepts. Of the last one nothing is there.
    policy = CenteredStar("11000 10100 01010 00110 00001")

    search = run(policy, Costs(1, 100), World.of("0- 1- 2- 3- 0- 1- 2- 3-"), Limits(width=None))

    assert {search.pool.scores[id] for id in verified(search)} in ({0.0, 3.0}, {1.0, 2.0})


def test_where_the_star_number_is_above_the_ratio_everything_is_verified() -> None:
    world = World.of("0- 1- 2- 1- 0+")

    for concepts in ("singletons:11", "singletons:inf", ""):
        policy = CenteredStar(concepts)
        assert dialogue(policy, ONE_TEN, world, Limits(width=None)) == dialogue(
            VerifyAll(), ONE_TEN, world, Limits(width=None)
        )
    assert (
        dialogue(CenteredStar("singletons:10"), ONE_TEN, world, Limits(width=None))[0]
        == "generate 100"
    )


def test_a_broken_verdict_proves_nothing_and_another_of_the_point_is_asked() -> None:
    search = run(CenteredStar("110 001"), Costs(1, 4), World.of("0? 0? 0- 0-"), Limits(width=None))

    assert verified(search) == [0, 1, 2]


def test_a_class_that_is_refuted_is_given_up_and_everything_is_verified() -> None:
    search = run(CenteredStar("10"), Costs(1, 2), World.of("0- 1- 1- 1+"), Limits(width=None))

    assert verified(search) == [0, 1, 2, 3]
    assert [turn.action.why for turn in search.trace][
        2
    ] == "no concept of the class fits the verdicts"
    assert search.outcome is not None
    assert search.outcome.solved


def test_a_score_between_two_points_counts_as_the_lower_and_nothing_passes_below_them() -> None:
    policy = CenteredStar("100 010 001", points=(1.0, 2.0, 3.0))

    search = run(policy, Costs(1, 3), World.of("0- 1.5- 0- 2.5-"), Limits(width=None))

    assert set(verified(search)) == {1, 3}


def test_an_empty_world_has_nothing_to_verify() -> None:
    assert dialogue(CenteredStar("10"), ONE_TEN, empty(), Limits(width=None)) == [
        "generate 10",
        "exhausted",
    ]


def test_it_says_why() -> None:
    search = run(
        CenteredStar("singletons:2"), Costs(1, 2), World.of("0- 0- 0- 1+"), Limits(width=None)
    )

    assert [turn.action.why for turn in search.trace] == [
        "a batch, sized for the star number 2",
        "if these fail, all 4 of the batch fail",
    ]


@pytest.mark.slow
def test_where_the_class_is_right_it_is_cheaper_than_those_that_trust_the_score() -> None:
    # One hidden interval of four low levels out of forty, far from the top of the scores.
    chance = random.Random(1)
    costs = Costs(generate=1, verify=100)

    def label(_: int) -> tuple[float, bool]:
        level = chance.randrange(40)
        return level, 4 <= level < 8

    worlds = [labelled(4000, label) for _ in range(8)]
    spent = {
        policy: sum(run(policy, costs, world).bill.total for world in worlds)
        for policy in (CenteredStar("intervals:40"), Adaptive())
    }
    assert spent[CenteredStar("intervals:40")] < 0.6 * spent[Adaptive()]


@pytest.mark.parametrize(
    ("concepts", "points", "message"),
    [
        ("000", (), r"nothing passes under any concept \(s_0 = 0\)"),
        ("01 011", (), "strings of 0 and 1 of equal length"),
        ("02 01", (), "strings of 0 and 1 of equal length"),
        ("circles:4", (), "unknown family 'circles'"),
        ("intervals", (), "concepts must be a family, such as 'intervals:16'"),
        ("intervals:0", (), "there are no points"),
        ("subsets:40", (), "are too many"),
        ("01 10", (1.0,), "the concepts have 2 points, but 1 points are given"),
        ("01 10", (1.0, 1.0), "must be increasing numbers"),
        ("01 10", (1.0, math.nan), "must be increasing numbers"),
    ],
)
def test_an_invalid_class_is_refused(
    concepts: str, points: tuple[float, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        CenteredStar(concepts, points)


def test_it_runs_live_as_in_replay_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """Answers are even or odd, large or small; the score is the kind, and the class knows them."""
    answers = ["12", "7", "90", "3", "8", "4", "61", "5", "6", "2", "33", "88"] * 3
    world = World.of(" ".join(f"{kind(text)}{'+' if kind(text) == 3 else '-'}" for text in answers))
    policy, costs = CenteredStar("0001 0010 1100"), Costs(generate=1, verify=4)
    offline = run(policy, costs, world)
    assert offline.outcome is not None
    assert offline.outcome.solved
    for budget in (14.0, 1000.0):
        left = iter(answers)
        solution = grv.solve_now(
            "find",
            generator=partial(_next, left),
            scorer=lambda problem, text: kind(text),
            verifier=lambda problem, text: kind(text) == 3,
            policy=spec(policy),
            costs=costs,
            budget=budget,
            width=1,
            ledger=tmp_path / "ledger.db",
        )
    assert solution.bill == offline.outcome.bill


def _next(left: Iterator[str], problem: grv.Problem) -> str:
    return next(left)


def kind(text: str) -> float:
    """0 and 1 are even, small and large; 2 and 3 odd."""
    return 2.0 * (int(text) % 2) + (int(text) > 50)
