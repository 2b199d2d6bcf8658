"""A disagreement-based learner, and what searching by means of a learner is guaranteed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.theory.proofs.active_learning import (
    FiniteSpace,
    PoolSearch,
    disagreement_learner,
    pool_size,
    run_learner,
    search_by_learning,
)
from grv.theory.stars.classes import ConceptClass, family, of_rows


@st.composite
def learnable(draw: st.DrawFn) -> tuple[ConceptClass, int, list[int]]:
    """A class, the row of the target, and a pool."""
    points = draw(st.integers(1, 6))
    row = st.text("01", min_size=points, max_size=points)
    of = of_rows(draw(st.lists(row, min_size=1, max_size=12)))
    pool = draw(st.lists(st.integers(0, points - 1), max_size=12))
    return of, draw(st.integers(0, of.concepts - 1)), pool


@given(learnable())
def test_the_hypothesis_agrees_with_the_target_on_the_whole_pool(
    given_: tuple[ConceptClass, int, list[int]],
) -> None:
    of, target, pool = given_
    truth = of.binary()[target]

    learned = run_learner(
        disagreement_learner(partial(FiniteSpace, of)), pool, lambda x: bool(truth[x])
    )

    assert all(learned.hypothesis(x) == truth[x] for x in pool)
    assert any(
        all(learned.hypothesis(x) == row[x] for x in range(of.points)) for row in of.binary()
    )
    assert learned.labels <= min(len(set(pool)), of.concepts - 1)  # each label refutes one


def test_of_thresholds_it_asks_about_those_in_between_only() -> None:
    of = family("thresholds:8")
    assert of is not None

    learned = run_learner(
        disagreement_learner(partial(FiniteSpace, of)), [4, 5, 6, 2, 3, 7, 0], lambda x: x >= 3
    )

    assert learned.labels == 3  # 4 passes, so do 5, 6, 7; 2 fails, so does 0; 3 has to be asked
    assert [learned.hypothesis(x) for x in range(8)] == [x >= 3 for x in range(8)]


def test_labels_of_no_concept_are_refused() -> None:
    space = FiniteSpace(of_rows(["00", "10"]))
    space.tell(0, False)

    with pytest.raises(UsageError, match="no concept of the class has these"):
        space.tell(0, True)


def test_a_pool_is_large_enough_for_every_wrong_concept() -> None:
    # 100 concepts, each found out but for (1 - .1)^n: n = ln(100 / .05) / .1 = 76.009...
    assert pool_size(100, 0.1, 0.05) == 77
    assert 100 * 0.9**77 <= 0.05
    for wrong in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(UsageError, match="epsilon must be between 0 and 1"):
            pool_size(10, wrong, 0.1)
        with pytest.raises(UsageError, match="delta must be between 0 and 1"):
            pool_size(10, 0.1, wrong)


def test_searching_stops_at_the_first_positive_label() -> None:
    asked: list[int] = []

    def learner(pool: Sequence[int]):  # type: ignore[no-untyped-def]
        for index in (2, 0, 1):
            asked.append(index)
            yield index
        return bool

    assert search_by_learning(learner, [10, 11, 12], lambda point: point == 10) == PoolSearch(0, 2)
    assert asked == [2, 0]
    assert search_by_learning(learner, [10, 11, 12], lambda point: False) == PoolSearch(0, 3)
    assert search_by_learning(disagreement_learner(lambda: FiniteSpace(of_rows(["0"]))), [0], bool)


EPSILON, DELTA, RUNS = 0.05, 0.1, 400


@pytest.mark.slow
@pytest.mark.parametrize("text", ["thresholds:12", "intervals:8", "singletons:6", "subsets:5"])
@pytest.mark.parametrize("mass", [0.101, 0.2, 0.5])
def test_the_guarantee_of_the_theorem(text: str, mass: float) -> None:
    """Positive mass above 2 epsilon: success at least 1 - 2 delta, up to four standard errors."""
    of = family(text)
    assert of is not None
    chance = np.random.default_rng(1)
    concepts = of.binary()
    learner = disagreement_learner(partial(FiniteSpace, of))
    size = pool_size(of.concepts, EPSILON, DELTA)
    found = learned_well = 0
    for _ in range(RUNS):
        truth = concepts[chance.choice(np.flatnonzero(concepts.any(axis=1)))]
        law = _law(truth, mass, chance)
        pool = chance.choice(of.points, size=size, p=law).tolist()
        result = search_by_learning(learner, pool, truth.tolist().__getitem__)
        found += bool(truth[pool[result.index]])
        learned = run_learner(learner, pool, truth.tolist().__getitem__)
        wrong = [learned.hypothesis(x) != truth[x] for x in range(of.points)]
        learned_well += law[wrong].sum() <= EPSILON
    error = math.sqrt(DELTA * (1 - DELTA) / RUNS)
    assert learned_well / RUNS >= 1 - DELTA - 4 * error
    assert found / RUNS >= 1 - 2 * DELTA - 4 * error


def test_the_guarantee_cannot_be_better() -> None:
    """A learner that guesses, with 2 delta, between two concepts: it errs with delta only."""
    chance, mass, runs = np.random.default_rng(2), 2.2 * EPSILON, 2000

    def learner(pool: Sequence[int]):  # type: ignore[no-untyped-def]
        label = chance.random() < 0.5
        if chance.random() >= 2 * DELTA and 1 in pool:
            label = yield pool.index(1)
        return lambda point: label and point == 1

    found = wrong = 0
    for _ in range(runs):
        pool = (chance.random(100) < mass).astype(int).tolist()
        found += pool[search_by_learning(learner, pool, bool).index]
        wrong += not run_learner(learner, pool, bool).hypothesis(1)
    error = math.sqrt(2 * DELTA * (1 - 2 * DELTA) / runs)
    assert wrong / runs == pytest.approx(DELTA, abs=4 * error)
    assert found / runs == pytest.approx(1 - 2 * DELTA * (1 - mass), abs=4 * error)


def _law(truth: np.ndarray, mass: float, chance: np.random.Generator) -> np.ndarray:
    """A random law that gives the target just so much; all of it where everything passes."""
    weights = chance.random(len(truth)) + 0.01
    share = np.where(truth, weights / weights[truth].sum(), 0) * mass
    if truth.all():
        return share / mass
    return share + np.where(truth, 0, weights / weights[~truth].sum()) * (1 - mass)
