"""Which column's equal values are the best evidence of equal verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from grv.learning.alike import agreement, most_alike
from grv.learning.fit import Placed, counts_of, scale_of
from grv.learning.history import PastProblem
from grv.learning.score_combination import combine, with_alike

PASSED = np.array([True, True, False, False, False, False])
ALL = np.ones(6, dtype=np.bool_)


def problem(values: list[float], labelled: np.ndarray = ALL) -> PastProblem:
    return PastProblem("p", np.array(values, dtype=np.float64), PASSED & labelled, labelled)


def agreeing(values: list[float], labelled: np.ndarray = ALL) -> float:
    return agreement([problem(values, labelled)], [np.array(values, dtype=np.float64)])


def test_equal_values_that_always_agree_say_all() -> None:
    assert agreeing([1, 1, 2, 2, 3, 3]) == pytest.approx(1)


def test_values_that_are_all_different_say_nothing() -> None:
    assert agreeing([1, 2, 3, 4, 5, 6]) == 0


def test_values_that_are_all_equal_agree_as_often_as_chance() -> None:
    assert agreeing([7, 7, 7, 7, 7, 7]) == pytest.approx(0)


def test_equal_values_that_disagree_are_worse_than_none() -> None:
    assert agreeing([1, 2, 1, 2, 3, 4]) < 0


def test_by_hand() -> None:
    # Two passes of six: 14 of 30 ordered pairs agree by chance. The pair of equal passes agrees.
    assert agreeing([1, 1, 2, 3, 4, 5]) == pytest.approx(2 * (1 - 14 / 30) / (6 * (1 - 14 / 30)))


def test_only_verdicts_count_and_missing_values_are_not_equal() -> None:
    known = np.array([True, True, True, True, False, False])
    assert agreeing([1, 1, 2, 2, 1, 1], known) == pytest.approx(1)
    assert agreeing([-np.inf] * 6) == 0


def test_without_a_problem_that_has_both_verdicts_nothing_is_known() -> None:
    assert agreeing([1, 1, 2, 2, 3, 3], np.array([True, True, False, False, False, False])) == 0


def test_the_first_of_equally_good_columns_is_chosen() -> None:
    past = [problem([1, 2, 3, 4, 5, 6])]
    good, none = [np.array([1.0, 1, 2, 2, 3, 3])], [np.arange(6.0)]
    assert most_alike(past, {"none": none, "good": good, "same": good}) == "good"
    assert most_alike(past, {"": none, "none": none}) == ""


def test_a_combination_counts_failures_by_the_column_that_agrees_most() -> None:
    chance = np.random.default_rng(0)
    tied, smooth = [], []
    for at in range(12):
        passed = chance.random(40) < 0.3
        group = 2 * chance.integers(0, 4, 40) + passed
        known = np.ones(40, dtype=np.bool_)
        tied.append(PastProblem(f"p{at}", group.astype(float), passed, known))
        smooth.append(PastProblem(f"p{at}", chance.normal(passed, 1), passed, known))

    _, combined = combine(["smooth", "tied"], [smooth, tied])
    name, problems = with_alike(["smooth", "tied"], [smooth, tied], combined)

    assert name == "tied"
    assert all(p.alike is t.scores for p, t in zip(problems, tied, strict=True))
    assert all((p.scores == c.scores).all() for p, c in zip(problems, combined, strict=True))


def test_labels_of_equal_values_count_for_less_than_their_number() -> None:
    ranked = PastProblem(
        "p", np.arange(6.0), PASSED, ALL, alike=np.array([1.0, 1.0, 2.0, 2.0, 2.0, 3.0])
    )
    placed = Placed.of([ranked], scale_of(ranked.scores))

    labels, _ = counts_of([ranked], placed, 0.5)

    assert labels.sum() == pytest.approx(1.5 + 1.75 + 1)
