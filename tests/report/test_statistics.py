"""Statistics against brute force, enumeration and known values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.report.statistics import (
    auc,
    binned_rates,
    covered_at_random,
    covered_by_score,
    expected_passes,
    isotonic,
    largest_fall,
    none_among,
    rolling_mean,
    where_it_falls,
    wilson,
)
from grv.theory.exact import success_probability

# Few scores, so that there are ties.
candidates = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=7)


def arrays(pairs: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([float(score) for score, _ in pairs]), np.array([label for _, label in pairs])


@pytest.mark.parametrize("tie", [0.5, 0.0])
@given(pairs=candidates)
def test_auc_is_the_share_of_pairs_that_are_ranked_rightly(
    tie: float, pairs: list[tuple[int, bool]]
) -> None:
    scores, passed = arrays(pairs)
    wins = [
        1.0 if good > bad else tie if good == bad else 0.0
        for good in scores[passed]
        for bad in scores[~passed]
    ]
    found = auc(scores, passed, tie=tie)
    if not wins:
        assert found is None
    else:
        assert found == pytest.approx(sum(wins) / len(wins))


def test_auc_ranks_candidates_without_a_score_last() -> None:
    assert auc(np.array([-np.inf, 0.0]), np.array([False, True])) == 1.0
    assert auc(np.array([-np.inf, -np.inf]), np.array([False, True])) == 0.5


def test_wilson_has_the_textbook_values() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
    assert wilson(20, 20) == pytest.approx((1 - 0.1611, 1.0), abs=5e-5)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_isotonic_is_the_closest_of_all_curves_that_never_fall(values: list[int]) -> None:
    fit = isotonic(np.array(values, dtype=float))
    assert (np.diff(fit) >= -1e-12).all()
    assert fit.mean() == pytest.approx(np.mean(values))
    # The solution is constant on blocks, at their means: try all ways to cut into blocks.
    best = math.inf
    for cuts in itertools.product([False, True], repeat=len(values) - 1):
        edges = [0, *(at + 1 for at, cut in enumerate(cuts) if cut), len(values)]
        blocks = [values[a:b] for a, b in itertools.pairwise(edges)]
        means = [sum(block) / len(block) for block in blocks]
        if all(a <= b for a, b in itertools.pairwise(means)):
            curve = np.repeat(means, [len(block) for block in blocks])
            best = min(best, float(((curve - values) ** 2).sum()))
    assert ((fit - values) ** 2).sum() == pytest.approx(best)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_the_largest_fall_is_that_of_some_pair(values: list[int]) -> None:
    rates = np.array(values) / 9
    falls = [0.0, *(a - b for a, b in itertools.combinations(rates, 2))]
    assert largest_fall(rates) == pytest.approx(max(falls))
    start, end = where_it_falls(rates)
    assert start <= end
    assert rates[start] - rates[end] == pytest.approx(max(falls))


@given(st.integers(0, 6), st.integers(0, 6))
def test_draws_that_all_fail_are_counted_by_enumeration(failing: int, passing: int) -> None:
    size = failing + passing
    labels = [False] * failing + [True] * passing
    for draws in range(size + 1):
        sets = list(itertools.combinations(labels, draws))
        share = sum(not any(each) for each in sets) / len(sets)
        assert none_among(np.array([draws]), failing, size)[0] == pytest.approx(share)


@given(candidates)
def test_coverage_is_that_of_all_orders(pairs: list[tuple[int, bool]]) -> None:
    scores, passed = arrays(pairs)
    n = len(scores)
    ks = np.arange(1, n + 2)
    by_score, at_random = covered_by_score(scores, passed, ks), covered_at_random(passed, ks)
    for k in range(1, n + 1):
        exact = success_probability(scores, passed, n, k)
        assert by_score[k - 1] == pytest.approx(exact, abs=1e-9)
        sets = list(itertools.combinations(passed.tolist(), k))
        assert at_random[k - 1] == pytest.approx(sum(map(any, sets)) / len(sets))
    assert by_score[-1] == by_score[-2]
    assert at_random[-1] == pytest.approx(at_random[-2])


@given(candidates)
def test_candidates_of_equal_score_share_their_ranks(pairs: list[tuple[int, bool]]) -> None:
    scores, passed = arrays(pairs)
    rates = expected_passes(scores, passed)
    assert rates.sum() == pytest.approx(passed.sum())
    for rate, score in zip(rates, -np.sort(-scores), strict=True):
        assert rate == pytest.approx(passed[scores == score].mean())


def test_bins_hold_equal_parts_of_the_ranking_worst_first() -> None:
    scores, passed = np.arange(6.0), np.array([False, True, False, True, True, True])
    assert binned_rates(scores, passed, 3) == pytest.approx([0.5, 0.5, 1.0])
    assert binned_rates(scores, passed, 4) == pytest.approx([1 / 3, 1 / 3, 1.0, 1.0])
    assert binned_rates(np.zeros(6), passed, 3) == pytest.approx([2 / 3] * 3)


def test_a_rolling_mean_is_shorter_towards_the_ends() -> None:
    found = rolling_mean(np.array([1.0, 2.0, 6.0, 4.0]), np.array([1.0, 1.0, 1.0, 2.0]), 3)
    assert found == pytest.approx([1.5, 3.0, 16 / 4, 14 / 3])
