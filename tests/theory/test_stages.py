"""Verification in stages: every statement of docs/theory/stages.md on small instances, exactly."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest

from grv.theory.stages import (
    Number,
    StagedKind,
    cost_of_order,
    greedy_order,
    least_spared,
    price_of_pass,
    ratio_order,
    staged_optimum,
)
from support.examples import examples

Course = tuple[Number, Number]  # spent, and the mass that passes


def fractions(chance: random.Random, count: int) -> list[Fraction]:
    return [Fraction(chance.randrange(1, 12), 6) for _ in range(count)]


def kinds_of(chance: random.Random, stages: int, levels: int, scores: int) -> list[StagedKind]:
    """Kinds of candidates by chance, one of which passes."""
    count = chance.randrange(2, 7)
    weights = [Fraction(chance.randrange(1, 9)) for _ in range(count)]
    found = []
    for number, weight in enumerate(weights):
        results = tuple(chance.randrange(0, levels + 1) for _ in range(stages))
        if number == 0:
            results = tuple(max(1, each) for each in results)
        found.append(StagedKind(weight / sum(weights), chance.randrange(scores), results))
    return found


def courses(
    kinds: Sequence[StagedKind], left: frozenset[int], costs: Sequence[Number]
) -> set[Course]:
    """What every strategy spends on candidates of these kinds, and how many pass."""
    if not left:
        return {(0, sum(kind.mass for kind in kinds))}
    found: set[Course] = {(0, 0)}
    mass = sum(kind.mass for kind in kinds)
    for stage in left:
        parts = []
        for result in {kind.results[stage] for kind in kinds} - {0}:
            same = [kind for kind in kinds if kind.results[stage] == result]
            parts.append(courses(same, left - {stage}, costs))
        for chosen in itertools.product(*parts):
            spent = mass * costs[stage] + sum(each[0] for each in chosen)
            found.add((spent, sum(each[1] for each in chosen)))
    return found


def strategies(kinds: Sequence[StagedKind], costs: Sequence[Number]) -> Iterator[Course]:
    """What every strategy does with one candidate: a course for each score."""
    stages = frozenset(range(len(costs)))
    scores = {kind.score for kind in kinds}
    parts = [courses([k for k in kinds if k.score == score], stages, costs) for score in scores]
    for chosen in itertools.product(*parts):
        yield sum(each[0] for each in chosen), sum(each[1] for each in chosen)


@pytest.mark.parametrize("levels", [1, 2])
def test_no_strategy_costs_less_than_the_root(levels: int) -> None:
    chance = random.Random(levels)
    for _ in range(examples(40)):
        kinds = kinds_of(chance, stages=chance.randrange(1, 4), levels=levels, scores=2)
        costs = fractions(chance, len(kinds[0].results))
        generate = Fraction(chance.randrange(1, 9), 3)
        found = staged_optimum(kinds, costs, generate)
        every = [
            (generate + spent) / passes for spent, passes in strategies(kinds, costs) if passes
        ]
        assert found.cost == min(every)
        assert found.cost * found.passes - found.spent == generate  # E V_J* = generate


def test_a_stage_that_only_passes_or_fails_never_drops_what_it_passed() -> None:
    """Every course of an optimum runs no stage, or all of them to the first failure."""
    chance = random.Random(7)
    for _ in range(examples(40)):
        kinds = kinds_of(chance, stages=3, levels=1, scores=2)
        costs = fractions(chance, 3)
        found = staged_optimum(kinds, costs, 1)
        whole: set[Course] = {(0, 0)}
        for score in {kind.score for kind in kinds}:
            same = [kind for kind in kinds if kind.score == score]
            right = sum(kind.mass for kind in same if all(kind.results))
            orders = itertools.permutations(range(3))
            spent = min(cost_of_order(same, costs, order) for order in orders)
            whole |= {(one + spent, two + right) for one, two in whole}
        assert (found.spent, found.passes) in whole


def test_a_stage_that_says_more_may_drop_what_it_passed() -> None:
    # The first stage passes half with 1, of which one in ten passes the second, and half with 2.
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    kinds = [
        StagedKind(half * tenth, 0, (1, 1)),
        StagedKind(half * (1 - tenth), 0, (1, 0)),
        StagedKind(half, 0, (2, 1)),
    ]
    found = staged_optimum(kinds, [Fraction(1, 10), Fraction(10)], 1)
    assert found.passes == half  # those with 1 are dropped
    assert found.cost == (1 + Fraction(1, 10) + half * 10) / half


def test_the_ratio_order_is_the_best_order_of_independent_stages() -> None:
    chance = random.Random(1)
    for _ in range(examples(30)):
        stages = chance.randrange(2, 5)
        refutes = [Fraction(chance.randrange(0, 7), 6) for _ in range(stages)]
        costs = fractions(chance, stages)
        kinds = []
        for results in itertools.product((0, 1), repeat=stages):
            mass = Fraction(1)
            for result, share in zip(results, refutes, strict=True):
                mass *= 1 - share if result else share
            kinds.append(StagedKind(mass, 0, results))
        every = [cost_of_order(kinds, costs, o) for o in itertools.permutations(range(stages))]
        assert cost_of_order(kinds, costs, ratio_order(refutes, costs)) == min(every)


@pytest.mark.slow
def test_greedy_costs_at_most_four_times_the_best_order_of_correlated_tests() -> None:
    chance = random.Random(2)
    worst = Fraction(1)
    for _ in range(examples(120)):
        stages = chance.randrange(2, 5)
        kinds = kinds_of(chance, stages, levels=1, scores=1)
        costs = fractions(chance, stages)
        greedy = Fraction(cost_of_order(kinds, costs, greedy_order(kinds, costs)))
        every = [cost_of_order(kinds, costs, o) for o in itertools.permutations(range(stages))]
        worst = max(worst, greedy / Fraction(min(every)))
    assert 1 <= worst <= 4


def test_greedy_is_not_always_the_best_order() -> None:
    # Each test finds 4 of 8 kinds of defects, the second and the third all of them together.
    finds = [{0, 1, 2, 3}, {0, 1, 4, 5}, {2, 3, 6, 7}]
    kinds = [
        StagedKind(Fraction(1, 8), 0, tuple(int(kind not in each) for each in finds))
        for kind in range(8)
    ]
    costs = [Fraction(1)] * 3
    greedy = cost_of_order(kinds, costs, greedy_order(kinds, costs))
    assert greedy > cost_of_order(kinds, costs, [1, 2, 0])


def test_a_redundant_screen_pays_if_it_refutes_more_than_its_share_of_the_price() -> None:
    chance = random.Random(3)
    for _ in range(examples(40)):
        wrong = Fraction(chance.randrange(1, 9), 10)
        seen = Fraction(chance.randrange(0, 6), 5)  # the share of wrong ones that the screen finds
        price, full = fractions(chance, 2)
        kinds = [
            StagedKind(wrong * seen, 0, (0, 0)),
            StagedKind(wrong * (1 - seen), 0, (1, 0)),
            StagedKind(1 - wrong, 0, (1, 1)),
        ]
        with_screen = cost_of_order(kinds, [price, full], [0, 1])
        pays = with_screen < full
        refutes = wrong * seen
        assert pays == (refutes > price / full)
        least = least_spared(float(refutes), float(price))
        assert pays == (least is not None and full > least) or abs(full - (least or 0)) < 1e-9


def test_the_best_threshold_depends_on_the_price_of_a_failure_only() -> None:
    chance = random.Random(4)
    for _ in range(examples(40)):
        masses = [Fraction(chance.randrange(1, 9)) for _ in range(5)]
        chances = sorted(Fraction(chance.randrange(0, 10), 10) for _ in range(4))
        chances.append(Fraction(9, 10))
        total = sum(masses)
        failure, success = sorted(fractions(chance, 2))
        by_threshold = []
        for first in range(5):
            reached = sum(masses[first:]) / total
            right = sum(
                (m * h for m, h in zip(masses[first:], chances[first:], strict=True)), Fraction(0)
            )
            passes = right / sum(masses[first:])
            if not passes:
                continue
            direct = 1 + reached * ((1 - passes) * failure + passes * success)
            cost = price_of_pass(reached, passes, failure, success)
            assert cost == direct / (reached * passes)
            as_planned = price_of_pass(reached, passes, failure, failure)
            by_threshold.append((as_planned, cost))
        assert min(by_threshold)[1] == min(cost for _, cost in by_threshold)
