"""Paired tests between rows: their p-values, their correction, what they are paired on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.comparing import significance
from grv.comparing.compare import compare
from grv.comparing.comparison import Comparison
from grv.comparing.significance import Resampled, holm, sign_flip
from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.testing import population

LOG = population("math", problems=20, candidates=60, seed=3)
TWO = [Costs(1, 10), Costs(1, 30)]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    names = ("adaptive", "verify-all", "varied", "fixed(4, 1)")
    return compare({name: name for name in names} | {"the default": "default"}, LOG, orders=4)


@given(st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=8))
def test_with_few_problems_every_pattern_of_signs_counts(differences: list[float]) -> None:
    found = sign_flip(np.array([differences]), seed=1)[0]

    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = sum(each >= abs(sum(differences)) for each in sums) / len(sums)
    assert found == (None if not any(differences) else pytest.approx(expected))


def test_drawn_patterns_agree_with_the_exact_test() -> None:
    numbers = np.random.default_rng(5).normal(0.4, 1, size=(6, 13))
    exact = sign_flip(numbers, seed=0)
    drawn = sign_flip(np.hstack([numbers, np.zeros((6, 1))]), seed=0)

    assert np.array(drawn, dtype=float) == pytest.approx(np.array(exact, dtype=float), abs=0.02)


@pytest.mark.slow
def test_without_a_difference_false_alarms_are_as_rare_as_they_should_be() -> None:
    noise = np.random.default_rng(2).exponential(size=(400, 30, 2))
    found = np.array(sign_flip(noise[..., 0] - noise[..., 1], seed=0), dtype=float)

    assert 0.02 < (found < 0.05).mean() < 0.09
    assert found.min() > 0


@given(st.lists(st.one_of(st.none(), st.floats(0.0001, 1)), max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values: list[float | None]) -> None:
    found = holm(p_values)

    pairs = [(p, q) for p, q in zip(p_values, found, strict=True) if p is not None]
    assert all(q is not None and p <= q <= 1 for p, q in pairs)
    assert [q is None for q in found] == [p is None for p in p_values]
    assert [q for _, q in sorted(pairs)] == sorted(q for _, q in pairs if q is not None)
    if pairs:
        least = min(p for p, _ in pairs)
        assert min(q for _, q in pairs if q is not None) == pytest.approx(
            min(1, least * len(pairs))
        )


def test_each_two_rows_are_compared_on_the_same_problems_and_orders(comparison: Comparison) -> None:
    assert len(comparison.pairs) == 10
    pair = comparison.pair("verify-all", "adaptive")
    costs = [
        trials.costs(row.costs).mean(axis=1)
        for row, trials in zip(comparison.rows, comparison.trials, strict=True)
    ]
    assert pair.ratio == pytest.approx(costs[1].mean() / costs[0].mean())
    assert pair.p == sign_flip((costs[1] - costs[0])[None], seed=0)[0]
    assert pair.adjusted is not None
    assert pair.p is not None
    assert pair.adjusted > pair.p


def test_the_order_of_two_rows_turns_the_ratio_over(comparison: Comparison) -> None:
    one = comparison.pair("adaptive", "fixed(4, 1)")
    other = comparison.pair("fixed(4, 1)", "adaptive")

    assert one.ratio is not None
    assert other.ratio == pytest.approx(1 / one.ratio)
    assert (one.p, one.solved, one.solved_p) == (other.p, -other.solved, other.solved_p)
    assert one.solved > 0


def test_one_policy_under_two_names_is_not_tested(comparison: Comparison) -> None:
    pair = comparison.pair("the default", "varied")

    assert (pair.ratio, pair.p, pair.adjusted, pair.solved_p) == (1, None, None, None)


def test_several_price_lists_are_one_family() -> None:
    several = compare(["adaptive", "verify-all"], LOG, TWO, orders=4)

    assert [pair.prices for pair in several.pairs] == ["1,10", "1,30"]
    assert several.pair("adaptive", "verify-all", "1,30") is several.pairs[1]
    assert [pair.adjusted for pair in several.pairs] == holm([pair.p for pair in several.pairs])


def test_a_name_alone_does_not_choose_among_price_lists() -> None:
    several = compare(["adaptive", "verify-all"], LOG, TWO, orders=2)

    with pytest.raises(UsageError, match=r"write \['adaptive', '1,10'\]"):
        several["adaptive"]
    assert several["adaptive", "1,30"].costs == TWO[1]
    assert several["adaptive", TWO[1]] is several["adaptive", "1, 30"]
    with pytest.raises(KeyError, match="no row 'adaptiv'; there are adaptive, verify-all"):
        several["adaptiv"]
    with pytest.raises(KeyError, match="1,99"):
        several["adaptive", "1,99"]


def test_resamples_of_many_problems_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).random(120) * 100
    whole = Resampled(120, seed=5).totals(values)
    monkeypatch.setattr(significance, "_TOGETHER", 100)
    significance.resample_weights.cache_clear()

    assert Resampled(120, seed=5).totals(values) == pytest.approx(whole, rel=1e-14)
    significance.resample_weights.cache_clear()
