"""The exact programme over step laws, against enumeration; and what it says of our policies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.policies import Alternate, Balanced, Hedged
from grv.theory.constants import (
    alternate_against_verify_all,
    alternate_against_verify_all_monotone,
    alternate_constant,
    balanced_constant,
    hedged_against_verify_all,
    least_constant,
    rounds_constant,
)
from grv.theory.decimals import exact_ratio
from grv.theory.proofs.balanced_proof import rounds_cost
from grv.theory.proofs.steps import step_cost, step_ratio, worst_ratio
from grv.theory.rounds import StepLaw, alternate_rounds, expected_cost_bound
from grv.theory.shells import shells
from grv.theory.slots import BLIND, Slot, SlotSchedule, one_by_one
from support.examples import examples

VERIFY_ALL = SlotSchedule((), (BLIND,))
FEW = 20  # distinct states: enough for needles, and the result is a lower bound in any case
laws = st.builds(StepLaw, st.floats(0.001, 1), st.floats(0.01, 1))
ratios = st.one_of(  # decimals, so that the cycle of Balanced is short
    st.integers(2, 4000).map(lambda n: n / 40), st.integers(1, 60).map(float)
)


def enumerated(slots: Sequence[Slot], law: StepLaw, rho: float) -> float:
    """The expected cost of a short path, over all that can be drawn and all labels."""
    draws = sum(slot.draws for slot in slots)
    kinds = {"bad": 1 - law.q, "fails": law.q * (1 - law.p), "passes": law.q * law.p}
    total = 0.0
    for drawn in itertools.product(kinds, repeat=draws):
        chance = math.prod(kinds[kind] for kind in drawn)
        total += chance * spent(slots, drawn, rho)
    return total


def spent(slots: Iterable[Slot], drawn: Sequence[str], rho: float) -> float:
    """What a path costs on these candidates; all good ones are tied, so the older is the better."""
    cost, at, waiting = 0.0, 0, list[str]()
    for slot in slots:
        new = list(drawn[at : at + slot.draws])
        at += slot.draws
        cost += slot.draws
        if slot.blind:
            taken = new.pop()
        else:
            waiting += new
            if not waiting:
                continue
            taken = next((kind for kind in waiting if kind != "bad"), "bad")
            waiting.remove(taken)
        cost += rho
        if taken == "passes":
            break
    return cost


@pytest.mark.parametrize("law", [StepLaw(0.3, 0.5), StepLaw(1.0, 0.2), StepLaw(0.7, 1.0)])
@pytest.mark.parametrize(
    "slots",
    [
        [Slot(1)],
        [Slot(3), Slot(2), Slot(1)],
        [BLIND, Slot(2), BLIND, Slot(2)],
        [Slot(2), Slot(0), Slot(0), Slot(1)],  # there is nothing left to verify in the third
        [Slot(4), Slot(0), BLIND, Slot(0)],
    ],
    ids=str,
)
def test_a_short_path_costs_what_all_its_outcomes_cost(slots: list[Slot], law: StepLaw) -> None:
    found = step_cost(slots, law, 2.5)

    assert found.low == pytest.approx(enumerated(slots, law, 2.5))
    assert found.high == pytest.approx(found.low)


@settings(max_examples=examples(20))
@given(laws.filter(lambda law: law.q * law.p > 0.01), ratios)
def test_a_schedule_is_solved_as_it_is_followed(law: StepLaw, rho: float) -> None:
    for policy in (Balanced(), Alternate(), Hedged(every=2)):
        schedule = policy.slots(Costs(1, rho))
        solved, followed = step_cost(schedule, law, rho), step_cost(iter(schedule), law, rho)

        assert solved == pytest.approx(followed, rel=1e-8)


@given(laws, ratios)
def test_verifying_everything_costs_what_it_costs(law: StepLaw, rho: float) -> None:
    assert step_cost(VERIFY_ALL, law, rho).low == pytest.approx(law.verify_all(rho))
    assert step_cost(VERIFY_ALL, law, rho).high == pytest.approx(law.verify_all(rho))


@pytest.mark.slow
def test_pools_that_are_not_told_apart_widen_the_bracket_and_nothing_else() -> None:
    law, schedule = StepLaw(0.1, 0.02), Balanced().slots(Costs(1, 10))
    wide, narrow = (step_cost(schedule, law, 10, most=most) for most in (3, 200))

    assert wide.low < narrow.low <= narrow.high < wide.high
    assert narrow.high - narrow.low < 1e-6 * narrow.low


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match="needs 0 < q, p <= 1"):
        step_cost([Slot(1)], StepLaw(0.0, 1.0), 10)
    with pytest.raises(UsageError, match="a positive ratio of costs"):
        step_cost([Slot(1)], StepLaw(0.5, 1.0), 0)
    with pytest.raises(UsageError, match="the cycle of a schedule must draw"):
        step_cost(SlotSchedule((Slot(1),), (Slot(0),)), StepLaw(0.5, 1.0), 10)


@given(laws, ratios)
def test_the_bounds_hold_for_every_step_law(law: StepLaw, rho: float) -> None:
    """Theorems 1 and 2, and the bound before the constant is taken."""
    costs = Costs(1, rho)
    balanced = step_cost(Balanced().slots(costs), law, rho)
    alternate = step_cost(Alternate().slots(costs), law, rho)

    assert balanced.low <= rounds_cost(exact_ratio(costs), law).high * (1 + 1e-9)
    assert balanced.high <= balanced_constant(rho) * law.optimum(rho) * (1 + 1e-9)
    assert alternate.high <= expected_cost_bound(alternate_rounds(rho), law) * (1 + 1e-9)
    assert alternate.high <= alternate_constant(rho) * law.optimum(rho) * (1 + 1e-9)


@given(laws, ratios)
def test_the_bounds_against_verifying_everything_hold(law: StepLaw, rho: float) -> None:
    costs, rate = Costs(1, rho), law.q * law.p
    alternate = step_cost(Alternate().slots(costs), law, rho).high / law.verify_all(rho)
    hedged = step_cost(Hedged().slots(costs), law, rho).high / law.verify_all(rho)

    assert alternate <= alternate_against_verify_all_monotone(rho, rate) * (1 + 1e-9)
    assert alternate <= alternate_against_verify_all(rho, rate) * (1 + 1e-9)
    assert hedged <= hedged_against_verify_all(rho) * (1 + 1e-9)


@given(laws, ratios, st.integers(1, 60))
def test_rounds_of_any_size_keep_theirs(law: StepLaw, rho: float, g: int) -> None:
    """Theorem 0."""
    found = step_ratio(SlotSchedule((), (Slot(g),)), law, rho)

    assert found.high <= rounds_constant(g, rho) * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1.0, 3.0, 10.0, 30.0, 100.0])
def test_the_constants_are_reached_at_whole_ratios(rho: float) -> None:
    costs = Costs(1, rho)
    balanced = worst_ratio(Balanced().slots(costs), rho, most=FEW)
    alternate = worst_ratio(Alternate().slots(costs), rho, most=FEW)

    assert balanced.ratio == pytest.approx(least_constant(rho), abs=1e-3)
    assert alternate.ratio == pytest.approx(alternate_constant(rho), abs=1e-3)
    assert balanced.law.q == alternate.law.q == pytest.approx(1e-6)  # the needle


@pytest.mark.parametrize("rho", [1.6, 2.4, 2.7, 4.9, 10.5, 33.3])
def test_between_whole_ratios_the_needle_reaches_the_constant_of_alternate(rho: float) -> None:
    needle = step_ratio(Alternate().slots(Costs(1, rho)), StepLaw(1e-7, 1.0), rho)

    assert needle.low == pytest.approx(alternate_constant(rho), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.5, 1, 1.7, 3, 10, 33.3, 100])
def test_no_path_of_ours_beats_the_lower_bound(rho: float) -> None:
    """Theorem 4: the worst ratio of any policy is at least 2 - 1 / (1 + rho)."""
    costs = Costs(1, rho)
    paths = [Balanced().slots(costs), Alternate().slots(costs), Hedged().slots(costs), VERIFY_ALL]
    paths += [SlotSchedule((Slot(a),), (Slot(b),)) for a, b in ((1, 2), (1, 5), (3, 11), (9, 40))]
    paths += [SlotSchedule((), (Slot(g), BLIND)) for g in (1, 4, 20)]

    for path in paths:
        assert worst_ratio(path, rho, most=FEW).ratio >= least_constant(rho) - 1e-3


@pytest.mark.slow
def test_algorithm_1_as_a_path() -> None:
    """The paper's policy, stopping at the first pass: far below 400 on these laws."""
    costs = Costs(generate=1, verify=10)

    def slots() -> Iterable[Slot]:
        return one_by_one((shell.draws(), shell.checks()) for shell in shells(costs))

    found = [
        step_ratio(slots(), StepLaw(q, p), 10, most=30).low
        for q in np.geomspace(0.02, 1, 6).tolist()
        for p in (1.0, 0.2)
    ]

    assert least_constant(10) < max(found) < 6
