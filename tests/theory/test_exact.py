from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.theory.exact import success_probability

Logged = tuple[float, bool]  # score, passed


def over_all_orders(logged: Sequence[Logged], m: int, k: int) -> float:
    """The share of all orders of arrival in which one of the best k of the first m passes."""
    orders = list(itertools.permutations(logged))
    solved = 0
    for order in orders:
        ranked = sorted(order[:m], key=lambda candidate: -candidate[0])  # ties to the older
        solved += any(passed for _, passed in ranked[:k])
    return solved / len(orders)


def in_fractions(ranked: Sequence[bool], m: int, k: int) -> Fraction:
    """The same without ties: given what passes, best first, in exact arithmetic."""
    n, failing, ways = len(ranked), 0, 0
    before = 0  # C(failing - 1, k - 1), and C(n - t, m - k): each from the one before
    after = math.comb(n, m - k)
    for t, passed in enumerate(ranked, start=1):
        after = after * (n - t + 1 - (m - k)) // (n - t + 1)
        if not passed:
            failing += 1
            before = before * (failing - 1) // (failing - k) if failing > k else int(failing == k)
            ways += before * after
    return 1 - Fraction(ways, math.comb(n, m))


def probability(logged: Sequence[Logged], m: int, k: int) -> float:
    return success_probability([score for score, _ in logged], [label for _, label in logged], m, k)


def test_one_of_two_equal_candidates_passes() -> None:
    logged = [(1.0, True), (1.0, False)]
    assert probability(logged, m=1, k=1) == pytest.approx(0.5)
    assert probability(logged, m=2, k=1) == pytest.approx(0.5)  # whichever came first
    assert probability(logged, m=2, k=2) == 1.0


def test_the_best_of_three_passes_if_it_is_generated() -> None:
    logged = [(3.0, True), (2.0, False), (1.0, False)]
    assert probability(logged, m=1, k=1) == pytest.approx(1 / 3)
    assert probability(logged, m=2, k=1) == pytest.approx(2 / 3)
    assert probability(logged, m=3, k=1) == 1.0


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_share_of_all_orders_however_heavy_the_ties(seed: int) -> None:
    rng = random.Random(seed)
    levels = rng.choice([1, 2, 3, 7])
    n = rng.randint(1, 6)
    logged = [(float(rng.randrange(levels)), rng.random() < 0.4) for _ in range(n)]
    for m in range(1, n + 1):
        for k in range(1, m + 1):
            expected = over_all_orders(logged, m, k)
            assert probability(logged, m, k) == pytest.approx(expected, abs=1e-12)


def test_it_is_the_share_of_all_orders_of_seven() -> None:
    scores = [2.0, 2.0, 2.0, 1.0, 1.0, 0.0, -math.inf]
    logged = list(zip(scores, [False, True, False, False, True, False, True], strict=True))
    for m, k in [(7, 1), (6, 2), (5, 3), (4, 4), (3, 2)]:
        expected = over_all_orders(logged, m, k)
        assert probability(logged, m, k) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=32), st.data())
def test_it_is_exact_without_ties(ranked: list[bool], data: st.DataObject) -> None:
    m = data.draw(st.integers(1, len(ranked)))
    k = data.draw(st.integers(1, m))
    logged = [(float(-place), passed) for place, passed in enumerate(ranked)]
    data.draw(st.randoms(use_true_random=False)).shuffle(logged)
    expected = float(in_fractions(ranked, m, k))
    assert probability(logged, m, k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("m", "k"), [(5, 1), (500, 10), (2500, 60), (4999, 300), (5000, 1)])
def test_it_is_exact_to_a_billionth_for_five_thousand_candidates(m: int, k: int) -> None:
    rng = random.Random(m)
    ranked = [rng.random() < 0.01 for _ in range(5000)]
    ranked[0] = False
    logged = [(float(-place), passed) for place, passed in enumerate(ranked)]
    assert probability(logged, m, k) == pytest.approx(float(in_fractions(ranked, m, k)), abs=1e-9)


@pytest.mark.parametrize(("m", "k"), [(40, 1), (1000, 30), (3000, 2500)])
def test_five_thousand_equal_scores_are_drawn_like_one_urn(m: int, k: int) -> None:
    passed = np.arange(5000) < 7
    none = Fraction(math.comb(4993, k), math.comb(5000, k))  # k of them, whichever m were made
    found = success_probability(np.zeros(5000), passed, m, k)
    assert found == pytest.approx(1 - float(none), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=40), st.data())
def test_more_verifications_never_hurt(logged: list[tuple[int, bool]], data: st.DataObject) -> None:
    m = data.draw(st.integers(2, len(logged)))
    k = data.draw(st.integers(1, m - 1))
    named = [(float(score), passed) for score, passed in logged]
    fewer, more = probability(named, m, k), probability(named, m, k + 1)
    assert 0 <= fewer <= more + 1e-12 <= 1 + 1e-12


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=40))
def test_verifying_all_that_is_made_does_not_depend_on_the_scores(
    logged: list[tuple[int, bool]],
) -> None:
    named = [(float(score), passed) for score, passed in logged]
    failing = sum(not passed for _, passed in logged)
    for m in range(1, len(logged) + 1):
        expected = 1 - math.comb(failing, m) / math.comb(len(logged), m)
        assert probability(named, m, m) == pytest.approx(expected, abs=1e-12)


def test_where_nothing_passes_the_chance_is_zero_exactly() -> None:
    assert success_probability(np.arange(1000.0), np.zeros(1000, dtype=bool), 500, 20) == 0.0


@pytest.mark.parametrize(
    ("scores", "passed", "m", "k", "message"),
    [
        ([1.0, 2.0], [True, False], 3, 1, "m=3"),
        ([1.0, 2.0], [True, False], 1, 2, "k=2"),
        ([1.0, 2.0], [True, False], 1, 0, "k=0"),
        ([], [], 1, 1, "<= 0 candidates"),
        ([1.0], [True, False], 1, 1, "shape"),
        ([[1.0]], [[True]], 1, 1, "shape"),
        ([1.0, math.nan], [True, False], 1, 1, "NaN"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    scores: list[float], passed: list[bool], m: int, k: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        success_probability(scores, passed, m, k)
