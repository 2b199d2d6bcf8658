"""Theorem 7: what Alternate's rounds may give away for variety, and what Varied costs at worst.

The inequality itself is proved: `test_varied_proof.py`. Here are what it is about, and the policy.
"""

from __future__ import annotations

import math
import random
import statistics

import pytest

from grv.core.values import Costs
from grv.policies import Varied
from grv.testing import World, labelled, run
from grv.theory.slots import alternate_draws
from grv.theory.varied_bound import period, varied_ratio

SHARES = [10 ** (-7 * i / 300) for i in range(301)]  # from 1 down to 1e-7


def alternate_constant(rho: float) -> float:
    n = alternate_draws(rho).later
    return (1 + n + 2 * rho) / (1 + min(n, rho))


def test_the_period_is_its_formula() -> None:
    for n in range(1, 3000):
        assert period(n) == max(3, 1 + math.ceil(math.sqrt(n) / 2 - 1e-12))


@pytest.mark.parametrize("rho", [3, 10, 20, 30, 100])
def test_at_whole_ratios_it_is_what_is_proven_of_alternate(rho: float) -> None:
    worst = max(varied_ratio(rho, q) for q in SHARES)

    assert worst == pytest.approx(alternate_constant(rho), rel=1e-4)


def two_levels(q: float, p: float, *, tied_below: bool, size: int, seed: int) -> World:
    """A share q at one score, where p pass; below it nothing passes."""
    chance = random.Random(f"two levels {seed}")

    def label(_: int) -> tuple[float, bool]:
        if chance.random() < q:
            return 1.0, chance.random() < p
        return (0.0 if tied_below else chance.random() / 2), False

    return labelled(size, label)


def mean_cost(costs: Costs, worlds: list[World]) -> tuple[float, float]:
    """The mean and its standard error."""
    bills = []
    for world in worlds:
        search = run(Varied(), costs, world)
        assert search.outcome is not None
        assert search.outcome.solved  # so nothing is as if the candidates had come to an end
        bills.append(search.outcome.bill.total)
    return statistics.mean(bills), statistics.stdev(bills) / math.sqrt(len(bills))


@pytest.mark.slow
@pytest.mark.parametrize("tied_below", [False, True])
@pytest.mark.parametrize(("q", "p"), [(0.02, 0.9), (0.1, 0.1), (0.2, 0.5), (0.3, 0.05), (0.9, 0.1)])
def test_at_one_score_that_passes_now_and_then_it_stays_within_three(
    q: float, p: float, tied_below: bool
) -> None:
    """The laws for which variety is waste. Statistically: three standard errors."""
    rho = 10
    optimum = (1 + rho * q) / (p * q)
    size = int(8 * optimum)  # several times what is drawn
    worlds = [two_levels(q, p, tied_below=tied_below, size=size, seed=i) for i in range(100)]

    mean, error = mean_cost(Costs(1, rho), worlds)

    assert mean - 3 * error <= 3 * optimum


def passing_only(low: float, high: float, levels: int, seed: int) -> World:
    """Scores at this many levels, or all different (0); exactly those in an interval pass."""
    chance = random.Random(f"interval {seed}")

    def label(_: int) -> tuple[float, bool]:
        score = chance.randrange(levels) / levels if levels else chance.random()
        return score, low <= score < high

    return labelled(1000, label)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [0, 10, 40])
@pytest.mark.parametrize(("low", "high"), [(0, 0.1), (0.5, 0.6), (0.9, 1), (0.3, 0.8)])
def test_whatever_score_passes_it_is_within_three_of_verifying_everything(
    low: float, high: float, levels: int
) -> None:
    rho = 10
    worlds = [passing_only(low, high, levels, seed=i) for i in range(100)]
    passing = [low <= level / levels < high for level in range(levels)]
    rate = sum(passing) / levels if levels else high - low

    mean, error = mean_cost(Costs(1, rho), worlds)

    assert mean - 3 * error <= 3 * (1 + rho) / rate
