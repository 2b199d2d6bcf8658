"""The theorems about batches: exact programmes, and runs that must keep the bounds."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.replay.batch import Course, CourseSteps, run_batch
from grv.schedules import parse
from grv.theory.proofs.batch_proof import (
    best_expected,
    blocks,
    equal_spending,
    found_by_chance,
    hidden_means_ratio,
    known_means,
    least_spent_expected,
    mixed_hazards,
    rise,
    transform_ratio,
)

PERCENT = st.integers(0, 100).map(lambda n: Fraction(n, 100))


@given(
    hazards=st.lists(PERCENT, min_size=1, max_size=4),
    problems=st.integers(1, 4),
    budget=st.integers(0, 12),
)
def test_with_falling_hazards_no_rule_solves_more_than_least_spent(
    hazards: list[Fraction], problems: int, budget: int
) -> None:
    falling = sorted(hazards, reverse=True)
    costs = [1] * len(falling)

    assert least_spent_expected(falling, costs, problems, budget) == best_expected(
        falling, costs, problems, budget
    )


def test_with_rising_hazards_another_rule_solves_more() -> None:
    rising = [Fraction(1, 10), Fraction(9, 10)]

    assert least_spent_expected(rising, [1, 1], 2, 2) == Fraction(1, 5)
    assert best_expected(rising, [1, 1], 2, 2) == Fraction(1, 10) * 1 + Fraction(9, 10) * Fraction(
        9, 10
    ) + Fraction(1, 10) * Fraction(1, 10)


@given(
    steps=st.lists(st.tuples(st.integers(1, 99), st.integers(1, 4)), min_size=1, max_size=3),
    problems=st.integers(1, 3),
    budget=st.integers(0, 10),
)
def test_least_spent_loses_at_most_the_rise_and_one_step(
    steps: list[tuple[int, int]], problems: int, budget: int
) -> None:
    hazards = [Fraction(percent, 100) for percent, _ in steps]
    costs = [cost for _, cost in steps]
    factor = rise(hazards, costs)

    more = least_spent_expected(hazards, costs, problems, budget + max(costs))
    assert best_expected(hazards, costs, problems, budget) <= factor * more


def test_a_step_that_never_passes_before_one_that_may_has_no_factor() -> None:
    with pytest.raises(ValueError, match="never passes"):
        rise([0, Fraction(1, 2)], [1, 1])
    assert rise([Fraction(1, 2), 0], [1, 1]) == 1


@given(st.lists(st.tuples(PERCENT, st.integers(1, 9)), min_size=1, max_size=5))
def test_a_mixture_of_constant_rates_has_falling_hazards(
    mixture: list[tuple[Fraction, int]],
) -> None:
    rates = [min(rate, Fraction(99, 100)) for rate, _ in mixture]
    weights = [Fraction(weight) for _, weight in mixture]
    hazards = mixed_hazards(rates, weights, 8)

    assert all(first >= second for first, second in itertools.pairwise(hazards))


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 5)), min_size=1, max_size=6))
def test_the_blocks_have_falling_rates(steps: list[tuple[int, int]]) -> None:
    hazards = [Fraction(percent, 100) for percent, _ in steps]
    costs = [Fraction(cost) for _, cost in steps]
    rates = []
    start = 0
    for end in blocks(hazards, costs):
        alive = Fraction(1)
        passed = Fraction(0)
        spent = Fraction(0)
        for k in range(start, end):
            spent += alive * costs[k]
            passed += alive * hazards[k]
            alive *= 1 - hazards[k]
        rates.append(passed / spent)
        start = end

    assert start == len(hazards)
    assert all(first > second for first, second in itertools.pairwise(rates))


def test_a_small_first_look_belongs_to_the_round_that_follows() -> None:
    # `balanced` at rho = 10 on a needle: 3 draws, then rounds of 11; a draw finds it with 1 in 1000
    chances = [1 - Fraction(999, 1000) ** draws for draws in (3, 11, 11, 11)]
    costs = [Fraction(13), Fraction(21), Fraction(21), Fraction(21)]

    assert blocks(chances, costs)[0] > 1
    assert 2 < rise(chances, costs) < Fraction(5, 2)


# Courses: levels of verdicts; the last one is a pass if the course is solved.
LEVELS = st.lists(st.floats(0.1, 20), min_size=1, max_size=6).map(lambda c: np.cumsum(c))
COURSES = st.lists(st.tuples(LEVELS, st.booleans()), min_size=1, max_size=8)


def made(courses: list[tuple[np.ndarray, bool]]) -> list[Course]:
    return [Course(levels, solved, np.arange(len(levels))) for levels, solved in courses]


def needed(courses: list[Course], limit: float) -> float:
    return math.fsum(min(course.cost, limit) for course in courses)


@given(courses=COURSES, limit=st.floats(0.1, 60))
def test_what_costs_at_most_a_level_is_solved_if_the_money_covers_that_level(
    courses: list[tuple[np.ndarray, bool]], limit: float
) -> None:
    batch = made(courses)
    cheap = [each.solved and each.cost <= limit for each in batch]
    budget = needed(batch, limit) + 1e-9
    once = run_batch(parse("least-spent").begin(), [*map(CourseSteps, batch)], budget)
    twice = run_batch(parse("doubling").begin(), [*map(CourseSteps, batch)], 2 * budget)

    assert (once.solved | ~np.array(cheap)).all()
    assert (twice.solved | ~np.array(cheap)).all()


@given(courses=COURSES, weights=st.lists(st.floats(0.2, 5), min_size=8, max_size=8))
def test_with_weights_the_level_of_a_problem_is_its_weight_times_the_common_one(
    courses: list[tuple[np.ndarray, bool]], weights: list[float]
) -> None:
    batch = made(courses)
    limit = 10.0
    budget = math.fsum(min(c.cost, w * limit) for c, w in zip(batch, weights, strict=False)) + 1e-9
    schedule = parse("least-spent").begin()
    left = budget
    places = [0] * len(batch)
    for place, each in enumerate(batch):
        schedule.add(place, weight=weights[place], next_cost=float(each.levels[0]))
    solved = set()
    while (problem := schedule.ask()) is not None:
        course = batch[problem]
        spent = float(course.levels[places[problem] - 1]) if places[problem] else 0.0
        cost = float(course.levels[places[problem]]) - spent
        if cost > left:
            schedule.tell(problem, spent=spent, ended=True)
            continue
        left -= cost
        places[problem] += 1
        ended = places[problem] == len(course.levels)
        if ended and course.solved:
            solved.add(problem)
        following = 0.0 if ended else float(course.levels[places[problem]]) - spent - cost
        schedule.tell(problem, spent=spent + cost, next_cost=following, ended=ended)

    for place, each in enumerate(batch):
        if each.solved and each.cost <= weights[place] * limit:
            assert place in solved


@given(courses=COURSES, factor=st.floats(1.1, 5), share=st.floats(0.05, 1))
def test_against_hindsight(
    courses: list[tuple[np.ndarray, bool]], factor: float, share: float
) -> None:
    batch = made(courses)
    costs = sorted(course.cost for course in batch if course.solved)
    budget = share * math.fsum(costs) + 1e-9
    totals = list(itertools.accumulate(costs))
    hindsight = sum(total <= budget for total in totals)
    if hindsight == 0:
        return
    money = factor * budget * len(batch) / hindsight
    run = run_batch(parse("least-spent").begin(), [*map(CourseSteps, batch)], money)

    assert run.solved.sum() >= (1 - 1 / factor) * hindsight


def test_no_factor_without_the_number_of_problems_is_enough_against_hindsight() -> None:
    # k of N problems cost 1 and the others are impossible: hindsight needs k.
    for problems, solvable in [(10, 2), (100, 2)]:
        budget = 3 * solvable
        exact = sum(
            Fraction(
                math.comb(solvable, found)
                * math.comb(problems - solvable, min(budget, problems) - found),
                math.comb(problems, min(budget, problems)),
            )
            * found
            for found in range(solvable + 1)
        )
        assert exact == found_by_chance(problems, solvable, budget)
    assert found_by_chance(1000, 2, 6) < Fraction(2, 100)


@given(
    courses=COURSES, at_once=st.integers(1, 4), limit=st.floats(0.1, 60), seed=st.integers(0, 99)
)
def test_concurrency_loses_at_most_one_problem_for_each_slot_but_one(
    courses: list[tuple[np.ndarray, bool]], at_once: int, limit: float, seed: int
) -> None:
    """Steps end in any order; at each start, those with a lower next level are out."""
    batch = made(courses)
    budget = needed(batch, limit) + 1e-9
    rng = random.Random(seed)
    schedule = parse("least-spent").begin()
    steps = [CourseSteps(course) for course in batch]
    for problem, search in enumerate(steps):
        assert search.level is not None
        schedule.add(problem, next_cost=search.level)
    total = 0.0
    out: list[int] = []
    while True:
        while len(out) < at_once and (asked := schedule.ask()) is not None:
            search = steps[asked]
            assert search.level is not None
            behind = [
                other
                for other, each in enumerate(steps)
                if each.level is not None and each.level < search.level
            ]
            assert set(behind) <= set(out)
            if total + search.level - search.spent > budget:
                schedule.tell(asked, spent=search.spent, ended=True)
                steps[asked].level = None
                continue
            total += search.level - search.spent
            out.append(asked)
        if not out:
            break
        problem = out.pop(rng.randrange(len(out)))
        search = steps[problem]
        search.take()
        rest = 0.0 if search.level is None else search.level - search.spent
        schedule.tell(problem, spent=search.spent, next_cost=rest, ended=search.level is None)
    cheap = [course.solved and course.cost <= limit for course in batch]
    solved = [each.solved for each in steps]

    assert sum(c and not s for c, s in zip(cheap, solved, strict=True)) <= at_once - 1


def test_equal_spending_costs_at_most_half_pi_times_the_optimum() -> None:
    rng = random.Random(3)
    for size in (1, 2, 5, 20, 60):
        for _ in range(20):
            means = [math.exp(rng.uniform(0, 12)) for _ in range(size)]
            assert known_means(means) <= equal_spending(means) * (1 + 1e-12)
            assert equal_spending(means) <= math.pi / 2 * known_means(means)
    assert equal_spending([5.0]) == known_means([5.0]) == 5.0


def test_squares_come_near_the_bound() -> None:
    ratios = [
        equal_spending(means) / known_means(means)
        for means in ([(n / i) ** 2 for i in range(1, n + 1)] for n in (10, 100, 600))
    ]

    assert ratios == pytest.approx([1.28, 1.40, 1.44], abs=0.006)


def test_the_means_of_the_formulas_are_those_of_exponential_searches() -> None:
    """Small steps of a Markov chain: two problems, equal spending and the cheapest first."""
    first, second = 3.0, 7.0
    step = 0.001
    rates = [1 - math.exp(-step / first), 1 - math.exp(-step / second)]
    # Equal spending: until one is solved both get a step; then the other goes on alone.
    none = 1.0
    total = 0.0
    for _ in range(60_000):
        total += none * 4 * step  # both are open, and both get a step
        one = none * rates[0] * (1 - rates[1])
        other = none * (1 - rates[0]) * rates[1]
        total += one * second + other * first
        none *= (1 - rates[0]) * (1 - rates[1])

    assert total == pytest.approx(equal_spending([first, second]), rel=2e-3)
    assert known_means([first, second]) == pytest.approx(2 * first + second)
    assert known_means([3.0, 7.0, 5.0]) == pytest.approx(
        min(
            sum((3 - place) * mean for place, mean in enumerate(order))
            for order in itertools.permutations([3.0, 7.0, 5.0])
        )
    )


def test_the_ratio_of_the_transforms_is_largest_at_zero() -> None:
    assert transform_ratio(0) == pytest.approx(math.pi / 2)
    for w in np.linspace(0.001, 5, 500):
        assert transform_ratio(float(w)) < math.pi / 2
        assert 1 + 4 * w * w < math.cosh(math.pi * w)  # what the proof uses


def test_not_knowing_the_means_costs_half_pi_in_the_limit() -> None:
    ratios = [hidden_means_ratio(length) for length in (1, 5, 20, 100, 1000)]

    assert ratios == sorted(ratios)
    assert all(ratio < math.pi / 2 for ratio in ratios)
    assert ratios[-1] > math.pi / 2 - 0.01
