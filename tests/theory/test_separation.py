"""The class on c, e_1 ... e_d: its definition, its bounds, and what is measured."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.theory.proofs.active_learning import FiniteSpace
from grv.theory.proofs.separation import (
    SeparationSpace,
    best_success,
    fewest_labels,
    labels_bound,
    measure,
    search,
    separation_class,
    success_bound,
)
from grv.theory.stars.hitting import smallest_hitting_set
from grv.theory.stars.search import star_number


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_the_class_is_that_of_the_weights(d: int) -> None:
    points = [np.ones(d), *np.eye(d)]
    by_weights = {
        tuple(float(np.dot(w, z) >= 1.5) for z in points)
        for w in itertools.product((0, 1, 2), repeat=d)
    }
    made = {tuple(row) for row in separation_class(d).values}

    assert made == by_weights
    assert len(made) == separation_class(d).concepts


def test_with_one_weight_the_claim_of_the_remark_fails() -> None:
    # w = 1 lets nothing pass, not even c; the remark says that it lets c pass.
    assert not np.dot([1], [1]) >= 1.5
    with pytest.raises(UsageError, match="d must be at least 2, not 1"):
        separation_class(1)


@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_its_star_number_is_large_all_the_same(d: int) -> None:
    """The separation is one of instances: another law of the points makes searching hard too."""
    assert star_number(separation_class(d)).number == d
    assert star_number(separation_class(d), centre="any").number == d + 1


@given(st.integers(2, 5), st.integers(0, 2**5), st.lists(st.integers(0, 5), max_size=15), st.data())
def test_the_version_space_is_that_of_the_class(
    d: int, row: int, asked: list[int], data: st.DataObject
) -> None:
    of = separation_class(d)
    truth = of.binary()[row % of.concepts]
    short, full = SeparationSpace(d), FiniteSpace(of)
    for point in asked:
        point %= d + 1
        assert [short.is_open(x) for x in range(d + 1)] == [full.is_open(x) for x in range(d + 1)]
        if full.is_open(point):
            short.tell(point, bool(truth[point]))
            full.tell(point, bool(truth[point]))
    guess = [short.hypothesis()(x) for x in range(d + 1)]
    assert guess in of.binary().tolist()
    for x in range(d + 1):
        if not full.is_open(x):
            assert guess[x] == truth[x]


@given(st.integers(2, 6), st.lists(st.integers(0, 6), min_size=1, max_size=8))
def test_the_search_verifies_a_smallest_hitting_set_of_the_pool(d: int, pool: list[int]) -> None:
    pool = [point % (d + 1) for point in pool]
    traces = [
        {i for i, point in enumerate(pool) if row[point]} for row in separation_class(d).values
    ]
    needed = len(smallest_hitting_set(traces).members)

    index = search(pool)

    assert (index is None) == (0 not in pool)
    if index is not None:
        assert needed == 1
        assert all(index in trace for trace in traces if trace)


@given(st.integers(2, 200), st.floats(0.01, 0.24), st.integers(0, 200))
def test_the_bound_by_hoeffding_is_above_the_exact_one(d: int, epsilon: float, m: int) -> None:
    m = min(m, d)
    assert best_success(d, epsilon, m) <= success_bound(d, epsilon, m) * (1 + 1e-9)
    if m <= d * (1 - 4 * epsilon) / 2:
        stated = math.exp(-((1 - 4 * epsilon) ** 2) * d / (4 * (1 + 4 * epsilon)))
        assert success_bound(d, epsilon, m) <= stated * (1 + 1e-9)


@given(st.integers(2, 120), st.floats(0.01, 0.24), st.floats(0.01, 0.9))
def test_the_fewest_labels_are_the_fewest(d: int, epsilon: float, delta: float) -> None:
    exact, weaker = fewest_labels(d, epsilon, delta), labels_bound(d, epsilon, delta)

    assert weaker <= exact <= d
    assert best_success(d, epsilon, exact) >= 1 - delta
    assert exact == 0 or best_success(d, epsilon, exact - 1) < 1 - delta


def test_the_exact_bound_by_coins() -> None:
    # d = 4, epsilon = 1/8: one error is allowed. Three unknown coins: (1 + 3) / 8.
    assert best_success(4, 0.125, 1) == 0.5
    assert best_success(4, 0.125, 3) == 1.0
    assert fewest_labels(4, 0.125, 0.1) == 3
    assert best_success(4, 0.125, 2) == 0.75


def test_searching_takes_one_label_and_learning_proportionally_many() -> None:
    rows = [measure(d, 0.1, 0.1, runs=200) for d in (16, 64, 256)]

    for row in rows:
        assert row.search_labels <= 1
        assert row.search_found >= 0.9 - 4 * math.sqrt(0.09 / 200)
        assert row.learned >= 0.9 - 4 * math.sqrt(0.09 / 200)
        assert row.learn_labels >= row.fewest_labels >= row.labels_bound > 0.5 * row.d
        assert row.learn_labels <= row.d + 1
    assert rows[2].learn_labels / rows[0].learn_labels == pytest.approx(16, rel=0.1)
    assert measure(16, 0.1, 0.1, runs=200) == rows[0]


def test_epsilon_is_below_a_quarter() -> None:
    with pytest.raises(UsageError, match="epsilon must be between 0 and 1/4"):
        measure(8, 0.25, 0.1, runs=2)
    with pytest.raises(UsageError, match="too many"):
        separation_class(40)
