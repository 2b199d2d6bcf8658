from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.theory.optimum import Law, optimum
from grv.theory.proofs.continuation import continuation_value, insertion_bound, pool_values

chances = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.5, 1.0])
pools = st.lists(chances, max_size=6)
some_costs = st.builds(Costs, generate=st.floats(0.01, 100), verify=st.floats(0.01, 100))


@st.composite
def laws(draw: st.DrawFn) -> Law:
    passes = draw(st.lists(st.floats(1e-3, 1) | st.just(0.0), min_size=1, max_size=4).filter(any))
    masses = draw(st.lists(st.floats(0.01, 1), min_size=len(passes), max_size=len(passes)))
    return Law(tuple(range(len(passes))), tuple(masses), tuple(passes))


def stored(pool: Sequence[int], law: Law) -> list[float]:
    """The chances of the candidates in a pool that is given by counts."""
    return [h for h, count in zip(law.passes, pool, strict=True) for _ in range(count)]


def test_a_pool_worked_out_by_hand() -> None:
    # From nothing 28; break-even is 10/28. Of the pool, 0.9 and 0.5 are worth verifying, in that
    # order: 10 + 0.1 (10 + 0.5 28).
    law = Law(scores=(0, 1), masses=(3, 1), passes=(0.0, 0.5))
    costs = Costs(generate=1, verify=10)
    assert continuation_value([0.5, 0.2, 0.9], law, costs) == pytest.approx(12.4)
    assert insertion_bound(0.5, law, costs) == pytest.approx(4)
    assert insertion_bound(0.2, law, costs) == 0


@given(laws(), some_costs)
def test_an_empty_pool_is_worth_the_optimum(law: Law, costs: Costs) -> None:
    assert continuation_value([], law, costs) == optimum(law, costs).cost


@given(laws(), some_costs, pools, chances)
def test_one_more_candidate_saves_no_more_than_its_bound(
    law: Law, costs: Costs, pool: list[float], chance: float
) -> None:
    before = continuation_value(pool, law, costs)
    saved = before - continuation_value([*pool, chance], law, costs)
    rounding = 1e-12 * before
    assert -rounding <= saved <= insertion_bound(chance, law, costs) + rounding


@given(laws(), some_costs, pools)
def test_no_first_action_improves_on_the_continuation_value(
    law: Law, costs: Costs, pool: list[float]
) -> None:
    value = continuation_value(pool, law, costs)
    generate = costs.candidate + sum(
        mass * continuation_value([*pool, h], law, costs)
        for mass, h in zip(law.masses, law.passes, strict=True)
    )
    verify = [
        costs.verify + (1 - h) * continuation_value(pool[:i] + pool[i + 1 :], law, costs)
        for i, h in enumerate(pool)
    ]
    assert min([generate, *verify]) == pytest.approx(value, rel=1e-9)  # one attains it
    assert min([generate, *verify]) >= value * (1 - 1e-12)


def small_law(rng: random.Random) -> Law:
    """Two to four atoms, monotone or not, with something good enough to be worth storing."""
    n = rng.randint(2, 4)
    kinds = [rng.choice([0.0, 1.0, rng.random(), rng.random() ** 3]) for _ in range(n - 1)]
    passes = [*kinds, rng.uniform(0.3, 1)]
    rng.shuffle(passes)
    if rng.random() < 0.5:
        passes.sort()
    return Law(tuple(range(n)), tuple(rng.uniform(0.05, 1) for _ in range(n)), tuple(passes))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_no_stored_pool_beats_the_streaming_rule(seed: int) -> None:
    rng = random.Random(seed)
    law = small_law(rng)
    costs = Costs(generate=1, verify=rng.choice([0.3, 1, 3, 10, 30]))
    found = pool_values(law, costs, cap={2: 10, 3: 6, 4: 4}[len(law.passes)])
    for pool, (low, high) in found.items():
        value = continuation_value(stored(pool, law), law, costs)
        assert low <= value * (1 + 1e-11)
        assert high >= value * (1 - 1e-11)
        if sum(pool) <= 1:  # far enough from the cap for the two bounds to meet
            assert (low, high) == pytest.approx((value, value), rel=1e-9)
    empty = (0,) * len(law.passes)
    assert found[empty] == pytest.approx((optimum(law, costs).cost,) * 2, rel=1e-9)


@pytest.mark.slow
def test_a_low_cap_widens_the_bracket_and_nothing_else() -> None:
    law, costs = Law((0, 1, 2), (1, 1, 1), (0.02, 0.1, 0.15)), Costs(generate=1, verify=0.5)
    narrow, wide = pool_values(law, costs, cap=6), pool_values(law, costs, cap=1)
    assert wide[0, 0, 0].low < optimum(law, costs).cost * 0.99
    for pool, bracket in wide.items():
        assert bracket.low <= narrow[pool].low * (1 + 1e-12)
        assert bracket.high >= narrow[pool].high * (1 - 1e-12)


def test_a_pool_has_room_for_at_least_one_candidate() -> None:
    with pytest.raises(UsageError, match="at least 1, not 0"):
        pool_values(Law((0,), (1,), (0.5,)), Costs(), cap=0)
