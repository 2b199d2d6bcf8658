"""The vectors of hindsight say of every pair what the engine finds out by running it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.values import Costs
from grv.logs.log import LoggedProblem
from grv.policies import Fixed
from grv.replay.engine import replay
from grv.replay.hindsight import least_checks_of, paid_checks_of
from grv.replay.orders import OrderBatch
from grv.testing import World
from grv.testing.strategies import price_lists, worlds
from grv.theory.hindsight import Pair, available, cheapest_pair, least_checks
from support.examples import examples

tied_worlds = worlds(candidates=8, broken=False).filter(len)
WIDTHS = [None, 1, 2, 5]


def levels_of(*levels: int) -> NDArray[np.int32]:
    return np.array(levels, dtype=np.int32)


def as_logged(problem: LoggedProblem, *, keyed: bool) -> OrderBatch:
    """The candidates in the order in which they were logged."""
    return OrderBatch(problem, np.arange(len(problem))[None, :], keyed)


def pairs_up_to(n: int) -> list[Pair]:
    return [Pair(m, k) for m in range(1, n + 1) for k in range(1, m + 1)]


def test_the_first_pass_by_rank_is_found_and_ties_go_to_the_older() -> None:
    levels = levels_of(1, 0, 1, 0, 2)
    passed = np.array([False, False, True, True, True])

    # After three: 0 (older 1), then the older one of level 1, then the pass. After four: the pass
    # of level 0 stands behind the older one of its level.
    assert least_checks(levels, passed).tolist() == [6, 6, 3, 2, 2]


def test_one_verification_refutes_a_class() -> None:
    levels = levels_of(0, 0, 0, 1)
    passed = np.array([False, False, False, True])
    keys = np.array([7, 7, -1, -1], dtype=np.int32)

    assert least_checks(levels, passed, keys).tolist() == [5, 5, 5, 3]
    assert available(4, keys).tolist() == [1, 1, 2, 3]


def test_what_never_passes_needs_one_more_than_there_are() -> None:
    assert least_checks(levels_of(0, 1), np.zeros(2, dtype=np.bool_)).tolist() == [3, 3]


@settings(max_examples=examples(50))
@given(world=tied_worlds, keyed=st.booleans())
def test_a_pair_solves_exactly_from_the_least_checks_on(world: World, keyed: bool) -> None:
    problem = world.logged()
    least = least_checks_of(as_logged(problem, keyed=keyed))[0]

    for m, k in pairs_up_to(len(problem)):
        outcome = replay(Fixed(m, k), problem, Costs(), Limits(width=None), keys=keyed)
        assert outcome.solved == (least[m - 1] <= k), (m, k)


@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=examples(50))
@given(
    world=tied_worlds,
    keyed=st.booleans(),
    pace=st.sampled_from([Pace(), Pace(ramp=False, overlap=False)]),
)
def test_a_pair_pays_for_what_is_there_or_up_to_the_block_of_the_first_pass(
    width: int | None, world: World, keyed: bool, pace: Pace
) -> None:
    problem = world.logged()
    batch = as_logged(problem, keyed=keyed)
    paid = paid_checks_of(batch, least_checks_of(batch), Limits(width=width, pace=pace))[0]

    for m, k in pairs_up_to(len(problem)):
        bill = replay(
            Fixed(m, k), problem, Costs(), Limits(width=width, pace=pace), keys=keyed
        ).bill
        assert bill.verified == min(k, paid[m - 1]), (m, k)


@settings(max_examples=examples(50))
@given(world=tied_worlds, keyed=st.booleans())
def test_a_pair_without_a_pass_verifies_everything_available(world: World, keyed: bool) -> None:
    problem = world.logged()
    hopeless = LoggedProblem(
        "hopeless", problem.scores, np.zeros_like(problem.passed), problem.keys
    )
    keys = problem.keys if keyed else None

    verified = [
        replay(Fixed(m, m), hopeless, Costs(), Limits(width=None), keys=keyed).bill.verified
        for m in range(1, len(problem) + 1)
    ]

    assert available(len(problem), keys).tolist() == verified


@settings(max_examples=examples(50))
@given(world=tied_worlds, costs=price_lists(), keyed=st.booleans())
def test_the_cheapest_pair_is_that_of_a_scan_and_ties_go_to_the_smaller_m(
    world: World, costs: Costs, keyed: bool
) -> None:
    problem = world.logged()
    least = least_checks_of(as_logged(problem, keyed=keyed))[0]

    solving = [
        (costs.of(m, k), m, k)
        for m, k in pairs_up_to(len(problem))
        if replay(Fixed(m, k), problem, costs, Limits(width=None), keys=keyed).solved
    ]

    expected = Pair(*min(solving)[1:]) if solving else None
    assert cheapest_pair(least, costs) == expected


def test_of_two_pairs_of_one_cost_the_one_with_fewer_candidates_is_taken() -> None:
    least = np.array([4, 2, 1], dtype=np.int32)  # (2, 2) and (3, 1) cost 4

    assert cheapest_pair(least, Costs(generate=1, verify=1)) == Pair(2, 2)


def test_no_pair_suffices_where_nothing_passes() -> None:
    assert cheapest_pair(np.array([3, 3], dtype=np.int32), Costs()) is None


@given(world=worlds(candidates=9, broken=False, keys=False).filter(len))
def test_scores_that_are_missing_rank_last_among_equals(world: World) -> None:
    """A world whose candidates are all unscored is verified in order of arrival."""
    blank = World((-math.inf,) * len(world), world.verdicts).logged()
    least = least_checks_of(as_logged(blank, keyed=False))[0]

    first = int(blank.passed.argmax()) + 1 if blank.solvable else len(blank) + 1
    expected = [first if m >= first else len(blank) + 1 for m in range(1, len(blank) + 1)]
    assert least.tolist() == expected
