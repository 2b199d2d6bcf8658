"""Statements about a batch under one budget, as exact functions; see docs/theory/batch.md.

A problem is here a sequence of steps. The k-th step of every problem costs `costs[k]` and passes
with probability `hazards[k]` if the earlier ones failed; after the last step the problem has ended.
With fractions the results are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

Number = Fraction | int


def best_expected(
    hazards: Sequence[Number], costs: Sequence[int], problems: int, budget: int
) -> Fraction:
    """The most problems that any rule solves in the mean: a programme over all rules (Theorem 1).

    The state is how many open problems have failed k times. Rules may use all that happened.
    """
    steps = len(hazards)

    @cache
    def value(state: tuple[int, ...], left: int) -> Fraction:
        best = Fraction(0)
        for k in range(steps):
            if state[k] and costs[k] <= left:
                best = max(best, _after(value, state, k, hazards, left - costs[k]))
        return best

    return value((problems, *[0] * (steps - 1)), budget)


def least_spent_expected(
    hazards: Sequence[Number], costs: Sequence[int], problems: int, budget: int
) -> Fraction:
    """The same for least spent first; a problem whose step is not affordable has ended."""
    steps = len(hazards)

    @cache
    def value(state: tuple[int, ...], left: int) -> Fraction:
        for k in range(steps):
            if state[k] and costs[k] <= left:
                return _after(value, state, k, hazards, left - costs[k])
            if state[k]:
                return value((*state[:k], 0, *state[k + 1 :]), left)
        return Fraction(0)

    return value((problems, *[0] * (steps - 1)), budget)


def _after(
    value: object, state: tuple[int, ...], k: int, hazards: Sequence[Number], left: int
) -> Fraction:
    """What is expected after the k-th step of one problem."""
    assert callable(value)
    rest = list(state)
    rest[k] -= 1
    solved: Fraction = value(tuple(rest), left)
    if k + 1 < len(state):
        rest[k + 1] += 1
    failed: Fraction = value(tuple(rest), left)
    chance = Fraction(hazards[k])
    return chance * (1 + solved) + (1 - chance) * failed


def mixed_hazards(
    rates: Sequence[Fraction], weights: Sequence[Fraction], steps: int
) -> list[Fraction]:
    """The hazards of a problem whose pass rate is drawn once, and stays; they fall (Lemma 1)."""
    hazards = []
    for k in range(steps):
        alive = [w * (1 - p) ** k for p, w in zip(rates, weights, strict=True)]
        passed = sum((a * p for a, p in zip(alive, rates, strict=True)), Fraction(0))
        hazards.append(passed / sum(alive, Fraction(0)))
    return hazards


def rise(hazards: Sequence[Number], costs: Sequence[Number]) -> Fraction:
    """The largest factor by which the chance per unit of money rises later (Theorem 5).

    1 if it never rises.
    """
    rates = [Fraction(h) / Fraction(c) for h, c in zip(hazards, costs, strict=True)]
    factor = Fraction(1)
    for k, rate in enumerate(rates):
        later = max(rates[k:])
        if later > rate:
            if rate == 0:
                raise ValueError("a step that never passes comes before one that may")
            factor = max(factor, later / rate)
    return factor


def blocks(hazards: Sequence[Fraction], costs: Sequence[Fraction]) -> list[int]:
    """Where steps are to be taken together, so that the chance per unit of money falls.

    The ends of the blocks, as numbers of steps. From each start, the block is the one with the
    largest chance of a pass per expected money; of equal ones, the longest.
    """
    ends: list[int] = []
    start = 0
    while start < len(hazards):
        alive = Fraction(1)
        passed = Fraction(0)
        spent = Fraction(0)
        best = Fraction(-1)
        end = start
        for k in range(start, len(hazards)):
            spent += alive * costs[k]
            passed += alive * hazards[k]
            alive *= 1 - hazards[k]
            if passed / spent >= best:
                best = passed / spent
                end = k + 1
        ends.append(end)
        start = end
    return ends


def equal_spending(means: Sequence[float]) -> float:
    """The expected sum of completion costs if all open problems get the same (Theorem 6).

    Searches have constant rates, `means[i]` is the mean cost of problem i. The completion cost of a
    problem is the money spent on all problems until it is solved.
    """
    pairs = math.fsum(x * y / (x + y) for x in means for y in means)
    return math.fsum(means) / 2 + pairs


def known_means(means: Sequence[float]) -> float:
    """The least expected sum for a rule that knows every mean: the cheapest first."""
    pairs = math.fsum(min(x, y) for x in means for y in means)
    return math.fsum(means) / 2 + pairs / 2


def transform_ratio(w: float) -> float:
    """The ratio of the Fourier transforms of the two kernels; at most pi/2."""
    return 2 * math.pi * (0.25 + w * w) / math.cosh(math.pi * w)


def hidden_means_ratio(length: float, points: int = 20_000) -> float:
    """What not knowing the means costs if they have density x^(-3/2) on [1, e^length].

    The limit for many problems of the best rule's expected sum over that of `known_means`.
    """
    width = length / points
    places = [(at + 0.5) * width for at in range(points)]
    unknown = math.fsum((length - s) / math.cosh(s / 2) for s in places) * 2 * width
    known = 4 * length - 8 * (1 - math.exp(-length / 2))
    return unknown / known


def found_by_chance(problems: int, solvable: int, tried: int) -> Fraction:
    """How many solvable problems are among those tried, if nothing tells them apart (Theorem 3)."""
    return Fraction(min(tried, problems) * solvable, problems)
