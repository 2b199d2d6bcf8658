"""Every kernel equals the engine, ties included; what has no kernel goes through the engine."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy
from grv.core.values import REFUTED, Costs, Latency
from grv.logs.log import LoggedProblem
from grv.policies import (
    Adaptive,
    Alternate,
    Balanced,
    Fixed,
    Hedged,
    KnownLaw,
    Threshold,
    Varied,
    VerifyAll,
)
from grv.replay.hindsight import hindsight_trials, least_checks_of, many_hindsight
from grv.replay.kernels.dispatch import KERNELS, WIDE, engine_trials, stacked_trials, trials
from grv.replay.kernels.together import TOGETHER
from grv.replay.orders import batches
from grv.replay.trials import Trials, stacked
from grv.testing import World
from grv.testing.strategies import paces, worlds
from grv.testing.worlds import all_wrong, tied
from support.examples import examples

DEFAULT_PACE = Pace()
ORDERS = 4

# At least one entry for each kernel.
EXAMPLES: dict[type[Any], list[Policy]] = {
    Adaptive: [Adaptive(), Adaptive(draws=0.3, checks=0.4), Adaptive(draws=7, checks=1)],
    Alternate: [Alternate()],
    Balanced: [Balanced()],
    Fixed: [Fixed(1, 1), Fixed(4, 1), Fixed(4, 4), Fixed(9, 3), Fixed(100, 50)],
    Hedged: [Hedged(), Hedged(alpha=0.1, every=1, first=0), Hedged(every=2, first=3)],
    Threshold: [Threshold(-math.inf), Threshold(0.5), Threshold(1), Threshold(math.inf)],
    Varied: [Varied()],
    VerifyAll: [VerifyAll()],
}
POLICIES = [policy for policies in EXAMPLES.values() for policy in policies]

prices = st.builds(
    lambda generate, verify, share: Costs(generate, verify, failure=share and share * verify),
    st.sampled_from([1, 0.3, 2]),
    st.sampled_from([0.1, 0.7, 1, 3, 10, 30, 1000]),
    st.sampled_from([None, 0.1, 0.5]),
)
widths = st.sampled_from([1, 2, 5, None])


def assert_equal(found: Trials, expected: Trials, costs: Costs | None = None) -> None:
    assert found.solved.tolist() == expected.solved.tolist()
    assert found.generated.tolist() == expected.generated.tolist()
    assert found.verified.tolist() == expected.verified.tolist()
    assert found.rounds.tolist() == expected.rounds.tolist()
    if found.passed is not None and expected.passed is not None:
        assert found.passed.tolist() == expected.passed.tolist()
    if costs is not None:
        assert found.costs(costs).tolist() == expected.costs(costs).tolist()


def assert_kernels_equal_the_engine(
    problem: LoggedProblem,
    costs: Costs,
    width: int | None,
    *,
    seed: int = 0,
    keyed: bool = False,
    pace: Pace = DEFAULT_PACE,
) -> None:
    for batch in batches([problem], ORDERS, seed=seed, keyed=keyed):
        for policy in POLICIES:
            found = trials(policy, batch, costs, Limits(width=width, pace=pace))
            expected = engine_trials(policy, batch, costs, Limits(width=width, pace=pace))
            assert_equal(found, expected, costs)


@settings(max_examples=examples(100))
@given(
    world=worlds(candidates=14, broken=False).filter(len),
    costs=prices,
    width=widths,
    value=st.sampled_from([0, 0.5, 1.1, 3, 11, 12, 20, 33, 45, 90]),
    keyed=st.booleans(),
    pace=paces(),
)
def test_every_kernel_equals_the_engine_where_it_gives_up(
    world: World, costs: Costs, width: int | None, value: float, keyed: bool, pace: Pace
) -> None:
    for batch in batches([world.logged()], ORDERS, keyed=keyed):
        for policy in POLICIES:
            found = trials(policy, batch, costs, Limits(width=width, value=value, pace=pace))
            expected = engine_trials(
                policy, batch, costs, Limits(width=width, value=value, pace=pace)
            )
            assert_equal(found, expected, costs)


def test_with_known_costs_problems_above_the_value_are_skipped() -> None:
    counts = np.array([1, 2, 3], dtype=np.int32)
    rounds = np.array([[1, 1, 0, 0], [1, 2, 0, 1], [1, 3, 0, 0]], dtype=np.int32)
    known = Trials(np.array([True, True, True]), counts, counts, rounds)

    left = known.worth(22, Costs(1, 10))

    assert left.solved.tolist() == [True, True, False]
    assert left.costs(Costs(1, 10)).tolist() == [11, 22, 0]
    assert left.rounds.tolist() == [[1, 1, 0, 0], [1, 2, 0, 1], [0, 0, 0, 0]]
    assert known.generated.tolist() == [1, 2, 3]


def test_every_kernel_has_an_example() -> None:
    assert KERNELS.keys() == EXAMPLES.keys()
    assert KERNELS.keys() >= WIDE.keys()
    assert KERNELS.keys() >= TOGETHER.keys()
    assert all(type(policy) is kind for kind in EXAMPLES for policy in EXAMPLES[kind])


@settings(max_examples=examples(150))
@given(
    world=worlds(candidates=20, broken=False).filter(len),
    costs=prices,
    width=widths,
    keyed=st.booleans(),
    seed=st.integers(0, 3),
    pace=paces(),
)
def test_every_kernel_equals_the_engine_in_worlds_full_of_ties(
    world: World, costs: Costs, width: int | None, keyed: bool, seed: int, pace: Pace
) -> None:
    problem = world.logged()
    assert_kernels_equal_the_engine(problem, costs, width, seed=seed, keyed=keyed, pace=pace)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 5, None])
@pytest.mark.parametrize(
    "world",
    [
        World.of("1+"),
        World.of("1-"),
        World.of("-inf+"),
        World.of("-inf- -inf- -inf+ -inf-"),
        World.of("2+ 2+ 2+ 2+ 2+"),
        World.of("-inf- 3- -inf+ 0-"),
        all_wrong(13),
    ],
    ids=str,
)
def test_every_kernel_equals_the_engine_at_the_edges(world: World, width: int | None) -> None:
    for costs in (Costs(1, 0.1), Costs(1, 1), Costs(1, 10), Costs(1, 1000)):
        assert_kernels_equal_the_engine(world.logged(), costs, width)


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("width", [1, 16, None])
@pytest.mark.parametrize("verify", [0.1, 10, 1000])
def test_every_kernel_equals_the_engine_over_many_shells(
    verify: float, width: int | None, keyed: bool
) -> None:
    for world in (
        tied(400, levels=40, pass_rate=0.01, seed=1),
        tied(333, levels=3, pass_rate=0.002, seed=2),
    ):
        problem = with_classes(world).logged()
        assert_kernels_equal_the_engine(problem, Costs(1, verify), width, keyed=keyed)


@settings(max_examples=examples(60))
@given(
    many=st.lists(worlds(candidates=14, broken=False).filter(len), min_size=1, max_size=6),
    costs=prices,
    width=widths,
    keyed=st.booleans(),
    value=st.sampled_from([math.inf, 12]),
    cut=st.booleans(),
)
def test_problems_that_run_together_equal_the_engine(
    many: list[World], costs: Costs, width: int | None, keyed: bool, value: float, cut: bool
) -> None:
    size = min(map(len, many)) if cut else 14
    problems = [
        dataclasses.replace(first_of(world, size).logged(), id=f"p{number}")
        for number, world in enumerate(many)
    ]
    assert_together_equals_the_engine(problems, costs, Limits(width=width, value=value), keyed)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 16, None])
@pytest.mark.parametrize("verify", [0.1, 10, 1000])
def test_long_problems_that_run_together_equal_the_engine(verify: float, width: int | None) -> None:
    made = [tied(120, levels=10**6, pass_rate=rate, seed=7) for rate in (0.01, 0.03, 0.3)]
    made += [tied(120, levels=9, pass_rate=0.02, seed=8), all_wrong(120), all_wrong(20)]
    problems = [
        dataclasses.replace(world.logged(), id=f"p{number}") for number, world in enumerate(made)
    ]
    assert problems[0].alike_levels.max() == 119, "no two candidates are alike"
    assert_together_equals_the_engine(problems, Costs(1, verify), Limits(width=width), keyed=False)


def first_of(world: World, size: int) -> World:
    """The world with its first candidates only."""
    fields = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    cut = {name: each[:size] for name, each in fields.items() if isinstance(each, tuple)}
    return dataclasses.replace(world, **cut)


def assert_together_equals_the_engine(
    problems: list[LoggedProblem], costs: Costs, limits: Limits, keyed: bool
) -> None:
    made = list(batches(problems, ORDERS, keyed=keyed))
    for policy in POLICIES:
        found = stacked_trials(policy, made, costs, limits)
        engine = [engine_trials(policy, batch, costs, limits) for batch in made]
        assert_equal(found, stacked(engine), costs)
    least = [least_checks_of(batch) for batch in made]
    both = zip(made, least, strict=True)
    alone = stacked([hindsight_trials(*each, costs, limits) for each in both])
    assert_equal(many_hindsight(made, least, costs, limits), alone, costs)


def with_classes(world: World) -> World:
    """The same candidates, two thirds of them in classes; failures in about forty."""
    keys = tuple(
        None if i % 3 == 0 else f"{verdict.value}{i * i % 89}"
        for i, verdict in enumerate(world.verdicts)
    )
    return dataclasses.replace(world, keys=keys)


@pytest.mark.slow
def test_more_candidates_than_sixteen_bits_can_number_are_ranked_all_the_same() -> None:
    n = 2**15 + 10
    scores = np.arange(n, dtype=np.float64)
    passed = np.zeros(n, dtype=np.bool_)
    passed[5000] = True
    problem = LoggedProblem("long", scores, passed)

    (batch,) = batches([problem], 1)

    for policy in (Adaptive(checks=300), Fixed(n, n - 5000), Fixed(n, n - 5001)):
        found = trials(policy, batch, Costs(1, 10))
        assert_equal(found, engine_trials(policy, batch, Costs(1, 10), Limits(width=1)))


def test_a_policy_without_a_kernel_goes_through_the_engine() -> None:
    policy = KnownLaw(scores=(0, 1, 2), passes=(0, 0.1, 0.5))
    (batch,) = batches([tied(30, seed=3).logged()], ORDERS)

    found = trials(policy, batch, Costs(), Limits(width=None))

    assert type(policy) not in KERNELS
    assert_equal(found, engine_trials(policy, batch, Costs(), Limits(width=None)))


def test_with_keys_a_class_is_verified_once() -> None:
    problem = World.of("5-a 5-a 5-a 4- 3+b 3+b").logged()
    (batch,) = batches([problem], ORDERS, keyed=True)

    found = trials(Fixed(6, 6), batch, Costs(), Limits(width=None))

    assert found.verified.tolist() == [3] * ORDERS


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("width", [1, 16, None])
@pytest.mark.parametrize("verify", [1, 30])
def test_every_kernel_equals_the_engine_if_many_candidates_are_refuted(
    verify: float, width: int | None, keyed: bool
) -> None:
    for seed, share in ((1, 3), (2, 10)):
        problem = with_classes(tied(200, levels=40, pass_rate=0.02, seed=seed)).logged()
        refuted = ~problem.passed & (np.arange(200) % 10 < share)
        problem = dataclasses.replace(problem, refuted=refuted)
        assert_kernels_equal_the_engine(problem, Costs(1, verify), width, keyed=keyed)


def test_no_row_verifies_refuted_candidates() -> None:
    problem = World.of(f"5-{REFUTED} 5-{REFUTED} 4- 3-{REFUTED} 3+").logged()
    (batch,) = batches([problem], 20)

    for policy in POLICIES:
        found = trials(policy, batch, Costs(1, 10), Limits(width=None))
        assert (found.verified <= 2).all()
    found = trials(Fixed(5, 5), batch, Costs(1, 10), Limits(width=None))
    assert found.generated.tolist() == [5] * 20
    assert found.verified.tolist() == [2] * 20
    least = least_checks_of(batch)
    assert (least[least <= 5] <= 2).all()
    assert (hindsight_trials(batch, least, Costs(1, 10), Limits(width=None)).verified <= 2).all()


def test_hindsight_pays_for_the_cheapest_pair_and_nothing_where_none_suffices() -> None:
    solvable, hopeless = World.of("1- 9+").logged("a"), World.of("1- 9-").logged("b")
    found = [
        hindsight_trials(batch, least_checks_of(batch), Costs(1, 10), Limits(width=None))
        for batch in batches([solvable, hopeless], ORDERS)
    ]

    assert found[0].solved.all()
    assert set(found[0].costs(Costs(1, 10)).tolist()) <= {11.0, 12.0}  # first, or second and best
    assert not found[1].solved.any()
    assert found[1].costs(Costs(1, 10)).tolist() == [0.0] * ORDERS


def test_trials_cost_what_their_counts_cost() -> None:
    counts = np.array([1, 2], dtype=np.int32)
    both = Trials(
        np.array([True, False]), counts, counts[::-1], np.array([[1, 2, 0, 2], [3, 0, 4, 0]])
    )

    assert both.costs(Costs(generate=1, score=0.5, verify=10)).tolist() == [21.5, 13.0]
    assert both.seconds(Latency(20, 1)).tolist() == [22.0 + 2 * 19, 60.0]
    assert both.seconds(Latency(1, 20)).tolist() == [41.0, 3.0]
    assert both.seconds(Latency(20, 1, 3)).tolist() == [60.0, 72.0]


def test_hindsight_waits_once_for_candidates_and_for_as_many_rounds_as_the_width_makes() -> None:
    (batch,) = batches([World.of("9- 9- 9- 1+").logged("a")], ORDERS)
    least = least_checks_of(batch)

    for width in (1, 2, None):
        found = hindsight_trials(batch, least, Costs(1, 10), Limits(width=width))
        whole = 1 if width is None else width
        checks = [1 if width is None else -(-k // whole) for k in found.verified.tolist()]
        assert found.rounds.tolist() == [[1, k, 0, 0] for k in checks]
