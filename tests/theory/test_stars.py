"""Star numbers: known values, brute force, witnesses by the definition, honest intervals."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.theory.stars import tree as star_tree
from grv.theory.stars.classes import ConceptClass, family, of_rows
from grv.theory.stars.search import Star, is_star, narrowing, star_number
from grv.theory.stars.tree import Rows, Tree
from support.examples import examples


def holds(of: ConceptClass, star: Star, *, eta: float = 1.0, any_centre: bool = False) -> bool:
    """The definition, entry by entry, with nothing of the solver in it."""
    values = of.values
    for i, (own, concept) in enumerate(zip(star.points, star.concepts, strict=True)):
        for j, point in enumerate(star.points):
            entry = values[concept, point]
            if any_centre:
                assert star.centre is not None
                entry = abs(entry - values[star.centre, point])
            if (i == j and entry < eta) or (i != j and entry != 0):
                return False
        assert star.points.count(own) == 1
    return len(star.points) == len(star.concepts) == star.lower


def brute(values: np.ndarray, eta: float = 1.0) -> int:
    """The largest star around zero, by trying every set of points: numbers whose bits they are."""
    bits = 1 << np.arange(values.shape[1])
    sets = np.arange(1 << values.shape[1])
    met = ((values > 0) @ bits)[:, None] & sets
    alone = (met & (met - 1) == 0) & (met & ((values >= eta) @ bits)[:, None] != 0)
    spoken_for = np.bitwise_or.reduce(np.where(alone, met, 0), axis=0)
    return max(int(star).bit_count() for star in sets[spoken_for == sets])


def brute_any(values: np.ndarray) -> int:
    return max(brute(np.abs(values - centre)) for centre in values)


@st.composite
def matrices(draw: st.DrawFn, entries: tuple[float, ...] = (0, 1)) -> ConceptClass:
    """Up to 12 concepts on up to 6 points."""
    points = draw(st.integers(1, 6))
    row = st.lists(st.sampled_from(entries), min_size=points, max_size=points)
    return ConceptClass(np.array(draw(st.lists(row, min_size=1, max_size=12)), dtype=np.float64))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 16, 64])
@pytest.mark.parametrize(
    ("name", "number"),
    [("thresholds", 1), ("singletons", None), ("intervals", None), ("subsets", None)],
)
def test_known_values(name: str, number: int | None, n: int) -> None:
    if name == "subsets":
        n = min(n, 12)
    of = family(f"{name}:{n}")
    assert of is not None

    star = star_number(of)

    assert star.number == (n if number is None else number)
    assert holds(of, star)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "number"),
    [("thresholds:1", 1), ("thresholds:64", 2), ("singletons:9", 9), ("intervals:64", 64)],
)
def test_known_values_from_any_centre(text: str, number: int) -> None:
    of = family(text)
    assert of is not None

    star = star_number(of, centre="any")

    assert star.number == number
    assert holds(of, star, any_centre=True)


def test_without_a_nonzero_concept_it_is_zero() -> None:
    assert star_number(of_rows(["000", "000"])) == Star(0, 0, (), ())
    assert star_number(of_rows(["010"]), centre="any").number == 0
    assert star_number(ConceptClass(np.array([[0.2, 0.1]])), eta=0.5).number == 0


def test_zero_is_the_centre_whether_it_is_in_the_class_or_not() -> None:
    assert star_number(of_rows(["100", "010", "001"])).number == 3
    assert star_number(of_rows(["100", "010", "001"]), centre="any").number == 2


@settings(max_examples=examples(200))
@given(matrices())
def test_brute_force_agrees(of: ConceptClass) -> None:
    star = star_number(of)
    assert star.number == brute(of.values)
    assert holds(of, star)
    assert is_star(of, star.points, star.concepts)


@settings(max_examples=examples(120))
@given(matrices())
def test_brute_force_agrees_from_any_centre(of: ConceptClass) -> None:
    star = star_number(of, centre="any")
    assert star.number == brute_any(of.values)
    assert holds(of, star, any_centre=True)
    assert is_star(of, star.points, star.concepts, centre=star.centre)


@settings(max_examples=examples(200))
@given(matrices((0, 0.2, 0.5, 1)), st.sampled_from([0.1, 0.2, 0.5, 0.7, 1.0]))
def test_brute_force_agrees_on_probabilistic_classes(of: ConceptClass, eta: float) -> None:
    star = star_number(of, eta=eta)
    assert star.number == brute(of.values, eta)
    assert holds(of, star, eta=eta)
    assert is_star(of, star.points, star.concepts, eta=eta)


@settings(max_examples=examples(50))
@given(matrices())
def test_eta_makes_no_difference_to_a_binary_class(of: ConceptClass) -> None:
    assert star_number(of, eta=0.3).number == star_number(of).number


@settings(max_examples=examples(60))
@given(matrices())
def test_the_centered_one_is_never_larger_than_the_usual_one(of: ConceptClass) -> None:
    with_zero = of.with_zero()
    centered, usual = star_number(with_zero).number, star_number(with_zero, centre="any").number
    assert centered is not None
    assert usual is not None
    assert centered <= usual


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "density"), [(20, 0.1), (20, 0.2), (20, 0.3), (20, 0.5), (20, 0.8), (15, 0.3)]
)
def test_random_classes_of_20_points_and_100_concepts(points: int, density: float) -> None:
    values = np.random.default_rng(7).random((100, points)) < density
    of = ConceptClass(values.astype(np.float64))

    star = star_number(of)

    assert star.number is not None
    assert holds(of, star)
    if density >= 0.5 or points < 20:  # there are too many small stars else
        assert star.number == by_points(values)


def by_points(values: np.ndarray) -> int:
    """Another exact method: every star, built up point by point; each subset of one is one."""
    concepts = [int("".join("01"[int(e)] for e in row), 2) for row in values]
    points = values.shape[1]
    stars, size = {0: concepts}, 0  # each with the concepts that meet it once at most
    while stars:
        larger: dict[int, list[int]] = {}
        for star, useful in stars.items():
            for at in range(star.bit_length(), points):
                grown = star | 1 << at
                left = [c for c in useful if (c & grown).bit_count() <= 1]
                if not grown & ~_union(c & grown for c in left):
                    larger[grown] = left
        stars, size = larger, size + bool(larger)
    return size


def _union(sets: Iterable[int]) -> int:
    return functools.reduce(operator.or_, sets, 0)


def test_the_interval_only_ever_closes_and_every_step_has_its_witness() -> None:
    of = ConceptClass((np.random.default_rng(3).random((60, 24)) < 0.3).astype(np.float64))
    known = Star(0, 24, (), ())
    for star in narrowing(of):
        assert known.lower <= star.lower <= star.upper <= known.upper
        if star != known:
            assert holds(of, star)
        known = star
    assert known.number is not None


@pytest.mark.slow
def test_without_time_there_is_an_interval_and_it_is_honest() -> None:
    of = ConceptClass((np.random.default_rng(3).random((60, 24)) < 0.3).astype(np.float64))
    number = star_number(of).number
    assert number is not None

    told: list[Star] = []
    hasty = star_number(of, time_limit=0, progress=told.append)
    assert hasty == told[-1]
    assert hasty.lower <= number <= hasty.upper
    assert hasty.number is None
    assert holds(of, hasty)
    for steps in (1, 10, 100, 1000):
        some = star_number(of, steps=steps)
        assert some == star_number(of, steps=steps)  # steps, unlike seconds, do not vary
        assert some.lower <= number <= some.upper


def test_from_any_centre_the_interval_is_honest_too() -> None:
    of = ConceptClass((np.random.default_rng(5).random((12, 10)) < 0.5).astype(np.float64))
    number = star_number(of, centre="any").number
    assert number == brute_any(of.values)
    before = (0, 99)
    for star in narrowing(of, centre="any"):
        assert before[0] <= star.lower <= number <= star.upper <= before[1]
        assert holds(of, star, any_centre=True)
        before = (star.lower, star.upper)


@pytest.mark.parametrize("density", [0.02, 0.1, 0.3, 0.6])
def test_of_many_sizes_the_bound_is_found_without_trying_all(
    density: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(8).random((90, 70)) < density
    monkeypatch.setattr(star_tree, "_ENTRIES_AT_ONCE", 0)  # sixteen at a time

    few = Tree(Rows(values, values)).bound()

    monkeypatch.undo()
    assert few == Tree(Rows(values, values)).bound()


def test_pairs_of_more_points_than_fit_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    of = ConceptClass((np.random.default_rng(4).random((12, 30)) < 0.4).astype(np.float64))
    number = star_number(of).number
    monkeypatch.setattr(star_tree, "_MOST_PAIRED", 29)

    assert Tree(Rows(of.binary(), of.binary())).groups() == 30
    assert star_number(of).number == number


def test_is_star_rejects_other_sets() -> None:
    of = of_rows(["10", "11", "01"])

    assert is_star(of, (0, 1), (0, 2))
    assert not is_star(of, (0, 1), (1, 2))
    assert not is_star(of, (0, 0), (0, 0))
    assert not is_star(of, (0, 1), (0,))
    assert is_star(of, (), ())


@pytest.mark.parametrize("eta", [0.0, -1.0, 1.1, float("nan")])
def test_eta_is_a_positive_probability(eta: float) -> None:
    with pytest.raises(UsageError, match="eta must be above 0 and at most 1"):
        star_number(of_rows(["1"]), eta=eta)


def test_eta_is_for_stars_around_zero_and_binary_classes_need_none() -> None:
    with pytest.raises(UsageError, match="eta can only be used with zero as the centre"):
        star_number(of_rows(["1"]), eta=0.5, centre="any")
    with pytest.raises(UsageError, match="needs eta"):
        star_number(ConceptClass(np.array([[0.5]])))
