"""Families against their definitions, classes out of data, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.theory.stars.classes import (
    MOST_ENTRIES,
    ConceptClass,
    family,
    intervals,
    of_rows,
    of_scores,
    singletons,
    subsets,
    thresholds,
    unions,
)


def sets(made: ConceptClass) -> set[frozenset[int]]:
    found = [frozenset(np.flatnonzero(row).tolist()) for row in made.values]
    assert len(found) == len(set(found))  # no concept twice
    return set(found)


def runs(members: frozenset[int]) -> int:
    """How many intervals a set falls into."""
    return sum(at - 1 not in members for at in members)


def everything(n: int) -> set[frozenset[int]]:
    return {frozenset(at for at in range(n) if number >> at & 1) for number in range(2**n)}


@pytest.mark.parametrize("n", range(1, 8))
def test_the_families_are_what_they_are_called(n: int) -> None:
    assert sets(thresholds(n)) == {frozenset(range(t, n)) for t in range(n + 1)}
    assert sets(singletons(n)) == {frozenset({at}) for at in range(n)} | {frozenset()}
    assert sets(subsets(n)) == everything(n)
    assert sets(intervals(n)) == {each for each in everything(n) if runs(each) <= 1}
    for k in (1, 2, 3, 9):
        assert sets(unions(n, k)) == {each for each in everything(n) if runs(each) <= k}


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("thresholds:16", (17, 16)),
        ("intervals:64", (2081, 64)),
        ("singletons:64", (65, 64)),
        ("subsets:8", (256, 8)),
        ("unions:16:2", (2517, 16)),
    ],
)
def test_a_family_goes_by_its_name(text: str, shape: tuple[int, int]) -> None:
    made = family(text)

    assert made is not None
    assert made.values.shape == shape
    assert made.name == text
    assert made.has_zero
    assert made.is_binary


@pytest.mark.parametrize("text", ["class.txt", "thresholds", "16", "thresholds:-1", ""])
def test_a_text_that_is_not_a_family_may_be_a_file(text: str) -> None:
    assert family(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("circles:4", r"unknown family 'circles'; choose one of thresholds, intervals, "),
        ("thresholds:0", "thresholds:0: there are no points"),
        ("intervals:16:2", "intervals:16:2: give the number of points, as in intervals:16"),
        ("unions:16", "unions:16: give .* as in unions:16:2"),
        ("unions:16:0", "unions:16:0: no intervals"),
        ("subsets:30", "too many"),
        ("subsets:9999", "too many"),
        ("intervals:999", "too many"),
        ("unions:64:2", "too many"),
        (f"thresholds:{'9' * 30}", "too large"),
    ],
)
def test_a_family_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        family(text)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0, 2]], "2 in row 0, column 1"),
        ([[0, 1], [-0.5, 1]], "-0.5 in row 1, column 0"),
        ([[math.nan]], "nan in row 0, column 0"),
        ([[0, 1], [0]], "differ in length"),
        ([0, 1], "give a matrix, not an array of 1 dimensions"),
        ([["0", "1"]], "must be numbers from 0 to 1"),
        ([[1j]], "must be numbers from 0 to 1"),
        (np.zeros((0, 3)), "there are no concepts"),
        (np.zeros((3, 0)), "there are no points"),
        (np.broadcast_to(np.float64(0), (MOST_ENTRIES, 2)), "too many"),
    ],
)
def test_an_invalid_class_is_refused(values: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ConceptClass(values, "mine")  # type: ignore[arg-type]


def test_the_all_zero_concept_is_added_at_the_end_if_it_is_not_there() -> None:
    without = of_rows(["011", "100"])

    assert not without.has_zero
    assert without.with_zero().rows() == ("011", "100", "000")
    assert without.with_zero().with_zero().concepts == 3


def test_a_probabilistic_class_has_no_binary_form() -> None:
    mixed = ConceptClass(np.array([[0, 1], [0.5, 0]]))

    assert not mixed.is_binary
    with pytest.raises(UsageError, match=r"0\.5 in row 1, column 0.* needs eta"):
        mixed.binary()


@pytest.mark.parametrize("rows", [["01", "0"], ["02"]])
def test_rows_are_texts_of_zeros_and_ones(rows: list[str]) -> None:
    with pytest.raises(UsageError):
        of_rows(rows)


problems = st.lists(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=12), min_size=1, max_size=5
).filter(any)


@given(problems, st.integers(1, 6))
def test_the_class_of_a_log_has_the_pass_rates_of_its_bins(
    given_: list[list[tuple[int, bool]]], bins: int
) -> None:
    made, edges = of_scores(
        [([score for score, _ in each], [label for _, label in each]) for each in given_], bins
    )

    assert edges[0] == -math.inf
    assert len(edges) <= bins
    assert (np.diff(edges) > 0).all()
    ends = [*edges[1:], math.inf]
    for i, each in enumerate(given_):
        for j, (low, high) in enumerate(zip(edges, ends, strict=True)):
            there = [label for score, label in each if low <= score < high]
            assert made.values[i, j] == pytest.approx(np.mean(there) if there else 0)
    for low, high in zip(edges, ends, strict=True):  # no bin is empty
        assert any(low <= score < high for each in given_ for score, _ in each)


def test_bins_hold_equally_many_where_scores_differ() -> None:
    made, edges = of_scores([(range(100), [at >= 50 for at in range(100)])], 4)

    assert edges.tolist() == [-math.inf, 25, 50, 75]
    assert made.rows() == ("0011",)


def test_a_log_needs_candidates_and_bins() -> None:
    with pytest.raises(UsageError, match="no candidates"):
        of_scores([([], [])], 4)
    with pytest.raises(UsageError, match="bins must be at least 1, not 0"):
        of_scores([([1.0], [True])], 0)
