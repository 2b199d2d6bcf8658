"""Paths: the sizes of rounds, and that the policies follow them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.values import Costs, Generate
from grv.policies import Alternate, Balanced, Hedged
from grv.testing import all_wrong, run
from grv.theory.decimals import exact_ratio
from grv.theory.slots import (
    BLIND,
    Path,
    Slot,
    SlotSchedule,
    alternate_draws,
    block_draws,
    hedged_draws,
    one_by_one,
    round_half_up,
)

whole = st.integers(1, 10**6)


@given(whole)
def test_block_draws_one_more_than_a_verification_costs(rho: int) -> None:
    first, later = block_draws(Fraction(rho))

    assert later == rho + 1
    assert later / 4 <= first <= max(1, later / 2)


@given(st.fractions(Fraction(1, 1000), 10**4))
def test_the_sizes_are_those_of_the_definition(rho: Fraction) -> None:
    g1, g = block_draws(rho)
    d, n = alternate_draws(rho)

    assert g <= 1 + rho < g + 1
    assert n == 1 or n - Fraction(1, 2) <= rho < n + Fraction(1, 2)
    assert g <= 4 * g1 < g + 4
    assert n <= 4 * d < n + 4
    assert hedged_draws(rho, 0.5) == max(1, round_half_up((1 + rho) / 2))


def test_just_below_an_edge_is_below_it() -> None:
    below = math.nextafter(1.0, 0)

    assert 1 + below == 2.0  # to a machine
    assert block_draws(below) == (1, 1)
    assert alternate_draws(math.nextafter(2.5, 0)) == (1, 2)


@pytest.mark.parametrize(("x", "rounded"), [(0.5, 1), (1.5, 2), (2.5, 3), (2.49, 2), (7, 7)])
def test_halves_are_rounded_up(x: float, rounded: int) -> None:
    assert round_half_up(x) == round_half_up(Fraction(x)) == rounded


@given(st.integers(1, 999), st.integers(1, 999), st.integers(-6, 6))
def test_a_ratio_of_decimals_is_exact(generate: int, verify: int, power: int) -> None:
    costs = Costs(generate=float(f"{generate}e{power}"), verify=float(f"{verify}e{power}"))

    assert exact_ratio(costs) == Fraction(verify, generate)


@pytest.mark.parametrize("rho", [0.4, 1, 1.5, 3, 10, 33.3, 100])
@pytest.mark.parametrize("policy", [Balanced(), Alternate(), Hedged(), Hedged(0.3, 3, 5)], ids=repr)
def test_a_policy_follows_its_path(policy: Path, rho: float) -> None:
    costs = Costs(generate=1, verify=rho)
    slots = list(itertools.islice(policy.slots(costs), 40))
    enough = sum(slot.draws for slot in slots)

    trace = run(policy, costs, all_wrong(enough), Limits(width=None)).trace[: 2 * len(slots)]  # type: ignore[arg-type]

    for slot, generated, verified in zip(slots, trace[::2], trace[1::2], strict=True):
        assert generated.action == Generate(slot.draws)
        assert (verified.action.why == "the new one, whatever its score") == slot.blind


def test_a_schedule_repeats_its_cycle() -> None:
    schedule = SlotSchedule((Slot(1), BLIND), (Slot(2), Slot(3)))

    assert list(itertools.islice(schedule, 6)) == [
        Slot(1),
        BLIND,
        Slot(2),
        Slot(3),
        Slot(2),
        Slot(3),
    ]


def test_steps_one_by_one() -> None:
    assert list(one_by_one([(8, 2), (32, 3)])) == [
        Slot(8),
        Slot(0),
        Slot(32),
        Slot(0),
        Slot(0),
    ]
