"""Smallest hitting sets: brute force, and the lemma that they are no larger than a star."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.theory.stars.classes import ConceptClass, of_rows
from grv.theory.stars.hitting import quick_hitting_set, smallest_hitting_set
from grv.theory.stars.search import star_number
from support.examples import examples

families = st.lists(st.sets(st.integers(0, 7), max_size=5), max_size=14)


def brute(traces: list[set[int]]) -> int:
    wanted = [trace for trace in traces if trace]
    return next(
        size
        for size in range(9)
        for chosen in itertools.combinations(range(8), size)
        if all(trace & set(chosen) for trace in wanted)
    )


@settings(max_examples=examples(200))
@given(families)
def test_brute_force_agrees(traces: list[set[int]]) -> None:
    found = smallest_hitting_set(traces)

    assert found.is_minimum
    assert len(found.members) == found.lower == brute(traces)
    assert all(trace & set(found.members) for trace in traces if trace)


@given(families)
def test_a_quick_one_hits_everything_and_knows_how_good_it_is(traces: list[set[int]]) -> None:
    found = quick_hitting_set(traces)

    assert all(trace & set(found.members) for trace in traces if trace)
    assert found.lower <= brute(traces) <= len(found.members)
    for member in found.members:  # none can be spared
        others = set(found.members) - {member}
        assert any(trace and not trace & others for trace in traces)


@st.composite
def classes_and_batches(draw: st.DrawFn) -> tuple[ConceptClass, list[int]]:
    points = draw(st.integers(1, 6))
    row = st.text("01", min_size=points, max_size=points)
    of = of_rows(draw(st.lists(row, min_size=1, max_size=12)))
    return of, draw(st.lists(st.integers(0, points - 1), max_size=20))


@settings(max_examples=examples(150))
@given(classes_and_batches())
def test_the_lemma_no_batch_needs_more_than_the_star_number(
    given_: tuple[ConceptClass, list[int]],
) -> None:
    of, batch = given_
    traces = [{i for i, point in enumerate(batch) if row[point]} for row in of.values]
    star = star_number(of).number

    assert star is not None
    assert len(smallest_hitting_set(traces).members) <= star
    assert len(quick_hitting_set(traces).members) <= star  # enough that none can be spared


@pytest.mark.slow
def test_a_random_class_that_needs_the_programme() -> None:
    values = np.random.default_rng(2).random((60, 24)) < 0.25
    traces = [np.flatnonzero(row).tolist() for row in values]

    exact, quick = smallest_hitting_set(traces), quick_hitting_set(traces)

    assert exact.is_minimum
    assert not quick.is_minimum
    assert quick.lower < exact.lower <= len(quick.members)
    assert smallest_hitting_set(traces) == exact
    assert smallest_hitting_set(traces, time_limit=60) == exact


@pytest.mark.slow
def test_with_a_limit_there_is_an_honest_interval() -> None:
    values = np.random.default_rng(2).random((300, 40)) < 0.4
    traces = [np.flatnonzero(row).tolist() for row in values]

    found = smallest_hitting_set(traces, nodes=1)

    assert found.lower < len(found.members)
    assert all(set(trace) & set(found.members) for trace in traces)
    assert found == smallest_hitting_set(traces, nodes=1)


def test_nothing_to_hit_needs_nothing() -> None:
    assert smallest_hitting_set([]).members == ()
    assert smallest_hitting_set([[], []]).members == ()
    assert quick_hitting_set([[]]).is_minimum


def test_numbers_count_from_zero() -> None:
    with pytest.raises(UsageError, match="must not contain negative numbers"):
        smallest_hitting_set([[-1]])
