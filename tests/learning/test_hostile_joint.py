"""One hostile search in the history of several generators hardly makes later problems dearer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from grv.comparing.portfolio.trials import OrderOfArrival
from grv.core.values import Costs
from grv.learning.history import PastProblem
from grv.learning.joint import PastAttempts, fit_joint
from grv.learning.joint_history import attempts_of_pools
from grv.logs.log import LoggedProblem
from grv.policies import VerifyAll
from grv.policies.portfolio import ByExpectedPasses, Chooser, Portfolio, root_shares
from grv.replay.portfolio import Entrant, orders_of, replayed_portfolio

Scores = NDArray[np.float64]

SIZE = 5000  # the candidates of a hostile search, of each generator
EACH = 40  # those of an ordinary problem
EARLIER = 20
LATER = 60
NAMES = ("g0", "g1", "g2")
PRICES = (1.0, 4.0, 20.0)
ENTRANTS = {
    name: Entrant(Costs(price, 10), VerifyAll()) for name, price in zip(NAMES, PRICES, strict=True)
}
SHARES = root_shares({name: each.costs for name, each in ENTRANTS.items()})
NOISE = np.random.default_rng(1).normal(0, 1, SIZE)
RISING = np.sort(NOISE)
TURNS = np.arange(SIZE) % 3


@dataclass(frozen=True)
class Population:
    """Made-up problems: the log-odds of a pass by generator, and what they vary by."""

    levels: tuple[float, float, float]
    spread: float
    effect: float
    strength: float

    def problems(self, number: int, seed: int) -> list[LoggedProblem]:
        """Problems that some generator solves."""
        random = np.random.default_rng(seed)
        own = np.repeat(np.arange(len(NAMES), dtype=np.int32), EACH)
        problems: list[LoggedProblem] = []
        while len(problems) < number:
            odds = np.array(self.levels) + self.spread * random.normal()
            odds = np.repeat(odds + self.effect * random.normal(size=len(NAMES)), EACH)
            scores = random.normal(size=len(odds))
            passed = random.random(len(odds)) < 1 / (1 + np.exp(-odds - self.strength * scores))
            shown = scores if self.strength else np.zeros(len(odds))
            if passed.any():
                name = f"p{len(problems)}"
                problems.append(LoggedProblem(name, shown, passed, generators=own))
        return problems


def run(chooser: Chooser, problem: LoggedProblem) -> Portfolio:
    return replayed_portfolio(ENTRANTS, chooser, problem, orders_of(problem, NAMES, 0))


@cache
def history(population: Population) -> list[PastAttempts]:
    """What a portfolio that learns in order of arrival has seen."""
    arrival = OrderOfArrival(ENTRANTS)
    past: list[PastAttempts] = []
    for problem in population.problems(EARLIER, seed=1000):
        done = run(arrival.chooser(), problem)
        pools = {member.name: member.search.pool for member in done.members}
        past.append(attempts_of_pools(problem.id, pools))
        arrival.add(past[-1])
    return past


@cache
def spent_without(population: Population) -> float:
    return spent(history(population), population.problems(LATER, seed=2000))


def spent(past: list[PastAttempts], problems: list[LoggedProblem]) -> float:
    chooser = ByExpectedPasses(fit_joint(past, NAMES), SHARES)
    return sum(run(chooser, problem).bill.total for problem in problems)


def labels(failed: int, passed: int, scores: Scores) -> PastProblem:
    """A hostile search of one generator: failures, then passes."""
    number = failed + passed
    is_pass = np.arange(number) >= failed
    return PastProblem("hostile", scores[:number], is_pass, np.ones(number, dtype=np.bool_))


def all_fail(scores: Scores) -> PastAttempts:
    return {name: labels(SIZE, 0, scores) for name in NAMES}


def inverted(scores: Scores) -> PastAttempts:
    """The higher half of the scores fails, the lower half passes."""
    return {name: labels(SIZE // 2, SIZE // 2, scores[::-1]) for name in NAMES}


def one_fails(name: str) -> Callable[[Scores], PastAttempts]:
    return lambda scores: {name: labels(SIZE, 0, scores)}


def one_passes(name: str) -> Callable[[Scores], PastAttempts]:
    return lambda scores: {name: labels(0, SIZE, scores)}


STRONG = Population((-6, -5, 1), 1, 0.5, 0)  # only the dearest generator is worth its price
SCORED = Population((-3, -2, -1), 1.5, 1, 1.5)  # with a good score
FLAT = np.zeros(SIZE)
HOSTILE: dict[str, tuple[Population, Callable[[Scores], PastAttempts], Scores]] = {
    "all fail": (STRONG, all_fail, FLAT),
    "the best one fails": (STRONG, one_fails("g2"), FLAT),
    "a hopeless one passes": (STRONG, one_passes("g0"), FLAT),
    "another hopeless one passes": (STRONG, one_passes("g1"), FLAT),
    "the score is inverted": (SCORED, inverted, RISING),
    "all fail, scores like the others": (SCORED, all_fail, NOISE),
    "all fail, huge": (SCORED, all_fail, np.full(SIZE, 1e308)),
    "all fail, -inf": (SCORED, all_fail, np.full(SIZE, -np.inf)),
    "all fail, nan": (SCORED, all_fail, np.full(SIZE, np.nan)),
    "all fail, higher than all others": (SCORED, all_fail, 50 + NOISE),
    "all fail, lower than all others": (SCORED, all_fail, NOISE - 50),
    "all fail, all equal": (SCORED, all_fail, FLAT),
    "all fail, some huge": (SCORED, all_fail, np.where(TURNS == 0, 1e308, NOISE)),
    "a weak one passes, scored": (SCORED, one_passes("g0"), NOISE),
    "a strong one fails, scored": (SCORED, one_fails("g2"), NOISE),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_later_problems_cost_hardly_more(kind: str) -> None:
    population, attack, scores = HOSTILE[kind]
    later = population.problems(LATER, seed=2000)

    ours = spent([*history(population), attack(scores)], later)

    assert ours <= 1.1 * spent_without(population)
